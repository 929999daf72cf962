//! Windows: exceptions come as exit codes; they are named like the signals.

use std::process::ExitStatus;

use tokio::process::Command;

use crate::end::How;

/// File name of the program that is the worker.
pub(crate) const PROGRAM: &str = "twospeed.exe";

/// Variables through which somebody's library would get into the worker.
pub(crate) const UNWANTED_VARIABLES: [&str; 1] = ["GGML_BACKEND_PATH"];

const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A group of its own: Ctrl-C in the terminal reaches us, and we decide what becomes of the worker.
pub(crate) fn prepare(command: &mut Command) {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
}

/// There are no groups to end here.
pub(crate) fn end_group(_worker: u32) {}

/// How a process ended by its exit code.
pub(crate) fn how(status: ExitStatus) -> How {
    let Some(code) = status.code() else {
        return How::Unknown;
    };
    let signal = |number, name: &str| How::Signal {
        number,
        name: name.to_owned(),
    };
    match code as u32 {
        0xC000_0005 | 0xC000_00FD => signal(11, "SIGSEGV"), // access violation, stack overflow
        0xC000_001D => signal(4, "SIGILL"),                 // illegal instruction
        0xC000_0409 => signal(6, "SIGABRT"),                // abort's fail-fast
        0xC000_0094 | 0xC000_008E => signal(8, "SIGFPE"),   // integer, float division by zero
        0xC000_0006 => signal(7, "SIGBUS"),                 // a mapped page could not be read
        0xC000_013A => signal(2, "SIGINT"),                 // Ctrl-C
        0xC000_0017 | 0xC000_012D => How::OutOfMemory,      // no memory, commit limit
        _ => How::Exited { code },
    }
}
