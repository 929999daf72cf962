//! One measurement at a time on a machine.
//!
//! The lease is a lock on a file that every process of the machine knows. The kernel lets go of it
//! when its holder ends, however it ends. The file is never removed: a lock on a file that has lost
//! its name would bind nobody.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// The right to measure on this machine, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    file: File,
}

/// Who holds the lease: `a benchmark (process 123) since 12:04:31`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// What it does, in a word or two: `bench`, `calibration`, `scan`.
    pub what: String,
    /// Since when.
    pub since: Timestamp,
}

/// What came of trying.
#[derive(Debug)]
pub enum Attempt {
    /// The lease is ours.
    Held(Lease),
    /// Another has it, or another part of this process; `None` when it has not said who it is.
    Busy(Option<Holder>),
}

/// Why there can be no lease, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Something else has the file's name.
    #[error(
        "{} should be the file by which measurements wait for each other and is something else. Remove it.",
        place.display()
    )]
    NotAFile {
        /// Where it is.
        place: PathBuf,
    },
    /// The file can be neither opened nor made.
    #[error(
        "The file by which measurements wait for each other cannot be opened: {} ({source}). Make its folder writable or remove the file.",
        place.display()
    )]
    Closed {
        /// Where it is.
        place: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl LeaseError {
    /// The key of this error for those who branch on it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAFile { .. } => "lease_not_a_file",
            Self::Closed { .. } => "lease_not_openable",
        }
    }
}

/// Where the lease of this machine is: the same for every user, whatever their environment says.
pub fn place() -> PathBuf {
    let folder = if cfg!(unix) {
        PathBuf::from("/tmp")
    } else {
        std::env::var_os("ProgramData").map_or_else(std::env::temp_dir, PathBuf::from)
    };
    folder.join("twospeed.lease")
}

impl Lease {
    /// Takes the lease if nobody has it.
    pub fn try_acquire(place: &Path, what: &str, now: Timestamp) -> Result<Attempt, LeaseError> {
        loop {
            let file = open(place)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Attempt::Busy(holder(&file))),
                Err(TryLockError::Error(source)) => return Err(closed(place, source)),
            }
            if has_name(&file, place) {
                return Ok(Attempt::Held(Self::sign(file, what, now)));
            }
        }
    }

    /// Takes the lease, waiting for it where another has it; `waiting` is told once who that is.
    ///
    /// The wait is a sleep in the kernel: it does not wake up while the other measures. Dropping
    /// the future gives the wait up.
    pub async fn acquire(
        place: &Path,
        what: &str,
        now: impl Fn() -> Timestamp,
        waiting: impl FnOnce(Option<Holder>),
    ) -> Result<Self, LeaseError> {
        match Self::try_acquire(place, what, now())? {
            Attempt::Held(lease) => return Ok(lease),
            Attempt::Busy(holder) => waiting(holder),
        }
        loop {
            let file = lock(place).await?;
            if has_name(&file, place) {
                return Ok(Self::sign(file, what, now()));
            }
        }
    }

    /// Writes into the file who has it. It is only for others to read: a fault does no harm.
    fn sign(mut file: File, what: &str, now: Timestamp) -> Self {
        let holder = Holder {
            pid: std::process::id(),
            what: what.to_owned(),
            since: now,
        };
        if let Ok(text) = serde_json::to_string(&holder) {
            let _ = file.set_len(0).and_then(|()| file.rewind());
            let _ = file.write_all(text.as_bytes());
        }
        Self { file }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// Waits for the lock on a thread of its own. When nobody waits any more, the thread goes on until
/// it has the lock, gives it back at once and ends.
async fn lock(place: &Path) -> Result<File, LeaseError> {
    let file = open(place)?;
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("lease".into())
        .spawn(move || {
            let locked = loop {
                match file.lock() {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    done => break done.map(|()| file),
                }
            };
            let _ = sender.send(locked);
        })
        .map_err(|source| closed(place, source))?;
    match receiver.await {
        Ok(locked) => locked.map_err(|source| closed(place, source)),
        Err(_) => Err(closed(place, ErrorKind::Interrupted.into())),
    }
}

/// Opens the file, or makes it so that every user can open it.
///
/// It lies in a folder where anybody may make files: no link is followed, nothing but a file is
/// opened, and one that belongs to another is not opened for making (Linux refuses that,
/// `fs.protected_regular`).
fn open(place: &Path) -> Result<File, LeaseError> {
    // Twice: the file may appear between looking and making.
    for _ in 0..2 {
        match open_existing(place) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if is_link(&error) => {
                return Err(LeaseError::NotAFile {
                    place: place.to_owned(),
                });
            }
            Err(source) => return Err(refused(place, source)),
            Ok(file) => return check(file, place),
        }
        match options(true, true).create_new(true).open(place) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(refused(place, source)),
            Ok(file) => {
                share(&file);
                return Ok(file);
            }
        }
    }
    Err(closed(place, ErrorKind::NotFound.into()))
}

fn open_existing(place: &Path) -> io::Result<File> {
    let file = options(true, true).open(place);
    match file {
        // A lock needs no right to write.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            options(true, false).open(place)
        }
        file => file,
    }
}

fn check(file: File, place: &Path) -> Result<File, LeaseError> {
    match file.metadata() {
        Ok(facts) if facts.is_file() => Ok(file),
        Ok(_) => Err(LeaseError::NotAFile {
            place: place.to_owned(),
        }),
        Err(source) => Err(closed(place, source)),
    }
}

fn refused(place: &Path, source: io::Error) -> LeaseError {
    let place = place.to_owned();
    match source.kind() {
        ErrorKind::IsADirectory => LeaseError::NotAFile { place },
        _ => LeaseError::Closed { place, source },
    }
}

fn closed(place: &Path, source: io::Error) -> LeaseError {
    LeaseError::Closed {
        place: place.to_owned(),
        source,
    }
}

/// What the holder wrote. The file may be anybody's, so only its beginning is read.
fn holder(file: &File) -> Option<Holder> {
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(unix)]
mod os {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use super::*;

    pub(super) fn options(read: bool, write: bool) -> OpenOptions {
        let mut options = OpenOptions::new();
        // A pipe of this name would block the opening for ever.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options
            .read(read)
            .write(write)
            .custom_flags(flags.bits().cast_signed());
        options
    }

    pub(super) fn is_link(error: &io::Error) -> bool {
        error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
    }

    /// Whatever the umask, every user may lock it and write who has it.
    pub(super) fn share(file: &File) {
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
    }

    /// Whether the locked file still has the name, or was swept away while we waited.
    pub(super) fn has_name(file: &File, place: &Path) -> bool {
        let (Ok(held), Ok(named)) = (file.metadata(), std::fs::symlink_metadata(place)) else {
            return false;
        };
        (held.dev(), held.ino()) == (named.dev(), named.ino())
    }
}

#[cfg(not(unix))]
mod os {
    use super::*;

    pub(super) fn options(read: bool, write: bool) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(read).write(write);
        options
    }

    pub(super) fn is_link(_error: &io::Error) -> bool {
        false
    }

    pub(super) fn share(_file: &File) {}

    /// An open file cannot be removed here.
    pub(super) fn has_name(_file: &File, _place: &Path) -> bool {
        true
    }
}

use os::{has_name, is_link, options, share};

#[cfg(test)]
mod tests;
