//! The view Measure.

mod choice;
mod plan;
mod steps;

pub use choice::*;
pub use plan::*;
pub use steps::*;
