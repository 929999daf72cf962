//! `twospeed`: everything the window can do on data, without a screen.

use std::process::ExitCode;

fn main() -> ExitCode {
    twospeed_cli::run(std::env::args_os())
}
