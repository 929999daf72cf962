//! stub
use crate::failure::Stopped;
use twospeed_engine::protocol::{AnchorRequest, Event};
pub fn anchor(_p: &AnchorRequest) -> Result<Event, Stopped> {
    Err(Stopped::bad_setting("not yet"))
}
