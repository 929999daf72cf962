//! Several plans kept as one run.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use twospeed_engine::protocol::EngineBuild;
use twospeed_measure::machine::Machine;
use twospeed_measure::{Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord};
use uuid::Uuid;

/// Hands on what plans run one after the other have to keep, as tests of a single run.
///
/// The run has no plan: what follows depends on what was measured, so it cannot be resumed.
pub(super) struct OneRun<'a> {
    inner: &'a dyn Recorder,
    id: Uuid,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_started: bool,
    /// Position of the first test of the plan that runs.
    base: u32,
    /// Tests of the plan that runs.
    tests: u32,
}

impl<'a> OneRun<'a> {
    pub(super) fn new(inner: &'a dyn Recorder) -> Self {
        Self {
            inner,
            id: Uuid::now_v7(),
            state: Mutex::default(),
        }
    }

    /// The run that everything belongs to.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// Ends the run, where it has begun.
    pub(super) async fn end(&self, at: Timestamp, complete: bool) -> Result<(), RecorderError> {
        if !self.with(|state| state.is_started) {
            return Ok(());
        }
        self.inner.run_ended(self.id, at, complete).await
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Recorder for OneRun<'_> {
    async fn run_started(&self, run: &RunRecord) -> Result<(), RecorderError> {
        let tests = run.plan.as_ref().map_or(0, |plan| plan.tests.len());
        let is_first = self.with(|state| {
            state.base += state.tests;
            state.tests = u32::try_from(tests).unwrap_or(u32::MAX);
            !std::mem::replace(&mut state.is_started, true)
        });
        if !is_first {
            return Ok(());
        }
        let run = RunRecord {
            id: self.id,
            plan: None,
            ..run.clone()
        };
        self.inner.run_started(&run).await
    }

    async fn run_resumed(&self, run: &RunRecord) -> Result<(), RecorderError> {
        self.inner.run_resumed(run).await
    }

    async fn test_started(&self, test: &TestRecord) -> Result<(), RecorderError> {
        let base = self.with(|state| state.base);
        let test = TestRecord {
            run: self.id,
            position: base.saturating_add(test.position),
            ..test.clone()
        };
        self.inner.test_started(&test).await
    }

    async fn sample(&self, sample: &SampleRecord) -> Result<(), RecorderError> {
        self.inner.sample(sample).await
    }

    async fn test_ended(&self, end: &TestEnd) -> Result<(), RecorderError> {
        self.inner.test_ended(end).await
    }

    /// The end of one plan is not the end of the run: [`OneRun::end`] is.
    async fn run_ended(
        &self,
        _run: Uuid,
        _at: Timestamp,
        _complete: bool,
    ) -> Result<(), RecorderError> {
        Ok(())
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
