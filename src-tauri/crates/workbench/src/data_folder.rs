//! Where Twospeed keeps what it knows.

use std::path::{Path, PathBuf};

/// The folder of the history and the built-in model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolder(PathBuf);

/// Nobody says where this person's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "There is no home folder to keep results in: name a folder with --data-dir or TWOSPEED_DATA_DIR."
)]
pub struct NoHome;

impl DataFolder {
    /// The folder that was named, or `twospeed` where this system keeps programs' data
    /// (`~/.local/share`, `~/Library/Application Support`, `%APPDATA%`).
    pub fn new(named: Option<PathBuf>) -> Result<Self, NoHome> {
        named
            .or_else(|| Some(dirs::data_dir()?.join("twospeed")))
            .map(Self)
            .ok_or(NoHome)
    }

    /// Its path; it need not exist yet.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
