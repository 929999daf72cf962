//! The view Measure.

mod choice;
mod plan;
mod steps;
mod tune;

pub use choice::*;
pub use plan::*;
pub use steps::*;
pub use tune::*;
