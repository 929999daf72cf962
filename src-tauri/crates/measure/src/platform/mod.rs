//! What differs by operating system.
//!
//! Linux is read in full. Elsewhere there is what the standard library says, and the rest is
//! unknown.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::Counters;
#[cfg(target_os = "linux")]
pub use linux::{Host, machine, process, topology};

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::Counters;
#[cfg(not(target_os = "linux"))]
pub use other::{Host, machine, process, topology};

use crate::interrupted::Process;
use crate::threads;

/// Threads to run when nobody says, on this machine and within what this process may use.
pub fn default_threads() -> u32 {
    threads::default_threads(&topology())
}

/// When this process started, as [`process`] says it of others.
pub fn own_start() -> Option<u64> {
    match process(std::process::id()) {
        Process::Lives { started } => started,
        Process::Gone | Process::Unknown => None,
    }
}

/// A machine's id: a hash, so that no serial number is stored or exported.
fn machine_id(facts: &[&str]) -> String {
    use sha2::{Digest, Sha256};

    let mut hash = Sha256::new();
    for fact in facts {
        hash.update(fact.as_bytes());
        hash.update([0]);
    }
    let digest = hash.finalize();
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_id_hides_what_it_is_made_of() {
        let id = machine_id(&["3f2a", "AMD EPYC", "2"]);
        assert_eq!(id.len(), 32);
        assert!(!id.contains("3f2a"));
        assert_eq!(id, machine_id(&["3f2a", "AMD EPYC", "2"]));
        assert_ne!(id, machine_id(&["3f2aA", "MD EPYC", "2"]));
    }

    #[test]
    fn this_machine_has_a_processor_and_room_for_a_thread() {
        assert!(default_threads() >= 1);
        assert!(!machine().cpu.is_empty());
        assert_eq!(machine(), machine());
    }

    #[test]
    fn this_process_lives() {
        let own = process(std::process::id());
        assert_eq!(
            own,
            Process::Lives {
                started: own_start()
            }
        );
    }
}
