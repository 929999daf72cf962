//! Runs a plan: every test in its order, every sample stored when it is made.
//!
//! A test that fails does not end the plan; a worker that died is replaced; what ended the engine
//! is not tried again. Nothing is printed and nothing is judged by speed.

mod blame;
mod outcome;
mod test;
#[cfg(test)]
mod tests;
mod worker;

use twospeed_engine::Engine;
use twospeed_engine::protocol::FailureCode;
use twospeed_engine::variants::GiveUp;
use uuid::Uuid;

pub use self::outcome::{RunEnd, RunOutcome, TestOutcome};

use self::blame::Blame;
use self::test::{Attempt, Findings};
use self::worker::{Trouble, Worker};
use crate::judge::{Evidence, judge};
use crate::lease::Lease;
use crate::machine::{Machine, Probe};
use crate::plan::{Plan, PlanError, PlannedTest};
use crate::platform::own_start;
use crate::progress::Progress;
use crate::record::{Recorder, RecorderError, RunRecord, TestEnd, TestRecord, TestStatus};
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
    /// Bytes of memory that a test needs; `None` = unknown, and the engine is asked to try. What
    /// is above the memory that is free is refused.
    pub needs: &'a (dyn Fn(&PlannedTest) -> Option<u64> + Sync),
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
        // Free memory is read once, while no worker holds any of it.
        let available = probe.state(None).memory_available_bytes;
        let mut running = Running {
            bench: *self,
            plan,
            probe,
            stop,
            progress,
            run,
            available,
            worker: Worker::new(self.engine, self.recorder, self.machine, stop),
            blame: Blame::default(),
            outcomes: Vec::new(),
        };
        let end = running.run_plan().await;
        Ok(RunOutcome {
            run: running.run,
            tests: running.outcomes,
            end,
        })
    }
}

struct Running<'a> {
    bench: Bench<'a>,
    plan: &'a Plan,
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
    /// The same test again: a CPU variant was set aside under it.
    Again,
    /// No other test.
    Nothing(RunEnd),
}

impl Running<'_> {
    async fn run_plan(&mut self) -> RunEnd {
        let recorder = self.bench.recorder;
        if let Err(error) = recorder.run_started(&self.run).await {
            return RunEnd::NotKept(error);
        }
        (self.progress)(Progress::RunStarted {
            run: self.run.id,
            tests: u32::try_from(self.plan.tests.len()).unwrap_or(u32::MAX),
        });
        let end = self.tests().await.unwrap_or_else(RunEnd::NotKept);
        self.worker.end().await;
        let complete = end == RunEnd::Complete;
        let stored = recorder
            .run_ended(self.run.id, self.probe.now(), complete)
            .await;
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

    async fn tests(&mut self) -> Result<RunEnd, RecorderError> {
        let plan = self.plan;
        let mut end = RunEnd::Complete;
        for (position, test) in (0..).zip(&plan.tests) {
            if end == RunEnd::Complete && self.stop.is_asked() {
                end = RunEnd::Stopped;
            }
            let reason = match &end {
                RunEnd::Complete => self.blame.reason(test),
                RunEnd::NoEngine { message, .. } => {
                    Some(format!("Not tried, since there is no engine. {message}"))
                }
                RunEnd::Stopped | RunEnd::NotKept(_) => {
                    Some("Not tried, since the run was stopped before.".to_owned())
                }
            };
            if let Some(reason) = reason {
                let record = self.begin(position, test).await?;
                let status = TestStatus::Skipped { reason };
                self.finish(record, test, Findings::default(), status)
                    .await?;
                continue;
            }
            loop {
                match self.test(position, test).await? {
                    After::Again => {}
                    After::Next => break,
                    After::Nothing(why) => {
                        end = why;
                        break;
                    }
                }
            }
        }
        Ok(end)
    }

    async fn test(&mut self, position: u32, test: &PlannedTest) -> Result<After, RecorderError> {
        let record = self.begin(position, test).await?;
        let mut findings = Findings::default();
        if let Some(refusal) = test.refusal((self.bench.needs)(test), self.available) {
            let status = failed(refusal.code(), refusal.to_string(), &[]);
            self.finish(record, test, findings, status).await?;
            return Ok(After::Next);
        }
        let mut attempt = Attempt {
            id: record.id,
            plan: self.plan,
            test,
            worker: &mut self.worker,
            recorder: self.bench.recorder,
            probe: &mut *self.probe,
            stop: self.stop,
            progress: &mut *self.progress,
        };
        let mut measured = attempt.measure(&mut findings).await;
        if measured.is_ok()
            && let Err(Trouble::Died(end)) = attempt.anchor_after(&mut findings).await
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
            Err(trouble) => match self.judge(test, trouble).await {
                Ok(judged) => judged,
                Err(error) => {
                    // Though one thing could not be stored, the end of the test may be.
                    let status = failed("not_stored", error.to_string(), &[]);
                    let _ = self.finish(record, test, findings, status).await;
                    return Err(error);
                }
            },
        };
        self.finish(record, test, findings, status).await?;
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
        test: &PlannedTest,
    ) -> Result<TestRecord, RecorderError> {
        let record = TestRecord {
            id: Uuid::now_v7(),
            run: self.run.id,
            position,
            model: test.model.clone(),
            spec: test.spec,
            kind: test.kind.clone(),
            settings: test.settings.clone(),
            repetitions: self.plan.repetitions,
            warmup: self.plan.warmup,
            started_at: self.probe.now(),
        };
        self.bench.recorder.test_started(&record).await?;
        (self.progress)(Progress::TestStarted {
            test: Box::new(record.clone()),
        });
        Ok(record)
    }

    async fn finish(
        &mut self,
        record: TestRecord,
        test: &PlannedTest,
        findings: Findings,
        status: TestStatus,
    ) -> Result<(), RecorderError> {
        let samples: Vec<_> = findings
            .samples
            .iter()
            .map(|kept| kept.sample.clone())
            .collect();
        let warnings = judge(&Evidence {
            spec: test.spec,
            settings: &test.settings,
            samples: &samples,
            before: findings.before.as_ref(),
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
            state_before: findings.before,
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
