//! What can go wrong with the history, each as one sentence with a next step.

use std::path::{Path, PathBuf};

use twospeed_measure::RecorderError;
use uuid::Uuid;

/// A fault of the history. The text is for the person, [`HistoryError::code`] for the program.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The data folder does not exist and cannot be made.
    #[error(
        "The data folder {} could not be made ({reason}). Choose another with --data-dir or TWOSPEED_DATA_DIR.",
        folder.display()
    )]
    FolderNotMade {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file stands where the data folder or one of its parents should be.
    #[error(
        "{} cannot be the data folder: there is a file in its place. Choose another with --data-dir or TWOSPEED_DATA_DIR.",
        folder.display()
    )]
    FolderIsFile {
        /// The folder asked for.
        folder: PathBuf,
    },
    /// SQLite takes paths as Unicode text only.
    #[error(
        "The data folder {} has a name that is not valid Unicode. Choose another with --data-dir or TWOSPEED_DATA_DIR.",
        folder.display()
    )]
    FolderName {
        /// The folder.
        folder: PathBuf,
    },
    /// Something that is no regular file stands where the history should be.
    #[error(
        "{} is not a file, so no history can be kept there. Move it away, or choose another data folder with --data-dir.",
        path.display()
    )]
    NotAFile {
        /// Where the history should be.
        path: PathBuf,
    },
    /// The data folder or the history in it may not be written.
    #[error(
        "The history {} is read-only, so nothing can be stored. Allow writing to it and its folder, or choose another data folder with --data-dir.",
        path.display()
    )]
    ReadOnly {
        /// The history.
        path: PathBuf,
    },
    /// The data folder may not be written and holds no history yet.
    #[error(
        "The data folder {} is read-only and holds no history yet. Allow writing to it, or choose another with --data-dir.",
        folder.display()
    )]
    NothingToRead {
        /// The folder.
        folder: PathBuf,
    },
    /// A newer Twospeed wrote it; this one would not understand what it changes.
    #[error(
        "The history {} was written by a newer Twospeed (its version is {found}, this one knows {known}). Update Twospeed, or choose another data folder with --data-dir.",
        path.display()
    )]
    Newer {
        /// The history.
        path: PathBuf,
        /// Version of its schema.
        found: i64,
        /// Newest version known here.
        known: i64,
    },
    /// A sound database, but of another program.
    #[error(
        "{} is a database of another program and is left alone. Choose another data folder with --data-dir.",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged. At the next start it is set aside and a fresh history begun.
    #[error(
        "The history {} is damaged ({reason}). Start Twospeed again: the file is kept under another name and a fresh history begins.",
        path.display()
    )]
    Damaged {
        /// The history.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The file is damaged and may not be moved away.
    #[error(
        "The history {} is damaged ({reason}) and read-only. Allow writing to its folder, and it is kept under another name; or choose another data folder with --data-dir.",
        path.display()
    )]
    DamagedReadOnly {
        /// The history.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The disk is full.
    #[error(
        "The disk that holds {} is full, so this could not be stored. Free some space and start again; what was stored before is safe.",
        path.display()
    )]
    DiskFull {
        /// The history.
        path: PathBuf,
    },
    /// Another process kept the history locked for longer than anyone should wait.
    #[error(
        "Another program has kept the history {} locked for {seconds} seconds. Close it, then try again.",
        path.display()
    )]
    Busy {
        /// The history.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The system failed to read or write.
    #[error("{} could not be read or written ({reason}). Check the disk and the rights on it.", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A value that cannot be true was refused.
    #[error("A result was not stored because it cannot be true: {reason}.")]
    Impossible {
        /// What is impossible about it.
        reason: String,
    },
    /// A stored value is not of the form this version writes.
    #[error("The history {} holds a value that cannot be read: {reason}.", path.display())]
    Unreadable {
        /// The history.
        path: PathBuf,
        /// Which value and why.
        reason: String,
    },
    /// No such run.
    #[error("There is no run {wanted} in the history. `twospeed runs` lists those there are.")]
    UnknownRun {
        /// What was asked for.
        wanted: String,
    },
    /// The run that was named cannot go on.
    #[error("Run {wanted} cannot go on: {why}. `twospeed runs` lists those there are.")]
    NotResumable {
        /// What was asked for.
        wanted: String,
        /// Why not.
        why: &'static str,
    },
    /// No run was stopped or cut off.
    #[error("There is no run to go on with: none was stopped or cut off.")]
    NothingToResume,
    /// No such test.
    #[error("There is no test {test} in the history, so nothing can be stored for it.")]
    UnknownTest {
        /// What was asked for.
        test: Uuid,
    },
    /// More than one run fits what was asked for.
    #[error("{wanted} fits {count} runs. Give more of the id.")]
    AmbiguousRun {
        /// What was asked for.
        wanted: String,
        /// How many fit.
        count: usize,
    },
    /// The file to import holds nothing that looks like a result.
    #[error(
        "No results were found in it. Twospeed reads what `twospeed export` writes, llama-bench's json, jsonl, csv, md and sql, and llama-batched-bench's jsonl."
    )]
    NothingFound,
    /// The file to import is no export of Twospeed.
    #[error("This is not a file of the form {}: {reason}.", crate::export::FORMAT)]
    NotAnExport {
        /// What is wrong with it.
        reason: String,
    },
    /// The file to import has a form that only a newer Twospeed knows.
    #[error(
        "This file has the form {format}, which a newer Twospeed wrote; this one reads {}. Update Twospeed to import it.",
        crate::export::FORMAT
    )]
    NewerExport {
        /// The form it names.
        format: String,
    },
    /// The export could not be written.
    #[error("The export could not be written ({reason}).")]
    ExportNotWritten {
        /// What the system said.
        reason: String,
    },
    /// SQLite refused for a reason that has no sentence of its own.
    #[error("The history {} refused an operation ({reason}).", path.display())]
    Database {
        /// The history.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
}

