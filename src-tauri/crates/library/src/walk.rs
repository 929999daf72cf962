//! Walks folders for files that may be models: bounded, loops seen, nothing opened but such files.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::note::Note;

/// How far a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels below a folder that was asked for.
    pub depth: usize,
    /// Files and folders looked at in all.
    pub entries: usize,
}

impl Default for Limits {
    /// Deep enough for any download folder, and enough files for a whole home folder.
    fn default() -> Self {
        Self {
            depth: 24,
            entries: 1_000_000,
        }
    }
}

/// A file that may be a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// As it was reached: a link keeps its readable name.
    pub path: PathBuf,
    /// Where it really lies: one file under two names is one file.
    pub real: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, where the system says so.
    pub modified: Option<SystemTime>,
    /// Named `.gguf`, or asked for by name; the others begin like one and have no extension.
    pub named: bool,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub candidates: Vec<Candidate>,
    /// Folders with `manifests` and `blobs` in them: Ollama's way to keep models.
    pub ollama_stores: Vec<PathBuf>,
    pub notes: Vec<Note>,
    /// `go_on` said no.
    pub stopped: bool,
}

/// A GGUF file has at least its magic, version and two counts.
const SMALLEST_HEADER: u64 = 24;

/// File systems of the kernel: reading a "file" there may block or do something.
const NOT_DISKS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Walks `folders` to the bounds of `limits`; a file among them counts as found.
///
/// `go_on` is asked before every folder: it may wait, and ends the walk by answering no.
/// `looked` hears the number of folders and of candidates so far.
pub(crate) fn walk(
    folders: &[PathBuf],
    limits: Limits,
    go_on: &dyn Fn() -> bool,
    looked: &mut dyn FnMut(usize, usize),
) -> Walk {
    let mut walker = Walker {
        limits,
        entries: 0,
        folders: 0,
        seen: HashSet::new(),
        walk: Walk::default(),
    };
    for folder in folders {
        if !walker.start_at(folder, go_on, looked) {
            walker.walk.stopped = true;
            break;
        }
    }
    walker.walk
}

struct Walker {
    limits: Limits,
    entries: usize,
    folders: usize,
    /// Real paths of the folders looked into: a link back up ends here.
    seen: HashSet<PathBuf>,
    walk: Walk,
}

struct Folder {
    path: PathBuf,
    real: PathBuf,
    linked: bool,
    depth: usize,
}

/// One round below one asked-for folder.
#[derive(Default)]
struct Round {
    ahead: VecDeque<Folder>,
    /// Folders behind links, looked into last: where both lead to the same place, the real
    /// path names what is found.
    linked: VecDeque<Folder>,
    broken_links: usize,
    too_deep: Option<PathBuf>,
}

impl Walker {
    /// Whether to go on with the next folder.
    fn start_at(
        &mut self,
        start: &Path,
        go_on: &dyn Fn() -> bool,
        looked: &mut dyn FnMut(usize, usize),
    ) -> bool {
        let mut round = Round::default();
        match resolve(start) {
            Ok((data, real)) if data.is_dir() => round.ahead.push_back(Folder {
                path: start.to_owned(),
                real,
                linked: false,
                depth: 0,
            }),
            // Asked for by name: whatever it is, reading it will say so.
            Ok((data, real)) => self.candidate(start.to_owned(), real, &data, true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.walk.notes.push(Note::Missing {
                    folder: start.to_owned(),
                });
            }
            Err(error) => self.walk.notes.push(unreadable(start, &error)),
        }

        let mut stopped = false;
        while let Some(folder) = round.ahead.pop_front().or_else(|| round.linked.pop_front()) {
            if !go_on() {
                stopped = true;
                break;
            }
            if !self.seen.insert(folder.real.clone()) {
                continue;
            }
            if !self.folder(&folder, &mut round) {
                self.walk.notes.push(Note::TooMany {
                    folder: folder.path,
                    limit: self.limits.entries,
                });
                break;
            }
            self.folders += 1;
            looked(self.folders, self.walk.candidates.len());
        }

        if round.broken_links > 0 {
            self.walk.notes.push(Note::BrokenLinks {
                folder: start.to_owned(),
                count: round.broken_links,
            });
        }
        if let Some(folder) = round.too_deep {
            self.walk.notes.push(Note::TooDeep {
                folder,
                limit: self.limits.depth,
            });
        }
        !stopped
    }

