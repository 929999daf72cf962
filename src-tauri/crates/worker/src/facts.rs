//! What the engine was built from.
//!
//! The source that llama-cpp-sys-2 carries has no git history, so its own build information says
//! "build 0, unknown". Which build it is was found by comparing it with the published source of
//! build 11434, which it equals; the constants stand beside the pinned crate and change with it.

use twospeed_engine::protocol::EngineBuild;

/// llama.cpp's build number.
pub const BUILD_NUMBER: u32 = 11434;
/// llama.cpp's commit.
pub const BUILD_COMMIT: &str = "unknown";
/// Version of llama-cpp-sys-2.
pub const CRATE_VERSION: &str = "0.1.161";

/// The three together.
pub fn engine_build() -> EngineBuild {
    EngineBuild {
        build_number: BUILD_NUMBER,
        build_commit: BUILD_COMMIT.into(),
        crate_version: CRATE_VERSION.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn the_constants_belong_to_the_crate_in_the_lock_file() {
        let lock = include_str!("../../../../Cargo.lock");
        let pinned = format!("name = \"llama-cpp-sys-2\"\nversion = \"{CRATE_VERSION}\"");
        assert!(
            lock.contains(&pinned),
            "Cargo.lock holds another llama-cpp-sys-2: find its build number and change facts.rs"
        );
    }

    #[test]
    fn the_constants_belong_to_the_linked_engine() {
        // The version and the number of ggml types are what the source itself says of its age.
        // SAFETY: a constant C string.
        let version = unsafe { CStr::from_ptr(llama_cpp_sys_2::llama_version()) };
        assert_eq!(version.to_str(), Ok("0.6.0-dev"), "of build {BUILD_NUMBER}");
        assert_eq!(llama_cpp_sys_2::GGML_TYPE_COUNT, 43);
    }
}
