//! The window: a thin layer over the crates. What it shows and does is `twospeed-views`; here are the
//! window itself, the page's doorways to it, and what the desktop has to say.

mod appearance;
mod arguments;
mod commands;
mod desk;
mod engine;
mod instance;
mod opened;
mod os;
mod place;
mod preferences;
mod program;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod rendering;
mod window;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

/// Runs the program and answers with its exit code. Call it first of all in `main`.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    rendering::prepare();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // To where help or a complaint belongs; there may be nobody who reads it.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match program::start(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
