//! Power profile and throttling by heat.

use std::collections::BTreeSet;

use super::tree::Tree;

const CPUS: &str = "/sys/devices/system/cpu";
const PLATFORM_PROFILE: &str = "/sys/firmware/acpi/platform_profile";

/// The power profile in the system's word; where several are set, one that saves energy counts.
///
/// A governor is told only where it decides the clock: with the drivers that let the processor
/// choose, `powersave` is the usual one and saves nothing.
pub(super) fn profile(tree: &Tree, allowed: &BTreeSet<u32>) -> Option<String> {
    let cpu = allowed.first()?;
    let cpufreq = |file: &str| tree.text(format!("{CPUS}/cpu{cpu}/cpufreq/{file}"));
    let driver = cpufreq("scaling_driver").unwrap_or_default();
    let chooses = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"].contains(&driver.as_str());
    let words = [
        tree.text(PLATFORM_PROFILE),
        cpufreq("energy_performance_preference"),
        cpufreq("scaling_governor").filter(|_| !chooses),
    ];
    let known = || words.iter().flatten().filter(|word| !word.is_empty());
    let saving = known().find(|word| crate::judge::saves_power(word));
    saving.or_else(|| known().next()).cloned()
}

/// How often each CPU was throttled so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Throttles {
    cpu: u32,
    core: Option<u64>,
    package: Option<u64>,
}

/// The counters of the CPUs this process may use.
pub(super) fn throttles(tree: &Tree, allowed: &BTreeSet<u32>) -> Vec<Throttles> {
    allowed
        .iter()
        .map(|&cpu| {
            let count =
                |file: &str| tree.number(format!("{CPUS}/cpu{cpu}/thermal_throttle/{file}"));
            Throttles {
                cpu,
                core: count("core_throttle_count"),
                package: count("package_throttle_count"),
            }
        })
        .collect()
}

/// Times since `before`, of a core and of a package: of the one that was throttled most often,
/// since CPUs of one core or package count the same event.
pub(super) fn throttled(now: &[Throttles], before: &[Throttles]) -> (Option<u64>, Option<u64>) {
    let most = |count: fn(&Throttles) -> Option<u64>| {
        let since = |now: &Throttles| {
            let then = before.iter().find(|then| then.cpu == now.cpu)?;
            count(now)?.checked_sub(count(then)?)
        };
        now.iter().filter_map(since).max()
    };
    (most(|cpu| cpu.core), most(|cpu| cpu.package))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    fn profile_of(files: &[(&str, &str)]) -> Option<String> {
        let (_folder, tree) = tree(files);
        profile(&tree, &BTreeSet::from([2, 3]))
    }

    const EPP: &str = "sys/devices/system/cpu/cpu2/cpufreq/energy_performance_preference";
    const GOVERNOR: &str = "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
    const DRIVER: &str = "sys/devices/system/cpu/cpu2/cpufreq/scaling_driver";
    const PLATFORM: &str = "sys/firmware/acpi/platform_profile";

    #[test]
    fn the_profile_is_the_platforms_or_else_the_processors() {
        let all = [(PLATFORM, "balanced\n"), (EPP, "balance_performance\n")];
        assert_eq!(profile_of(&all).unwrap(), "balanced");
        assert_eq!(profile_of(&all[1..]).unwrap(), "balance_performance");
        assert_eq!(
            profile_of(&[(GOVERNOR, "schedutil\n")]).unwrap(),
            "schedutil"
        );
        assert_eq!(profile_of(&[]), None);
    }

    #[test]
    fn one_that_saves_energy_is_told_before_one_that_does_not() {
        let files = [(PLATFORM, "balanced\n"), (EPP, "power\n")];
        assert_eq!(profile_of(&files).unwrap(), "power");
    }

    #[test]
    fn the_governor_of_a_processor_that_chooses_its_clock_says_nothing() {
        let files = [(DRIVER, "intel_pstate\n"), (GOVERNOR, "powersave\n")];
        assert_eq!(profile_of(&files), None);
        let files = [(DRIVER, "acpi-cpufreq\n"), (GOVERNOR, "powersave\n")];
        assert_eq!(profile_of(&files).unwrap(), "powersave");
    }

    #[test]
    fn the_core_that_was_throttled_most_counts() {
        let at = |cpu, core, package| Throttles { cpu, core, package };
        let before = [at(0, Some(5), Some(9)), at(1, Some(0), Some(9))];
        let after = [at(0, Some(6), Some(9)), at(1, Some(4), Some(9))];
        assert_eq!(throttled(&after, &before), (Some(4), Some(0)));
        let unknown = [at(0, None, None)];
        assert_eq!(throttled(&unknown, &unknown), (None, None));
    }

    #[test]
    fn counts_are_read_for_the_cpus_that_may_be_used() {
        let (_folder, tree) = tree(&[
            (
                "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
                "8\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
                "3\n",
            ),
        ]);
        let read = throttles(&tree, &BTreeSet::from([1]));
        assert_eq!(
            read,
            [Throttles {
                cpu: 1,
                core: Some(3),
                package: None
            }]
        );
    }
}
