//! The processor: its name, its cores, its cache, its clock.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Tree, list};
use crate::threads::{CoreKind, LogicalCpu};

const CPUS: &str = "/sys/devices/system/cpu";

/// Every logical CPU that is online; empty when the system does not say.
pub(super) fn cpus(tree: &Tree) -> Vec<LogicalCpu> {
    let online = tree.text(format!("{CPUS}/online")).unwrap_or_default();
    let performance = kind(tree, "cpu_core");
    let efficiency = kind(tree, "cpu_atom");
    list(&online)
        .into_iter()
        .map(|id| LogicalCpu {
            id,
            core: core(tree, id),
            kind: if performance.contains(&id) {
                Some(CoreKind::Performance)
            } else if efficiency.contains(&id) {
                Some(CoreKind::Efficiency)
            } else {
                None
            },
            capacity: capacity(tree, id),
        })
        .collect()
}

/// CPUs of a kind on Intel's hybrids: the kernel has a performance monitor for each.
fn kind(tree: &Tree, monitor: &str) -> Vec<u32> {
    let cpus = tree.text(format!("/sys/devices/{monitor}/cpus"));
    list(&cpus.unwrap_or_default())
}

/// The lowest number among those that share the core; a CPU without siblings is its own core.
fn core(tree: &Tree, id: u32) -> u32 {
    ["core_cpus_list", "thread_siblings_list"]
        .iter()
        .find_map(|file| {
            let siblings = tree.text(format!("{CPUS}/cpu{id}/topology/{file}"))?;
            list(&siblings).into_iter().min()
        })
        .unwrap_or(id)
}

fn capacity(tree: &Tree, id: u32) -> Option<u64> {
    tree.number(format!("{CPUS}/cpu{id}/cpu_capacity"))
        .or_else(|| tree.number(format!("{CPUS}/cpu{id}/cpufreq/cpuinfo_max_freq")))
}

