//! What is kept of a run, as it happens.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::{EngineBuild, Hello, Loaded, Placement, Sample};
use twospeed_engine::{Settings, TestSpec};
use uuid::Uuid;

use crate::kind::Kind;
use crate::machine::{Machine, MachineState};
use crate::model::MeasuredModel;
use crate::plan::Plan;
use crate::warning::Warning;

/// A run: one plan on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// When it started (UTC).
    pub started_at: Timestamp,
    /// The machine it runs on.
    pub machine: Machine,
    /// Twospeed's version.
    pub app_version: String,
    /// What the person asked for: `quick`, `article`, `bench`, ...
    pub preset: String,
    /// Process that runs it and when that process started: tells a run that was cut off.
    pub owner_pid: u32,
    /// Boot-relative start time of that process in clock ticks, so that a reused pid is not taken for it.
    pub owner_started: Option<u64>,
    /// What was asked for in full, so that a run that was cut off can be resumed; `None` for
    /// results from elsewhere.
    pub plan: Option<Plan>,
}

/// A test as it begins: everything that shapes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// The run it belongs to.
    pub run: Uuid,
    /// Its place in the plan, from 0: results may depend on the order. A test that is run again
    /// because a CPU variant died under it keeps its place under a new id.
    pub position: u32,
    /// The model's content.
    pub model: MeasuredModel,
    /// What is timed.
    pub spec: TestSpec,
    /// What of it is measured.
    #[serde(default)]
    pub kind: Kind,
    /// Every setting.
    pub settings: Settings,
    /// Repetitions asked for: the most where it is repeated until its mean is known, 1 where only
    /// the time ends it or it is judged once. What else was asked stands in the run's plan.
    pub repetitions: u32,
    /// One untimed warm-up came first.
    pub warmup: bool,
    /// When it started (UTC); llama-bench's `test_time`.
    pub started_at: Timestamp,
}

/// One sample with its test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord {
    /// The test.
    pub test: Uuid,
    /// What the engine said.
    pub sample: Sample,
    /// When it ended (UTC), a label only.
    pub at: Timestamp,
    /// The machine right before and right after the timed section, as far as it can be read.
    #[serde(default, skip_serializing_if = "Conditions::is_unknown")]
    pub conditions: Conditions,
}

/// The machine around one sample. Not readable is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Mean clock of the usable cores right after, in Hz.
    pub clock_hz: Option<f64>,
    /// Highest temperature of the CPU right after, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Energy the package took from right before to right after, in joules.
    pub energy_j: Option<f64>,
    /// Seconds between those two readings of the energy: hardly more than the section itself.
    pub energy_seconds: Option<f64>,
}

impl Conditions {
    /// Whether nothing of it could be read.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum TestStatus {
    /// All repetitions are there.
    Done,
    /// It failed; the samples before stand.
    Failed {
        /// Kind of failure, the UI's key.
        code: String,
        /// One sentence.
        message: String,
        /// Last lines of the engine's log.
        log: Vec<String>,
    },
    /// The person stopped it; the samples before stand.
    Cancelled,
    /// The app ended while it ran; found at the next start.
    Interrupted,
    /// It was never started: the run ended before.
    Skipped {
        /// One sentence.
        reason: String,
    },
}

/// What is known when a test has ended. Everything but the status may be unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestEnd {
    /// The test.
    pub test: Uuid,
    /// How it ended.
    pub status: TestStatus,
    /// When (UTC).
    pub ended_at: Timestamp,
    /// The worker that ran it: build, variant, devices.
    pub worker: Option<Hello>,
    /// The model as the engine loaded it.
    pub loaded: Option<Loaded>,
    /// What lay where.
    pub placement: Option<Placement>,
    /// Anchor before, nanoseconds.
    pub anchor_before_ns: Option<u64>,
    /// Anchor after, nanoseconds.
    pub anchor_after_ns: Option<u64>,
    /// State of the machine before.
    pub state_before: Option<MachineState>,
    /// State of the machine after.
    pub state_after: Option<MachineState>,
    /// Highest resident memory of the worker.
    pub peak_rss_bytes: Option<u64>,
    /// What a reader of the result should know.
    pub warnings: Vec<Warning>,
}

/// Keeps what happens: the history, or memory where nothing is to be kept.
///
/// Each call returns when what it was given is safe. An error ends the run (a measurement that
/// cannot be stored is not made), never the samples stored before.
#[async_trait]
pub trait Recorder: Send + Sync {
    /// A run begins.
    async fn run_started(&self, run: &RunRecord) -> Result<(), RecorderError>;
    /// A run that was stopped or cut off goes on, with a new owner.
    async fn run_resumed(&self, run: &RunRecord) -> Result<(), RecorderError>;
    /// A test begins.
    async fn test_started(&self, test: &TestRecord) -> Result<(), RecorderError>;
    /// A sample was made.
    async fn sample(&self, sample: &SampleRecord) -> Result<(), RecorderError>;
    /// A test ended.
    async fn test_ended(&self, end: &TestEnd) -> Result<(), RecorderError>;
    /// A run ended; `complete` says whether every test of the plan was tried.
    async fn run_ended(
        &self,
        run: Uuid,
        at: Timestamp,
        complete: bool,
    ) -> Result<(), RecorderError>;
    /// CPU variants that died on this machine with this engine build.
    async fn variants_set_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
    ) -> Result<Vec<String>, RecorderError>;
    /// A CPU variant died: it is not tried again on this machine with this engine build.
    async fn set_variant_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
        variant: &str,
        reason: &str,
    ) -> Result<(), RecorderError>;
}

/// What could not be kept, in one sentence for the person.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct RecorderError {
    /// The sentence: what could not be stored and what to do.
    pub message: String,
}
