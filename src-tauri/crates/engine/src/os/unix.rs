//! Unix: process groups and signals.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

use crate::end::How;

/// File name of the program that is the worker.
pub(crate) const PROGRAM: &str = "twospeed";

/// Variables through which somebody's library or setting for a window would get into the worker.
pub(crate) const UNWANTED_VARIABLES: [&str; 4] = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "GGML_BACKEND_PATH",
];

/// A group of its own: Ctrl-C in the terminal reaches us, and we decide what becomes of the worker.
pub(crate) fn prepare(command: &mut Command) {
    command.process_group(0);
}

/// Ends what the worker has left behind: a debugger, a child with its pipes.
pub(crate) fn end_group(worker: u32) {
    if let Some(pid) = i32::try_from(worker).ok().and_then(Pid::from_raw) {
        // Fails where nobody is left, as is usual.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// How a process ended by what the system says.
pub(crate) fn how(status: ExitStatus) -> How {
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited { code },
        (None, Some(number)) => How::Signal {
            number,
            name: name(number),
        },
        (None, None) => How::Unknown,
    }
}

fn name(number: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    match known.iter().find(|(signal, _)| signal.as_raw() == number) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("signal {number}"),
    }
}
