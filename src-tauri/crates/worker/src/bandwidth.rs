//! stub
use crate::failure::Stopped;
use twospeed_engine::protocol::{Event, ReadBandwidth};
pub fn read_bandwidth(_p: &ReadBandwidth, _n: u64) -> Result<Event, Stopped> {
    Err(Stopped::bad_setting("not yet"))
}
