//! Systems other than Linux: what is not known there is `None`.

use std::io;
use std::path::PathBuf;

use super::Usage;

/// What the process does to itself before anything else.
pub fn harden() {
    #[cfg(unix)]
    super::unix::no_core_file();
}

/// Counters of now.
pub fn usage() -> Usage {
    #[cfg(unix)]
    let major_faults = super::unix::resources(libc::RUSAGE_SELF)
        .and_then(|usage| u64::try_from(usage.ru_majflt).ok());
    #[cfg(not(unix))]
    let major_faults = None;
    Usage {
        involuntary_switches: None,
        major_faults,
    }
}

/// CPUs this process may run on.
pub fn allowed_cpus() -> Option<Vec<usize>> {
    None
}

/// Memory that can be had without pushing anything out.
pub fn memory_available() -> Option<u64> {
    None
}

/// Share of files that lies in the page cache.
pub fn resident_share(_files: &[PathBuf]) -> Option<f32> {
    None
}

/// Asks the kernel to forget what it holds of the files.
///
/// Errors: always, there is no such request here.
pub fn drop_page_cache(_files: &[PathBuf]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Asks for large pages where the system takes such a wish.
pub fn ask_for_large_pages<T>(_memory: &mut [T]) {}

/// Keeps memory in small pages where the system takes such a wish.
pub fn keep_small_pages(_memory: *mut u8, _bytes: usize) {}
