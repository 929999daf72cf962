//! Unix.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Takes standard output for the protocol alone: what the engine or a debugger prints afterwards
/// goes to standard error.
pub fn private_stdout() -> io::Result<File> {
    let private: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both descriptors are the process's own standard ones.
    if unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(File::from(private))
}

/// Ends the process at once: no destructor of the engine runs, no thread is waited for.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: never returns, touches nothing.
    unsafe { libc::_exit(code) }
}

/// A path as the engine takes it; `None` when it holds a zero byte (no file has such a name).
pub fn engine_path(path: &OsStr) -> Option<CString> {
    CString::new(path.as_bytes()).ok()
}

/// Goes where only the administrator can put a file: libraries and configuration are looked for in
/// the current directory.
pub fn leave_current_directory() -> io::Result<()> {
    std::env::set_current_dir("/")
}

/// Sets the priority of the process as llama-bench's `--prio` does: -1 to 3.
pub fn set_priority(level: i32) -> io::Result<()> {
    let nice = match level {
        ..=-1 => 5,
        0 => return Ok(()),
        1 => -5,
        2 => -10,
        3.. => -20,
    };
    // SAFETY: a plain system call on this process.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Resources used by `who`.
pub(super) fn resources(who: libc::c_int) -> Option<libc::rusage> {
    // SAFETY: all-zero is a valid rusage, and the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable for the call.
    (unsafe { libc::getrusage(who, &raw mut usage) } == 0).then_some(usage)
}

/// Highest resident memory of the process so far.
pub fn peak_rss_bytes() -> Option<u64> {
    let peak = u64::try_from(resources(libc::RUSAGE_SELF)?.ru_maxrss).ok()?;
    // Linux counts in KiB, macOS in bytes.
    Some(if cfg!(target_vendor = "apple") {
        peak
    } else {
        peak * 1024
    })
}

/// No file of the size of a model's memory is written when the engine aborts: it would keep the
/// parent waiting for minutes.
pub(super) fn no_core_file() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a plain system call with a valid argument; failure leaves the limit as it was.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
}
