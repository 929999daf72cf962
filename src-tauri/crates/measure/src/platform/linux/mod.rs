//! Linux: `/proc`, `/sys` and cgroups.

mod cgroup;
mod counters;
mod cpu;
mod energy;
mod power;
mod sensors;
mod tree;

use std::collections::BTreeSet;
use std::time::Instant;

use jiff::Timestamp;
use rustix::thread::{CpuSet, sched_getaffinity};

use self::cgroup::Cgroups;
pub(crate) use self::counters::Counters;
use self::tree::{Tree, value};
use crate::interrupted::Process;
use crate::machine::{Machine, MachineState, Probe, Snapshot};
use crate::record::Conditions;
use crate::threads::{Topology, physical_cores, usable_cores};

/// This machine.
pub fn machine() -> Machine {
    machine_in(&Tree::system())
}

/// The CPUs and what this process may do on them.
pub fn topology() -> Topology {
    let tree = Tree::system();
    topology_in(&tree, &Cgroups::find(&tree))
}

/// A process by its id; `started` is in clock ticks since the machine started.
pub fn process(pid: u32) -> Process {
    process_in(&Tree::system(), pid)
}

fn process_in(tree: &Tree, pid: u32) -> Process {
    if !tree.is_folder(format!("/proc/{pid}")) {
        return if tree.is_folder("/proc/self") {
            Process::Gone
        } else {
            Process::Unknown
        };
    }
    Process::Lives {
        started: counters::stat_field(tree, pid, 22),
    }
}

fn machine_in(tree: &Tree) -> Machine {
    let cpus = cpu::cpus(tree);
    let cpu = cpu::name(tree);
    let topology = Topology {
        cpus,
        ..Topology::default()
    };
    let physical = physical_cores(&topology);
    let logical = u32::try_from(topology.cpus.len()).ok().filter(|&n| n > 0);
    let count = |cores: Option<u32>| cores.map(|n| n.to_string()).unwrap_or_default();
    let machine_id = tree.text("/etc/machine-id").unwrap_or_default();
    Machine {
        id: super::machine_id(&[&machine_id, &cpu, &count(physical), &count(logical)]),
        name: tree.text("/proc/sys/kernel/hostname"),
        cpu,
        physical_cores: physical,
        logical_cores: logical,
        last_level_cache_bytes: cpu::last_level_cache(tree, &topology.cpus),
        memory_bytes: meminfo(tree, "MemTotal"),
        os: os(tree),
    }
}

/// `Debian GNU/Linux 12 (bookworm), Linux 6.1.0`.
fn os(tree: &Tree) -> String {
    let release = tree.text("/etc/os-release").unwrap_or_default();
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned());
    let kernel = tree
        .text("/proc/sys/kernel/osrelease")
        .map(|release| format!("Linux {release}"));
    let parts: Vec<String> = [system, kernel].into_iter().flatten().collect();
    if parts.is_empty() {
        return "Linux".to_owned();
    }
    parts.join(", ")
}

fn topology_in(tree: &Tree, cgroups: &Cgroups) -> Topology {
    Topology {
        cpus: cpu::cpus(tree),
        allowed: affinity(),
        quota_cores: cgroups.quota_cores(tree),
    }
}

/// CPUs of the affinity mask of this thread, which the worker inherits; the cpuset is in it.
fn affinity() -> Option<BTreeSet<u32>> {
    let mask = sched_getaffinity(None).ok()?;
    Some(
        (0..CpuSet::MAX_CPU)
            .filter(|&id| mask.is_set(id))
            .filter_map(|id| u32::try_from(id).ok())
            .collect(),
    )
}

/// A value of `/proc/meminfo` in bytes.
fn meminfo(tree: &Tree, key: &str) -> Option<u64> {
    value(&tree.text("/proc/meminfo")?, key)?.checked_mul(1024)
}

/// The machine of this process, read anew at each call.
#[derive(Debug)]
pub struct Host {
    tree: Tree,
    /// The energy counters when the section began, and when that was.
    section: Option<(Instant, Vec<energy::Counter>)>,
}

impl Host {
    /// Starts reading.
    pub fn new() -> Self {
        Self::of(Tree::system())
    }

