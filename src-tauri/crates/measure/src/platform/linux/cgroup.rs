//! What the cgroups of this process allow: CPU quota and memory, version 1 and 2, up the whole tree.
//!
//! Files and their meaning: the kernel's `admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and
//! `scheduler/sched-bwc.rst`.

use std::path::{Path, PathBuf};

use super::tree::{Tree, value};

/// The groups that bind this process, each from its own level up to the root.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cgroups {
    unified: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
    memory: Vec<PathBuf>,
}

impl Cgroups {
    /// Finds them; where there are none, nothing binds.
    pub(super) fn find(tree: &Tree) -> Self {
        let mounts = tree.text("/proc/self/mountinfo").unwrap_or_default();
        let groups = tree.text("/proc/self/cgroup").unwrap_or_default();
        let levels = |controller: Controller| {
            let mount = mounts
                .lines()
                .filter_map(Mount::parse)
                .find(|mount| mount.has(controller));
            let path = groups.lines().find_map(|line| path_of(line, controller));
            match (mount, path) {
                (Some(mount), Some(path)) => levels(tree, &mount, path),
                _ => Vec::new(),
            }
        };
        Self {
            unified: levels(Controller::Unified),
            cpu: levels(Controller::Named("cpu")),
            memory: levels(Controller::Named("memory")),
        }
    }

    /// Cores' worth of time the tightest quota allows; `None` without one.
    pub(super) fn quota_cores(&self, tree: &Tree) -> Option<f64> {
        let unified = self.unified.iter().filter_map(|level| {
            let text = tree.text(level.join("cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            // The word `max` is no number: no limit.
            ratio(quota.parse().ok()?, period.trim().parse().ok()?)
        });
        let first = self.cpu.iter().filter_map(|level| {
            // -1 is no limit.
            ratio(
                tree.number(level.join("cpu.cfs_quota_us"))?,
                tree.number(level.join("cpu.cfs_period_us"))?,
            )
        });
        unified.chain(first).min_by(f64::total_cmp)
    }

    /// Nanoseconds each level has been throttled so far; empty where no level says.
    pub(super) fn throttled_ns(&self, tree: &Tree) -> Vec<u64> {
        let unified = self.unified.iter().filter_map(|level| {
            let text = tree.text(level.join("cpu.stat"))?;
            value(&text, "throttled_usec")?.checked_mul(1000)
        });
        let first = self.cpu.iter().filter_map(|level| {
            let text = tree.text(level.join("cpu.stat"))?;
            value(&text, "throttled_time")
        });
        unified.chain(first).collect()
    }

    /// The tightest memory limit in bytes; `None` without one.
    pub(super) fn memory_limit(&self, tree: &Tree) -> Option<u64> {
        self.memory_levels(tree).map(|level| level.limit).min()
    }

    /// The least that any level has left: its limit minus what cannot be reclaimed.
    ///
    /// The page cache counts as used in the group's figure and is given back on demand.
    pub(super) fn memory_available(&self, tree: &Tree) -> Option<u64> {
        self.memory_levels(tree)
            .filter_map(|level| Some(level.limit.saturating_sub(level.kept?)))
            .min()
    }

    fn memory_levels<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = MemoryLevel> + 'a {
        let unified = self
            .unified
            .iter()
            .filter_map(|level| unified_memory(tree, level));
        let first = self
            .memory
            .iter()
            .filter_map(|level| first_memory(tree, level));
        unified.chain(first)
    }
}

/// A level that limits memory.
struct MemoryLevel {
    limit: u64,
    /// Bytes in use that cannot be reclaimed.
    kept: Option<u64>,
}

fn unified_memory(tree: &Tree, level: &Path) -> Option<MemoryLevel> {
    // Above `memory.high` the kernel slows the group down, above `memory.max` it kills.
    let limit = ["memory.max", "memory.high"]
        .iter()
        .filter_map(|file| tree.number::<u64>(level.join(file)))
        .min()?;
    let kept = tree
        .number::<u64>(level.join("memory.current"))
        .map(|used| {
            let stat = tree.text(level.join("memory.stat")).unwrap_or_default();
            used.saturating_sub(sum(
                &stat,
                &["active_file", "inactive_file", "slab_reclaimable"],
            ))
        });
    Some(MemoryLevel { limit, kept })
}

fn first_memory(tree: &Tree, level: &Path) -> Option<MemoryLevel> {
    // No limit is written as the largest number of whole pages.
    const NO_LIMIT: u64 = 1 << 62;
    let limit = tree
        .number::<u64>(level.join("memory.limit_in_bytes"))
        .filter(|&limit| limit < NO_LIMIT)?;
    let kept = tree
        .number::<u64>(level.join("memory.usage_in_bytes"))
        .map(|used| {
            let stat = tree.text(level.join("memory.stat")).unwrap_or_default();
            used.saturating_sub(sum(&stat, &["total_active_file", "total_inactive_file"]))
        });
    Some(MemoryLevel { limit, kept })
}

fn sum(stat: &str, keys: &[&str]) -> u64 {
    keys.iter().filter_map(|key| value(stat, key)).sum()
}

fn ratio(quota: i64, period: i64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[derive(Clone, Copy)]
enum Controller {
    /// Version 2.
    Unified,
    /// One controller of version 1.
    Named(&'static str),
}

/// A mounted hierarchy.
struct Mount<'a> {
    /// The group that the mount point shows.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// One line of mountinfo; see `proc_pid_mountinfo(5)`.
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        Some(Self {
            root: left.next()?,
            point: left.next()?,
            kind: right.next()?,
            options: right.nth(1)?,
        })
    }

    fn has(&self, controller: Controller) -> bool {
        match controller {
            Controller::Unified => self.kind == "cgroup2",
            Controller::Named(name) => {
                self.kind == "cgroup" && self.options.split(',').any(|option| option == name)
            }
        }
    }
}

/// The path in a line `4:cpu,cpuacct:/path` of `/proc/self/cgroup`; version 2 is `0::/path`.
fn path_of(line: &str, controller: Controller) -> Option<&str> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let ours = match controller {
        Controller::Unified => number == "0" && controllers.is_empty(),
        Controller::Named(name) => controllers.split(',').any(|c| c == name),
    };
    ours.then_some(path)
}

