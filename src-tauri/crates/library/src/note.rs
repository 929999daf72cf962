//! What a scan could not look at, and why: no failure, but the person should know.

use std::path::PathBuf;

use crate::display::shown_path;

/// Something that a scan passed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// A folder that was asked for is not there.
    #[error("{} does not exist.", shown_path(.folder))]
    Missing {
        /// The folder as it was asked for.
        folder: PathBuf,
    },
    /// A folder could not be listed, or not to its end.
    #[error("{} could not be read: {reason}.", shown_path(.folder))]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A folder lies deeper than a scan goes.
    #[error(
        "{} lies more than {limit} folders deep and was not looked into. Add it as a folder of its own.",
        shown_path(.folder)
    )]
    TooDeep {
        /// The first such folder.
        folder: PathBuf,
        /// Levels that a scan goes down.
        limit: usize,
    },
    /// There are more files than a scan looks at.
    #[error(
        "{} holds more than {limit} files and was not looked through to its end. Add the folder that holds the models instead.",
        shown_path(.folder)
    )]
    TooMany {
        /// The folder in which the scan ended.
        folder: PathBuf,
        /// Files and folders that a scan looks at.
        limit: usize,
    },
    /// Links named like models that lead nowhere.
    #[error(
        "{count} {} in {} {} to a file that is not there.",
        if *.count == 1 { "link" } else { "links" },
        shown_path(.folder),
        if *.count == 1 { "leads" } else { "lead" }
    )]
    BrokenLinks {
        /// The folder that was scanned.
        folder: PathBuf,
        /// How many.
        count: usize,
    },
    /// An Ollama manifest that cannot be understood.
    #[error("The Ollama manifest {} could not be read: {reason}.", shown_path(.manifest))]
    BadManifest {
        /// The manifest.
        manifest: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An Ollama model whose file is gone.
    #[error("Ollama lists {name}, but its file {} is not there. Pull it again with Ollama.", shown_path(.blob))]
    MissingBlob {
        /// The model's name and tag.
        name: String,
        /// The file that should be there.
        blob: PathBuf,
    },
}