    fn of(tree: Tree) -> Self {
        Self {
            tree,
            section: None,
        }
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

/// CPUs this process may use.
fn allowed(topology: &Topology) -> BTreeSet<u32> {
    match &topology.allowed {
        Some(allowed) => allowed.clone(),
        None => topology.cpus.iter().map(|cpu| cpu.id).collect(),
    }
}

impl Probe for Host {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn read(&mut self, worker: Option<u32>) -> Snapshot {
        let tree = &self.tree;
        let cgroups = Cgroups::find(tree);
        let topology = topology_in(tree, &cgroups);
        let allowed = allowed(&topology);
        let state = MachineState {
            usable_cores: usable_cores(&topology),
            cpu_quota_cores: topology.quota_cores,
            load_1m: load_1m(tree),
            memory_limit_bytes: least(meminfo(tree, "MemTotal"), cgroups.memory_limit(tree)),
            memory_available_bytes: least(
                meminfo(tree, "MemAvailable"),
                cgroups.memory_available(tree),
            ),
            swap_used_bytes: swap_used(tree),
            clock_hz: cpu::clock_hz(tree, &allowed),
            temperature_c: sensors::temperature_c(tree),
            on_battery: sensors::on_battery(tree),
            power_profile: power::profile(tree, &allowed),
            ..MachineState::default()
        };
        Snapshot {
            state,
            counters: Counters::read(tree, &cgroups, &allowed, worker),
        }
    }

    fn section_begins(&mut self) {
        let energy = energy::read(&self.tree);
        self.section = (!energy.is_empty()).then(|| (Instant::now(), energy));
    }

    fn section_ended(&mut self) -> Conditions {
        let energy = self.section.take().and_then(|(began, before)| {
            let joules = energy::joules(&energy::read(&self.tree), &before)?;
            Some((joules, began.elapsed().as_secs_f64()))
        });
        let cpus = affinity().unwrap_or_default();
        Conditions {
            clock_hz: cpu::clock_hz(&self.tree, &cpus),
            temperature_c: sensors::temperature_c(&self.tree),
            energy_j: energy.map(|(joules, _)| joules),
            energy_seconds: energy.map(|(_, seconds)| seconds),
        }
    }
}

fn load_1m(tree: &Tree) -> Option<f64> {
    let text = tree.text("/proc/loadavg")?;
    text.split(' ').next()?.parse().ok()
}

fn swap_used(tree: &Tree) -> Option<u64> {
    meminfo(tree, "SwapTotal")?.checked_sub(meminfo(tree, "SwapFree")?)
}

/// The smaller of what is known.
fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::tree::tests::tree;
    use super::*;

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       16384000 kB\nMemFree:  100 kB\nMemAvailable:   8192000 kB\n\
         SwapTotal:       2097152 kB\nSwapFree:        1048576 kB\n",
    );

    #[test]
    fn a_containers_memory_is_its_limit_and_not_the_hosts() {
        let (_folder, tree) = tree(&[
            MEMINFO,
            (
                "proc/self/mountinfo",
                "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/memory.current", "1000000000\n"),
            ("sys/fs/cgroup/memory.stat", "inactive_file 900000000\n"),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ]);
        let state = Host::of(tree).state(None);
        assert_eq!(state.memory_limit_bytes, Some(2_147_483_648));
        assert_eq!(state.memory_available_bytes, Some(2_047_483_648));
        assert_eq!(state.cpu_quota_cores, Some(1.5));
        assert_eq!(state.swap_used_bytes, Some(1 << 30));
    }

    #[test]
    fn without_a_limit_the_kernels_figure_counts() {
        let (_folder, tree) = tree(&[MEMINFO, ("proc/loadavg", "0.52 0.4 0.3 1/99 1234\n")]);
        let state = Host::of(tree).state(None);
        assert_eq!(state.memory_available_bytes, Some(8_192_000 * 1024));
        assert_eq!(state.memory_limit_bytes, Some(16_384_000 * 1024));
        assert_eq!(state.load_1m, Some(0.52));
    }

    #[test]
    fn a_system_that_says_nothing_is_unknown_and_not_zero() {
        let (_folder, tree) = tree(&[]);
        assert_eq!(
            Host::of(tree.clone()).state(Some(1)),
            MachineState::default()
        );
        let machine = machine_in(&tree);
        assert_eq!(machine.memory_bytes, None);
        assert_eq!(machine.physical_cores, None);
        assert_eq!(machine.os, "Linux");
    }

