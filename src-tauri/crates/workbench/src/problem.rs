//! What went wrong, for both faces.

/// A failure with the key that a face branches on and the sentence it shows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Stable key.
    pub code: String,
    /// One sentence that names the thing and says what to do.
    pub message: String,
}

impl Problem {
    /// With its key and its sentence.
    pub fn new(code: impl Into<String>, message: impl ToString) -> Self {
        Self {
            code: code.into(),
            message: message.to_string(),
        }
    }
}
