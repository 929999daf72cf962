//! [`Request::Calibrate`]: what single operations of the engine take.
//!
//! [`Request::Calibrate`]: twospeed_engine::protocol::Request::Calibrate

use twospeed_engine::protocol::{Calibrate, Event, FailureCode};

use crate::failure::Stopped;
use crate::serve::Worker;

/// Times each kernel.
pub fn calibrate(
    _worker: &mut Worker,
    _asked: &Calibrate,
    _request: u64,
) -> Result<Event, Stopped> {
    Err(Stopped::because(FailureCode::Internal, "Not there yet."))
}
