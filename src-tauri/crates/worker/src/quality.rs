//! [`Request::Quality`].
//!
//! [`Request::Quality`]: twospeed_engine::protocol::Request::Quality

use twospeed_engine::protocol::{Event, FailureCode, Quality};

use crate::failure::Stopped;
use crate::serve::Worker;

/// Serves it on the loaded model.
pub fn quality(worker: &mut Worker, _asked: &Quality, _request: u64) -> Result<Event, Stopped> {
    worker.loaded()?;
    Err(Stopped::because(
        FailureCode::NotAble,
        "This engine does not measure that yet.",
    ))
}
