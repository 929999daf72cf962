//! The engine's libraries: where they are, which are loaded, what they say of the machine.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::{LlamaBackendDeviceType, list_llama_ggml_backend_devices};
use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::{Device, DeviceKind, Hello, PROTOCOL, Variant};

use crate::variants::{Candidate, candidates, choose};
use crate::{facts, os};

/// The engine, ready to load a model.
#[derive(Debug)]
pub struct Backend {
    /// The CPU variant that was loaded.
    pub variant: Variant,
    /// Every variant that claims to run here, best first.
    pub variants: Vec<Variant>,
    // Proof that llama.cpp is initialized.
    _initialized: LlamaBackend,
}

impl Backend {
    /// Loads one CPU variant and every GPU backend from the engine folder, by absolute path:
    /// left to itself, llama.cpp also looks in the current directory.
    ///
    /// Errors: one sentence.
    pub fn load(variant: Option<&str>, set_aside: &[String]) -> Result<Self, String> {
        let folder = engine_folder()?;
        let found = candidates(&folder).map_err(|error| {
            format!(
                "The engine folder {} cannot be read: {error}.",
                folder.display()
            )
        })?;
        let chosen = choose(&found, variant, set_aside)?;
        // GPUs first, as llama.cpp itself does: devices are used in this order.
        for path in gpu_backends(&folder) {
            // Its driver may be missing; the log tells.
            register(&path);
        }
        if !register(&chosen.path) {
            return Err(format!(
                "The CPU variant {} could not be loaded from {}.",
                chosen.variant.name,
                chosen.path.display()
            ));
        }
        let initialized =
            LlamaBackend::init().map_err(|error| format!("llama.cpp did not start: {error}."))?;
        Ok(Self {
            variant: chosen.variant.clone(),
            variants: found
                .into_iter()
                .map(|Candidate { variant, .. }| variant)
                .collect(),
            _initialized: initialized,
        })
    }

    /// What the worker says first.
    pub fn hello(&self) -> Hello {
        let devices = list_llama_ggml_backend_devices();
        let describe = |wanted: &[LlamaBackendDeviceType]| {
            let names: Vec<&str> = devices
                .iter()
                .filter(|device| wanted.contains(&device.device_type))
                .map(|device| device.description.as_str())
                .collect();
            names.join(", ")
        };
        Hello {
            protocol: PROTOCOL,
            engine: facts::engine_build(),
            variant: self.variant.clone(),
            variants: self.variants.clone(),
            cpu_info: describe(&[
                LlamaBackendDeviceType::Cpu,
                LlamaBackendDeviceType::Accelerator,
            ]),
            gpu_info: describe(&[
                LlamaBackendDeviceType::Gpu,
                LlamaBackendDeviceType::IntegratedGpu,
            ]),
            backends: backends(),
            // SAFETY: a C string in a buffer of the engine, copied at once.
            system_info: unsafe { text(sys::llama_print_system_info()) }
                .trim()
                .to_owned(),
            devices: devices
                .iter()
                .map(|device| Device {
                    name: device.name.clone(),
                    description: device.description.trim().to_owned(),
                    kind: kind(device.device_type, &device.description),
                    memory_total: known(device.memory_total),
                    memory_free: known(device.memory_free),
                })
                .collect(),
        }
    }
}

fn known(bytes: usize) -> Option<u64> {
    (bytes > 0).then_some(bytes as u64)
}

/// A GPU interface that the processor computes names itself so; the engine calls it a GPU.
fn kind(engine_says: LlamaBackendDeviceType, description: &str) -> DeviceKind {
    const SOFTWARE: [&str; 4] = ["llvmpipe", "lavapipe", "swiftshader", "software rasterizer"];
    let description = description.to_lowercase();
    match engine_says {
        LlamaBackendDeviceType::Cpu => DeviceKind::Cpu,
        LlamaBackendDeviceType::Accelerator | LlamaBackendDeviceType::Unknown => {
            DeviceKind::Accelerator
        }
        _ if SOFTWARE.iter().any(|name| description.contains(name)) => DeviceKind::SoftwareGpu,
        LlamaBackendDeviceType::Gpu => DeviceKind::Gpu,
        LlamaBackendDeviceType::IntegratedGpu => DeviceKind::IntegratedGpu,
    }
}

