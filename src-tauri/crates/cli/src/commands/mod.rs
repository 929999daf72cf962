//! One file a command.

pub mod calibrate;
pub mod chart;
pub mod download;
pub mod estimate;
pub mod export;
pub mod generate;
pub mod import;
pub mod inspect;
pub mod models;
pub mod quantize;
pub mod runs;
pub mod tune;
pub mod twin;

use std::path::Path;

use crate::Failure;

/// Writes a file whole or not at all: a failure leaves what was there before.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    twospeed_workbench::save(path, bytes, true).map_err(Failure::of)
}
