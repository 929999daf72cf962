//! Finds the models in folders.
//!
//! A scan first walks the folders (names only), then reads header after header, telling of each
//! as it comes. Whatever is in the folders ends up as an item, a note or nothing; nothing ends
//! the scan. The result is in order of path, whatever order a file system lists in.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use twospeed_gguf::{Model, SetName};

use crate::display::{shown, shown_name};
use crate::item::{FileOnDisk, Item, Reading};
use crate::note::Note;
use crate::ollama;
use crate::walk::{Candidate, Limits, walk};

/// What a scan found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scan {
    /// In order of path.
    pub items: Vec<Item>,
    /// What was passed over, and why.
    pub notes: Vec<Note>,
    /// The scan was ended before it was through.
    pub stopped: bool,
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// Looking through folders: how many so far, and how many files that may be models.
    Walking {
        /// Folders listed.
        folders: usize,
        /// Files that may be models.
        files: usize,
    },
    /// An item has been read.
    Found {
        /// The item.
        item: &'a Item,
        /// Items read with it.
        read: usize,
        /// Items there are.
        of: usize,
    },
}

/// Scans `folders`; a file among them is read like one found in a folder.
///
/// `before` is what the last scan found: files that have not changed since are not read again.
/// `go_on` is asked before every folder and every header. It may block, for instance while a
/// measurement runs, and ends the scan by answering no; what was found by then is returned.
/// Blocks on the disk: run it on a thread of its own.
pub fn scan(
    folders: &[PathBuf],
    limits: Limits,
    before: &[Item],
    go_on: &dyn Fn() -> bool,
    told: &mut dyn FnMut(Progress),
) -> Scan {
    let walked = walk(folders, limits, go_on, &mut |folders, files| {
        told(Progress::Walking { folders, files });
    });
    let mut scan = Scan {
        notes: walked.notes,
        stopped: walked.stopped,
        ..Scan::default()
    };

    let mut readable_names = HashMap::new();
    for store in walked.ollama_stores {
        let (named, notes) = ollama::names(&store);
        scan.notes.extend(notes);
        for named in named {
            if let Ok(real) = named.blob.canonicalize() {
                readable_names.entry(real).or_insert(named.name);
            }
        }
    }

    // What was broken is read again: it may have been a matter of permissions.
    let known: HashMap<&[FileOnDisk], &Model> = before
        .iter()
        .filter(|item| item.files.iter().all(|file| file.modified.is_some()))
        .filter_map(|item| Some((item.files.as_slice(), item.model()?)))
        .collect();
    let sets = each_once(sets(walked.candidates));
    let of = sets.len();
    for set in sets {
        if scan.stopped || !go_on() {
            scan.stopped = true;
            break;
        }
        let label = readable_names
            .get(&set.real)
            .cloned()
            .unwrap_or_else(|| set.label());
        let reading = match known.get(set.files.as_slice()) {
            Some(model) => Reading::Read(Box::new((*model).clone())),
            None => read(&set.path),
        };
        scan.items.push(Item {
            path: set.path,
            label,
            files: set.files,
            reading,
        });
        if let Some(item) = scan.items.last() {
            told(Progress::Found {
                item,
                read: scan.items.len(),
                of,
            });
        }
    }
    scan
}

/// Reads one header: a fault is a reading too.
fn read(path: &Path) -> Reading {
    match twospeed_gguf::read(path) {
        Ok(model) => Reading::Read(Box::new(model)),
        Err(error) => Reading::Broken(shown(&error.to_string())),
    }
}

/// A file of its own, or the parts of a split set that are there.
#[derive(Debug)]
struct Set {
    path: PathBuf,
    real: PathBuf,
    named: bool,
    files: Vec<FileOnDisk>,
    reals: Vec<PathBuf>,
}

impl Set {
    /// The name to show: of a split set the first part's, without its number.
    fn label(&self) -> String {
        match SetName::of(&self.path) {
            Some(set) => shown(&set.stem()) + ".gguf",
            None => shown_name(self.path.file_name().unwrap_or(self.path.as_os_str())),
        }
    }
}

/// Puts the parts of split sets together: those in one folder whose names differ in nothing but
/// the part's number.
fn sets(candidates: Vec<Candidate>) -> Vec<Set> {
    let mut sets: BTreeMap<PathBuf, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        // A set goes by the path of its first part, whether that is there or not.
        let key = match SetName::of(&candidate.path) {
            Some(set) => set.path(1),
            None => candidate.path.clone(),
        };
        sets.entry(key).or_default().push(candidate);
    }
    sets.into_values()
        .filter_map(|mut parts| {
            // Numbers of five digits: order of name is order of number.
            parts.sort_by(|a, b| a.path.cmp(&b.path));
            parts.dedup_by(|a, b| a.path == b.path);
            let first = parts.first()?;
            Some(Set {
                path: first.path.clone(),
                real: first.real.clone(),
                named: first.named,
                reals: parts.iter().map(|part| part.real.clone()).collect(),
                files: parts
                    .into_iter()
                    .map(|part| FileOnDisk {
                        path: part.path,
                        bytes: part.bytes,
                        modified: part.modified,
                    })
                    .collect(),
            })
        })
        .collect()
}

/// Leaves each file in one place only, in order of path: under its most readable name, and in the
/// most complete set.
fn each_once(mut sets: Vec<Set>) -> Vec<Set> {
    sets.sort_by(|a, b| {
        let linked = |set: &Set| set.path.file_name() != set.real.file_name();
        b.named
            .cmp(&a.named)
            .then_with(|| b.files.len().cmp(&a.files.len()))
            .then_with(|| linked(a).cmp(&linked(b)))
            .then_with(|| a.path.cmp(&b.path))
    });
    let mut seen: HashSet<PathBuf> = HashSet::new();
    sets.retain(|set| {
        let new = !seen.contains(&set.real);
        seen.extend(set.reals.iter().cloned());
        new
    });
    sets.sort_by(|a, b| a.path.cmp(&b.path));
    sets
}