/// llama-bench's `backends`: every registered one but the CPU's, or `CPU` where there is no other.
fn backends() -> String {
    // SAFETY: indices below the count; names are constant C strings.
    let names: Vec<String> = unsafe {
        (0..sys::ggml_backend_reg_count())
            .map(|index| text(sys::ggml_backend_reg_name(sys::ggml_backend_reg_get(index))))
            .filter(|name| name != "CPU")
            .collect()
    };
    if names.is_empty() {
        "CPU".into()
    } else {
        names.join(",")
    }
}

/// Copies a C string of the engine; invalid UTF-8 is replaced.
///
/// # Safety
/// `text` is null or a C string that lives as long as this call.
pub unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn register(path: &Path) -> bool {
    let Some(path) = os::engine_path(path.as_os_str()) else {
        return false;
    };
    // SAFETY: a C string; the library is one of the engine's own.
    !unsafe { sys::ggml_backend_load(path.as_ptr()) }.is_null()
}

/// The folder of the engine's libraries: `engine` beside the program (a build), the program's own
/// folder (a package), or beside the folder of a test program.
fn engine_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(|error| format!("The program cannot find itself: {error}."))?;
    let home = program.parent().unwrap_or(Path::new("/"));
    let places = [
        home.join("engine"),
        home.to_path_buf(),
        home.join("../engine"),
    ];
    places
        .iter()
        .find(|place| holds_a_variant(place))
        .cloned()
        .ok_or_else(|| {
            format!(
                "The engine's libraries are not beside {}: reinstall Twospeed.",
                program.display()
            )
        })
}

fn library_names(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("")
}

fn holds_a_variant(folder: &Path) -> bool {
    library_names(folder)
        .iter()
        .any(|path| file_name(path).contains("ggml-cpu"))
}

/// Backends other than the CPU's: `libggml-vulkan.so`, `ggml-cuda.dll`, ...
fn gpu_backends(folder: &Path) -> Vec<PathBuf> {
    let mut found = library_names(folder);
    found.retain(|path| {
        let name = file_name(path);
        let stem = name
            .strip_suffix(".so")
            .or_else(|| name.strip_suffix(".dll"))
            .map(|stem| stem.strip_prefix("lib").unwrap_or(stem));
        stem.and_then(|stem| stem.strip_prefix("ggml-"))
            .is_some_and(|name| name != "base" && !name.starts_with("cpu"))
    });
    found
}

/// The engine for unit tests: a process can start it once.
#[cfg(test)]
pub fn for_tests() -> &'static Backend {
    static BACKEND: std::sync::OnceLock<Backend> = std::sync::OnceLock::new();
    BACKEND.get_or_init(|| {
        crate::log::install();
        Backend::load(None, &[]).unwrap()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_is_never_called_a_gpu() {
        let kind = |says, description| super::kind(says, description);
        assert_eq!(
            kind(LlamaBackendDeviceType::Gpu, "NVIDIA GeForce RTX 4090"),
            DeviceKind::Gpu
        );
        assert_eq!(
            kind(
                LlamaBackendDeviceType::Gpu,
                "llvmpipe (LLVM 15.0.6, 256 bits)"
            ),
            DeviceKind::SoftwareGpu
        );
        assert_eq!(
            kind(LlamaBackendDeviceType::Cpu, "AMD EPYC"),
            DeviceKind::Cpu
        );
    }

    #[test]
    fn the_engine_says_hello_with_a_variant_of_this_machine() {
        let hello = for_tests().hello();
        assert_eq!(hello.variant, hello.variants[0]);
        assert!(hello.variants.is_sorted_by(|a, b| a.score >= b.score));
        assert_eq!(hello.backends, "CPU", "built without a GPU backend");
        assert_eq!(hello.gpu_info, "");
        assert!(!hello.cpu_info.is_empty());
        assert!(
            hello
                .devices
                .iter()
                .any(|device| device.kind == DeviceKind::Cpu)
        );
        assert!(
            hello.system_info.starts_with("CPU :"),
            "{}",
            hello.system_info
        );
    }
}
