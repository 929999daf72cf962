//! The view Measure.

use super::{App, Tell};
use crate::Problem;
use crate::measure::*;

/// State of the measuring half.
#[derive(Default)]
pub(crate) struct Measuring {}

impl App {
    /// A run of this window is going on.
    pub(crate) fn is_measuring(&self) -> bool {
        let Measuring {} = &self.measuring;
        false
    }

    /// Makes a plan ready, without running it.
    pub async fn plan(&self, _request: PlanRequest) -> Result<PlanView, Problem> {
        Err(not_yet())
    }

    /// Begins a run.
    pub async fn start_run(&self, _request: PlanRequest) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Tells the newest run from its start.
    pub async fn follow_run(&self, _events: Tell<RunEvent>) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// Stops the run.
    pub async fn stop_run(&self, _how: StopHow) -> Result<(), Problem> {
        Err(not_yet())
    }

    /// The page has painted and stands still.
    pub async fn painted(&self, _ticket: u32) -> Result<(), Problem> {
        Err(not_yet())
    }
}

pub(super) fn not_yet() -> Problem {
    Problem::new("not_yet", "This is not there yet.")
}
