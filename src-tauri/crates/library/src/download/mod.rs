//! Models fetched from Hugging Face, when a person asks for one: nothing else here or anywhere
//! in Twospeed touches the network.
//!
//! What can go wrong, and what then happens:
//! - the connection breaks or the server is busy: tried again a few times, from where it was;
//! - it is cut off for good, cancelled, or the disk fills up: the `.part` file stays, and the next
//!   try goes on from there, if the server still has the same file;
//! - the server sends the whole file where a part was asked for: it starts anew, nothing is appended;
//! - what came is not what the repository lists (size, sha256): it is removed, never put in place;
//! - a page came instead of a file (maintenance, a sign-in): nothing is put in place;
//! - the repository has a licence to accept: said, with what to do;
//! - a name in the listing leads out of the folder: refused.
//!
//! A file appears under its name whole and verified, or not at all; of a split set every part is
//! fetched.

mod address;
mod choose;
mod error;
mod listing;
mod part;
mod remote;
mod transfer;
mod tries;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::landing;

pub use address::{Hub, Wanted};
pub use choose::Choice;
pub use error::DownloadError;
pub use remote::{Place, RemoteError, remote_header};

use listing::Entry;

/// A model that the window offers to somebody who has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: &'static str,
    /// Its repository.
    pub repo: &'static str,
    /// Its file there.
    pub file: &'static str,
    /// About its size, to show before anything is asked of the network.
    pub about_bytes: u64,
    /// Its licence.
    pub licence: &'static str,
}

/// Small, free, and it writes sentences.
pub const OFFER: Offer = Offer {
    name: "SmolLM2 135M Instruct",
    repo: "HuggingFaceTB/SmolLM2-135M-Instruct-GGUF",
    file: "smollm2-135m-instruct-q8_0.gguf",
    about_bytes: 145_000_000,
    licence: "Apache-2.0",
};

/// What is to be fetched, from where, to where.
#[derive(Debug, Clone)]
pub struct Request {
    /// The server, with the right to use it.
    pub hub: Hub,
    /// The repository and what of it.
    pub wanted: Wanted,
    /// The folder to put it in; made where it is not there.
    pub folder: PathBuf,
    /// Overwrite a file of that name with other content.
    pub overwrite: bool,
    /// Pause before the second try; it doubles with each.
    pub pause: Duration,
}

/// Whether to go on: asked often, so it should answer at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoOn {
    /// Yes.
    Yes,
    /// Not now: something is being measured on this machine.
    Pause,
    /// No more; what came is kept to be gone on with.
    No,
}

/// How far it is; at most about ten a second while bytes come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The file that is being fetched; empty while the repository is looked at.
    pub file: String,
    /// Bytes that are here, of all files.
    pub done: u64,
    /// Bytes of all files; 0 while they are not known.
    pub total: u64,
    /// What is being done.
    pub doing: Doing,
}

/// What a download does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Asking what the repository has.
    Asking,
    /// Bytes come.
    Fetching,
    /// What is here already is read, to know whether it is sound.
    Checking,
    /// Told to wait ([`GoOn::Pause`]).
    Paused,
    /// The connection broke; another try follows soon.
    Retrying,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// The model: of a split set the first part.
    pub path: PathBuf,
    /// Every file.
    pub files: Vec<PathBuf>,
    /// Their bytes.
    pub bytes: u64,
    /// Each file has the checksum that the repository lists; false where it lists none.
    pub verified: bool,
    /// It was there before, with the right content.
    pub was_there: bool,
}

/// What a repository has to offer: its models, in the order of its list.
///
/// Errors: as [`download`].
pub fn list(request: &Request, go_on: &dyn Fn() -> GoOn) -> Result<Vec<Choice>, DownloadError> {
    let entries = listing::fetch(&request.hub, &request.wanted.repo, request.pause, go_on)?;
    choose::choices(&request.wanted.repo, entries)
}

/// Fetches a model. Blocks until it is there.
///
/// `progress` hears how far it is; `go_on` is asked about ten times a second and between pieces.
///
/// Errors: one sentence each; a cancelled or broken download can be gone on with by the same call.
pub fn download(
    request: &Request,
    progress: &mut dyn FnMut(Progress),
    go_on: &dyn Fn() -> GoOn,
) -> Result<Downloaded, DownloadError> {
    progress(Progress {
        file: String::new(),
        done: 0,
        total: 0,
        doing: Doing::Asking,
    });
    let choices = list(request, go_on)?;
    let choice = choose::choose(&request.wanted, choices)?;
    fetch(request, &choice, progress, go_on)
}

fn fetch(
    request: &Request,
    choice: &Choice,
    progress: &mut dyn FnMut(Progress),
    go_on: &dyn Fn() -> GoOn,
) -> Result<Downloaded, DownloadError> {
    let folder = &request.folder;
    std::fs::create_dir_all(folder).map_err(|error| DownloadError::folder(folder, &error))?;
    let total = choice.bytes();
    check_space(request, &choice.entries)?;
    let mut all = Downloaded {
        path: PathBuf::new(),
        files: Vec::new(),
        bytes: 0,
        verified: true,
        was_there: true,
    };
    for entry in &choice.entries {
        let mut told = |done: u64, doing: Doing| {
            progress(Progress {
                file: entry.name().to_owned(),
                done: all.bytes + done,
                total,
                doing,
            });
        };
        let landed = transfer::fetch(request, entry, &mut told, go_on)?;
        all.verified &= entry.sha256.is_some();
        all.was_there &= landed.was_there;
        all.bytes += landed.bytes;
        all.files.push(landed.path);
    }
    all.path = all.files.first().cloned().unwrap_or_default();
    Ok(all)
}

/// What is missing has to fit before anything begins.
fn check_space(request: &Request, entries: &[Entry]) -> Result<(), DownloadError> {
    let here = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.len());
    let need: u64 = entries
        .iter()
        .map(|entry| {
            let place = request.folder.join(entry.name());
            let part = landing::beside(&place, part::END);
            entry.size.saturating_sub(here(&place).max(here(&part)))
        })
        .sum();
    match landing::free_bytes(&request.folder) {
        Some(free) if need > 0 && need + landing::SPARE_BYTES > free => {
            Err(DownloadError::DiskTooSmall {
                folder: request.folder.clone(),
                need,
                free,
            })
        }
        _ => Ok(()),
    }
}
