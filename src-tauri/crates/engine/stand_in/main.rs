//! A worker without an engine that misbehaves on command, and a parent that can be killed.
//!
//! `twospeed-stand-in worker --variant FAULT` is started like a real worker: the fault travels as
//! the name of the CPU variant. `twospeed-stand-in parent FAULT` keeps a session with such a worker.

#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod parent;
#[cfg(unix)]
mod worker;

#[cfg(unix)]
fn main() {
    use faults::Fault;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["worker", "--variant", fault, ..] => worker::work(&Fault::of(fault)),
        ["worker", ..] => worker::work(&Fault::of("none")),
        ["parent", fault] => parent::keep_session(fault),
        _ => eprintln!("usage: twospeed-stand-in worker|parent FAULT"),
    }
}

/// Its faults are signals.
#[cfg(not(unix))]
fn main() {}
