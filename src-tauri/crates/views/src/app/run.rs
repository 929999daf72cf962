//! A run of this window: the plan under the machine's lease, told step by step, kept in the
//! history.
//!
//! It runs on a thread of its own, so that waiting for a picture blocks nobody.

use std::sync::Arc;

use jiff::Timestamp;
use twospeed_history::History;
use twospeed_library::display::shown;
use twospeed_measure::{Lease, Plan, PlannedTest, RunOutcome, Stop};
use twospeed_workbench::{
    RunRequest, Subject, bars, hold_lease, know_read_speed, needs, waiting_sentence,
};
use uuid::Uuid;

use super::App;
use super::plan::Prepared;
use super::run_log::RunLog;
use super::run_teller::Teller;
use crate::Problem;
use crate::frame::AppEvent;
use crate::measure::*;

/// A run that was begun.
pub(super) struct Run {
    pub(super) app: Arc<App>,
    pub(super) prepared: Prepared,
    pub(super) history: History,
    pub(super) log: Arc<RunLog>,
    pub(super) stop: Stop,
}

impl Run {
    /// Runs to the end and tells it.
    pub(super) async fn run(self) {
        let Self {
            app,
            prepared,
            history,
            log,
            stop,
        } = self;
        let Prepared {
            plan,
            subjects,
            view,
            forecast,
        } = prepared;
        let mut teller = Teller::new(&app, &plan, forecast, &log, &stop);
        teller.tell(RunStep::Asked {
            plan: view,
            at: Timestamp::now().to_string(),
        });
        let (end, run) = match wait(&app, &stop, &mut teller).await {
            Err(problem) => (failed(problem), None),
            Ok(None) => (RunEnd::Stopped, None),
            Ok(Some(lease)) => {
                let measured =
                    measure(&app, &plan, &subjects, &history, &lease, &stop, &mut teller);
                match measured.await {
                    Ok(outcome) => (end_of(&outcome), Some(outcome.run.id)),
                    Err(problem) => (failed(problem), None),
                }
            }
        };
        let results = match run {
            Some(run) => results_of(&history, run).await,
            None => Vec::new(),
        };
        teller.end(RunStep::Ended { end, results });
        app.tell(AppEvent::ResultsChanged);
    }
}

fn failed(problem: Problem) -> RunEnd {
    RunEnd::Failed {
        code: problem.code,
        message: shown(&problem.message),
    }
}

fn end_of(outcome: &RunOutcome) -> RunEnd {
    match &outcome.end {
        twospeed_measure::RunEnd::Complete => RunEnd::Complete,
        twospeed_measure::RunEnd::Stopped => RunEnd::Stopped,
        twospeed_measure::RunEnd::NoEngine { code, message } => {
            failed(Problem::new(code.as_str(), message))
        }
        twospeed_measure::RunEnd::NotKept(error) => failed(Problem::new("not_stored", error)),
    }
}

/// The lease of this machine; `None` where the person stopped waiting for it.
async fn wait(app: &App, stop: &Stop, teller: &mut Teller<'_>) -> Result<Option<Lease>, Problem> {
    let held = hold_lease(&app.environment.lease, "bench", |holder| {
        teller.tell(RunStep::Waiting {
            sentence: shown(&waiting_sentence(holder.as_ref())),
        });
    });
    tokio::select! {
        biased;
        () = stop.asked() => Ok(None),
        lease = held => Ok(Some(lease?)),
    }
}

async fn measure(
    app: &App,
    plan: &Plan,
    subjects: &[Subject],
    history: &History,
    lease: &Lease,
    stop: &Stop,
    teller: &mut Teller<'_>,
) -> Result<RunOutcome, Problem> {
    let needs = |test: &PlannedTest| {
        let of = |subject: &&Subject| subject.measured.fingerprint == test.model.fingerprint;
        needs(&subjects.iter().find(of)?.header, test)
    };
    let request = RunRequest {
        plan,
        engine: &*app.engine,
        recorder: history,
        needs: &needs,
        stop,
    };
    let outcome = twospeed_workbench::run(request, lease, &mut |step| teller.step(step)).await?;
    if outcome.end == twospeed_measure::RunEnd::Complete {
        // After the tests, so that it disturbs none; they stand without it.
        let known = know_read_speed(&*app.engine, history, plan, lease, || {
            teller.reads();
        });
        let known = tokio::select! {
            biased;
            () = stop.asked() => Ok(()),
            known = known => known,
        };
        teller.loud();
        if let Err(problem) = known {
            app.tell(AppEvent::Notice {
                message: shown(&format!("The read speed was not measured: {problem}")),
                failed: false,
            });
        }
    }
    Ok(outcome)
}

/// The results that Compare can show, in the order they were measured.
async fn results_of(history: &History, run: Uuid) -> Vec<String> {
    let Ok(Some(whole)) = history.run(run).await else {
        return Vec::new();
    };
    let whole = [whole];
    let mut ids: Vec<_> = bars(&whole).iter().filter_map(|bar| bar.id()).collect();
    let order = |id: &Uuid| whole[0].tests.iter().position(|test| test.record.id == *id);
    ids.sort_by_key(|id| order(&id.test));
    ids.iter().map(ToString::to_string).collect()
}
