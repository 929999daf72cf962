//! What every command may need: the data folder, the history, a runtime, paths of models.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use twospeed_history::History;
use twospeed_library::builtin;
use twospeed_workbench::{BUILTIN, DataFolder};

use crate::Failure;
use crate::say::say;

/// Made once, from what stands before the command.
pub struct Context {
    data_dir: Option<PathBuf>,
}

impl Context {
    /// With the data folder that was named, or the person's own.
    pub fn new(data_dir: Option<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.filter(|folder| !folder.as_os_str().is_empty()),
        }
    }

    /// The data folder.
    pub fn data_folder(&self) -> Result<DataFolder, Failure> {
        DataFolder::new(self.data_dir.clone()).map_err(Failure::of)
    }

    /// The person's home folder.
    pub fn home(&self) -> Result<PathBuf, Failure> {
        std::env::home_dir()
            .filter(|home| !home.as_os_str().is_empty())
            .ok_or_else(|| {
                Failure::Failed("There is no home folder: name the folders to look through.".into())
            })
    }

    /// Opens the history and says what there is to say about it.
    pub async fn open_history(&self) -> Result<History, Failure> {
        let folder = self.data_folder()?;
        let history = History::open(folder.path()).await.map_err(Failure::of)?;
        for notice in history.notices() {
            say(notice);
        }
        Ok(history)
    }

    /// Runs to the end on one thread: a measurement wants the others for itself.
    pub fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::runtime::Builder::new_current_thread()
            // A helping thread that has nothing left to do ends by a timer, which must not go off
            // while a sample is timed.
            .thread_keep_alive(Duration::from_secs(24 * 3600))
            .enable_all()
            .build()
            .map_err(Failure::of)?
            .block_on(work)
    }

    /// Path of the model that was named: a file, or the built-in model, made where it is not there yet.
    pub fn model_path(&self, named: &Path) -> Result<PathBuf, Failure> {
        if named.as_os_str() != BUILTIN || named.exists() {
            return Ok(named.to_owned());
        }
        let folder = self.data_folder()?;
        let mut said = false;
        builtin::ensure(folder.path(), &mut |_, _| {
            if !said {
                say("Making the built-in model (once, some seconds)");
                said = true;
            }
            true
        })
        .map_err(Failure::of)
    }

    /// Paths of the models that were named, also several in one argument with commas between
    /// them, as llama-bench takes them; a file whose name has a comma is taken as it stands.
    pub fn model_paths(&self, named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        let mut paths = Vec::new();
        for argument in named {
            match argument.to_str() {
                Some(text) if text.contains(',') && !argument.exists() => {
                    for part in text.split(',').filter(|part| !part.is_empty()) {
                        paths.push(self.model_path(Path::new(part))?);
                    }
                }
                _ => paths.push(self.model_path(argument)?),
            }
        }
        Ok(paths)
    }
}
