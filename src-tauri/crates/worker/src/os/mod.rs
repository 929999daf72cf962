//! What differs by operating system.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::*;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Counters that tell whether a timed section was disturbed; what cannot be read is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Times another process took the CPU from this thread.
    pub involuntary_switches: Option<u64>,
    /// Page faults of this process that waited for a disk.
    pub major_faults: Option<u64>,
}

impl Usage {
    /// What was added since `before`.
    pub fn since(self, before: Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Self {
            involuntary_switches: difference(
                self.involuntary_switches,
                before.involuntary_switches,
            ),
            major_faults: difference(self.major_faults, before.major_faults),
        }
    }
}

/// Reads the files once, so that they lie in the page cache as far as memory allows. Stops early
/// when `stop` says so.
pub fn fill_page_cache(files: &[PathBuf], stop: impl Fn() -> bool) -> io::Result<()> {
    let mut buffer = vec![0; 4 << 20];
    for path in files {
        let mut file = File::open(path)?;
        while !stop() && file.read(&mut buffer)? > 0 {}
    }
    Ok(())
}
