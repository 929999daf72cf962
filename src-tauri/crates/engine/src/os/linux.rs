//! Linux: who was killed for want of memory, and what is set on a process from outside.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// How much sooner than us the kernel ends the worker when memory runs out (scale of -1000 to 1000).
const SOONER: i32 = 500;

/// Sets what a process can be given by another: the kernel prefers it to us when memory runs out,
/// and no core is dumped, which would delay the news of its death by the time to write gigabytes.
///
/// What the system refuses stays as it is: the worker runs without it.
pub(crate) fn settle(pid: u32) {
    let ours = fs::read_to_string("/proc/self/oom_score_adj")
        .ok()
        .and_then(|text| text.trim().parse::<i32>().ok())
        .unwrap_or(0);
    let worse = (ours + SOONER).min(1000).to_string();
    let _ = fs::write(format!("/proc/{pid}/oom_score_adj"), worse);

    // 1 byte, not 0: for a core that is piped to a program, only 1 means "none" (core(5)).
    let none = Rlimit {
        current: Some(1),
        maximum: Some(1),
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if pid.is_some() {
        let _ = prlimit(pid, Resource::Core, none);
    }
}

/// How many processes the kernel had killed for memory when we looked.
///
/// A process killed so dies of SIGKILL like any other; that the count rose meanwhile tells them
/// apart. The count of the worker's own memory cgroup is trusted alone where it can be read, since
/// the one of the whole system rises for other people's processes too.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OomCounters {
    file: PathBuf,
    count: Option<u64>,
}

impl OomCounters {
    /// The counter that a kill of this process would raise, as it stands now.
    pub(crate) fn of(pid: u32) -> Self {
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let file = counter_files(&cgroups)
            .into_iter()
            .chain([PathBuf::from("/proc/vmstat")])
            .find(|file| count(file).is_some())
            .unwrap_or_default();
        Self {
            count: count(&file),
            file,
        }
    }

    /// Whether it has risen since.
    pub(crate) fn rose(&self) -> bool {
        matches!((self.count, count(&self.file)), (Some(before), Some(now)) if now > before)
    }
}

/// Where the memory cgroup of a process keeps its count, by the text of its `/proc/PID/cgroup`.
fn counter_files(cgroups: &str) -> Vec<PathBuf> {
    let below = |root: &str, path: &str, file: &str| {
        Path::new(root)
            .join(path.trim_start_matches('/'))
            .join(file)
    };
    let mut files = Vec::new();
    for line in cgroups.lines() {
        // `4:memory:/user.slice` is the first version, `0::/user.slice` the second.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.split(',').any(|name| name == "memory") {
            files.push(below("/sys/fs/cgroup/memory", path, "memory.oom_control"));
        } else if controllers.is_empty() {
            files.push(below("/sys/fs/cgroup", path, "memory.events"));
        }
    }
    files
}

/// The number behind `oom_kill` in a file of names and numbers.
fn count(file: &Path) -> Option<u64> {
    fs::read_to_string(file)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))
        .and_then(|number| number.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_the_memory_cgroup_is_found_in_both_versions() {
        let second = "0::/user.slice/app.scope\n";
        assert_eq!(
            counter_files(second),
            [PathBuf::from(
                "/sys/fs/cgroup/user.slice/app.scope/memory.events"
            )]
        );
        let first = "9:name=systemd:/\n4:memory:/box/7\n0::/\n";
        assert_eq!(
            counter_files(first),
            [
                PathBuf::from("/sys/fs/cgroup/memory/box/7/memory.oom_control"),
                PathBuf::from("/sys/fs/cgroup/memory.events"),
            ]
        );
        assert!(counter_files("nonsense\n").is_empty());
    }

    #[test]
    fn a_count_that_cannot_be_read_has_not_risen() {
        let counters = OomCounters {
            file: PathBuf::from("/nowhere"),
            count: None,
        };
        assert!(!counters.rose());
    }

    #[test]
    fn a_count_rises_with_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("memory.events");
        fs::write(&file, "low 0\noom 1\noom_kill 2\noom_group_kill 0\n").unwrap();
        let counters = OomCounters {
            count: count(&file),
            file: file.clone(),
        };
        assert_eq!(counters.count, Some(2));
        assert!(!counters.rose());
        fs::write(&file, "low 0\noom 2\noom_kill 3\noom_group_kill 0\n").unwrap();
        assert!(counters.rose());
    }
}
