//! [`Request::Users`].
//!
//! [`Request::Users`]: twospeed_engine::protocol::Request::Users

use twospeed_engine::protocol::{Event, FailureCode, Users};

use crate::failure::Stopped;
use crate::serve::Worker;

/// Serves it on the loaded model.
pub fn users(worker: &mut Worker, _asked: &Users, _request: u64) -> Result<Event, Stopped> {
    worker.loaded()?;
    Err(Stopped::because(
        FailureCode::NotAble,
        "This engine does not measure that yet.",
    ))
}
