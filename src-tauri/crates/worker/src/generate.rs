//! stub
use crate::failure::Stopped;
use crate::serve::Worker;
use twospeed_engine::protocol::{Event, Generate};
pub struct Served;
pub fn generate(_w: &mut Worker, _g: &Generate, _n: u64) -> Result<Event, Stopped> {
    Err(Stopped::bad_setting("not yet"))
}
