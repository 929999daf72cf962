//! Where twins lie while they are measured: a folder of their own below the data folder, gone when
//! this value goes, and when the process was killed, at the next start.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Below the data folder.
const FOLDER: &str = "twins";

/// End of the name of the file that is locked as long as a folder is used.
const LOCK: &str = "lock";

/// A folder for one prediction.
#[derive(Debug)]
pub(super) struct TwinFolder {
    path: PathBuf,
    lock: PathBuf,
    /// Held until the folder is gone.
    _locked: File,
}

impl TwinFolder {
    /// A new one below the data folder.
    pub(super) fn new(data_folder: &Path) -> io::Result<Self> {
        let all = data_folder.join(FOLDER);
        fs::create_dir_all(&all)?;
        let path = all.join(Uuid::now_v7().to_string());
        let lock = path.with_extension(LOCK);
        let locked = File::create(&lock)?;
        // Where a file system has no locks, the folder's age is what protects it.
        let _ = locked.try_lock();
        fs::create_dir(&path)?;
        Ok(Self {
            path,
            lock,
            _locked: locked,
        })
    }

    /// Where the twin's file lies.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join("twin.gguf")
    }
}

impl Drop for TwinFolder {
    fn drop(&mut self) {
        // What cannot be removed now is at the next start.
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::remove_file(&self.lock);
        if let Some(all) = self.path.parent() {
            // Gone when it is empty.
            let _ = fs::remove_dir(all);
        }
    }
}

/// Removes the twins below a data folder that no living process measures.
///
/// Twins are large and of no use to anybody when their measurement has ended; a process that was
/// killed leaves its own. What cannot be removed is left for the next time.
pub fn remove_left_twins(data_folder: &Path) {
    let all = data_folder.join(FOLDER);
    let Ok(entries) = fs::read_dir(&all) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_ours = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .is_some_and(|stem| Uuid::parse_str(stem).is_ok());
        if !is_ours || path.extension().is_some_and(|end| end != LOCK) {
            continue;
        }
        let folder = path.with_extension("");
        let lock = path.with_extension(LOCK);
        let locked = File::options().write(true).open(&lock);
        let is_used = match &locked {
            Ok(file) => file.try_lock().is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if !is_used {
            let _ = fs::remove_dir_all(&folder);
            let _ = fs::remove_file(&lock);
        }
    }
    // Gone when it is empty.
    let _ = fs::remove_dir(&all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_used_stays_and_one_that_was_left_goes() {
        let data = tempfile::tempdir().unwrap();
        let used = TwinFolder::new(data.path()).unwrap();
        fs::write(used.file(), "twin").unwrap();
        let left = data.path().join(FOLDER).join(Uuid::now_v7().to_string());
        fs::create_dir(&left).unwrap();
        fs::write(left.join("twin.gguf"), "left").unwrap();
        fs::write(left.with_extension(LOCK), "").unwrap();
        let stranger = data.path().join(FOLDER).join("notes");
        fs::create_dir(&stranger).unwrap();

        remove_left_twins(data.path());
        assert!(used.file().exists());
        assert!(!left.exists() && !left.with_extension(LOCK).exists());
        assert!(stranger.exists(), "nothing of ours");

        let file = used.file();
        drop(used);
        assert!(!file.exists());
        fs::remove_dir(stranger).unwrap();
        drop(TwinFolder::new(data.path()).unwrap());
        assert!(!data.path().join(FOLDER).exists());
    }
}
