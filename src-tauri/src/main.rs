//! `twospeed-window`: the window.

// No console beside the window.
#![cfg_attr(windows, windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    twospeed_app::run(std::env::args_os())
}