    #[test]
    fn a_machine_keeps_its_id_when_memory_or_the_system_changes() {
        let base = [
            ("etc/machine-id", "0123456789abcdef\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("proc/cpuinfo", "processor : 0\nmodel name : AMD EPYC\n"),
        ];
        let (_folder, before) = tree(&base);
        let (_folder, after) = tree(
            &[
                &base[..],
                &[MEMINFO, ("etc/os-release", "PRETTY_NAME=\"Debian 13\"\n")],
            ]
            .concat(),
        );
        assert_eq!(machine_in(&before).id, machine_in(&after).id);
        assert_eq!(machine_in(&after).os, "Debian 13");
        let (_folder, other) = tree(&[base[1], base[2], ("etc/machine-id", "fedcba\n")]);
        assert_ne!(machine_in(&before).id, machine_in(&other).id);
    }

    const ENERGY: &str = "sys/class/powercap/intel-rapl:0/energy_uj";

    /// A system with one processor that counts its energy, and its CPUs' throttling.
    fn counting() -> (tempfile::TempDir, Tree, Vec<String>) {
        let cpus = affinity().unwrap();
        let throttles: Vec<String> = cpus
            .iter()
            .map(|cpu| {
                format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count")
            })
            .collect();
        let mut files = vec![
            ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            (ENERGY, "1000000\n"),
            (
                "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
                "262143328850\n",
            ),
            ("sys/class/hwmon/hwmon1/name", "k10temp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "71500\n"),
        ];
        files.extend(throttles.iter().map(|file| (file.as_str(), "5\n")));
        let (folder, tree) = tree(&files);
        (folder, tree, throttles)
    }

    #[test]
    fn what_is_counted_covers_the_time_between_two_readings() {
        let (folder, tree, throttles) = counting();
        let write =
            |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        let mut host = Host::of(tree);
        let before = host.read(None);
        assert_eq!(before.state.energy_j, None, "a single reading tells none");
        assert_eq!(before.state.core_throttles, None);
        write(ENERGY, "4500000\n");
        write(&throttles[0], "8\n");
        let now = host.read(None).since(&before);
        assert_eq!(now.energy_j, Some(3.5));
        assert_eq!(now.core_throttles, Some(3));
        assert_eq!(now.package_throttles, None, "not readable");
        assert_eq!(now.temperature_c, Some(71.5));
    }

    #[test]
    fn a_section_has_the_energy_from_its_beginning_to_its_end() {
        let (folder, tree, _) = counting();
        let mut host = Host::of(tree);
        host.section_begins();
        std::fs::write(folder.path().join(ENERGY), "3000000\n").unwrap();
        let conditions = host.section_ended();
        assert_eq!(conditions.energy_j, Some(2.0));
        assert!(
            conditions
                .energy_seconds
                .is_some_and(|seconds| seconds > 0.0)
        );
        assert_eq!(conditions.temperature_c, Some(71.5));
        // Of a section that was not begun (a text that is judged) only the end is known.
        let judged = host.section_ended();
        assert_eq!((judged.energy_j, judged.energy_seconds), (None, None));
        assert_eq!(judged.temperature_c, Some(71.5));
    }

    #[test]
    fn around_a_section_of_a_system_that_says_nothing_all_is_unknown() {
        let (_folder, tree) = tree(&[]);
        let mut host = Host::of(tree);
        host.section_begins();
        assert!(host.section_ended().is_unknown());
    }

    #[test]
    fn this_machine_says_what_it_can() {
        let mut host = Host::new();
        let state = host.state(None);
        assert!(state.usable_cores.is_some_and(|cores| cores > 0.0));
        assert!(state.memory_available_bytes <= state.memory_limit_bytes);
        assert!(state.load_1m.is_some());
        assert_eq!(state.other_load_cores, None, "a first reading has no rates");
        let machine = machine();
        assert!(machine.logical_cores >= machine.physical_cores);
        assert!(machine.memory_bytes >= state.memory_limit_bytes);
    }

    #[test]
    fn a_process_that_never_was_is_gone() {
        // Above the largest process id that Linux allows (2^22).
        assert_eq!(process(1 << 23), Process::Gone);
        assert!(matches!(process(1), Process::Lives { started: Some(_) }));
    }
}
