//! How many threads to run when nobody says: the physical cores this process may really use.
//!
//! Not hyperthreads (two of them share the units that prefill keeps busy), not efficiency cores
//! (every layer waits for its slowest thread), not the host's cores inside a container.

use std::collections::BTreeSet;

/// The logical CPUs of a machine and what this process may do on them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    /// Every logical CPU that is online.
    pub cpus: Vec<LogicalCpu>,
    /// Those the affinity mask (and so the cpuset) allows; `None` where there is no mask.
    pub allowed: Option<BTreeSet<u32>>,
    /// Cores' worth of time the cgroup quota allows; `None` without a quota.
    pub quota_cores: Option<f64>,
}

/// One logical CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicalCpu {
    /// The system's number for it.
    pub id: u32,
    /// The same for all that share a physical core.
    pub core: u32,
    /// What the system says it is, where it tells kinds apart.
    pub kind: Option<CoreKind>,
    /// How fast it can be, in any unit that is the same for all.
    pub capacity: Option<u64>,
}

/// Kinds of core on a hybrid CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreKind {
    /// Built for speed.
    Performance,
    /// Built for little power.
    Efficiency,
}

/// A core that can do less than this share of the best is an efficiency core where the system does
/// not say. Favoured cores of one kind differ by a few percent in clock; the slow kinds of hybrid
/// CPUs lie at a quarter to three quarters.
pub const EFFICIENCY_SHARE: f64 = 0.8;

/// Threads to run by default, at least 1.
///
/// A quota of 1.5 cores gives one thread: with two, the kernel would stop both for a part of
/// every period, and the timed section with them.
pub fn default_threads(topology: &Topology) -> u32 {
    let fast = performance(&allowed(topology));
    let cores = count(physical(&fast));
    let quota = match topology.quota_cores {
        Some(quota) => quota.floor().max(1.0) as u32,
        None => u32::MAX,
    };
    cores.min(quota).max(1)
}

/// Cores' worth of work this process may do; `None` when no CPU is known.
pub fn usable_cores(topology: &Topology) -> Option<f64> {
    let cores = physical(&allowed(topology));
    if cores.is_empty() {
        return topology.quota_cores;
    }
    let cores = cores.len() as f64;
    Some(topology.quota_cores.map_or(cores, |quota| quota.min(cores)))
}

/// Physical cores of the machine, whatever this process may use; `None` when no CPU is known.
pub fn physical_cores(topology: &Topology) -> Option<u32> {
    let all: Vec<_> = topology.cpus.iter().collect();
    Some(count(physical(&all))).filter(|&cores| cores > 0)
}

pub(crate) fn allowed(topology: &Topology) -> Vec<&LogicalCpu> {
    topology
        .cpus
        .iter()
        .filter(|cpu| {
            topology
                .allowed
                .as_ref()
                .is_none_or(|allowed| allowed.contains(&cpu.id))
        })
        .collect()
}

/// The fast ones; all of them where they are of one kind.
fn performance<'a>(cpus: &[&'a LogicalCpu]) -> Vec<&'a LogicalCpu> {
    let best = cpus.iter().filter_map(|cpu| cpu.capacity).max();
    let is_fast = |cpu: &LogicalCpu| match (cpu.kind, cpu.capacity, best) {
        (Some(kind), _, _) => kind == CoreKind::Performance,
        (None, Some(capacity), Some(best)) => capacity as f64 >= EFFICIENCY_SHARE * best as f64,
        (None, _, _) => true,
    };
    let fast: Vec<_> = cpus.iter().copied().filter(|cpu| is_fast(cpu)).collect();
    if fast.is_empty() { cpus.to_vec() } else { fast }
}

fn physical(cpus: &[&LogicalCpu]) -> BTreeSet<u32> {
    cpus.iter().map(|cpu| cpu.core).collect()
}

