//! What happened while the history was opened.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Something the person should know about the history. `Display` gives the sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// The history was damaged: it lies under another name now and a fresh one was begun.
    SetAside {
        /// The history.
        path: PathBuf,
        /// Where the damaged file lies now.
        kept_as: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// The history can be read but not written.
    ReadOnly {
        /// The history.
        path: PathBuf,
    },
    /// The disk is full: the history can be read but not written.
    DiskFull {
        /// The history.
        path: PathBuf,
    },
    /// Runs whose process had ended without a word; they are marked now.
    Interrupted {
        /// The runs.
        runs: Vec<Uuid>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetAside {
                path,
                kept_as,
                reason,
            } => write!(
                f,
                "The history {} was damaged ({reason}). It is kept as {}, and a fresh history has begun.",
                path.display(),
                kept_as.display()
            ),
            Self::ReadOnly { path } => write!(
                f,
                "The history {} is read-only: it can be looked at, but nothing can be stored.",
                path.display()
            ),
            Self::DiskFull { path } => write!(
                f,
                "The disk that holds {} is full: the history can be looked at, but nothing can be stored.",
                path.display()
            ),
            Self::Interrupted { runs } => match runs.len() {
                1 => write!(
                    f,
                    "A run was cut off when Twospeed ended; what it had measured is kept."
                ),
                n => write!(
                    f,
                    "{n} runs were cut off when Twospeed ended; what they had measured is kept."
                ),
            },
        }
    }
}