impl HistoryError {
    /// The kind of fault, stable: what programs branch on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::FolderNotMade { .. } => "folder_not_made",
            Self::FolderIsFile { .. } => "folder_is_file",
            Self::FolderName { .. } => "folder_name",
            Self::NotAFile { .. } => "not_a_file",
            Self::ReadOnly { .. } => "read_only",
            Self::NothingToRead { .. } => "nothing_to_read",
            Self::Newer { .. } => "newer",
            Self::NotOurs { .. } => "not_ours",
            Self::Damaged { .. } => "damaged",
            Self::DamagedReadOnly { .. } => "damaged_read_only",
            Self::DiskFull { .. } => "disk_full",
            Self::Busy { .. } => "busy",
            Self::Io { .. } => "io",
            Self::Impossible { .. } => "impossible",
            Self::Unreadable { .. } => "unreadable",
            Self::UnknownRun { .. } => "unknown_run",
            Self::NotResumable { .. } => "not_resumable",
            Self::NothingToResume => "nothing_to_resume",
            Self::UnknownTest { .. } => "unknown_test",
            Self::AmbiguousRun { .. } => "ambiguous_run",
            Self::NothingFound => "nothing_found",
            Self::NotAnExport { .. } => "not_an_export",
            Self::NewerExport { .. } => "newer_export",
            Self::ExportNotWritten { .. } => "export_not_written",
            Self::Database { .. } => "database",
        }
    }
}

impl From<HistoryError> for RecorderError {
    fn from(error: HistoryError) -> Self {
        Self {
            message: error.to_string(),
        }
    }
}

/// A fault inside, before it is known which file it is about.
#[derive(Debug)]
pub(crate) enum Fault {
    Sql(sqlx::Error),
    /// A value that SQLite has no room for, or that is nonsense.
    Impossible(String),
    /// A stored value that does not read back.
    Unreadable(String),
    NoRun(String),
    NoTest(Uuid),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

/// Result codes of SQLite, see <https://www.sqlite.org/rescode.html>.
mod sqlite {
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
    /// An extended code: the index of the log could not grow, which a full disk does.
    pub(super) const IOERR_SHMSIZE: i32 = IOERR | (19 << 8);
}

impl Fault {
    /// The result code of SQLite, where it was SQLite that failed: the primary one, which the
    /// extended ones hold in their low byte, but for those that say more.
    fn code(&self) -> Option<i32> {
        let Self::Sql(sqlx::Error::Database(error)) = self else {
            return None;
        };
        match error.code()?.parse().ok()? {
            sqlite::IOERR_SHMSIZE => Some(sqlite::FULL),
            extended => Some(extended & 0xff),
        }
    }

    /// Whether the file itself is broken.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.code(), Some(sqlite::CORRUPT | sqlite::NOTADB))
    }

    /// What SQLite said, without its number.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Sql(sqlx::Error::Database(error)) => error.message().to_owned(),
            Self::Sql(error) => error.to_string(),
            Self::Impossible(reason) | Self::Unreadable(reason) => reason.clone(),
            Self::NoRun(wanted) => wanted.clone(),
            Self::NoTest(test) => test.to_string(),
        }
    }

    /// The fault as a sentence about the history at `path`.
    pub(crate) fn about(self, path: &Path, patience: std::time::Duration) -> HistoryError {
        let code = self.code();
        let path = path.to_owned();
        let reason = self.reason();
        match self {
            Self::NoRun(wanted) => return HistoryError::UnknownRun { wanted },
            Self::NoTest(test) => return HistoryError::UnknownTest { test },
            Self::Impossible(_) => return HistoryError::Impossible { reason },
            Self::Unreadable(_) => return HistoryError::Unreadable { path, reason },
            Self::Sql(sqlx::Error::PoolTimedOut) => {
                return HistoryError::Busy {
                    path,
                    seconds: patience.as_secs(),
                };
            }
            Self::Sql(sqlx::Error::ColumnDecode { index, source }) => {
                return HistoryError::Unreadable {
                    path,
                    reason: format!("column {index}, {source}"),
                };
            }
            Self::Sql(_) => {}
        }
        match code {
            Some(sqlite::BUSY | sqlite::LOCKED) => HistoryError::Busy {
                path,
                seconds: patience.as_secs(),
            },
            Some(sqlite::READONLY) => HistoryError::ReadOnly { path },
            Some(sqlite::CORRUPT | sqlite::NOTADB) => HistoryError::Damaged { path, reason },
            Some(sqlite::FULL) => HistoryError::DiskFull { path },
            Some(sqlite::IOERR | sqlite::CANTOPEN) => HistoryError::Io { path, reason },
            Some(sqlite::CONSTRAINT) => HistoryError::Impossible { reason },
            _ => HistoryError::Database { path, reason },
        }
    }
}
