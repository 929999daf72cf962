//! Runs a plan: every test in its order, every sample stored when it is made.
//!
//! A test that fails does not end the plan; a worker that died is replaced; what ended the engine
//! is not tried again. Nothing is printed and nothing is judged by speed, except whether a test
//! that is repeated until its mean is known has been repeated often enough.

mod blame;
mod order;
mod outcome;
mod request;
mod test;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::BTreeSet;

use twospeed_engine::Engine;
use twospeed_engine::protocol::FailureCode;
use twospeed_engine::variants::GiveUp;
use uuid::Uuid;

pub use self::outcome::{RunEnd, RunOutcome, TestOutcome};

use self::blame::Blame;
use self::test::{Attempt, Open};
use self::worker::{Trouble, Worker};
use crate::judge::{Evidence, judge};
use crate::lease::Lease;
use crate::machine::{Machine, Probe};
use crate::plan::{Need, Plan, PlanError, PlannedTest};
use crate::platform::own_start;
use crate::progress::Progress;
use crate::record::{Recorder, RecorderError, RunRecord, TestEnd, TestRecord, TestStatus};
use crate::resume::{NOT_STORED, VARIANT_CHANGED};
use crate::stop::Stop;
use crate::variants::Verdict;

/// What a run needs beside its plan.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// Runs the models.
    pub engine: &'a dyn Engine,
    /// Keeps what happens.
    pub recorder: &'a dyn Recorder,
    /// The machine it runs on.
    pub machine: &'a Machine,
    /// Twospeed's version.
    pub app_version: &'a str,
    /// The memory that a test needs; `None` = unknown, and the engine is asked to try. What is above
    /// the memory that is free is refused.
    pub needs: &'a (dyn Fn(&PlannedTest) -> Option<Need> + Sync),
    /// The right to measure here.
    pub lease: &'a Lease,
}

