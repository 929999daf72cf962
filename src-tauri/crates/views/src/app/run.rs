//! A run of this window: the plan under the machine's lease, told step by step, kept in the
//! history.
//!
//! It runs on a thread of its own, so that waiting for a picture blocks nobody.

use std::sync::Arc;

use jiff::Timestamp;
use twospeed_history::History;
use twospeed_library::display::shown;
use twospeed_measure::{Lease, Need, Plan, PlannedTest, RunOutcome, Stop};
use twospeed_workbench::{
    ResumeRequest, RunRequest, Subject, bars, hold_lease, know_read_speed, needs, waiting_sentence,
};
use uuid::Uuid;

use super::App;
use super::plan::tuning::target as target_of;
use super::plan::{How, Prepared, Resumed};
use super::run_log::RunLog;
use super::run_teller::Teller;
use super::tuning::race;
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
            how,
            plan,
            subjects,
            view,
            forecast,
        } = prepared;
        let mut teller = Teller::new(&app, &plan, forecast, &log, &stop);
        if matches!(how, How::Tune(_)) {
            teller.ends_after(view.seconds);
        }
        teller.tell(RunStep::Asked {
            plan: view,
            at: Timestamp::now().to_string(),
        });
        let (end, run) = match wait(&app, &stop, &mut teller).await {
            Err(problem) => (failed(problem), None),
            Ok(None) => (RunEnd::Stopped, None),
            Ok(Some(lease)) => {
                let with = With {
                    app: &app,
                    plan: &plan,
                    subjects: &subjects,
                    history: &history,
                    lease: &lease,
                    stop: &stop,
                };
                with.run(how, &mut teller).await
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

/// What a run goes on with once it has the machine.
struct With<'a> {
    app: &'a App,
    plan: &'a Plan,
    subjects: &'a [Subject],
    history: &'a History,
    lease: &'a Lease,
    stop: &'a Stop,
}

impl With<'_> {
    /// To the end; the run whose results can be compared.
    async fn run(&self, how: How, teller: &mut Teller<'_>) -> (RunEnd, Option<Uuid>) {
        let outcome = match how {
            How::Whole => self.whole(teller).await,
            How::Resume(resumed) => self.resumed(*resumed, teller).await,
            How::Tune(target) => {
                let is_raced = |subject: &&Subject| {
                    let of =
                        |test: &PlannedTest| test.model.fingerprint == subject.measured.fingerprint;
                    self.plan.tests.iter().any(of)
                };
                let subjects: Vec<_> = self.subjects.iter().filter(is_raced).collect();
                let with = (self.history, self.lease, self.stop);
                let end = race(self.app, &subjects, target_of(target), with, teller).await;
                return (end, None);
            }
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(problem) => return (failed(problem), None),
        };
        if outcome.end == twospeed_measure::RunEnd::Complete {
            self.read_speed(teller).await;
        }
        (end_of(&outcome), Some(outcome.run.id))
    }

    fn needs(&self, test: &PlannedTest) -> Option<Need> {
        let of = |subject: &&Subject| subject.measured.fingerprint == test.model.fingerprint;
        needs(&self.subjects.iter().find(of)?.header, test)
    }

    async fn whole(&self, teller: &mut Teller<'_>) -> Result<RunOutcome, Problem> {
        let request = RunRequest {
            plan: self.plan,
            engine: &*self.app.engine,
            recorder: self.history,
            needs: &|test| self.needs(test),
            stop: self.stop,
        };
        let outcome =
            twospeed_workbench::run(request, self.lease, &mut |step| teller.step(step)).await?;
        Ok(outcome)
    }

    async fn resumed(
        &self,
        resumed: Resumed,
        teller: &mut Teller<'_>,
    ) -> Result<RunOutcome, Problem> {
        for test in resumed.kept {
            teller.kept(test);
        }
        let request = ResumeRequest {
            run: resumed.run,
            missing: &resumed.missing,
            engine: &*self.app.engine,
            recorder: self.history,
            needs: &|test| self.needs(test),
            stop: self.stop,
        };
        let outcome =
            twospeed_workbench::resume(request, self.lease, &mut |step| teller.step(step)).await?;
        Ok(outcome)
    }

    /// After the tests, so that it disturbs none; they stand without it.
    async fn read_speed(&self, teller: &mut Teller<'_>) {
        let engine = &*self.app.engine;
        let known = know_read_speed(engine, self.history, self.plan, self.lease, || {
            teller.reads();
        });
        let known = tokio::select! {
            biased;
            () = self.stop.asked() => Ok(()),
            known = known => known,
        };
        teller.loud();
        if let Err(problem) = known {
            self.app.tell(AppEvent::Notice {
                message: shown(&format!("The read speed was not measured: {problem}")),
                failed: false,
            });
        }
    }
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
