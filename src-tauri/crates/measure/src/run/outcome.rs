//! What came of a run.

use crate::record::{RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord};

/// What came of a run. All of it is stored, unless `end` says that something could not be.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The run.
    pub run: RunRecord,
    /// The tests, in the order they began. A test that was run again is there twice.
    pub tests: Vec<TestOutcome>,
    /// How the run ended.
    pub end: RunEnd,
}

/// What came of one test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOutcome {
    /// The test.
    pub test: TestRecord,
    /// Its samples, all of them stored.
    pub samples: Vec<SampleRecord>,
    /// How it ended.
    pub end: TestEnd,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// Every test of the plan was tried; some may have failed.
    Complete,
    /// The person stopped it.
    Stopped,
    /// The engine cannot be started.
    NoEngine {
        /// Kind of failure.
        code: String,
        /// One sentence.
        message: String,
    },
    /// Something could not be stored. What was stored before stands.
    NotKept(RecorderError),
}
