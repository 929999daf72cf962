//! Plan, samples, summary: measuring and judging.
//!
//! [`run`] measures and only measures; [`stats`] and [`judge`] are pure functions of what it found;
//! words and colours belong to the faces.

pub mod interrupted;
pub mod judge;
pub mod lease;
pub mod machine;
pub mod memory;
pub mod model;
pub mod plan;
pub mod platform;
pub mod progress;
pub mod record;
pub mod run;
pub mod stats;
pub mod stop;
pub mod threads;
pub mod warning;

pub use lease::Lease;
pub use memory::InMemory;
pub use plan::{Plan, PlannedTest};
pub use progress::Progress;
pub use record::{
    Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus,
};
pub use run::{Bench, RunEnd, RunOutcome, TestOutcome};
pub use stats::{Spread, Summary, summary};
pub use stop::Stop;
pub use warning::Warning;
