//! The view Models.

use std::path::PathBuf;
use std::sync::Arc;

use super::App;
use super::measure::not_yet;
use crate::Problem;
use crate::jobs::Job;
use crate::models::*;

impl App {
    /// Every model that is known.
    pub async fn models(self: &Arc<Self>) -> Result<ModelsView, Problem> {
        Ok(ModelsView::default())
    }

    /// What `inspect` says of a row's file.
    pub async fn facts(&self, _row: String) -> Result<Facts, Problem> {
        Err(not_yet())
    }

    /// Adds a folder or a file to the list.
    pub async fn add_path(self: &Arc<Self>, path: String) -> Result<Added, Problem> {
        let _ = self.path_of(&path)?;
        Err(not_yet())
    }

    /// Takes a folder out of the list; its files stay.
    pub async fn remove_folder(self: &Arc<Self>, _folder: String) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Looks through the folders again.
    pub async fn scan(self: &Arc<Self>) -> Result<(), Problem> {
        self.begin_scan();
        Ok(())
    }

    /// Makes or fetches a row that is not there yet.
    pub async fn make(self: &Arc<Self>, _row: String) -> Result<Job, Problem> {
        Err(not_yet())
    }

    /// Stops a job.
    pub async fn cancel_job(&self, _job: String) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Files and folders that the program was started with, that were dropped on its window, or
    /// that a second start handed over.
    pub fn opened(self: &Arc<Self>, _paths: Vec<PathBuf>) {}

    /// The file behind a row, to be measured; the built-in model is made where it is not there yet.
    ///
    /// Errors: `row_unknown`, `row_not_there` with a sentence, or why the model cannot be made.
    pub async fn subject_of_row(&self, _row: &str) -> Result<PathBuf, Problem> {
        Err(not_yet())
    }

    pub(super) fn begin_scan(self: &Arc<Self>) {}
    pub(super) fn begin_scan_once(self: &Arc<Self>) {}
    pub(super) fn open_jobs(&self) -> Vec<Job> {
        Vec::new()
    }
    pub(super) fn take_opened(&self) -> Vec<String> {
        Vec::new()
    }
}
