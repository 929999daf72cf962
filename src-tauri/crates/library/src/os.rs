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
