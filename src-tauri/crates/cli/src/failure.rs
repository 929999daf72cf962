//! How a command fails: one sentence and an exit code.

use std::process::ExitCode;

/// A command that did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// It failed (exit 1).
    Failed(String),
    /// It was asked for something that makes no sense (exit 2).
    Usage(String),
    /// It failed and has said why already (exit 1).
    Said,
    /// The reader of standard output went away (`| head`): no failure worth a word.
    OutputClosed,
}

impl Failure {
    /// What to tell the person; `None` when all is said.
    pub fn sentence(&self) -> Option<&str> {
        match self {
            Self::Failed(sentence) | Self::Usage(sentence) => Some(sentence),
            Self::Said | Self::OutputClosed => None,
        }
    }

    /// 0 (the reader left), 1 or 2.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Failed(_) | Self::Said => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }

    /// A failed write to standard output.
    pub fn of_output(error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(format!("The output could not be written: {error}."))
        }
    }

    /// Any error whose text is a sentence for the person.
    pub fn of(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}
