//! What the app knows of the world around it, as arguments, so that tests can set it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads an environment variable.
pub type Variable = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// The person's surroundings.
#[derive(Clone)]
pub struct Environment {
    /// The person's home folder; `None` = there is none.
    pub home: Option<PathBuf>,
    /// Reads an environment variable.
    pub variable: Arc<Variable>,
    /// The file by which measurements on this machine wait for each other.
    pub lease: PathBuf,
}

impl Environment {
    /// Of this process.
    pub fn of_this_process() -> Self {
        Self {
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            variable: Arc::new(|name| std::env::var_os(name)),
            lease: twospeed_workbench::lease_place(),
        }
    }
}