/// Folders from the group of this process up to the mount point.
fn levels(tree: &Tree, mount: &Mount<'_>, path: &str) -> Vec<PathBuf> {
    let point = Path::new(mount.point);
    // In a container the mount shows only a part of the host's tree, and the path is the host's or
    // lies outside: then the mount point is the nearest level that can be seen.
    let below = Path::new(path)
        .strip_prefix(mount.root)
        .ok()
        .filter(|below| !below.components().any(|c| c.as_os_str() == ".."))
        .map(|below| point.join(below))
        .filter(|folder| tree.is_folder(folder));
    let own = below.unwrap_or_else(|| point.to_owned());
    own.ancestors()
        .take_while(|level| level.starts_with(point))
        .map(Path::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    const V2: (&str, &str) = (
        "proc/self/mountinfo",
        "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
    );

    const V1: (&str, &str) = (
        "proc/self/mountinfo",
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n\
         35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n",
    );

    #[test]
    fn a_quota_of_one_and_a_half_cores_is_found_above_the_own_level() {
        let (_folder, tree) = tree(&[
            V2,
            ("proc/self/cgroup", "0::/user.slice/run-1.scope\n"),
            ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
            (
                "sys/fs/cgroup/user.slice/run-1.scope/cpu.max",
                "max 100000\n",
            ),
        ]);
        assert_eq!(Cgroups::find(&tree).quota_cores(&tree), Some(1.5));
    }

    #[test]
    fn without_a_quota_there_is_none() {
        let (_folder, tree) = tree(&[
            V2,
            ("proc/self/cgroup", "0::/a\n"),
            ("sys/fs/cgroup/a/cpu.max", "max 100000\n"),
        ]);
        let cgroups = Cgroups::find(&tree);
        assert_eq!(cgroups.quota_cores(&tree), None);
        assert_eq!(cgroups.memory_limit(&tree), None);
        assert_eq!(cgroups.memory_available(&tree), None);
        assert_eq!(cgroups.throttled_ns(&tree), [0u64; 0]);
    }

    #[test]
    fn version_1_in_a_container_is_read_at_the_mount_point() {
        let (_folder, tree) = tree(&[
            V1,
            (
                "proc/self/cgroup",
                "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu/cpu.stat",
                "nr_throttled 2\nthrottled_time 123456789\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000000000\n"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "active_file 1\ntotal_active_file 500000000\ntotal_inactive_file 1000000000\n",
            ),
        ]);
        let cgroups = Cgroups::find(&tree);
        assert_eq!(cgroups.quota_cores(&tree), Some(2.0));
        assert_eq!(cgroups.throttled_ns(&tree), [123_456_789]);
        assert_eq!(cgroups.memory_limit(&tree), Some(2_147_483_648));
        // 2147483648 - (2000000000 - 1500000000)
        assert_eq!(cgroups.memory_available(&tree), Some(1_647_483_648));
    }

    #[test]
    fn version_1_without_limits_has_none() {
        let (_folder, tree) = tree(&[
            V1,
            (
                "proc/self/cgroup",
                "9:memory:/docker/abc\n4:cpu:/docker/abc\n",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"),
        ]);
        let cgroups = Cgroups::find(&tree);
        assert_eq!(cgroups.quota_cores(&tree), None);
        assert_eq!(cgroups.memory_limit(&tree), None);
    }

    #[test]
    fn the_page_cache_is_not_used_memory() {
        let (_folder, tree) = tree(&[
            V2,
            ("proc/self/cgroup", "0::/app\n"),
            ("sys/fs/cgroup/app/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/app/memory.high", "max\n"),
            ("sys/fs/cgroup/app/memory.current", "2100000000\n"),
            (
                "sys/fs/cgroup/app/memory.stat",
                "anon 90000000\nfile 2000000000\nactive_file 800000000\n\
                 inactive_file 1200000000\nslab_reclaimable 5000000\n",
            ),
            ("sys/fs/cgroup/app/cpu.stat", "throttled_usec 250\n"),
        ]);
        let cgroups = Cgroups::find(&tree);
        // 2147483648 - (2100000000 - 2005000000)
        assert_eq!(cgroups.memory_available(&tree), Some(2_052_483_648));
        assert_eq!(cgroups.throttled_ns(&tree), [250_000]);
    }

    #[test]
    fn the_tightest_level_counts() {
        let (_folder, tree) = tree(&[
            V2,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/memory.current", "900\n"),
            ("sys/fs/cgroup/a/b/memory.max", "800\n"),
            ("sys/fs/cgroup/a/b/memory.current", "100\n"),
        ]);
        let cgroups = Cgroups::find(&tree);
        assert_eq!(cgroups.memory_limit(&tree), Some(800));
        assert_eq!(
            cgroups.memory_available(&tree),
            Some(100),
            "its parent is nearly full"
        );
    }

    #[test]
    fn of_version_1_too_the_tightest_level_counts() {
        let (_folder, tree) = tree(&[
            (
                "proc/self/mountinfo",
                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("proc/self/cgroup", "9:memory:/a/b\n0::/\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "950\n"),
            (
                "sys/fs/cgroup/memory/a/memory.stat",
                "total_inactive_file 20\n",
            ),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "800\n"),
            ("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "100\n"),
        ]);
        let cgroups = Cgroups::find(&tree);
        assert_eq!(cgroups.memory_limit(&tree), Some(800));
        // 1000 - (950 - 20); its own level would have 700.
        assert_eq!(cgroups.memory_available(&tree), Some(70));
    }

    #[test]
    fn a_path_outside_the_mount_falls_back_to_what_is_seen() {
        let (_folder, tree) = tree(&[
            V2,
            ("proc/self/cgroup", "0::/../../elsewhere\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ]);
        assert_eq!(Cgroups::find(&tree).quota_cores(&tree), Some(0.5));
    }

    #[test]
    fn without_cgroups_nothing_binds() {
        let (_folder, tree) = tree(&[]);
        assert_eq!(Cgroups::find(&tree), Cgroups::default());
    }
}