    /// Lists one folder; false when there are too many entries in all.
    fn folder(&mut self, folder: &Folder, round: &mut Round) -> bool {
        let listing = match fs::read_dir(&folder.path) {
            Ok(listing) => listing,
            Err(error) => {
                self.walk.notes.push(unreadable(&folder.path, &error));
                return true;
            }
        };
        let mut below = Vec::new();
        for entry in listing {
            if self.entries >= self.limits.entries {
                return false;
            }
            self.entries += 1;
            match entry {
                Ok(entry) => below.extend(self.entry(folder, &entry, round)),
                // On some broken file systems the error comes again for ever: one is enough.
                Err(error) => {
                    self.walk.notes.push(unreadable(&folder.path, &error));
                    break;
                }
            }
        }
        // In order of name, whatever order the file system lists them in.
        below.sort_by(|a, b| a.path.cmp(&b.path));
        let has = |name: &str| {
            below
                .iter()
                .any(|f| f.path.file_name() == Some(name.as_ref()))
        };
        if has("manifests") && has("blobs") {
            self.walk.ollama_stores.push(folder.path.clone());
        }
        if folder.depth >= self.limits.depth {
            round.too_deep = round
                .too_deep
                .take()
                .or(below.into_iter().next().map(|f| f.path));
            return true;
        }
        for next in below {
            match next.linked {
                true => round.linked.push_back(next),
                false => round.ahead.push_back(next),
            }
        }
        true
    }

    /// Takes in a file; gives back a folder to look into.
    fn entry(&mut self, folder: &Folder, entry: &DirEntry, round: &mut Round) -> Option<Folder> {
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().ok()?;
        let target = if kind.is_symlink() {
            resolve(&path)
        } else if kind.is_dir() || may_be_model(&name) {
            let real = folder.real.join(&name);
            entry.metadata().map(|data| (data, real))
        } else {
            return None;
        };
        match target {
            Ok((data, real)) if data.is_dir() => {
                let a_disk = !NOT_DISKS.iter().any(|system| real == Path::new(system));
                a_disk.then_some(Folder {
                    path,
                    real,
                    linked: kind.is_symlink(),
                    depth: folder.depth + 1,
                })
            }
            Ok((data, real)) if data.is_file() && may_be_model(&name) => {
                let named = is_named_gguf(&name);
                if named || begins_like_gguf(&real, data.len()) {
                    self.candidate(path, real, &data, named);
                }
                None
            }
            Err(_) if kind.is_symlink() && is_named_gguf(&name) => {
                round.broken_links += 1;
                None
            }
            _ => None,
        }
    }

    fn candidate(&mut self, path: PathBuf, real: PathBuf, data: &Metadata, named: bool) {
        self.walk.candidates.push(Candidate {
            path,
            real,
            bytes: data.len(),
            modified: data.modified().ok(),
            named,
        });
    }
}

/// What a path leads to in the end, and where that lies.
fn resolve(path: &Path) -> io::Result<(Metadata, PathBuf)> {
    let real = fs::canonicalize(path)?;
    Ok((fs::metadata(&real)?, real))
}

fn unreadable(folder: &Path, error: &io::Error) -> Note {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Note::Unreadable {
        folder: folder.to_owned(),
        reason,
    }
}

/// Whether a file of this name is looked at: named `.gguf`, or without an extension.
///
/// Downloads under way carry an extension (`.part`, `.incomplete`, `.crdownload`) and so are
/// never taken for models. `._name.gguf` is what macOS writes beside a file on foreign disks.
fn may_be_model(name: &OsStr) -> bool {
    is_named_gguf(name) || !has_extension(name)
}

fn is_named_gguf(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() > 5
        && name[name.len() - 5..].eq_ignore_ascii_case(b".gguf")
        && !name.starts_with(b"._")
}

/// Whether the name ends in an extension: the end of `Qwen2.5-7B-Q4_K_M` is none.
fn has_extension(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    match name.iter().rposition(|b| *b == b'.') {
        None => false,
        Some(at) => {
            let extension = &name[at + 1..];
            (1..=12).contains(&extension.len())
                && extension.iter().all(u8::is_ascii_alphanumeric)
                && extension.iter().any(u8::is_ascii_alphabetic)
        }
    }
}

/// Whether the file begins with GGUF's magic. Only regular files come here: opening them does
/// not block.
fn begins_like_gguf(path: &Path, bytes: u64) -> bool {
    let mut magic = [0; 4];
    bytes >= SMALLEST_HEADER
        && fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && &magic == b"GGUF"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_under_way_is_no_model() {
        for name in [
            "m.gguf.part",
            "m.gguf.crdownload",
            "0a1b.incomplete",
            "m.gguf.tmp",
        ] {
            assert!(!may_be_model(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn names_end_in_gguf_in_any_case_or_in_nothing() {
        for name in [
            "m.gguf",
            "M.GGUF",
            "sha256-0a1b",
            "Qwen2.5-7B-Q4_K_M",
            "model-1.5",
        ] {
            assert!(may_be_model(OsStr::new(name)), "{name}");
        }
        for name in ["m.bin", "model.safetensors", "README.md", "._m.gguf"] {
            assert!(!may_be_model(OsStr::new(name)), "{name}");
        }
    }
}
