//! Systems that are not read in detail yet: what the standard library says.

use jiff::Timestamp;

use crate::interrupted::Process;
use crate::machine::{Machine, MachineState, Probe, Rates, Snapshot};
use crate::record::Conditions;
use crate::threads::{LogicalCpu, Topology};

/// This machine.
pub fn machine() -> Machine {
    let name = std::env::var("COMPUTERNAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .ok();
    let logical = logical_cpus();
    let cores = logical.map(|n| n.to_string()).unwrap_or_default();
    Machine {
        id: super::machine_id(&[
            std::env::consts::OS,
            name.as_deref().unwrap_or_default(),
            std::env::consts::ARCH,
            &cores,
        ]),
        name,
        cpu: std::env::consts::ARCH.to_owned(),
        physical_cores: None,
        logical_cores: logical,
        last_level_cache_bytes: None,
        memory_bytes: None,
        os: std::env::consts::OS.to_owned(),
    }
}

/// The CPUs this process may use, each taken for a core: siblings are not told apart here.
pub fn topology() -> Topology {
    let cpu = |id| LogicalCpu {
        id,
        core: id,
        kind: None,
        capacity: None,
    };
    Topology {
        cpus: (0..logical_cpus().unwrap_or(0)).map(cpu).collect(),
        allowed: None,
        quota_cores: None,
    }
}

fn logical_cpus() -> Option<u32> {
    let cpus = std::thread::available_parallelism().ok()?;
    u32::try_from(cpus.get()).ok()
}

/// Whether a process lives; when it started is not known here.
#[cfg(unix)]
pub fn process(pid: u32) -> Process {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Process::Gone;
    };
    match test_kill_process(pid) {
        Err(Errno::SRCH) => Process::Gone,
        Ok(()) | Err(_) => Process::Lives { started: None },
    }
}

/// Other processes are not looked up here: only this one is known to live.
#[cfg(not(unix))]
pub fn process(pid: u32) -> Process {
    if pid == std::process::id() {
        Process::Lives { started: None }
    } else {
        Process::Unknown
    }
}

/// What is counted here: nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Counters;

impl Counters {
    pub(crate) fn since(&self, _before: &Self) -> Rates {
        Rates::default()
    }
}

/// The machine of this process, read anew at each call.
#[derive(Debug, Default)]
pub struct Host;

impl Host {
    /// Starts reading.
    pub fn new() -> Self {
        Self
    }
}

impl Probe for Host {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn read(&mut self, _worker: Option<u32>) -> Snapshot {
        Snapshot {
            state: MachineState {
                usable_cores: crate::threads::usable_cores(&topology()),
                ..MachineState::default()
            },
            counters: Counters,
        }
    }

    fn section_begins(&mut self) {}

    fn section_ended(&mut self) -> Conditions {
        Conditions::default()
    }
}
