//! How a request ends when it does not end well.

use twospeed_engine::protocol::{Failure, FailureCode};

use crate::log;

/// Why a request stopped.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// The app asked for it.
    Cancelled,
    /// It failed.
    Failed(Failure),
}

impl Stopped {
    /// A failure that the engine had no part in.
    pub fn because(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Failed(Failure {
            code,
            message: message.into(),
            log: Vec::new(),
        })
    }

    /// A failure of the engine, with the last lines of its log.
    pub fn by_engine(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Failed(Failure {
            code,
            message: message.into(),
            log: log::tail(),
        })
    }

    /// A setting that the engine does not know or cannot honour.
    pub fn bad_setting(message: impl Into<String>) -> Self {
        Self::because(FailureCode::BadSetting, message)
    }
}
