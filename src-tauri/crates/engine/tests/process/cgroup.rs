//! Linux's memory cgroups, where this process may make one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A memory cgroup with a limit. Its processes must be gone when it is dropped.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where it may not.
    pub fn new(limit: u64) -> Option<Self> {
        let name = format!("twospeed-test-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory").join(&name);
        let second = Path::new("/sys/fs/cgroup").join(&name);
        let limit = limit.to_string();
        if Path::new("/sys/fs/cgroup/memory").is_dir() {
            fs::create_dir(&first).ok()?;
            let cgroup = Self(first);
            fs::write(cgroup.0.join("memory.limit_in_bytes"), &limit).ok()?;
            // Only where swap is counted.
            let _ = fs::write(cgroup.0.join("memory.memsw.limit_in_bytes"), &limit);
            Some(cgroup)
        } else {
            fs::create_dir(&second).ok()?;
            let cgroup = Self(second);
            fs::write(cgroup.0.join("memory.max"), &limit).ok()?;
            let _ = fs::write(cgroup.0.join("memory.swap.max"), "0");
            Some(cgroup)
        }
    }

    /// Moves a process into it.
    pub fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel needs a moment to forget the processes that were there.
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
