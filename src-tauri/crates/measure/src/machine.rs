//! The machine and its state.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::platform::Counters;
use crate::record::Conditions;

/// The machine a run was made on: its hardware, whatever a container or an affinity mask leaves of
/// it (that is in [`MachineState`]). Equal machines have equal `id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Stable for one machine: hash of its id, CPU name and cores (never a serial number itself).
    pub id: String,
    /// Host name.
    pub name: Option<String>,
    /// CPU name.
    pub cpu: String,
    /// Physical cores.
    pub physical_cores: Option<u32>,
    /// Logical cores.
    pub logical_cores: Option<u32>,
    /// Last-level cache in bytes, all instances.
    pub last_level_cache_bytes: Option<u64>,
    /// Memory of the hardware in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and kernel.
    pub os: String,
}

/// What may disturb a measurement, read outside timed sections. Not readable is `None`.
///
/// What is counted (loads, shares, throttling, energy) covers the time between two readings
/// ([`Snapshot::since`]) and is unknown in a single one; after a test that is the test.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineState {
    /// Cores' worth of work this process may do: affinity mask and cgroup quota.
    pub usable_cores: Option<f64>,
    /// Cores' worth that the cgroup quota allows; `None` where there is no quota.
    pub cpu_quota_cores: Option<f64>,
    /// Load average over one minute.
    pub load_1m: Option<f64>,
    /// Cores' worth of work by other processes, on the CPUs this process may use.
    pub other_load_cores: Option<f64>,
    /// Share of time the hypervisor took, 0 to 1.
    pub steal: Option<f64>,
    /// Memory this process may use in all: the cgroup limit where there is one, or the machine's.
    pub memory_limit_bytes: Option<u64>,
    /// Memory free to use in bytes: cgroup limit minus what cannot be reclaimed, or MemAvailable.
    pub memory_available_bytes: Option<u64>,
    /// Swap in use in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Mean clock of the usable cores in Hz.
    pub clock_hz: Option<f64>,
    /// Highest temperature of the CPU in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Runs on battery.
    pub on_battery: Option<bool>,
    /// Throttled by the cgroup quota, in nanoseconds.
    pub quota_throttled_ns: Option<u64>,
    /// Power profile, in the system's word: `performance`, `balanced`, `low-power`, `powersave`, ...
    pub power_profile: Option<String>,
    /// Times the usable cores held their clock down because of heat.
    pub core_throttles: Option<u64>,
    /// Times a whole processor did.
    pub package_throttles: Option<u64>,
    /// Energy that the processors took, in joules.
    pub energy_j: Option<f64>,
}

/// One reading of the machine, with the counters that a later one is held against.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// What is known from this reading alone.
    pub state: MachineState,
    pub(crate) counters: Counters,
}

impl Snapshot {
    /// The machine at this reading, with what was counted since `before`.
    pub fn since(&self, before: &Self) -> MachineState {
        let rates = self.counters.since(&before.counters);
        MachineState {
            other_load_cores: rates.other_load_cores,
            steal: rates.steal,
            quota_throttled_ns: rates.quota_throttled_ns,
            core_throttles: rates.core_throttles,
            package_throttles: rates.package_throttles,
            energy_j: rates.energy_j,
            ..self.state.clone()
        }
    }
}

/// What happened between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rates {
    pub(crate) other_load_cores: Option<f64>,
    pub(crate) steal: Option<f64>,
    pub(crate) quota_throttled_ns: Option<u64>,
    pub(crate) core_throttles: Option<u64>,
    pub(crate) package_throttles: Option<u64>,
    pub(crate) energy_j: Option<f64>,
}

/// Says what time it is and how the machine is: the real one is [`crate::platform::Host`].
///
/// Nothing of it is called while a section is timed.
pub trait Probe: Send {
    /// Now (UTC), for labels; durations come from the engine's monotonic clock.
    fn now(&self) -> Timestamp;
    /// Reads the machine. The work of this process and of `worker` (a process id) is not other load.
    fn read(&mut self, worker: Option<u32>) -> Snapshot;
    /// A timed section is about to begin: the last thing before it is let go.
    fn section_begins(&mut self);
    /// The section that began last has ended: the first thing after its sample is told.
    fn section_ended(&mut self) -> Conditions;

    /// The machine now, without what only two readings tell.
    fn state(&mut self, worker: Option<u32>) -> MachineState {
        self.read(worker).state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_stored_before_there_was_more_to_know_is_still_read() {
        let stored = r#"{"usable_cores":2.0,"cpu_quota_cores":null,"load_1m":0.5,"other_load_cores":null,
            "steal":null,"memory_limit_bytes":null,"memory_available_bytes":null,
            "swap_used_bytes":0,"clock_hz":null,"temperature_c":null,"on_battery":false,
            "quota_throttled_ns":null}"#;
        let state: MachineState = serde_json::from_str(stored).unwrap();
        assert_eq!((state.usable_cores, state.load_1m), (Some(2.0), Some(0.5)));
        assert_eq!((state.power_profile, state.energy_j), (None, None));
    }
}
