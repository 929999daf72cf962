//! Why a model is not here.

use std::io;
use std::path::{Path, PathBuf};

use crate::display::{shortened, shown, shown_path, size};

/// Why a download ended without a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// What was asked for is no repository.
    #[error(
        "{0} names no repository: write OWNER/NAME or OWNER/NAME:FILE, as in HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:Q8_0."
    )]
    BadRepo(String),
    /// A file name that leads out of a folder, or that no system takes.
    #[error("{0} is no file name: name the file without folders, or its quantization.")]
    BadName(String),
    /// The repository lists such a name.
    #[error(
        "{repo} lists {name}, a name that leads out of the folder or that no system takes: it is not fetched."
    )]
    HostileName {
        /// The repository.
        repo: String,
        /// The name.
        name: String,
    },
    /// `HF_ENDPOINT` is no address, or one that a token must not be sent to.
    #[error("HF_ENDPOINT is {address}, which is no address to fetch from: {fault}.")]
    BadEndpoint {
        /// What it is.
        address: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// There is more than one model, and none was named.
    #[error("{repo} has {count} models: {models}. Name one: twospeed download {repo}:{example}")]
    Several {
        /// The repository.
        repo: String,
        /// How many.
        count: usize,
        /// Each with its size.
        models: String,
        /// One of them, as it is to be written.
        example: String,
    },
    /// Nothing of that name.
    #[error("{repo} has no {wanted}. It has {models}.")]
    NoSuchFile {
        /// The repository.
        repo: String,
        /// What was asked for.
        wanted: String,
        /// What it has.
        models: String,
    },
    /// No model in the repository.
    #[error(
        "{0} holds no GGUF file. Look for a repository of the same model whose name ends in GGUF."
    )]
    NoGguf(String),
    /// A split set without all its parts.
    #[error("{repo} has only {found} of the {parts} parts of {name}: such a set cannot be run.")]
    SetIncomplete {
        /// The repository.
        repo: String,
        /// What the parts have in common.
        name: String,
        /// Parts that are listed.
        found: usize,
        /// Parts of the set.
        parts: u32,
    },
    /// The server cannot be reached.
    #[error("{host} cannot be reached ({fault}). Check the network, then try again.")]
    Offline {
        /// Its name.
        host: String,
        /// What the system says.
        fault: String,
    },
    /// The server wants to know who asks.
    #[error(
        "{host} does not give {repo} to everybody: it has a licence to accept, is private, or does not exist. Check the name, accept the licence on its page, and set HF_TOKEN to a token of your account."
    )]
    NeedsToken {
        /// The server.
        host: String,
        /// The repository.
        repo: String,
    },
    /// The token is not enough.
    #[error(
        "{host} refuses {repo} to the account of HF_TOKEN: accept its licence on its page, or check the token."
    )]
    Refused {
        /// The server.
        host: String,
        /// The repository.
        repo: String,
    },
    /// It is not there.
    #[error("{host} has no {what} (404). Check the name.")]
    NotFound {
        /// The server.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// An answer that is no file.
    #[error("{host} answered with {got} instead of {what}. Try again later.")]
    NotTheFile {
        /// The server.
        host: String,
        /// What was asked for.
        what: String,
        /// What came.
        got: String,
    },
    /// The connection broke again and again, or the server kept failing.
    #[error(
        "{what} did not come through: {fault}. What came is kept: the same command goes on from there."
    )]
    Broken {
        /// The file.
        what: String,
        /// What happened last.
        fault: String,
    },
    /// What came is not what the repository lists.
    #[error(
        "{what} came with {fault} and was removed: it was changed or damaged on its way. Try again."
    )]
    NotAsListed {
        /// The file.
        what: String,
        /// Which of its facts.
        fault: String,
    },
    /// A file of that name is there already.
    #[error(
        "{} is there already with other content: name another folder (--to), or overwrite it (--force).", shown_path(.0)
    )]
    Exists(PathBuf),
    /// Another process fetches it.
    #[error("{} is being downloaded by another process: wait for it.", shown_path(.0))]
    Busy(PathBuf),
    /// It would not fit.
    #[error(
        "{} has too little room: {} are to come and {} are free. Free some space or name another folder (--to).",
        shown_path(folder), size(*need), size(*free)
    )]
    DiskTooSmall {
        /// Where it should go.
        folder: PathBuf,
        /// Bytes that are to come.
        need: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The disk filled up meanwhile.
    #[error(
        "The disk of {} is full. Free some space; what came is kept and the same command goes on from there.", shown_path(.0)
    )]
    DiskFull(PathBuf),
    /// A file or folder cannot be written.
    #[error(
        "{} cannot be written: {fault}. Name another folder (--to).",
        shown_path(place)
    )]
    Unwritable {
        /// Which.
        place: PathBuf,
        /// What the system says.
        fault: String,
    },
    /// The caller wanted no more of it.
    #[error("Cancelled. What came is kept: the same command goes on from there.")]
    Cancelled,
}

impl DownloadError {
    /// The key of this error for those who branch on it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadRepo(_) => "download_bad_repo",
            Self::BadName(_) | Self::HostileName { .. } => "download_bad_name",
            Self::BadEndpoint { .. } => "download_bad_endpoint",
            Self::Several { .. } => "download_several",
            Self::NoSuchFile { .. } | Self::NotFound { .. } => "download_not_found",
            Self::NoGguf(_) => "download_no_gguf",
            Self::SetIncomplete { .. } => "download_set_incomplete",
            Self::Offline { .. } => "download_offline",
            Self::NeedsToken { .. } | Self::Refused { .. } => "download_needs_access",
            Self::NotTheFile { .. } => "download_not_the_file",
            Self::Broken { .. } => "download_broken",
            Self::NotAsListed { .. } => "download_not_as_listed",
            Self::Exists(_) => "target_exists",
            Self::Busy(_) => "download_busy",
            Self::DiskTooSmall { .. } => "disk_too_small",
            Self::DiskFull(_) => "disk_full",
            Self::Unwritable { .. } => "target_unusable",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the fault lies in what was asked for, and asking otherwise helps.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::BadRepo(_) | Self::BadName(_) | Self::BadEndpoint { .. } | Self::Several { .. }
        )
    }

    /// A folder that cannot be made.
    pub(super) fn folder(folder: &Path, error: &io::Error) -> Self {
        Self::writing(folder, error)
    }

    /// A file that cannot be written, or no further.
    pub(super) fn writing(place: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull(crate::landing::folder_of(place).to_owned())
            }
            io::ErrorKind::AlreadyExists => Self::Exists(place.to_owned()),
            _ => Self::Unwritable {
                place: place.to_owned(),
                fault: error.to_string(),
            },
        }
    }
}

/// Words of a stranger, fit to be shown.
pub(super) fn quoted(text: &str) -> String {
    shortened(&shown(text), 120)
}
