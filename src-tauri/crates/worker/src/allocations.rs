//! [`Request::Foresee`]: what contexts of a model would take, without reading its weights.
//!
//! [`Request::Foresee`]: twospeed_engine::protocol::Request::Foresee

use twospeed_engine::protocol::{Event, FailureCode, Foresee};

use crate::failure::Stopped;
use crate::serve::Worker;

/// Asks the engine for each context.
pub fn foresee(_worker: &mut Worker, _asked: &Foresee, _request: u64) -> Result<Event, Stopped> {
    Err(Stopped::because(FailureCode::Internal, "Not there yet."))
}