/// What the processor calls itself; on ARM, where it does not, the board does.
pub(super) fn name(tree: &Tree) -> String {
    let info = tree.text("/proc/cpuinfo").unwrap_or_default();
    field(&info, "model name")
        .or_else(|| field(&info, "cpu model"))
        .map(str::to_owned)
        .or_else(|| tree.text("/proc/device-tree/model"))
        .or_else(|| field(&info, "Hardware").map(str::to_owned))
        .map(|name| name.trim_end_matches('\0').to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The first line `key : value` of cpuinfo.
fn field<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// Bytes of the last-level cache, each instance counted once.
pub(super) fn last_level_cache(tree: &Tree, cpus: &[LogicalCpu]) -> Option<u64> {
    // By level, the instances (by the CPUs that share them) and their sizes.
    let mut levels: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    for cpu in cpus {
        let folder = format!("{CPUS}/cpu{}/cache", cpu.id);
        for index in tree.names(&folder)? {
            let read = |file: &str| tree.text(format!("{folder}/{index}/{file}"));
            let (Some(level), Some(size), Some(shared)) = (
                read("level").and_then(|level| level.parse().ok()),
                read("size").and_then(|size| bytes(&size)),
                read("shared_cpu_list"),
            ) else {
                continue;
            };
            if read("type").as_deref() != Some("Instruction") {
                levels.entry(level).or_default().insert(shared, size);
            }
        }
    }
    let (_, last) = levels.pop_last()?;
    Some(last.values().sum())
}

/// `32768K` or `8M` in bytes.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Mean clock of the allowed CPUs in Hz, where the system measures it.
///
/// `cpu MHz` of cpuinfo is a measurement only where the CPU has the counters for it (`aperfmperf`);
/// in most virtual machines it is the nominal clock, which says nothing.
pub(super) fn clock_hz(tree: &Tree, allowed: &BTreeSet<u32>) -> Option<f64> {
    let scaling: Vec<f64> = allowed
        .iter()
        .filter_map(|id| {
            let path = format!("{CPUS}/cpu{id}/cpufreq/scaling_cur_freq");
            Some(tree.number::<f64>(path)? * 1e3)
        })
        .collect();
    if !scaling.is_empty() {
        return mean(&scaling);
    }
    let info = tree.text("/proc/cpuinfo")?;
    let measured = field(&info, "flags")?
        .split(' ')
        .any(|flag| flag == "aperfmperf");
    if !measured {
        return None;
    }
    let clocks: Vec<f64> = info
        .split("\n\n")
        .filter(|cpu| {
            let id = field(cpu, "processor").and_then(|id| id.parse().ok());
            id.is_some_and(|id| allowed.contains(&id))
        })
        .filter_map(|cpu| Some(field(cpu, "cpu MHz")?.parse::<f64>().ok()? * 1e6))
        .collect();
    mean(&clocks)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;
    use crate::threads::{Topology, default_threads};

    fn owned(files: Vec<(String, String)>) -> (tempfile::TempDir, Tree) {
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        tree(&files)
    }

    fn threads(tree: &Tree) -> u32 {
        default_threads(&Topology {
            cpus: cpus(tree),
            ..Topology::default()
        })
    }

    #[test]
    fn siblings_share_a_core() {
        let mut files = vec![(
            "sys/devices/system/cpu/online".to_owned(),
            "0-15".to_owned(),
        )];
        for id in 0..16 {
            let core = id % 8;
            files.push((
                format!("sys/devices/system/cpu/cpu{id}/topology/core_cpus_list"),
                format!("{core},{}", core + 8),
            ));
        }
        let (_folder, tree) = owned(files);
        assert_eq!(threads(&tree), 8);
    }

    #[test]
    fn an_intel_hybrid_is_told_by_its_monitors() {
        // 8P + 12E without hyperthreads, as on Arrow Lake.
        let mut files = vec![
            (
                "sys/devices/system/cpu/online".to_owned(),
                "0-19".to_owned(),
            ),
            ("sys/devices/cpu_core/cpus".to_owned(), "0-7".to_owned()),
            ("sys/devices/cpu_atom/cpus".to_owned(), "8-19".to_owned()),
        ];
        for id in 0..20 {
            files.push((
                format!("sys/devices/system/cpu/cpu{id}/topology/thread_siblings_list"),
                id.to_string(),
            ));
        }
        let (_folder, tree) = owned(files);
        assert_eq!(threads(&tree), 8);
    }

    #[test]
    fn a_phones_big_cores_are_told_by_their_capacity() {
        let mut files = vec![("sys/devices/system/cpu/online".to_owned(), "0-7".to_owned())];
        for id in 0..8 {
            let capacity = if id < 4 { 250 } else { 1024 };
            files.push((
                format!("sys/devices/system/cpu/cpu{id}/cpu_capacity"),
                capacity.to_string(),
            ));
        }
        let (_folder, tree) = owned(files);
        assert_eq!(threads(&tree), 4);
    }

    #[test]
    fn the_last_level_cache_is_counted_by_instance() {
        let cache = |cpu: u32, index: u32, level: u32, size: &str, shared: &str| {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            [
                (format!("{folder}/level"), level.to_string()),
                (format!("{folder}/size"), size.to_owned()),
                (format!("{folder}/type"), "Unified".to_owned()),
                (format!("{folder}/shared_cpu_list"), shared.to_owned()),
            ]
        };
        let mut files = vec![("sys/devices/system/cpu/online".to_owned(), "0-3".to_owned())];
        for cpu in 0..4 {
            let complex = if cpu < 2 { "0-1" } else { "2-3" };
            files.extend(cache(cpu, 2, 2, "1024K", &cpu.to_string()));
            files.extend(cache(cpu, 3, 3, "32768K", complex));
        }
        let (_folder, tree) = owned(files);
        assert_eq!(last_level_cache(&tree, &cpus(&tree)), Some(64 << 20));
    }

    #[test]
    fn sizes_of_the_kernel_are_read() {
        assert_eq!(bytes("32768K"), Some(32 << 20));
        assert_eq!(bytes("8M"), Some(8 << 20));
        assert_eq!(bytes("8X"), None);
        assert_eq!(bytes(""), None);
    }

    #[test]
    fn a_nominal_clock_is_not_a_measured_one() {
        let info = |flags: &str| {
            format!(
                "processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.152\nflags\t\t: {flags}\n\n\
                 processor\t: 1\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 3000.0\nflags\t\t: {flags}\n"
            )
        };
        let both = BTreeSet::from([0, 1]);
        let (_folder, nominal) = owned(vec![("proc/cpuinfo".into(), info("fpu avx2"))]);
        assert_eq!(clock_hz(&nominal, &both), None);
        let (_folder, measured) = owned(vec![("proc/cpuinfo".into(), info("fpu aperfmperf"))]);
        let clock = clock_hz(&measured, &both).unwrap();
        assert!((clock - 2_798_076_000.0).abs() < 1.0, "{clock}");
        let one = clock_hz(&measured, &BTreeSet::from([1])).unwrap();
        assert!((one - 3e9).abs() < 1.0, "only allowed CPUs count");
        assert_eq!(name(&measured), "AMD EPYC");
    }

    #[test]
    fn the_governors_clock_goes_first() {
        let (_folder, tree) = tree(&[(
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
            "4500000\n",
        )]);
        assert_eq!(clock_hz(&tree, &BTreeSet::from([0])), Some(4.5e9));
    }

    #[test]
    fn a_board_names_a_processor_that_does_not() {
        let (_folder, tree) = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 108.00\n"),
            ("proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0"),
        ]);
        assert_eq!(name(&tree), "Raspberry Pi 5 Model B Rev 1.0");
    }
}
