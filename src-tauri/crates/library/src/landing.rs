//! Files that are large and slow to come: written under a temporary name beside their place, and
//! put there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::os;

/// Free bytes that are left alone: a disk that is full to the brim stops other programs.
pub const SPARE_BYTES: u64 = 64 << 20;

/// `path` with `end` appended to its name: `a.gguf` and `.part` make `a.gguf.part`.
#[must_use]
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(end);
    path.with_file_name(name)
}

/// The folder of a path; the current one for a bare name.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Free bytes for this person on the disk of `folder`, or of the nearest folder above it that is
/// there; `None` where the system does not say.
#[must_use]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|above| above.is_dir())?;
    fs4::available_space(there).ok()
}

/// Puts a finished file in its place, so that it outlasts a power failure.
///
/// Errors: the system's, and [`io::ErrorKind::AlreadyExists`] where a file is there that is not
/// to be overwritten.
pub fn land(unfinished: &Path, place: &Path, overwrite: bool) -> io::Result<()> {
    // Some systems flush only what could be written to.
    File::options().write(true).open(unfinished)?.sync_all()?;
    if !overwrite && fs::symlink_metadata(place).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(unfinished, place)?;
    os::sync_folder(folder_of(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lands_whole_and_never_on_another_unless_told_to() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a.gguf");
        let part = beside(&place, ".part");
        assert_eq!(part.file_name().unwrap(), "a.gguf.part");
        fs::write(&part, "new").unwrap();
        fs::write(&place, "old").unwrap();
        let refused = land(&part, &place, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&place).unwrap(), "old");
        land(&part, &place, true).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "new");
        assert!(!part.exists());
    }

    #[test]
    fn free_space_is_asked_of_the_nearest_folder_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/yet/made");
        assert!(free_bytes(&deep).unwrap() > 0);
    }
}
