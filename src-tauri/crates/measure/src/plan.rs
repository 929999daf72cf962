//! What is to be measured, in which order.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::PageCache;
use twospeed_engine::{Settings, TestSpec};

use crate::model::MeasuredModel;

/// Tests in the order they run, and what holds for all of them.
///
/// It is stored with its run, so that a run that was cut off can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the person asked for: `quick`, `article`, `bench`, ...
    pub preset: String,
    /// The tests; models and settings that share a load stand together.
    pub tests: Vec<PlannedTest>,
    /// Timed repetitions of each test.
    pub repetitions: u32,
    /// One untimed warm-up before each test.
    pub warmup: bool,
    /// Pause before each test in milliseconds; llama-bench's `--delay`.
    pub delay_ms: u64,
    /// State of the file in the page cache when a load starts.
    pub page_cache: PageCache,
    /// Run the drift anchor before and after each test.
    pub anchor: bool,
    /// Seed of the random tokens.
    pub seed: u64,
}

/// One test of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTest {
    /// The model.
    pub model: MeasuredModel,
    /// Every setting.
    pub settings: Settings,
    /// What is timed.
    pub spec: TestSpec,
}
