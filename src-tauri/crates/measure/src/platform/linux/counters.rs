//! Counters of the kernel and the rates between two readings.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::cgroup::Cgroups;
use super::energy;
use super::power::{self, Throttles};
use super::tree::Tree;
use crate::machine::Rates;

/// Below this the kernel's ticks (10 ms) are too coarse for a rate.
const SHORTEST: Duration = Duration::from_millis(200);

/// What has been counted so far. Times are in clock ticks unless said otherwise.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Counters {
    /// When they were read.
    pub(super) at: Option<Instant>,
    /// Over the CPUs this process may use.
    pub(super) cpu: Option<CpuTime>,
    /// Work of this process.
    pub(super) own: Option<u64>,
    /// The worker and its work.
    pub(super) worker: Option<(u32, Option<u64>)>,
    /// By level of the cgroup tree, in nanoseconds.
    pub(super) throttled_ns: Vec<u64>,
    /// By CPU.
    pub(super) throttles: Vec<Throttles>,
    /// By processor.
    pub(super) energy: Vec<energy::Counter>,
}

/// Where the time of CPUs went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CpuTime {
    /// How many CPUs these are.
    pub(super) cpus: u32,
    pub(super) busy: u64,
    pub(super) stolen: u64,
    pub(super) total: u64,
}

impl Counters {
    pub(super) fn read(
        tree: &Tree,
        cgroups: &Cgroups,
        allowed: &BTreeSet<u32>,
        worker: Option<u32>,
    ) -> Self {
        Self {
            at: Some(Instant::now()),
            cpu: tree
                .text("/proc/stat")
                .and_then(|stat| cpu_time(&stat, allowed)),
            own: process_time(tree, std::process::id()),
            worker: worker.map(|pid| (pid, process_time(tree, pid))),
            throttled_ns: cgroups.throttled_ns(tree),
            throttles: power::throttles(tree, allowed),
            energy: energy::read(tree),
        }
    }

    /// Rates since `before`; unknown where a counter is, or where too little time has passed.
    pub(crate) fn since(&self, before: &Self) -> Rates {
        let elapsed = match (self.at, before.at) {
            (Some(now), Some(then)) => now.saturating_duration_since(then),
            _ => Duration::ZERO,
        };
        let cpu = match (self.cpu, before.cpu) {
            (Some(now), Some(then)) if elapsed >= SHORTEST && now.cpus == then.cpus => {
                Some(CpuTime {
                    cpus: now.cpus,
                    busy: now.busy.saturating_sub(then.busy),
                    stolen: now.stolen.saturating_sub(then.stolen),
                    total: now.total.saturating_sub(then.total),
                })
            }
            _ => None,
        };
        let cpu = cpu.filter(|cpu| cpu.total > 0);
        let (core_throttles, package_throttles) =
            power::throttled(&self.throttles, &before.throttles);
        Rates {
            other_load_cores: cpu.and_then(|cpu| {
                let ours = self
                    .own?
                    .saturating_sub(before.own?)
                    .saturating_add(self.worker_time(before)?);
                let others = cpu.busy.saturating_sub(ours);
                Some(others as f64 / cpu.total as f64 * f64::from(cpu.cpus))
            }),
            steal: cpu.map(|cpu| cpu.stolen as f64 / cpu.total as f64),
            quota_throttled_ns: self
                .throttled_ns
                .iter()
                .zip(&before.throttled_ns)
                .map(|(now, then)| now.saturating_sub(*then))
                .max(),
            core_throttles,
            package_throttles,
            energy_j: energy::joules(&self.energy, &before.energy),
        }
    }

    /// What the worker did; unknown when another one did a part that is not counted any more.
    fn worker_time(&self, before: &Self) -> Option<u64> {
        match (self.worker, before.worker) {
            (None, None) => Some(0),
            (Some((_, now)), None) => now,
            (Some((pid, now)), Some((same, then))) if pid == same => {
                Some(now?.saturating_sub(then?))
            }
            _ => None,
        }
    }
}

/// Adds up the lines `cpuN user nice system idle iowait irq softirq steal guest guest_nice` of the
/// allowed CPUs; see `proc_stat(5)`. Guest time is in user and nice already.
fn cpu_time(stat: &str, allowed: &BTreeSet<u32>) -> Option<CpuTime> {
    let mut sum = None;
    for line in stat.lines() {
        let Some((id, times)) = line
            .strip_prefix("cpu")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        if !id.parse().is_ok_and(|id: u32| allowed.contains(&id)) {
            continue;
        }
        let times: Vec<u64> = times
            .split_ascii_whitespace()
            .take(8)
            .map_while(|time| time.parse().ok())
            .collect();
        let &[user, nice, system, idle, iowait, irq, softirq, stolen] = times.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        let sum: &mut CpuTime = sum.get_or_insert_default();
        sum.cpus += 1;
        sum.busy += busy;
        sum.stolen += stolen;
        sum.total += busy + stolen + idle + iowait;
    }
    sum
}

