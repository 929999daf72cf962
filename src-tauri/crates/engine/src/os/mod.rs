//! What differs by operating system about the worker's process.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{OomCounters, settle};
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{OomCounters, settle};

/// Systems that keep no count of processes killed for memory.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// Nothing to count.
    pub(crate) struct OomCounters;

    impl OomCounters {
        pub(crate) fn of(_pid: u32) -> Self {
            Self
        }

        pub(crate) fn rose(&self) -> bool {
            false
        }
    }

    /// Nothing to set from outside.
    pub(crate) fn settle(_pid: u32) {}
}
