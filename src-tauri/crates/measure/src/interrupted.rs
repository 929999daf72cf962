//! Tells a run that was cut off from one that goes on in another process.

use crate::machine::Machine;
use crate::record::RunRecord;

/// What is known of a process by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// There is none.
    Gone,
    /// There is one; `started` is in the unit of [`RunRecord::owner_started`] where the system says.
    Lives {
        /// When it started.
        started: Option<u64>,
    },
    /// The system does not say.
    Unknown,
}

/// Whether a run that has no end yet will never get one, since the process that ran it is no more.
///
/// `process` looks up a process of `here`, this machine: [`crate::platform::process`]. A run of
/// another machine (a shared data folder, an import) is that machine's to judge: `false`.
pub fn cut_off(run: &RunRecord, here: &Machine, process: impl Fn(u32) -> Process) -> bool {
    if run.machine.id != here.id || run.machine.name != here.name {
        return false;
    }
    match process(run.owner_pid) {
        Process::Gone => true,
        // The number was given to another process since.
        Process::Lives {
            started: Some(started),
        } => run.owner_started.is_some_and(|owner| owner != started),
        Process::Lives { started: None } | Process::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn machine(id: &str) -> Machine {
        Machine {
            id: id.into(),
            name: Some("desk".into()),
            cpu: "CPU".into(),
            physical_cores: None,
            logical_cores: None,
            last_level_cache_bytes: None,
            memory_bytes: None,
            os: "Linux".into(),
        }
    }

    fn run(owner_started: Option<u64>) -> RunRecord {
        RunRecord {
            id: Uuid::nil(),
            started_at: Timestamp::UNIX_EPOCH,
            machine: machine("here"),
            app_version: "0.1.0".into(),
            preset: "quick".into(),
            owner_pid: 4711,
            owner_started,
            plan: None,
        }
    }

    fn lives(started: Option<u64>) -> impl Fn(u32) -> Process {
        move |pid| {
            assert_eq!(pid, 4711);
            Process::Lives { started }
        }
    }

    #[test]
    fn a_run_whose_process_is_gone_was_cut_off() {
        assert!(cut_off(&run(Some(5)), &machine("here"), |_| Process::Gone));
        assert!(cut_off(&run(None), &machine("here"), |_| Process::Gone));
    }

    #[test]
    fn a_run_whose_process_lives_goes_on() {
        assert!(!cut_off(&run(Some(5)), &machine("here"), lives(Some(5))));
    }

    #[test]
    fn a_reused_process_id_is_not_taken_for_the_owner() {
        assert!(cut_off(&run(Some(5)), &machine("here"), lives(Some(9))));
    }

    #[test]
    fn what_cannot_be_known_is_left_alone() {
        assert!(!cut_off(&run(None), &machine("here"), lives(Some(9))));
        assert!(!cut_off(&run(Some(5)), &machine("here"), lives(None)));
        assert!(!cut_off(&run(Some(5)), &machine("here"), |_| {
            Process::Unknown
        }));
    }

    #[test]
    fn another_machines_run_is_not_ours_to_judge() {
        assert!(!cut_off(&run(Some(5)), &machine("elsewhere"), |_| {
            Process::Gone
        }));
        let mut container = machine("here");
        container.name = Some("container".into());
        assert!(
            !cut_off(&run(Some(5)), &container, |_| Process::Gone),
            "a container on the same hardware sees other process ids"
        );
    }
}
