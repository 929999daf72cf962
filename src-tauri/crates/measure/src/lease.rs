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
mod tests {
    use std::time::Duration;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("lease");
        (folder, place)
    }

    fn noon() -> Timestamp {
        "2026-05-20T12:00:00Z".parse().unwrap()
    }

    fn take(place: &Path, what: &str) -> Attempt {
        Lease::try_acquire(place, what, noon()).unwrap()
    }

    #[test]
    fn the_second_is_told_who_has_it() {
        let (_folder, place) = folder();
        let Attempt::Held(lease) = take(&place, "bench") else {
            panic!("nobody has it");
        };
        let Attempt::Busy(Some(holder)) = take(&place, "scan") else {
            panic!("the first still has it");
        };
        assert_eq!(holder.what, "bench");
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.since, noon());
        drop(lease);
        assert!(matches!(take(&place, "scan"), Attempt::Held(_)));
    }

    #[tokio::test]
    async fn who_waits_gets_it_when_it_is_free() {
        let (_folder, place) = folder();
        let Attempt::Held(lease) = take(&place, "bench") else {
            panic!("nobody has it");
        };
        let (told, mut hears) = oneshot::channel();
        let waits = tokio::spawn({
            let place = place.clone();
            async move {
                Lease::acquire(&place, "scan", noon, |holder| {
                    told.send(holder.map(|holder| holder.what)).unwrap();
                })
                .await
            }
        });
        assert_eq!((&mut hears).await.unwrap().as_deref(), Some("bench"));
        assert!(!waits.is_finished());
        drop(lease);
        let held = waits.await.unwrap().unwrap();
        let Attempt::Busy(Some(holder)) = take(&place, "other") else {
            panic!("it was handed on");
        };
        assert_eq!(holder.what, "scan");
        drop(held);
    }

    #[tokio::test]
    async fn who_gives_up_waiting_does_not_keep_it() {
        let (_folder, place) = folder();
        let Attempt::Held(lease) = take(&place, "bench") else {
            panic!("nobody has it");
        };
        let wait = Lease::acquire(&place, "scan", noon, |_| {});
        assert!(
            tokio::time::timeout(Duration::from_millis(50), wait)
                .await
                .is_err()
        );
        drop(lease);
        let next = Lease::acquire(&place, "next", noon, |_| {});
        let next = tokio::time::timeout(Duration::from_secs(5), next).await;
        assert!(next.is_ok(), "the thread that waited gave it back");
    }

    /// Runs in the process that the next test starts and kills.
    #[test]
    #[ignore = "the other process of a_process_that_is_killed_lets_go"]
    fn hold_the_lease_until_killed() {
        let place = PathBuf::from(std::env::var_os("LEASE_OF_A_TEST").unwrap());
        let _lease = take(&place, "other");
        println!("held");
        std::thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn a_process_that_is_killed_lets_go() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};

        let (_folder, place) = folder();
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lease::tests::hold_the_lease_until_killed"])
            .args(["--ignored", "--nocapture"])
            .env("LEASE_OF_A_TEST", &place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("held")));
        let Attempt::Busy(holder) = take(&place, "bench") else {
            panic!("the other process has it");
        };
        if cfg!(unix) {
            let holder = holder.expect("it said who it is");
            assert_eq!((holder.pid, holder.what.as_str()), (other.id(), "other"));
        }
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(matches!(take(&place, "bench"), Attempt::Held(_)));
    }

    #[cfg(unix)]
    #[test]
    fn every_user_can_open_what_the_first_one_made() {
        use std::os::unix::fs::PermissionsExt;

        let (_folder, place) = folder();
        let _lease = take(&place, "bench");
        let mode = std::fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_or_a_folder_or_a_pipe_in_its_place_is_refused() {
        let (folder, place) = folder();
        let target = folder.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &place).unwrap();
        let refuse = || Lease::try_acquire(&place, "bench", noon()).unwrap_err();
        assert!(matches!(refuse(), LeaseError::NotAFile { .. }));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");

        std::fs::remove_file(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
        assert!(matches!(refuse(), LeaseError::NotAFile { .. }));

        std::fs::remove_dir(&place).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let error = refuse();
        assert!(matches!(error, LeaseError::NotAFile { .. }));
        assert!(error.to_string().ends_with("Remove it."));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let (folder, _) = folder();
        let place = folder.path().join("missing/lease");
        let sentence = Lease::try_acquire(&place, "bench", noon())
            .unwrap_err()
            .to_string();
        assert!(sentence.contains("missing"), "{sentence}");
    }

    #[test]
    fn a_file_that_was_swept_away_is_made_again() {
        let (_folder, place) = folder();
        let Attempt::Held(lease) = take(&place, "bench") else {
            panic!("nobody has it");
        };
        drop(lease);
        std::fs::remove_file(&place).unwrap();
        assert!(matches!(take(&place, "bench"), Attempt::Held(_)));
    }

    #[test]
    fn nonsense_in_the_file_is_an_unknown_holder() {
        let (_folder, place) = folder();
        std::fs::write(&place, "not json").unwrap();
        let file = File::open(&place).unwrap();
        file.lock().unwrap();
        assert!(matches!(take(&place, "bench"), Attempt::Busy(None)));
    }

    #[test]
    fn every_process_of_the_machine_looks_in_the_same_place() {
        assert_eq!(place(), place());
        assert!(place().is_absolute());
    }
}