fn count(cores: BTreeSet<u32>) -> u32 {
    u32::try_from(cores.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(id: u32, core: u32) -> LogicalCpu {
        LogicalCpu {
            id,
            core,
            kind: None,
            capacity: None,
        }
    }

    /// Siblings as Linux mostly numbers them: 0 to 7, then their second threads 8 to 15.
    fn eight_cores_sixteen_threads() -> Topology {
        Topology {
            cpus: (0..16).map(|id| cpu(id, id % 8)).collect(),
            ..Topology::default()
        }
    }

    fn eight_fast_twelve_slow(kind: bool) -> Topology {
        let core = |id| LogicalCpu {
            kind: kind.then_some(if id < 8 {
                CoreKind::Performance
            } else {
                CoreKind::Efficiency
            }),
            capacity: (!kind).then_some(if id < 8 { 1024 } else { 640 }),
            ..cpu(id, id)
        };
        Topology {
            cpus: (0..20).map(core).collect(),
            ..Topology::default()
        }
    }

    fn on(topology: Topology, allowed: impl IntoIterator<Item = u32>) -> Topology {
        Topology {
            allowed: Some(allowed.into_iter().collect()),
            ..topology
        }
    }

    fn with_quota(topology: Topology, cores: f64) -> Topology {
        Topology {
            quota_cores: Some(cores),
            ..topology
        }
    }

    #[test]
    fn hyperthreads_are_not_cores() {
        assert_eq!(default_threads(&eight_cores_sixteen_threads()), 8);
        assert_eq!(physical_cores(&eight_cores_sixteen_threads()), Some(8));
    }

    #[test]
    fn eight_fast_and_twelve_slow_cores_give_eight() {
        assert_eq!(default_threads(&eight_fast_twelve_slow(true)), 8, "by kind");
        assert_eq!(
            default_threads(&eight_fast_twelve_slow(false)),
            8,
            "by capacity"
        );
        assert_eq!(physical_cores(&eight_fast_twelve_slow(true)), Some(20));
    }

    #[test]
    fn slow_cores_count_where_only_they_are_allowed() {
        for kind in [true, false] {
            let only_slow = on(eight_fast_twelve_slow(kind), 8..12);
            assert_eq!(default_threads(&only_slow), 4);
        }
    }

    #[test]
    fn favoured_cores_of_one_kind_do_not_make_a_cpu_hybrid() {
        let mut topology = eight_cores_sixteen_threads();
        for cpu in &mut topology.cpus {
            cpu.capacity = Some(if cpu.core < 2 { 5_700_000 } else { 5_400_000 });
        }
        assert_eq!(default_threads(&topology), 8);
    }

    #[test]
    fn the_affinity_mask_is_obeyed() {
        let machine = eight_cores_sixteen_threads;
        assert_eq!(default_threads(&on(machine(), [0, 1])), 2);
        assert_eq!(default_threads(&on(machine(), [3])), 1, "one sibling");
        assert_eq!(
            default_threads(&on(machine(), [3, 11])),
            1,
            "both siblings of a core"
        );
    }

    #[test]
    fn a_container_quota_is_obeyed_and_never_overdrawn() {
        let quota = |cores| default_threads(&with_quota(eight_cores_sixteen_threads(), cores));
        assert_eq!(quota(2.0), 2);
        assert_eq!(quota(1.5), 1);
        assert_eq!(quota(0.25), 1, "at least one");
        assert_eq!(quota(64.0), 8, "a quota makes no cores");
    }

    #[test]
    fn usable_cores_are_the_least_of_mask_and_quota() {
        let machine = eight_cores_sixteen_threads;
        assert_eq!(usable_cores(&machine()), Some(8.0));
        assert_eq!(usable_cores(&with_quota(machine(), 1.5)), Some(1.5));
        assert_eq!(
            usable_cores(&with_quota(on(machine(), [0]), 1.5)),
            Some(1.0)
        );
    }

    #[test]
    fn an_unknown_machine_runs_one_thread() {
        assert_eq!(default_threads(&Topology::default()), 1);
        assert_eq!(usable_cores(&Topology::default()), None);
        assert_eq!(physical_cores(&Topology::default()), None);
    }
}
