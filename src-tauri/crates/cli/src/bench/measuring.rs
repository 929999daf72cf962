//! A plan measured with the real engine, printed as it goes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use twospeed_engine::process::WorkerProcess;
use twospeed_history::History;
use twospeed_measure::{
    Lease, Need, Plan, PlannedTest, Progress, Recorder, RunEnd, RunOutcome, RunRecord, Stop,
};
use twospeed_workbench::{
    ResumeRequest, RunRequest, Subject, Unsaved, hold_lease, know_read_speed, lease_place, needs,
    waiting_sentence,
};

use super::args::OutputArgs;
use super::output::Output;
use super::status::Status;
use crate::Failure;
use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::say::say;

/// A run that goes on, and the positions of its plan that are missing.
pub struct Resumed {
    pub run: RunRecord,
    pub missing: BTreeSet<u32>,
}

/// What is measured, and what becomes of it.
pub struct Measuring<'a> {
    pub context: &'a Context,
    pub args: &'a OutputArgs,
    pub plan: &'a Plan,
    /// The models of the plan.
    pub subjects: &'a [Subject],
    /// Stops it.
    pub stop: &'a Stop,
}

impl Measuring<'_> {
    /// Runs the plan, or what is missing of it in a run that goes on.
    pub async fn run(
        &self,
        output: &mut Output<'_>,
        resumed: Option<Resumed>,
    ) -> Result<RunOutcome, Failure> {
        let (plan, stop, save) = (self.plan, self.stop, !self.args.no_save);
        let engine = WorkerProcess::find().map_err(Failure::of)?;
        let engine = engine.with_log_told(self.args.verbose);
        let history = match self.context.open_history().await {
            Ok(history) => Some(history),
            // Nothing is to be kept, so a data folder that cannot be used is no hindrance.
            Err(_) if !save => None,
            Err(failure) => return Err(failure),
        };
        let unsaved = Unsaved::new(history.as_ref());
        let recorder: &dyn Recorder = match &history {
            Some(history) if save => history,
            _ => &unsaved,
        };
        let lease = hold_lease(&lease_place(), "bench", |holder| {
            say(waiting_sentence(holder.as_ref()));
        })
        .await
        .map_err(Failure::of)?;

        let interrupts = Interrupts::new().map_err(Failure::of)?;
        tokio::spawn(stop_on_interrupt(interrupts, stop.clone()));
        let mut status = Status::new(self.args.progress, self.args.verbose, plan.tests.len());
        let mut failed_output = None;
        let mut progress = |step: Progress| {
            status.tell(&step);
            if let Err(failure) = output.tell(step) {
                // Without a reader there is nobody to measure for.
                failed_output.get_or_insert(failure);
                stop.now();
            }
        };
        let (engine, needs) = (&engine, |test: &PlannedTest| self.needs(test));
        let outcome = match resumed {
            None => {
                let request = RunRequest {
                    plan,
                    engine,
                    recorder,
                    needs: &needs,
                    stop,
                };
                twospeed_workbench::run(request, &lease, &mut progress).await
            }
            Some(resumed) => {
                let request = ResumeRequest {
                    run: resumed.run,
                    missing: &resumed.missing,
                    engine,
                    recorder,
                    needs: &needs,
                    stop,
                };
                twospeed_workbench::resume(request, &lease, &mut progress).await
            }
        };
        let outcome = outcome.map_err(Failure::of);
        status.end();
        let outcome = outcome?;
        if let Some(history) = history
            .as_ref()
            .filter(|_| save && outcome.end == RunEnd::Complete)
        {
            tokio::select! {
                biased;
                () = stop.asked_now() => {}
                () = read_speed(engine, history, plan, &lease) => {}
            }
        }
        if self.args.output == "results"
            && let Some(history) = &history
        {
            let mut text = Vec::new();
            history
                .export(&[outcome.run.id], Timestamp::now(), &mut text)
                .await
                .map_err(Failure::of)?;
            crate::print(&text)?;
        }
        if let Some(history) = &history {
            history.close().await;
        }
        match failed_output {
            Some(failure) => Err(failure),
            None => Ok(outcome),
        }
    }

    /// Memory that a test needs at least.
    fn needs(&self, test: &PlannedTest) -> Option<Need> {
        let of = |subject: &&Subject| subject.measured.fingerprint == test.model.fingerprint;
        needs(&self.subjects.iter().find(of)?.header, test)
    }
}

/// Measures the read speed where it is not known here yet. A failure is said: the tests stand
/// without it.
async fn read_speed(engine: &WorkerProcess, history: &History, plan: &Plan, lease: &Lease) {
    if let Err(problem) = know_read_speed(engine, history, plan, lease, || {}).await {
        say(format!("The read speed was not measured: {problem}"));
    }
}

/// The first request to end stops the run and keeps what is done; a second one leaves at once.
async fn stop_on_interrupt(mut interrupts: Interrupts, stop: Stop) {
    interrupts.next().await;
    say("\nStopping: what is measured is kept.");
    stop.now();
    interrupts.next().await;
    std::process::exit(130);
}
