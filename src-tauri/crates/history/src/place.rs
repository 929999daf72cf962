//! The data folder: made where it was missing, and what may be done in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::HistoryError;
use crate::history::PATIENCE;

/// Name of the history in the data folder.
const FILE: &str = "history.sqlite";
/// Held while a history is begun, brought up to date or set aside, so that two programs that
/// start together do not do it twice.
const LOCK: &str = "history.lock";

/// Where the history lies and what may be done with it.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

pub(crate) enum Access {
    /// Held until the file is dropped.
    Write(File),
    Read,
}

impl crate::History {
    /// Whether a data folder has a history; opening makes one where there is none.
    pub fn exists(data_folder: &Path) -> bool {
        data_folder.join(FILE).exists()
    }
}

impl Place {
    /// Makes the folder; takes the lock where the folder can be written.
    pub(crate) fn prepare(folder: &Path) -> Result<Self, HistoryError> {
        // Absolute: SQLite would read a relative name that begins with "file:" as a URI.
        let folder = std::path::absolute(folder).map_err(|error| fault(folder, &error))?;
        if folder.to_str().is_none() {
            return Err(HistoryError::FolderName { folder });
        }
        make(&folder)?;
        let path = folder.join(FILE);
        let exists = is_file(&path)?;
        let lock = open(&folder.join(LOCK), true);
        let history = if exists {
            open(&path, false).map(drop)
        } else {
            Ok(())
        };
        let access = match (lock, history) {
            (Ok(lock), Ok(())) => {
                wait_for(&lock, &path)?;
                Access::Write(lock)
            }
            (Err(error), _) | (_, Err(error)) if !is_refusal(&error) => {
                return Err(fault(&path, &error));
            }
            _ if exists => Access::Read,
            _ => return Err(HistoryError::NothingToRead { folder }),
        };
        Ok(Self { path, access })
    }
}

fn make(folder: &Path) -> Result<(), HistoryError> {
    let folder = folder.to_owned();
    match fs::create_dir_all(&folder) {
        Ok(()) => Ok(()),
        Err(error) if is_in_the_way(&error) => Err(HistoryError::FolderIsFile { folder }),
        Err(error) => Err(HistoryError::FolderNotMade {
            folder,
            reason: error.to_string(),
        }),
    }
}

fn is_in_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory
    )
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// Whether the history is there; anything but a file in its place is refused.
fn is_file(path: &Path) -> Result<bool, HistoryError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(HistoryError::NotAFile {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(fault(path, &error)),
    }
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(create)
        .truncate(false)
        .open(path)
}

/// Waits for the lock; a file system without locks (some network shares) goes without.
fn wait_for(lock: &File, path: &Path) -> Result<(), HistoryError> {
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => {
                return Err(HistoryError::Busy {
                    path: path.to_owned(),
                    seconds: PATIENCE.as_secs(),
                });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// A fault of the file system as a sentence.
pub(crate) fn fault(path: &Path, error: &io::Error) -> HistoryError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => HistoryError::DiskFull { path },
        _ => HistoryError::Io {
            path,
            reason: error.to_string(),
        },
    }
}
