//! Windows.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::windows::io::AsHandle;

/// Takes standard output for the protocol alone: what the engine or a debugger prints afterwards
/// goes to standard error.
pub fn private_stdout() -> io::Result<File> {
    let private = io::stdout().as_handle().try_clone_to_owned()?;
    // SAFETY: both are the C library's standard descriptors, which the engine prints to.
    if unsafe { libc::dup2(2, 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(File::from(private))
}

/// Ends the process.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: never returns, touches nothing.
    unsafe { libc::_exit(code) }
}

/// A path as the engine takes it (UTF-8); `None` when it is not Unicode or holds a zero.
pub fn engine_path(path: &OsStr) -> Option<CString> {
    CString::new(path.to_str()?).ok()
}

/// Goes to the program's own folder: libraries and configuration are looked for in the current one.
pub fn leave_current_directory() -> io::Result<()> {
    let program = std::env::current_exe()?;
    std::env::set_current_dir(program.parent().unwrap_or(&program))
}

/// Sets the priority of the process as llama-bench's `--prio` does.
///
/// Errors: any level but 0, which is not offered here.
pub fn set_priority(level: i32) -> io::Result<()> {
    match level {
        0 => Ok(()),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Highest resident memory of the process so far.
pub fn peak_rss_bytes() -> Option<u64> {
    None
}
