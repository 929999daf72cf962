//! The view Compare.

use super::App;
use super::measure::not_yet;
use crate::Problem;
use crate::compare::*;

/// State of the comparing half.
#[derive(Default)]
pub(crate) struct Comparing {}

impl App {
    /// Results to choose from.
    pub async fn results(&self) -> Result<ResultsView, Problem> {
        let Comparing {} = &self.comparing;
        Err(not_yet())
    }

    /// A figure with all that belongs to it.
    pub async fn figure(&self, _request: FigureRequest) -> Result<FigureView, Problem> {
        Err(not_yet())
    }

    /// A run with everything.
    pub async fn run_page(&self, _run: String) -> Result<RunPage, Problem> {
        Err(not_yet())
    }

    /// Deletes runs; can be undone.
    pub async fn delete_runs(&self, _runs: Vec<String>) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Undoes deleting.
    pub async fn restore_runs(&self, _runs: Vec<String>) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Sets the note on a run.
    pub async fn set_note(&self, _run: String, _note: String) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Saves what is shown.
    pub async fn export(&self, _request: ExportRequest) -> Result<Exported, Problem> {
        Err(not_yet())
    }

    /// Puts what is shown on the clipboard.
    pub async fn copy(&self, _request: ExportRequest, _what: CopyWhat) -> Result<(), Problem> {
        Err(not_yet())
    }
}
