//! The lock and the socket.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::handover::{Handover, LONGEST};

/// The longest name a socket can have everywhere (macOS allows 104 bytes with the zero).
const LONGEST_NAME: usize = 100;
/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the first window answers when it took the message.
const TAKEN: &[u8] = b"taken";

/// What this program is to its data folder.
#[derive(Debug)]
pub enum Role {
    /// It is the first one: later ones ring here.
    First(Doorbell),
    /// Another one has taken what this one was started with.
    Second,
    /// Nothing could be agreed: it opens a window of its own.
    Alone,
}

/// Where later starts ring. Holds the lock until it is dropped or the program ends.
#[derive(Debug)]
pub struct Doorbell {
    listener: UnixListener,
    place: PathBuf,
    lock: File,
}

/// Finds out what this program is to the data folder, and hands `handover` over where it is second.
///
/// `runtime` is the folder for sockets of this person's session (`XDG_RUNTIME_DIR`), if there is one.
pub fn claim(data: &Path, runtime: Option<&Path>, handover: &Handover) -> Role {
    let attempt = || -> io::Result<Role> {
        fs::create_dir_all(data)?;
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(data.join("window.lock"))?;
        match lock.try_lock() {
            Ok(()) => Doorbell::hang(lock, data, runtime).map(Role::First),
            Err(TryLockError::WouldBlock) => ring(&mut lock, handover).map(|()| Role::Second),
            Err(TryLockError::Error(error)) => Err(error),
        }
    };
    attempt().unwrap_or(Role::Alone)
}

