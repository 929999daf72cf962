//! Energy that the processors took, by RAPL's counters.
//!
//! The kernel's power capping framework (`Documentation/power/powercap`): `energy_uj` counts up and
//! starts again at 0 beyond `max_energy_range_uj`. On most systems only root may read it.

use super::tree::Tree;

const POWERCAP: &str = "/sys/class/powercap";

/// The counter of one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counter {
    zone: String,
    microjoules: u64,
    /// Largest value of the counter.
    range: u64,
}

/// The counters of all processors; empty when one cannot be read: a part of the energy is none.
pub(super) fn read(tree: &Tree) -> Vec<Counter> {
    let zones = tree.names(POWERCAP).unwrap_or_default();
    let packages = zones.into_iter().filter(|zone| {
        // `intel-rapl:0` (AMD's too); cores and memory are zones within (`intel-rapl:0:1`), and
        // `intel-rapl-mmio:0` is the same processor again.
        let number = zone.strip_prefix("intel-rapl:").unwrap_or_default();
        let name = tree.text(format!("{POWERCAP}/{zone}/name"));
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && name.is_some_and(|name| name.starts_with("package"))
    });
    let counters = packages.map(|zone| {
        let folder = format!("{POWERCAP}/{zone}");
        Some(Counter {
            microjoules: tree.number(format!("{folder}/energy_uj"))?,
            range: tree.number(format!("{folder}/max_energy_range_uj"))?,
            zone,
        })
    });
    counters.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Joules from `before` to `now`; `None` when the counters are not the same ones or there are none.
///
/// A counter starts again every few minutes to hours under load; it is taken to have done so at
/// most once.
pub(super) fn joules(now: &[Counter], before: &[Counter]) -> Option<f64> {
    if now.is_empty() || now.len() != before.len() {
        return None;
    }
    let mut sum = 0;
    for (now, before) in now.iter().zip(before) {
        if now.zone != before.zone {
            return None;
        }
        sum += match now.microjoules.checked_sub(before.microjoules) {
            Some(taken) => taken,
            None => now
                .range
                .checked_sub(before.microjoules)?
                .checked_add(now.microjoules)?,
        };
    }
    Some(sum as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    fn counters(first: &str, second: &str) -> Vec<Counter> {
        let (_folder, tree) = tree(&[
            ("sys/class/powercap/intel-rapl/enabled", "1"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl:0/energy_uj", first),
            (
                "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
                "262143328850\n",
            ),
            ("sys/class/powercap/intel-rapl:0:0/name", "core\n"),
            ("sys/class/powercap/intel-rapl:0:0/energy_uj", "77\n"),
            ("sys/class/powercap/intel-rapl:1/name", "package-1\n"),
            ("sys/class/powercap/intel-rapl:1/energy_uj", second),
            (
                "sys/class/powercap/intel-rapl:1/max_energy_range_uj",
                "262143328850\n",
            ),
            ("sys/class/powercap/intel-rapl:2/name", "psys\n"),
            ("sys/class/powercap/intel-rapl:2/energy_uj", "5\n"),
            ("sys/class/powercap/intel-rapl-mmio:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl-mmio:0/energy_uj", "9\n"),
        ]);
        read(&tree)
    }

    #[test]
    fn processors_are_added_up_and_each_counts_once() {
        let before = counters("1000000", "2000000");
        let after = counters("4500000", "2500000");
        // 3.5 J and 0.5 J; cores, the whole board and the second way to the same counter are not
        // added.
        assert_eq!(joules(&after, &before), Some(4.0));
    }

    #[test]
    fn a_counter_that_started_again_is_not_negative() {
        let before = counters("262143000000", "0");
        let after = counters("671150", "0");
        // 328,850 uJ to the end of the range and 671,150 beyond: 1 J.
        assert_eq!(joules(&after, &before), Some(1.0));
    }

    #[test]
    fn a_counter_that_may_not_be_read_is_unknown() {
        let known = counters("1", "2");
        assert_eq!(counters("1", "permission denied"), []);
        assert_eq!(joules(&[], &[]), None);
        assert_eq!(joules(&known, &[]), None);
        assert_eq!(joules(&known[..1], &known[1..]), None, "another processor");
    }
}
