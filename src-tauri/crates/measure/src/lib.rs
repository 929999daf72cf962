//! Plan, samples, summary: measuring and judging.
//!
//! `run` measures and only measures; [`stats`] and [`judge`] are pure functions of what it found;
//! words and colours belong to the faces.

pub mod interrupted;
pub mod judge;
pub mod machine;
pub mod model;
pub mod plan;
pub mod platform;
pub mod record;
pub mod stats;
pub mod threads;
pub mod warning;

pub use plan::{Plan, PlannedTest};
pub use record::{
    Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus,
};
