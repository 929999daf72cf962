//! What went wrong, for both faces.

/// A failure with the key that a face branches on and the sentence it shows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Stable key.
    pub code: String,
    /// One sentence that names the thing and says what to do.
    pub message: String,
    /// Last lines of the engine's log, where it has a part in it.
    pub log: Vec<String>,
}

impl Problem {
    /// A problem without a log.
    pub fn new(code: impl Into<String>, message: impl ToString) -> Self {
        Self {
            code: code.into(),
            message: message.to_string(),
            log: Vec::new(),
        }
    }
}
