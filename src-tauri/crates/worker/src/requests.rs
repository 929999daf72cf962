//! [`Request::Serve`].
//!
//! [`Request::Serve`]: twospeed_engine::protocol::Request::Serve

use twospeed_engine::protocol::{Event, FailureCode, Serve};

use crate::failure::Stopped;
use crate::serve::Worker;

/// Serves it on the loaded model.
pub fn serve(worker: &mut Worker, _asked: &Serve, _request: u64) -> Result<Event, Stopped> {
    worker.loaded()?;
    Err(Stopped::because(
        FailureCode::NotAble,
        "This engine does not measure that yet.",
    ))
}
