//! Runs over a scripted engine. Time is paused: it moves on by itself when everybody waits.

mod deaths;
mod kinds;
mod orders;
mod resumes;
mod stops;
mod turns;
mod until;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use twospeed_engine::fake::FakeEngine;
use twospeed_engine::protocol::{EngineBuild, Request};
use twospeed_engine::{How, Settings};
use uuid::Uuid;

use super::*;
use crate::lease::Attempt as LeaseAttempt;
use crate::machine::{MachineState, Snapshot};
use crate::memory::{InMemory, Kept};
use crate::model::tests::model;
use crate::plan::{presets, tests_of};
use crate::record::{Conditions, SampleRecord};

type Needs = Box<dyn Fn(&PlannedTest) -> Option<Need> + Send + Sync>;

/// Everything a run needs, with a scripted engine in it.
struct Scene {
    engine: FakeEngine,
    recorder: InMemory,
    machine: Machine,
    needs: Needs,
    stop: Stop,
    /// What was said, in order.
    heard: Vec<Progress>,
}

impl Scene {
    fn of(engine: FakeEngine) -> Self {
        Self {
            engine,
            recorder: InMemory::default(),
            machine: machine(),
            needs: Box::new(|_| None),
            stop: Stop::new(),
            heard: Vec::new(),
        }
    }

    async fn run(&mut self, plan: &Plan) -> RunOutcome {
        let mut probe = FakeProbe::default();
        self.run_with(plan, &mut probe, |_, _| {}).await
    }

    /// Runs, and lets `act` see each step and stop the run.
    async fn run_with(
        &mut self,
        plan: &Plan,
        probe: &mut dyn Probe,
        mut act: impl FnMut(&Progress, &Stop) + Send,
    ) -> RunOutcome {
        let lease = lease();
        let mut heard = std::mem::take(&mut self.heard);
        let mut progress = |step: Progress| {
            act(&step, &self.stop);
            heard.push(step);
        };
        let bench = self.bench(&lease);
        let outcome = bench.run(plan, probe, &self.stop, &mut progress).await;
        self.heard = heard;
        outcome.unwrap()
    }

    fn bench<'a>(&'a self, lease: &'a Lease) -> Bench<'a> {
        Bench {
            engine: &self.engine,
            recorder: &self.recorder,
            machine: &self.machine,
            app_version: "0.1.0",
            needs: &*self.needs,
            lease,
        }
    }

    fn kept(&self) -> Kept {
        self.recorder.kept()
    }

    fn count(&self, asked: impl Fn(&Request) -> bool) -> usize {
        self.engine.requests().iter().filter(|r| asked(r)).count()
    }
}

/// A lease that is nobody else's.
fn lease() -> Lease {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("lease");
    match Lease::try_acquire(&place, "test", Timestamp::UNIX_EPOCH).unwrap() {
        LeaseAttempt::Held(lease) => lease,
        LeaseAttempt::Busy(_) => panic!("nobody has this lease"),
    }
}

fn machine() -> Machine {
    Machine {
        id: "here".into(),
        name: None,
        cpu: "Scripted CPU".into(),
        physical_cores: Some(2),
        logical_cores: Some(2),
        last_level_cache_bytes: None,
        memory_bytes: Some(16 << 30),
        os: "Linux".into(),
    }
}

/// A clock that moves on a second at each look, and a machine with memory.
#[derive(Default)]
struct FakeProbe {
    seconds: std::cell::Cell<i64>,
    state: MachineState,
    /// Sections that were begun.
    sections: u32,
}

impl Probe for FakeProbe {
    fn now(&self) -> Timestamp {
        self.seconds.set(self.seconds.get() + 1);
        Timestamp::from_second(self.seconds.get()).unwrap()
    }

    fn read(&mut self, _worker: Option<u32>) -> Snapshot {
        Snapshot {
            state: self.state.clone(),
            ..Snapshot::default()
        }
    }

    fn section_begins(&mut self) {
        self.sections += 1;
    }

    fn section_ended(&mut self) -> Conditions {
        Conditions {
            energy_j: Some(f64::from(self.sections)),
            energy_seconds: Some(1.0),
            ..Conditions::default()
        }
    }
}

/// A plan of pp512 and tg128 for each model, three repetitions.
fn quick(models: &[&str]) -> Plan {
    let models: Vec<_> = models.iter().map(|name| model(name)).collect();
    Plan::of(&presets::quick(), &models, &Settings::default())
}

fn signal(number: i32, name: &str) -> How {
    How::Signal {
        number,
        name: name.into(),
    }
}

fn abort() -> How {
    signal(6, "SIGABRT")
}

/// `done`, `cancelled`, `skipped`, or the code of the failure.
fn ended(outcome: &TestOutcome) -> String {
    match &outcome.end.status {
        TestStatus::Done => "done".into(),
        TestStatus::Failed { code, .. } => code.clone(),
        TestStatus::Cancelled => "cancelled".into(),
        TestStatus::Interrupted => "interrupted".into(),
        TestStatus::Skipped { .. } => "skipped".into(),
    }
}

/// `pp512 of A: done` for each test, in the order they began.
fn story(outcome: &RunOutcome) -> Vec<String> {
    outcome
        .tests
        .iter()
        .map(|test| {
            let TestRecord { spec, model, .. } = &test.test;
            format!("{spec} of {}: {}", model.name, ended(test))
        })
        .collect()
}

fn is_load(request: &Request) -> bool {
    matches!(request, Request::Load(_))
}

/// A recorder that does something before it keeps, and may refuse.
struct Before<'a, F> {
    act: F,
    inner: &'a InMemory,
}

/// What a recorder is asked to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    RunStarted,
    TestStarted,
    Sample,
    TestEnded,
    RunEnded,
}

#[async_trait]
impl<F: Fn(Asked) -> Result<(), RecorderError> + Send + Sync> Recorder for Before<'_, F> {
    async fn run_started(&self, run: &RunRecord) -> Result<(), RecorderError> {
        (self.act)(Asked::RunStarted)?;
        self.inner.run_started(run).await
    }

    async fn run_resumed(&self, run: &RunRecord) -> Result<(), RecorderError> {
        (self.act)(Asked::RunStarted)?;
        self.inner.run_resumed(run).await
    }

    async fn test_started(&self, test: &TestRecord) -> Result<(), RecorderError> {
        (self.act)(Asked::TestStarted)?;
        self.inner.test_started(test).await
    }

    async fn sample(&self, sample: &SampleRecord) -> Result<(), RecorderError> {
        (self.act)(Asked::Sample)?;
        self.inner.sample(sample).await
    }

    async fn test_ended(&self, end: &TestEnd) -> Result<(), RecorderError> {
        (self.act)(Asked::TestEnded)?;
        self.inner.test_ended(end).await
    }

    async fn run_ended(
        &self,
        run: Uuid,
        at: Timestamp,
        complete: bool,
    ) -> Result<(), RecorderError> {
        (self.act)(Asked::RunEnded)?;
        self.inner.run_ended(run, at, complete).await
    }

    async fn variants_set_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
    ) -> Result<Vec<String>, RecorderError> {
        self.inner.variants_set_aside(machine, engine).await
    }

    async fn set_variant_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
        variant: &str,
        reason: &str,
    ) -> Result<(), RecorderError> {
        self.inner
            .set_variant_aside(machine, engine, variant, reason)
            .await
    }
}
