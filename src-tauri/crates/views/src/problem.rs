//! A failure as the page gets it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What went wrong: the page branches on the code and shows the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Stable key: `file_unusable`, `file_exists`, `busy`, `unknown_run`, ...
    pub code: String,
    /// One sentence that names the thing and says what to do.
    pub message: String,
    /// More for those who want to know: log lines, a path.
    pub details: Option<String>,
}

impl Problem {
    /// With its key and its sentence.
    pub fn new(code: impl Into<String>, message: impl ToString) -> Self {
        Self {
            code: code.into(),
            message: message.to_string(),
            details: None,
        }
    }
}

impl From<twospeed_workbench::Problem> for Problem {
    fn from(problem: twospeed_workbench::Problem) -> Self {
        Self::new(problem.code, problem.message)
    }
}

impl From<twospeed_history::HistoryError> for Problem {
    fn from(error: twospeed_history::HistoryError) -> Self {
        Self::new(error.code(), error)
    }
}
