//! What differs by operating system.

use std::io;
use std::path::Path;

/// Makes a rename in `folder` outlast a power failure.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Other systems order renames themselves and do not open folders as files.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether this process may make files in `folder`.
#[cfg(unix)]
pub(crate) fn is_writable(folder: &Path) -> bool {
    // A bare file name has an empty folder.
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Whether this process may make files in `folder`, as far as its attributes say.
#[cfg(not(unix))]
pub(crate) fn is_writable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|facts| facts.is_dir() && !facts.permissions().readonly())
}