/// User and system time of all threads of a process, fields 14 and 15 of `proc_pid_stat(5)`.
fn process_time(tree: &Tree, pid: u32) -> Option<u64> {
    let user: u64 = stat_field(tree, pid, 14)?;
    let system: u64 = stat_field(tree, pid, 15)?;
    Some(user + system)
}

/// A field of `/proc/PID/stat`, counted from 1 as in the manual, beyond the name.
pub(super) fn stat_field(tree: &Tree, pid: u32, field: usize) -> Option<u64> {
    let stat = tree.text(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may hold any character; what follows starts with field 3.
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name
        .split_ascii_whitespace()
        .nth(field.checked_sub(3)?)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    /// Two CPUs, both of which have lived `ticks` clock ticks.
    fn reading(at: Instant, ticks: u64, busy: u64, worker: Option<(u32, Option<u64>)>) -> Counters {
        Counters {
            at: Some(at),
            cpu: Some(CpuTime {
                cpus: 2,
                busy,
                stolen: 0,
                total: 2 * ticks,
            }),
            own: Some(0),
            worker,
            ..Counters::default()
        }
    }

    fn two_seconds() -> (Instant, Instant) {
        let start = Instant::now();
        (start, start + Duration::from_secs(2))
    }

    #[test]
    fn other_load_is_what_neither_we_nor_the_worker_did() {
        let (start, end) = two_seconds();
        let before = reading(start, 0, 1000, Some((7, Some(50))));
        let mut after = reading(end, 200, 1400, Some((7, Some(350))));
        after.own = Some(10);
        // 400 ticks in 2 s, 300 by the worker and 10 by us: 90 ticks are 0.45 cores.
        let rates = after.since(&before);
        assert!((rates.other_load_cores.unwrap() - 0.45).abs() < 1e-12);
    }

    #[test]
    fn a_worker_that_was_born_between_counts_in_full() {
        let (start, end) = two_seconds();
        let before = reading(start, 0, 0, None);
        let after = reading(end, 200, 200, Some((7, Some(200))));
        assert_eq!(after.since(&before).other_load_cores, Some(0.0));
    }

    #[test]
    fn a_worker_that_was_replaced_leaves_the_load_unknown() {
        let (start, end) = two_seconds();
        let before = reading(start, 0, 0, Some((7, Some(50))));
        let after = reading(end, 200, 200, Some((8, Some(20))));
        assert_eq!(after.since(&before).other_load_cores, None);
    }

    #[test]
    fn a_moment_is_too_short_for_a_rate() {
        let start = Instant::now();
        let before = reading(start, 0, 0, None);
        let after = reading(start + Duration::from_millis(50), 5, 5, None);
        assert_eq!(after.since(&before), Rates::default());
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let (start, end) = two_seconds();
        let before = reading(start, 0, 0, None);
        let mut after = reading(end, 200, 0, None);
        after.cpu = Some(CpuTime {
            cpus: 2,
            busy: 300,
            stolen: 20,
            total: 400,
        });
        assert_eq!(after.since(&before).steal, Some(0.05));
    }

    #[test]
    fn the_level_that_was_throttled_most_counts() {
        let (start, end) = two_seconds();
        let mut before = reading(start, 0, 0, None);
        before.throttled_ns = vec![5, 100];
        let mut after = reading(end, 200, 0, None);
        after.throttled_ns = vec![8, 900];
        assert_eq!(after.since(&before).quota_throttled_ns, Some(800));
    }

    #[test]
    fn only_allowed_cpus_are_added_up() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                    cpu0 10 1 5 100 2 1 1 3 0 0\n\
                    cpu1 20 0 0 50 0 0 0 0 0 0\n\
                    cpu10 1000 0 0 0 0 0 0 0 0 0\n\
                    intr 12\n";
        let time = cpu_time(stat, &BTreeSet::from([0, 1])).unwrap();
        assert_eq!(
            time,
            CpuTime {
                cpus: 2,
                busy: 18 + 20,
                stolen: 3,
                total: 18 + 3 + 102 + 20 + 50,
            }
        );
        assert_eq!(cpu_time(stat, &BTreeSet::new()), None);
    }

    #[test]
    fn a_processs_name_may_hold_anything() {
        let (_folder, tree) = tree(&[(
            "proc/7/stat",
            "7 (a) b) (c) S 1 7 7 0 -1 4194560 100 0 2 0 31 11 0 0 20 0 4 0 98765 1 2\n",
        )]);
        assert_eq!(process_time(&tree, 7), Some(42));
        assert_eq!(stat_field(&tree, 7, 22), Some(98765));
        assert_eq!(process_time(&tree, 8), None);
    }
}
