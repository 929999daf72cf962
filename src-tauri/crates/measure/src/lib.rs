//! Plan, samples, summary: measuring and judging.
//!
//! `run` measures and only measures; [`summary`] and the warnings are pure functions of samples;
//! words and colours belong to the faces.

pub mod machine;
pub mod model;
pub mod plan;
pub mod record;
pub mod warning;

pub use plan::{Plan, PlannedTest};
pub use record::{
    Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus,
};
