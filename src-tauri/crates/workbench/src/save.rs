//! A result written to a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use twospeed_library::display::shown_path;
use twospeed_library::landing::folder_of;

/// Why a file was not written; what was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// Something has the name, and is not to be replaced.
    #[error(
        "{} is there already. Replace it, or choose another name.",
        shown_path(path)
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is no such folder.
    #[error(
        "There is no folder {}. Make it first, or choose another.",
        shown_path(folder)
    )]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The system refused.
    #[error(
        "{} cannot be written: {reason}. Name another file or folder.",
        shown_path(path)
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl SaveError {
    /// The key of this error for those who branch on it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Exists { .. } => "file_exists",
            Self::NoFolder { .. } => "folder_missing",
            Self::Refused { .. } => "not_written",
        }
    }
}

/// Writes a file whole or not at all: under another name first, then put in its place.
pub fn save(path: &Path, bytes: &[u8], replace: bool) -> Result<(), SaveError> {
    let refused = |error: std::io::Error| {
        // Of a temporary file that could not be made the name says nothing to anybody.
        let error = error.to_string();
        let reason = error.split(" at path ").next().unwrap_or(&error).to_owned();
        SaveError::Refused {
            path: path.to_owned(),
            reason,
        }
    };
    let exists = || SaveError::Exists {
        path: path.to_owned(),
    };
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(SaveError::NoFolder {
            folder: folder.to_owned(),
        });
    }
    if path.is_dir() {
        return Err(SaveError::Refused {
            path: path.to_owned(),
            reason: "it is a folder".to_owned(),
        });
    }
    if !replace && path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let mut file = temporary(folder).map_err(refused)?;
    file.write_all(bytes).map_err(refused)?;
    let landed = match replace {
        true => file.persist(path),
        false => file.persist_noclobber(path),
    };
    match landed {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists()),
        Err(error) => Err(refused(error.error)),
    }
}

/// Temporary files are the owner's alone; a result is a file like any other, so its rights are
/// those that the person's mask leaves.
fn temporary(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".twospeed-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_where_that_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figure.svg");
        save(&path, b"one", false).unwrap();
        let error = save(&path, b"two", false).unwrap_err();
        assert_eq!(error.code(), "file_exists");
        assert!(error.to_string().contains("figure.svg"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        save(&path, b"two", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing temporary is left");
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_it_as_far_as_the_mask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, usual) = (folder.path().join("a"), folder.path().join("b"));
        save(&ours, b"", false).unwrap();
        std::fs::write(&usual, b"").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&usual));
    }

    #[test]
    fn a_missing_folder_and_a_folder_in_its_place_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no").join("a.svg");
        let error = save(&missing, b"", true).unwrap_err();
        assert_eq!(error.code(), "folder_missing");
        let error = save(folder.path(), b"", true).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("it is a folder. Name another file or folder."),
            "{error}"
        );
    }
}
