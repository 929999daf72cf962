//! What the history gives back: runs, whole or as a line of a list. Tests are in `test.rs`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use twospeed_measure::machine::Machine;
use twospeed_measure::{Plan, RunRecord, TestStatus};
use uuid::Uuid;

use crate::test::Test;

/// A run without its tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// UUIDv7: sorts by time.
    pub id: Uuid,
    /// Where it comes from.
    pub origin: Origin,
    /// When it was imported; `None` when it was measured here.
    pub imported_at: Option<Timestamp>,
    /// When it started; where another tool did not say, when it was imported.
    pub started_at: Timestamp,
    /// When it ended; of an interrupted run its last sign of life, `None` where it gave none.
    pub ended_at: Option<Timestamp>,
    /// Whether and how it ended.
    pub status: RunStatus,
    /// The machine it ran on.
    pub machine: Machine,
    /// Version of Twospeed that measured it; of another tool its build, empty where it is not told.
    pub app_version: String,
    /// What the person asked for.
    pub preset: String,
    /// What the person wrote about it.
    pub note: Option<String>,
    /// When it was deleted. It stays, so that deleting can be undone.
    pub deleted_at: Option<Timestamp>,
}

/// Where a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured by a program that writes into this history.
    Measured,
    /// Imported from the export of another history.
    Imported,
    /// Imported from the output of llama-bench.
    LlamaBench,
    /// Imported from the output of llama-batched-bench.
    LlamaBatchedBench,
}

/// Whether and how a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Its process is at it.
    Running,
    /// Every test of the plan was tried.
    Complete,
    /// Ended before every test was tried: cancelled, or failed as a whole.
    Stopped,
    /// Its process ended without a word; what it had stored is here.
    Interrupted,
}

/// A run with its tests, in the order they ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeRun {
    /// The run.
    pub run: Run,
    /// What was asked for; `None` for imported runs.
    pub plan: Option<Plan>,
    /// The tests; all of them, or those a query asked for.
    pub tests: Vec<Test>,
    /// What of it this version cannot read, for example a test of a kind that a newer one measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
}

/// A part of a run that is stored in a form this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Place of the test in the plan; `None` for the plan itself.
    pub position: Option<u32>,
    /// What cannot be read, and why.
    pub reason: String,
}

/// A run that ended before its plan did, with what a resumption needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumable {
    /// The run, with its plan.
    pub record: RunRecord,
    /// How it ended.
    pub status: RunStatus,
    /// Its tests in the order they were tried; a place of the plan may come more than once.
    pub tests: Vec<TriedTest>,
}

/// A test that was tried before a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedTest {
    /// The test.
    pub id: Uuid,
    /// Its place in the plan.
    pub position: u32,
    /// How it ended; `None` while it runs.
    pub status: Option<TestStatus>,
}

/// A run as a line of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOverview {
    /// The run.
    pub run: Run,
    /// The models it measured, in the order they came.
    pub models: Vec<ModelName>,
    /// How many of its tests stand where.
    pub tests: TestCounts,
    /// Samples of all tests together.
    pub samples: u64,
    /// Results that cannot be right and were not allowed.
    #[serde(default)]
    pub suspect: u64,
}

/// A model as it is named in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelName {
    /// Fingerprint of its content.
    pub fingerprint: String,
    /// Its name.
    pub name: String,
    /// Quantization label.
    pub quantization: Option<String>,
}

/// Tests of a run by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestCounts {
    /// Still running.
    pub running: u64,
    /// All repetitions are there.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Stopped by the person.
    pub cancelled: u64,
    /// Cut off with their process.
    pub interrupted: u64,
    /// Never started.
    pub skipped: u64,
}

impl TestCounts {
    /// All tests.
    pub fn total(self) -> u64 {
        self.running + self.done + self.failed + self.cancelled + self.interrupted + self.skipped
    }
}

/// Which runs a list shows. The default shows all that are not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only these.
    pub ids: Option<Vec<Uuid>>,
    /// Only runs that measured one of these models (fingerprints).
    pub models: Option<Vec<String>>,
    /// The deleted ones instead, for undo.
    pub deleted: bool,
}

/// Which results [`latest`](crate::History::latest) looks at. The default: all that are not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatestFilter {
    /// Only runs of this machine ([`Machine::id`]).
    pub machine: Option<String>,
    /// Only these models (fingerprints).
    pub models: Option<Vec<String>>,
}
