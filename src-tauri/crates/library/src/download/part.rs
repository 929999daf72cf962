//! The file that grows: `NAME.part`, with a word beside it on what it is the beginning of.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::DownloadError;
use super::listing::Entry;
use crate::landing;

/// End of its name.
pub(super) const END: &str = ".part";

/// End of the name of the word beside it.
const NOTE: &str = ".part.json";

/// What a part is the beginning of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    sha256: Option<String>,
    size: u64,
    etag: Option<String>,
}

impl Note {
    /// Whether there is anything that tells one file from another.
    fn tells_files_apart(&self) -> bool {
        self.sha256.is_some() || self.etag.as_ref().is_some_and(|mark| mark.starts_with('"'))
    }
}

/// A file that grows to be `place`.
pub(super) struct Part {
    place: PathBuf,
    path: PathBuf,
    file: File,
    hash: Sha256,
    note: Note,
    /// Bytes that are in it.
    pub(super) bytes: u64,
}

impl Part {
    /// Opens what an earlier try left, if it is the beginning of `entry`; else begins anew.
    ///
    /// `told` hears how far reading it is, and ends it by answering false.
    pub(super) fn open(
        place: &Path,
        entry: &Entry,
        told: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, DownloadError> {
        let path = landing::beside(place, END);
        let failed = |error: io::Error| DownloadError::writing(&path, &error);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DownloadError::Busy(place.to_owned())),
            // A file system without locks: two processes at worst spoil each other's checksum.
            Err(TryLockError::Error(_)) => {}
        }
        let mut part = Self {
            place: place.to_owned(),
            file,
            hash: Sha256::new(),
            note: Note {
                sha256: entry.sha256.clone(),
                size: entry.size,
                etag: None,
            },
            bytes: 0,
            path: path.clone(),
        };
        if !part.goes_on(told).map_err(failed)? {
            part.restart()?;
        }
        Ok(part)
    }

    /// Takes in what is there, if it is a beginning of the same file.
    fn goes_on(&mut self, told: &mut dyn FnMut(u64) -> bool) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        let note = fs::read(landing::beside(&self.place, NOTE)).ok();
        let note = note.and_then(|text| serde_json::from_slice::<Note>(&text).ok());
        let Some(note) = note.filter(|note| {
            let same = note.sha256 == self.note.sha256 && note.size == self.note.size;
            // Without a checksum only the server's mark tells whether the file is the same.
            same && length > 0 && length <= note.size && note.tells_files_apart()
        }) else {
            return Ok(false);
        };
        let mut piece = vec![0; 1 << 20];
        while self.bytes < length {
            let read = self.file.read(&mut piece)?;
            if read == 0 {
                return Ok(false);
            }
            self.hash.update(&piece[..read]);
            self.bytes += read as u64;
            if !told(self.bytes) {
                // The rest is read next time.
                break;
            }
        }
        self.note = note;
        Ok(true)
    }

    /// The server's mark of the file that this is the beginning of, if it is a strong one.
    pub(super) fn mark(&self) -> Option<String> {
        self.note.etag.clone().filter(|mark| mark.starts_with('"'))
    }

    /// Begins anew.
    pub(super) fn restart(&mut self) -> Result<(), DownloadError> {
        self.hash = Sha256::new();
        self.bytes = 0;
        self.note.etag = None;
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .map_err(|error| DownloadError::writing(&self.path, &error))
    }

    /// Notes the server's mark.
    pub(super) fn set_mark(&mut self, etag: Option<String>) -> Result<(), DownloadError> {
        self.note.etag = etag;
        let path = landing::beside(&self.place, NOTE);
        let text = serde_json::to_vec(&self.note).expect("BUG: a note is plain data");
        fs::write(&path, text).map_err(|error| DownloadError::writing(&path, &error))
    }

    /// Appends.
    pub(super) fn append(&mut self, piece: &[u8]) -> Result<(), DownloadError> {
        if let Err(error) = self.file.write_all(piece) {
            // Half a piece may be there, and it is in no checksum.
            let _ = self.file.set_len(self.bytes);
            return Err(DownloadError::writing(&self.path, &error));
        }
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Puts the whole file in its place, if its checksum is the listed one; removes it if not.
    pub(super) fn land(self, entry: &Entry, overwrite: bool) -> Result<(), DownloadError> {
        // Not every system renames a file that is locked.
        drop(self.file);
        let found = hex(&self.hash.finalize());
        if entry.sha256.as_ref().is_some_and(|listed| *listed != found) {
            remove(&self.place);
            return Err(DownloadError::NotAsListed {
                what: entry.name().to_owned(),
                fault: "another checksum (sha256) than the repository lists".to_owned(),
            });
        }
        landing::land(&self.path, &self.place, overwrite)
            .map_err(|error| DownloadError::writing(&self.place, &error))?;
        let _ = fs::remove_file(landing::beside(&self.place, NOTE));
        Ok(())
    }

    /// Removes it: it is no beginning of anything.
    pub(super) fn remove(self) {
        remove(&self.place);
    }
}

fn remove(place: &Path) {
    for end in [END, NOTE] {
        // What cannot be removed is begun anew next time.
        let _ = fs::remove_file(landing::beside(place, end));
    }
}

/// Whether a file that is there is `entry`, by size and checksum; `told` as in [`Part::open`].
pub(super) fn is_there(
    place: &Path,
    entry: &Entry,
    told: &mut dyn FnMut(u64) -> bool,
) -> io::Result<bool> {
    let mut file = match File::open(place) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let (Some(listed), true) = (&entry.sha256, file.metadata()?.len() == entry.size) else {
        return Ok(false);
    };
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(hex(&hash.finalize()) == *listed);
        }
        hash.update(&piece[..read]);
        done += read as u64;
        if !told(done) {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