impl Bench<'_> {
    /// Runs a plan to its end, or to the end that `stop` or the recorder puts to it.
    ///
    /// Errors: [`PlanError`] before anything is started or stored.
    pub async fn run(
        &self,
        plan: &Plan,
        probe: &mut dyn Probe,
        stop: &Stop,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<RunOutcome, PlanError> {
        plan.check()?;
        let run = RunRecord {
            id: Uuid::now_v7(),
            started_at: probe.now(),
            machine: self.machine.clone(),
            app_version: self.app_version.to_owned(),
            preset: plan.preset.clone(),
            owner_pid: std::process::id(),
            owner_started: own_start(),
            plan: Some(plan.clone()),
        };
        let todo = (0..).zip(&plan.tests).collect();
        let mut running = Running::new(self, plan, run, todo, probe, stop, progress);
        let stored = self.recorder.run_started(&running.run).await;
        Ok(running.outcome(stored).await)
    }

    /// Goes on with a run that was stopped or cut off: measures the positions of its plan that are
    /// `missing` ([`crate::resume::missing`]), into the same run. The outcome holds what was
    /// measured now.
    ///
    /// Whether nobody else goes on with it is the caller's to know ([`crate::interrupted`]).
    ///
    /// Errors: [`PlanError`] before anything is started or stored: the run has no plan, or was made
    /// on another machine.
    pub async fn resume(
        &self,
        run: RunRecord,
        missing: &BTreeSet<u32>,
        probe: &mut dyn Probe,
        stop: &Stop,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<RunOutcome, PlanError> {
        let plan = run.plan.clone().ok_or(PlanError::NoPlan)?;
        plan.check()?;
        if run.machine.id != self.machine.id {
            let Machine { name, cpu, .. } = run.machine;
            return Err(PlanError::OtherMachine {
                machine: name.unwrap_or(cpu),
            });
        }
        let run = RunRecord {
            owner_pid: std::process::id(),
            owner_started: own_start(),
            ..run
        };
        let todo = (0..).zip(&plan.tests);
        let todo = todo.filter(|(at, _)| missing.contains(at)).collect();
        let mut running = Running::new(self, &plan, run, todo, probe, stop, progress);
        let stored = self.recorder.run_resumed(&running.run).await;
        Ok(running.outcome(stored).await)
    }
}

struct Running<'a> {
    bench: Bench<'a>,
    plan: &'a Plan,
    /// The tests that are to be measured, with their positions.
    todo: Vec<(u32, &'a PlannedTest)>,
    probe: &'a mut dyn Probe,
    stop: &'a Stop,
    progress: &'a mut (dyn FnMut(Progress) + Send),
    run: RunRecord,
    available: Option<u64>,
    worker: Worker<'a>,
    blame: Blame,
    outcomes: Vec<TestOutcome>,
}

/// What follows a test.
enum After {
    /// The next test.
    Next,
    /// The same test again: the CPU variant is another now.
    Again,
    /// No other test.
    Nothing(RunEnd),
}

impl<'a> Running<'a> {
    fn new(
        bench: &Bench<'a>,
        plan: &'a Plan,
        run: RunRecord,
        todo: Vec<(u32, &'a PlannedTest)>,
        probe: &'a mut dyn Probe,
        stop: &'a Stop,
        progress: &'a mut (dyn FnMut(Progress) + Send),
    ) -> Self {
        Self {
            bench: *bench,
            plan,
            todo,
            // Free memory is read once, while no worker holds any of it.
            available: probe.state(None).memory_available_bytes,
            probe,
            stop,
            progress,
            run,
            worker: Worker::new(bench.engine, bench.recorder, bench.machine, stop),
            blame: Blame::default(),
            outcomes: Vec::new(),
        }
    }

    /// Runs what is to be measured, if the run itself was `stored`.
    async fn outcome(&mut self, stored: Result<(), RecorderError>) -> RunOutcome {
        let end = match stored {
            Ok(()) => self.run_plan().await,
            Err(error) => RunEnd::NotKept(error),
        };
        RunOutcome {
            run: self.run.clone(),
            tests: std::mem::take(&mut self.outcomes),
            end,
        }
    }

    async fn run_plan(&mut self) -> RunEnd {
        (self.progress)(Progress::RunStarted {
            run: self.run.id,
            tests: u32::try_from(self.plan.tests.len()).unwrap_or(u32::MAX),
        });
        let end = self.in_order().await.unwrap_or_else(RunEnd::NotKept);
        self.worker.end().await;
        let complete = end == RunEnd::Complete;
        let now = self.probe.now();
        let ended = self.bench.recorder.run_ended(self.run.id, now, complete);
        let stored = ended.await;
        (self.progress)(Progress::RunEnded {
            run: self.run.id,
            complete,
        });
        match (end, stored) {
            // The first fault is the one to tell.
            (RunEnd::NotKept(error), _) | (_, Err(error)) => RunEnd::NotKept(error),
            (end, Ok(())) => end,
        }
    }

    /// Begins a test; `None` when it is not even tried, and its end is stored.
    async fn open(
        &mut self,
        position: u32,
        test: &'a PlannedTest,
    ) -> Result<Option<Open<'a>>, RecorderError> {
        if let Some(reason) = self.blame.reason(test) {
            self.skip(position, test, reason).await?;
            return Ok(None);
        }
        let open = self.begin(position, test).await?;
        if let Some(refusal) = test.refusal((self.bench.needs)(test), self.available) {
            let status = failed(refusal.code(), refusal.to_string(), &[]);
            self.finish(open, status).await?;
            return Ok(None);
        }
        Ok(Some(open))
    }

    async fn skip(
        &mut self,
        position: u32,
        test: &'a PlannedTest,
        reason: String,
    ) -> Result<(), RecorderError> {
        let open = self.begin(position, test).await?;
        self.finish(open, TestStatus::Skipped { reason }).await
    }

    /// Makes so many repetitions of a test, fewer when fewer are enough.
    async fn make(&mut self, open: &mut Open<'_>, repetitions: u32) -> Result<(), Trouble> {
        self.attempt().make(open, repetitions).await
    }

    fn attempt(&mut self) -> Attempt<'_, 'a> {
        Attempt {
            plan: self.plan,
            worker: &mut self.worker,
            recorder: self.bench.recorder,
            probe: &mut *self.probe,
            stop: self.stop,
            progress: &mut *self.progress,
        }
    }

    /// Ends a test that was `measured` so far, and says what follows.
    async fn close(
        &mut self,
        mut open: Open<'a>,
        mut measured: Result<(), Trouble>,
    ) -> Result<After, RecorderError> {
        if measured.is_ok()
            && let Err(Trouble::Died(end)) = self.attempt().anchor_after(&mut open).await
        {
            // The samples are there: a death after them does not undo the test, though it may
            // speak against the CPU variant.
            measured = self
                .worker
                .judge(&end)
                .await
                .map(drop)
                .map_err(Trouble::from);
        }
        let (status, after) = match measured {
            Ok(()) => (TestStatus::Done, After::Next),
            Err(trouble) => match self.judge(open.test, trouble).await {
                Ok(judged) => judged,
                Err(error) => {
                    // Though one thing could not be stored, the end of the test may be.
                    let status = failed(NOT_STORED, error.to_string(), &[]);
                    let _ = self.finish(open, status).await;
                    return Err(error);
                }
            },
        };
        self.finish(open, status).await?;
        Ok(after)
    }

    /// What a trouble makes of a test, and of the run.
    async fn judge(
        &mut self,
        test: &PlannedTest,
        trouble: Trouble,
    ) -> Result<(TestStatus, After), RecorderError> {
        match trouble {
            Trouble::NotKept(error) => Err(error),
            Trouble::Cancelled => Ok((TestStatus::Cancelled, After::Nothing(RunEnd::Stopped))),
            Trouble::OtherVariant { before, now } => {
                let message = format!(
                    "The CPU variant {before}, with which this test began, died meanwhile under another; {now} runs now, so the test is made again from its start."
                );
                Ok((failed(VARIANT_CHANGED, message, &[]), After::Again))
            }
            Trouble::Failed(failure) => {
                let code = failure_code(failure.code);
                Ok((failed(&code, failure.message, &failure.log), After::Next))
            }
            Trouble::NoEngine(error) => {
                let (code, message) = (error.code(), error.to_string());
                let after = match test.variant {
                    // Only the variant that was asked for does not start.
                    Some(_) => After::Next,
                    None => After::Nothing(RunEnd::NoEngine {
                        code: code.to_owned(),
                        message: message.clone(),
                    }),
                };
                Ok((failed(code, message, error.log()), after))
            }
            Trouble::Died(end) => {
                let name = Some(test.model.name.as_str());
                let (message, after) = match self.worker.judge(&end).await? {
                    // A variant that was asked for by name is not replaced by another.
                    Verdict::TryNextVariant if test.variant.is_some() => {
                        (end.sentence(name), After::Next)
                    }
                    Verdict::TryNextVariant => (end.sentence(name), After::Again),
                    Verdict::GiveUp(reason) => {
                        self.blame.note(test, &end);
                        let message = match reason {
                            GiveUp::NotTheVariant => end.sentence(name),
                            GiveUp::Unnamed | GiveUp::NoneLeft { .. } => reason.to_string(),
                        };
                        (message, After::Next)
                    }
                };
                Ok((failed(end.code(), message, &end.log), after))
            }
        }
    }

    async fn begin(
        &mut self,
        position: u32,
        test: &'a PlannedTest,
    ) -> Result<Open<'a>, RecorderError> {
        let record = TestRecord {
            id: Uuid::now_v7(),
            run: self.run.id,
            position,
            model: test.model.clone(),
            spec: test.spec,
            kind: test.kind.clone(),
            settings: test.settings.clone(),
            repetitions: self.plan.most(test).unwrap_or(1),
            warmup: self.plan.warmup && test.warms_up(),
            started_at: self.probe.now(),
        };
        self.bench.recorder.test_started(&record).await?;
        (self.progress)(Progress::TestStarted {
            test: Box::new(record.clone()),
        });
        Ok(Open::new(record, test))
    }

    async fn finish(&mut self, open: Open<'_>, status: TestStatus) -> Result<(), RecorderError> {
        let Open {
            record,
            test,
            findings,
            ..
        } = open;
        let samples = findings.samples_only();
        let warnings = judge(&Evidence {
            spec: test.spec,
            kind: &test.kind,
            until: self.plan.until.map(|until| (until, self.plan.fewest())),
            settings: &test.settings,
            samples: &samples,
            before: findings.before.as_ref().map(|read| &read.state),
            after: findings.after.as_ref(),
            anchor_before_ns: findings.anchor_before_ns,
            anchor_after_ns: findings.anchor_after_ns,
            placement: findings.placement.as_ref(),
            worker: findings.worker.as_ref(),
            set_aside: self.worker.set_aside(),
        });
        let end = TestEnd {
            test: record.id,
            status,
            ended_at: self.probe.now(),
            worker: findings.worker,
            loaded: findings.loaded,
            placement: findings.placement,
            anchor_before_ns: findings.anchor_before_ns,
            anchor_after_ns: findings.anchor_after_ns,
            state_before: findings.before.map(|read| read.state),
            state_after: findings.after,
            peak_rss_bytes: findings.peak_rss_bytes,
            warnings,
        };
        let stored = self.bench.recorder.test_ended(&end).await;
        if stored.is_ok() {
            (self.progress)(Progress::TestEnded {
                end: Box::new(end.clone()),
            });
        }
        self.outcomes.push(TestOutcome {
            test: record,
            samples: findings.samples,
            end,
        });
        stored
    }
}

fn failed(code: &str, message: String, log: &[String]) -> TestStatus {
    TestStatus::Failed {
        code: code.to_owned(),
        message,
        log: log.to_vec(),
    }
}

/// The protocol's own name of a failure.
fn failure_code(code: FailureCode) -> String {
    serde_json::to_value(code)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_else(|| "internal".to_owned())
}
