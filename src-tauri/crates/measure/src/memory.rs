//! Keeps a run in memory, where nothing is to be stored.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use twospeed_engine::protocol::EngineBuild;
use uuid::Uuid;

use crate::machine::Machine;
use crate::record::{Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord};

/// What happened, in memory: for a run that is not to be stored (`--no-save`), and for tests.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Kept>);

/// Everything an [`InMemory`] was told, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// Runs.
    pub runs: Vec<RunRecord>,
    /// Tests.
    pub tests: Vec<TestRecord>,
    /// Samples.
    pub samples: Vec<SampleRecord>,
    /// Ends of tests.
    pub test_ends: Vec<TestEnd>,
    /// Ends of runs: which, when, whether every test was tried.
    pub run_ends: Vec<(Uuid, Timestamp, bool)>,
    /// Runs that went on.
    pub resumed: Vec<RunRecord>,
    /// CPU variants that are set aside, with the build they belong to and the reason.
    pub set_aside: Vec<(EngineBuild, String, String)>,
}

impl InMemory {
    /// What was told so far.
    pub fn kept(&self) -> Kept {
        self.with(|kept| kept.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Recorder for InMemory {
    async fn run_started(&self, run: &RunRecord) -> Result<(), RecorderError> {
        self.with(|kept| kept.runs.push(run.clone()));
        Ok(())
    }

    async fn run_resumed(&self, run: &RunRecord) -> Result<(), RecorderError> {
        self.with(|kept| kept.resumed.push(run.clone()));
        Ok(())
    }

    async fn test_started(&self, test: &TestRecord) -> Result<(), RecorderError> {
        self.with(|kept| kept.tests.push(test.clone()));
        Ok(())
    }

    async fn sample(&self, sample: &SampleRecord) -> Result<(), RecorderError> {
        self.with(|kept| kept.samples.push(sample.clone()));
        Ok(())
    }

    async fn test_ended(&self, end: &TestEnd) -> Result<(), RecorderError> {
        self.with(|kept| kept.test_ends.push(end.clone()));
        Ok(())
    }

    async fn run_ended(
        &self,
        run: Uuid,
        at: Timestamp,
        complete: bool,
    ) -> Result<(), RecorderError> {
        self.with(|kept| kept.run_ends.push((run, at, complete)));
        Ok(())
    }

    async fn variants_set_aside(
        &self,
        _machine: &Machine,
        engine: &EngineBuild,
    ) -> Result<Vec<String>, RecorderError> {
        Ok(self.with(|kept| {
            kept.set_aside
                .iter()
                .filter(|(build, _, _)| build == engine)
                .map(|(_, variant, _)| variant.clone())
                .collect()
        }))
    }

    async fn set_variant_aside(
        &self,
        _machine: &Machine,
        engine: &EngineBuild,
        variant: &str,
        reason: &str,
    ) -> Result<(), RecorderError> {
        self.with(|kept| {
            kept.set_aside
                .push((engine.clone(), variant.to_owned(), reason.to_owned()));
        });
        Ok(())
    }
}
