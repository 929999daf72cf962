//! The view Measure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use twospeed_history::History;
use twospeed_library::display::shown_path;
use twospeed_measure::Stop;

use super::plan::Prepared;
use super::run::Run;
use super::run_log::{Painting, RunLog};
use super::{App, Tell};
use crate::Problem;
use crate::desk::locked;
use crate::measure::*;

/// State of the measuring half.
#[derive(Default)]
pub(crate) struct Measuring {
    /// The newest run.
    run: Mutex<Newest>,
    /// Pages say when they have painted.
    pub(super) painting: Painting,
}

#[derive(Default)]
struct Newest {
    /// Goes on, or is about to begin.
    goes_on: bool,
    /// There was one: `log` has its steps.
    was_begun: bool,
    stop: Stop,
    log: Arc<RunLog>,
}

impl Measuring {
    /// Takes the place of the one run that may go on.
    fn reserve(&self) -> Result<Reserved<'_>, Problem> {
        let mut run = locked(&self.run);
        if run.goes_on {
            return Err(Problem::new(
                "busy",
                "A run of this window is going on: wait for it, or stop it.",
            ));
        }
        run.goes_on = true;
        Ok(Reserved {
            measuring: self,
            is_used: false,
        })
    }

    /// The run is over; who asks for another at this news gets it.
    pub(super) fn ends(&self, log: &RunLog, last: RunEvent) {
        locked(&self.run).goes_on = false;
        log.end(last);
    }
}

/// A place that is free again if nothing comes of it.
pub(super) struct Reserved<'a> {
    measuring: &'a Measuring,
    is_used: bool,
}

impl Reserved<'_> {
    fn begin(mut self) -> (Arc<RunLog>, Stop) {
        self.is_used = true;
        let mut run = locked(&self.measuring.run);
        run.was_begun = true;
        run.stop = Stop::new();
        run.log = Arc::default();
        (run.log.clone(), run.stop.clone())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            locked(&self.measuring.run).goes_on = false;
        }
    }
}

impl App {
    /// A run of this window is going on.
    pub(crate) fn is_measuring(&self) -> bool {
        locked(&self.measuring.run).goes_on
    }

    /// Begins a run.
    ///
    /// Errors: `busy` while another goes on; `nothing_to_measure` with the reason; what `plan` says.
    pub async fn start_run(self: &Arc<Self>, request: PlanRequest) -> Result<(), Problem> {
        let reserved = self.reserve_run()?;
        let prepared = self.made_ready(&request).await?;
        if prepared.plan.tests.is_empty() {
            let why = prepared.view.hindrances.first();
            return Err(Problem::new(
                "nothing_to_measure",
                why.map_or("There is nothing to measure: choose a model.", |why| {
                    why.sentence.as_str()
                }),
            ));
        }
        let history = self.history().await?;
        self.begin_run(reserved, prepared, history)
    }

    /// Takes the place of the one run that may go on.
    pub(super) fn reserve_run(&self) -> Result<Reserved<'_>, Problem> {
        self.measuring.reserve()
    }

    /// Runs it on a thread of its own.
    ///
    /// Errors: `history_gone`, `no_thread`.
    pub(super) fn begin_run(
        self: &Arc<Self>,
        reserved: Reserved<'_>,
        prepared: Prepared,
        history: History,
    ) -> Result<(), Problem> {
        if !history.path().exists() {
            // What is open is a file without a name: all that is stored there would be lost with it.
            return Err(Problem::new(
                "history_gone",
                format!(
                    "{} was removed while Twospeed was open, so nothing could be kept. Put it back, or close Twospeed and start it again: a fresh history then begins.",
                    shown_path(history.path())
                ),
            ));
        }
        let (log, stop) = reserved.begin();
        let run = Run {
            app: self.clone(),
            prepared,
            history,
            log: log.clone(),
            stop,
        };
        let runtime = self.runtime.clone();
        let thread = std::thread::Builder::new().name("run".into());
        let measuring = self.clone();
        let begun = thread.spawn(move || {
            let run = AssertUnwindSafe(|| runtime.block_on(run.run()));
            if catch_unwind(run).is_err() {
                measuring.measuring.ends(&log, broken());
            }
        });
        begun.map(drop).map_err(|error| {
            locked(&self.measuring.run).goes_on = false;
            Problem::new(
                "no_thread",
                format!("The run cannot begin: the system gives no thread ({error}). Close other programs and try again."),
            )
        })
    }

    /// Tells the newest run from its start.
    pub async fn follow_run(&self, events: Tell<RunEvent>) -> Result<(), Problem> {
        let log = {
            let run = locked(&self.measuring.run);
            run.was_begun.then(|| run.log.clone())
        };
        if let Some(log) = log {
            log.follow(events).await;
        }
        Ok(())
    }

    /// Stops the run.
    pub async fn stop_run(&self, how: StopHow) -> Result<(), Problem> {
        let stop = locked(&self.measuring.run).stop.clone();
        match how {
            StopHow::Now => stop.now(),
            StopHow::AfterTest => stop.after_test(),
        }
        Ok(())
    }

    /// The page has painted and stands still.
    pub async fn painted(&self, ticket: u32) -> Result<(), Problem> {
        self.measuring.painting.painted(ticket);
        Ok(())
    }
}

/// A fault in this program must not keep the place of a run for ever.
fn broken() -> RunEvent {
    RunEvent {
        at_s: 0.0,
        left_s: None,
        step: RunStep::Ended {
            end: RunEnd::Failed {
                code: "internal".to_owned(),
                message: "The run ended by a fault of its own; what was measured is kept. Start it again, and please report this.".to_owned(),
            },
            results: Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::*;

    /// The window asks from whatever thread is free.
    #[allow(dead_code)]
    fn what_is_asked_may_cross_threads(app: &Arc<App>) {
        fn sent<T: Send>(_: impl Future<Output = T> + Send) {}
        let request: fn() -> PlanRequest = || unreachable!();
        sent(app.plan(request()));
        let several: fn() -> OffersRequest = || unreachable!();
        sent(app.offers(several()));
        sent(app.start_run(request()));
        sent(app.resumable());
        sent(app.resume_run(String::new()));
        sent(app.stop_run(StopHow::Now));
        sent(app.results());
        let request: fn() -> FigureRequest = || unreachable!();
        sent(app.figure(request()));
        let request: fn() -> ExportRequest = || unreachable!();
        sent(app.export(request()));
        sent(app.copy(request(), CopyWhat::Table));
        sent(app.delete_runs(Vec::new()));
        sent(app.run_page(String::new()));
    }
}
