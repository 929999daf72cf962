//! What a run says of itself while it goes on, for the faces.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::{Hello, Phase};
use uuid::Uuid;

use crate::record::{SampleRecord, TestEnd, TestRecord};

/// A step of a run. Nothing is said inside a timed section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "progress", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a step is handed over once and kept nowhere"
)]
pub enum Progress {
    /// The run begins.
    RunStarted {
        /// Its id.
        run: Uuid,
        /// Tests in the plan.
        tests: u32,
    },
    /// A worker is there.
    EngineStarted {
        /// Build, CPU variant, devices.
        worker: Box<Hello>,
    },
    /// A test begins.
    TestStarted {
        /// The test.
        test: Box<TestRecord>,
    },
    /// The model of a test is being loaded.
    Loading {
        /// The test.
        test: Uuid,
        /// From 0 to 1.
        fraction: f32,
    },
    /// A test does something else now.
    Phase {
        /// The test.
        test: Uuid,
        /// What it does.
        phase: Phase,
    },
    /// A sample was made and is stored.
    Sample {
        /// The sample.
        sample: SampleRecord,
        /// Its speed; `None` when it is none.
        tokens_per_second: Option<f64>,
    },
    /// A test ended and its end is stored.
    TestEnded {
        /// How.
        end: Box<TestEnd>,
    },
    /// The run ended.
    RunEnded {
        /// Its id.
        run: Uuid,
        /// Whether every test of the plan was tried.
        complete: bool,
    },
}