/// Rings at the first window and waits until it has taken the message.
fn ring(lock: &mut File, handover: &Handover) -> io::Result<()> {
    let mut stream = connect(lock)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&handover.to_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(TAKEN.len() as u64).read_to_end(&mut answer)?;
    if answer == TAKEN {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// The first one may have its lock but not yet its socket: it is asked again for a while.
fn connect(lock: &mut File) -> io::Result<UnixStream> {
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        let mut place = Vec::new();
        lock.seek(SeekFrom::Start(0))?;
        lock.take(4096).read_to_end(&mut place)?;
        let attempt = match place.strip_suffix(b"\n") {
            Some(place) => UnixStream::connect(OsStr::from_bytes(place)),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        if attempt.is_ok() || Instant::now() > end {
            return attempt;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Doorbell {
    /// The first place that takes it: the session's folder, the data folder, one beside other
    /// people's. Only this person may write to any of them.
    fn hang(mut lock: File, data: &Path, runtime: Option<&Path>) -> io::Result<Self> {
        // What a predecessor left in the file is wrong from now on.
        lock.set_len(0)?;
        let name = name(data)?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        let folders: [&dyn Fn() -> Option<PathBuf>; 3] = [
            &|| runtime.map(Path::to_path_buf),
            &|| Some(data.to_path_buf()),
            &|| own_temporary_folder(&name).ok(),
        ];
        let places = folders
            .iter()
            .filter_map(|folder| folder())
            .map(|folder| folder.join(&name))
            .filter(|place| place.is_absolute() && place.as_os_str().len() <= LONGEST_NAME);
        for place in places {
            match listen(&place) {
                Ok(listener) => {
                    lock.seek(SeekFrom::Start(0))?;
                    lock.write_all(place.as_os_str().as_bytes())?;
                    lock.write_all(b"\n")?;
                    return Ok(Self {
                        listener,
                        place,
                        lock,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Waits for later starts on a thread of its own, and gives each message to `take`, which says whether it
    /// took it.
    ///
    /// The thread sleeps in the kernel until somebody rings.
    pub fn answer(self, take: impl Fn(Handover) -> bool + Send + 'static) -> io::Result<Hung> {
        let place = self.place.clone();
        std::thread::Builder::new()
            .name("doorbell".to_owned())
            .spawn(move || {
                for stream in self.listener.incoming().flatten() {
                    // Somebody who rings and says nothing sensible is not our concern.
                    let _ = receive(stream, &take);
                }
                drop(self.lock);
            })?;
        Ok(Hung { place })
    }
}

/// Removes the socket's file at the end.
#[derive(Debug)]
pub struct Hung {
    place: PathBuf,
}

impl Drop for Hung {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.place);
    }
}

fn receive(mut stream: UnixStream, take: &impl Fn(Handover) -> bool) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    (&stream).take(LONGEST).read_to_end(&mut bytes)?;
    if Handover::from_bytes(&bytes).is_some_and(take) {
        stream.write_all(TAKEN)?;
    }
    Ok(())
}

/// The socket's name: each data folder has its own.
fn name(data: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    data.canonicalize()?.hash(&mut hasher);
    Ok(format!("twospeed-window-{:016x}", hasher.finish()))
}

/// A folder beside other people's that they cannot write to: it is refused where it is somebody else's.
fn own_temporary_folder(name: &str) -> io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let owner = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("{name}-{owner}"));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&folder)?;
    if found.is_dir() && found.uid() == owner && found.mode() & 0o077 == 0 {
        Ok(folder)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Listens at this place; whoever holds the lock may take away what a predecessor left there.
fn listen(place: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(place)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn message() -> Handover {
        Handover {
            files: vec![PathBuf::from("/models/a.gguf")],
            activation: None,
        }
    }

    /// A first window in this folder that passes on what it is told.
    fn first(data: &Path, runtime: Option<&Path>) -> (Hung, mpsc::Receiver<Handover>) {
        let Role::First(doorbell) = claim(data, runtime, &Handover::default()) else {
            unreachable!("nobody else is in this folder");
        };
        let (told, heard) = mpsc::channel();
        let hung = doorbell
            .answer(move |handover| told.send(handover).is_ok())
            .unwrap();
        (hung, heard)
    }

    #[test]
    fn a_second_start_hands_over_and_is_second() {
        let data = tempfile::tempdir().unwrap();
        let runtime = tempfile::tempdir().unwrap();
        let (_hung, heard) = first(data.path(), Some(runtime.path()));
        for _ in 0..3 {
            // It need not know the session's folder: the first one wrote down where it listens.
            assert!(matches!(claim(data.path(), None, &message()), Role::Second));
            assert_eq!(heard.recv().unwrap(), message());
        }
    }

    #[test]
    fn a_first_window_that_is_ending_leaves_the_second_to_itself() {
        let data = tempfile::tempdir().unwrap();
        let Role::First(doorbell) = claim(data.path(), None, &Handover::default()) else {
            unreachable!("nobody else is in this folder");
        };
        let _hung = doorbell.answer(|_| false).unwrap();
        assert!(matches!(claim(data.path(), None, &message()), Role::Alone));
    }

    #[test]
    fn two_data_folders_have_two_first_windows() {
        let runtime = tempfile::tempdir().unwrap();
        let [a, b] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let _a = first(a.path(), Some(runtime.path()));
        let _b = first(b.path(), Some(runtime.path()));
    }

    #[test]
    fn what_a_killed_window_left_behind_keeps_nobody_out() {
        let data = tempfile::tempdir().unwrap();
        let runtime = tempfile::tempdir().unwrap();
        // The socket's file and the written place stay; the lock went with its holder.
        let Role::First(left) = claim(data.path(), Some(runtime.path()), &message()) else {
            unreachable!("nobody else is in this folder");
        };
        let place = left.place.clone();
        drop(left);
        assert!(place.exists());
        let (_hung, heard) = first(data.path(), Some(runtime.path()));
        assert!(matches!(claim(data.path(), None, &message()), Role::Second));
        assert_eq!(heard.recv().unwrap(), message());
    }

    #[test]
    fn a_long_data_folder_and_no_session_still_find_a_place() {
        let data = tempfile::tempdir().unwrap();
        let long = data.path().join("x".repeat(200));
        let (hung, heard) = first(&long, None);
        assert!(matches!(claim(&long, None, &message()), Role::Second));
        assert_eq!(heard.recv().unwrap(), message());
        let folder = hung.place.parent().unwrap().to_path_buf();
        drop(hung);
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_leaves_the_window_alone() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(claim(&file, None, &message()), Role::Alone));
    }

    #[test]
    fn somebody_who_talks_nonsense_disturbs_nothing() {
        let data = tempfile::tempdir().unwrap();
        let (hung, heard) = first(data.path(), None);
        let mut stream = UnixStream::connect(&hung.place).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        drop(stream);
        assert!(matches!(claim(data.path(), None, &message()), Role::Second));
        assert_eq!(heard.recv().unwrap(), message());
    }
}
