//! Linux.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Usage;
use super::unix::{engine_path, no_core_file, resources};

/// What the process does to itself before anything else.
pub fn harden() {
    // The kernel ends this process before the app when memory runs out. Where it may not be
    // written, the app has the same chance as this process, no worse.
    let _ = fs::write("/proc/self/oom_score_adj", "800");
    no_core_file();
    // A limit of 0 does not keep a core dump from being piped to a program; this does. After the
    // line above: from here on, /proc/self belongs to root.
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

/// Counters of now, of this thread and this process.
pub fn usage() -> Usage {
    Usage {
        involuntary_switches: resources(libc::RUSAGE_THREAD)
            .and_then(|usage| u64::try_from(usage.ru_nivcsw).ok()),
        major_faults: resources(libc::RUSAGE_SELF)
            .and_then(|usage| u64::try_from(usage.ru_majflt).ok()),
    }
}

/// CPUs this process may run on; `None` when it is not known.
pub fn allowed_cpus() -> Option<Vec<usize>> {
    // SAFETY: all-zero is an empty set, and the kernel fills it.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable and its size is its own.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return None;
    }
    let all = 0..8 * size_of_val(&set);
    // SAFETY: every index is inside the set.
    Some(
        all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
            .collect(),
    )
}

/// Memory that can be had without pushing anything out: MemAvailable, or less where a cgroup (of
/// version 1 or 2, this process's own or one above it) allows less. Page cache counts as free in
/// all of them, swap in none.
pub fn memory_available() -> Option<u64> {
    available_in(Path::new("/"))
}

fn available_in(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let machine = field(&meminfo, "MemAvailable:")?.checked_mul(1024)?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let levels = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
        let (mount, version) = match controllers {
            Some("") => ("sys/fs/cgroup", Version::Two),
            Some(names) if names.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", Version::One)
            }
            _ => return Vec::new(),
        };
        let mount = root.join(mount);
        let group = mount.join(path.unwrap_or_default().trim_start_matches('/'));
        // A limit holds for everything below it. In a container the path may be the host's: then
        // the mount point is the nearest level that can be seen.
        let levels = group
            .ancestors()
            .take_while(|level| level.starts_with(&mount));
        levels.map(|level| (level.to_path_buf(), version)).collect()
    });
    let allowed = levels.filter_map(|(level, version)| left_in(&level, version));
    Some(
        allowed
            .min()
            .map_or(machine, |allowed| allowed.min(machine)),
    )
}

#[derive(Debug, Clone, Copy)]
enum Version {
    One,
    Two,
}

/// What a group has left below its limit; `None` without one.
fn left_in(group: &Path, version: Version) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    // "max" is no number: no limit. Version 1 writes the largest number of whole pages.
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limits, used, cache): (&[&str], _, &[&str]) = match version {
        Version::One => (
            &["memory.limit_in_bytes"],
            "memory.usage_in_bytes",
            &["total_inactive_file ", "total_active_file "],
        ),
        Version::Two => (
            // Above `high` the kernel slows the group down, above `max` it kills.
            &["memory.max", "memory.high"],
            "memory.current",
            &["inactive_file ", "active_file ", "slab_reclaimable "],
        ),
    };
    let limit = limits.iter().filter_map(|name| number(name)).min()?;
    let used = number(used)?;
    let stat = read("memory.stat").unwrap_or_default();
    let cached: u64 = cache.iter().filter_map(|name| field(&stat, name)).sum();
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Share of files that lies in the page cache, 0 to 1; `None` when the kernel does not tell.
pub fn resident_share(files: &[PathBuf]) -> Option<f32> {
    let (mut resident, mut looked_at) = (0_u64, 0_u64);
    for path in files {
        let file = File::open(path).ok()?;
        if !may_ask_residency(path, &file) {
            return None;
        }
        let (in_cache, pages) = resident_pages(&file)?;
        resident += in_cache;
        looked_at += pages;
    }
    (looked_at > 0).then(|| (resident as f64 / looked_at as f64) as f32)
}

/// For files that are neither the caller's nor writable, the kernel answers "all of it" (since 5.2,
/// against spying on the page cache of others).
fn may_ask_residency(path: &Path, file: &File) -> bool {
    // SAFETY: plain system calls, with a C string.
    let (user, writable) = unsafe {
        let writable = engine_path(path.as_os_str())
            .is_some_and(|path| libc::access(path.as_ptr(), libc::W_OK) == 0);
        (libc::geteuid(), writable)
    };
    user == 0 || writable || file.metadata().is_ok_and(|meta| meta.uid() == user)
}

/// Pages in the cache and pages looked at. Of a large file a sample of stretches is looked at: the
/// page table of 100 GB would take longer to read than the answer is worth.
fn resident_pages(file: &File) -> Option<(u64, u64)> {
    const STRETCH: u64 = 16 << 20;
    const STRETCHES: u64 = 64;
    let length = file.metadata().ok()?.len();
    // SAFETY: a plain system call.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    let step = (length / STRETCHES).next_multiple_of(page).max(STRETCH);
    let (mut resident, mut pages) = (0, 0);
    let mut start = 0;
    while start < length {
        let bytes = usize::try_from(STRETCH.min(length - start)).ok()?;
        // SAFETY: a new mapping at an address the kernel chooses; nothing reads through it.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                libc::off_t::try_from(start).ok()?,
            )
        };
        if at == libc::MAP_FAILED {
            return None;
        }
        let mut flags = vec![0_u8; bytes.div_ceil(usize::try_from(page).ok()?)];
        // SAFETY: the range is the mapping made above, and `flags` holds a byte for each page.
        let told = unsafe { libc::mincore(at, bytes, flags.as_mut_ptr()) } == 0;
        // SAFETY: the mapping made above, used no more.
        unsafe { libc::munmap(at, bytes) };
        if !told {
            return None;
        }
        resident += flags.iter().filter(|flag| **flag & 1 != 0).count() as u64;
        pages += flags.len() as u64;
        start += step;
    }
    Some((resident, pages))
}

/// Asks the kernel to forget what it holds of the files. It may decline (a mapped page stays):
/// [`resident_share`] tells what came of it.
pub fn drop_page_cache(files: &[PathBuf]) -> io::Result<()> {
    for path in files {
        let file = File::open(path)?;
        // Pages not yet written cannot be dropped; a file system that cannot sync keeps them.
        let _ = file.sync_data();
        // SAFETY: a plain system call on an open file.
        let error =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
    }
    Ok(())
}

/// Asks for pages of 2 MiB, so that looking up addresses does not slow reading down. A wish only.
pub fn ask_for_large_pages<T>(memory: &mut [T]) {
    const PAGE: usize = 4096;
    let range = memory.as_mut_ptr_range();
    let start = range.start.cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let length = size_of_val(memory).saturating_sub(skipped);
    // SAFETY: the range lies inside `memory`, and the advice changes no content.
    unsafe {
        libc::madvise(
            start.wrapping_add(skipped).cast(),
            length,
            libc::MADV_HUGEPAGE,
        )
    };
}

/// Keeps memory that is not written yet in small pages, as those of a mapped file are, where the
/// system gives large ones unasked. A wish only.
pub fn keep_small_pages(memory: *mut u8, bytes: usize) {
    const PAGE: usize = 4096;
    let skipped = memory.align_offset(PAGE);
    let length = bytes.saturating_sub(skipped);
    // SAFETY: the advice changes no content; where the range is not the process's, the system
    // refuses.
    unsafe {
        libc::madvise(
            memory.wrapping_add(skipped).cast(),
            length,
            libc::MADV_NOHUGEPAGE,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_just_written_is_resident() {
        let folder = std::env::temp_dir().join(format!("twospeed-resident-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, vec![1; 3 << 20]).unwrap();
        let share = resident_share(std::slice::from_ref(&file));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(share, Some(1.0));
    }

    #[test]
    fn memory_that_is_to_stay_in_small_pages_is_marked_so() {
        let mut memory: Vec<u8> = Vec::with_capacity(4 << 20);
        keep_small_pages(memory.as_mut_ptr(), memory.capacity());
        let middle = memory.as_ptr() as usize + (2 << 20);
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let flags = maps.lines().find(|line| {
            let range = line.split(' ').next().and_then(|range| {
                let (from, to) = range.split_once('-')?;
                let address = |text| usize::from_str_radix(text, 16).ok();
                Some(address(from)?..address(to)?)
            });
            if let Some(range) = range {
                inside = range.contains(&middle);
            }
            inside && line.starts_with("VmFlags:")
        });
        // "nh": no huge pages.
        assert!(flags.unwrap().contains(" nh"), "{flags:?}");
    }

    #[test]
    fn fields_of_both_kinds_of_table_are_read() {
        assert_eq!(
            field("MemFree: 1 kB\nMemAvailable:   20 kB\n", "MemAvailable:"),
            Some(20)
        );
        assert_eq!(
            field("anon 5\ninactive_file 7\n", "inactive_file "),
            Some(7)
        );
        assert_eq!(field("anon 5\n", "active_file "), None);
    }

    /// A system of these files.
    fn available(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("twospeed-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let available = available_in(&root);
        let _ = fs::remove_dir_all(&root);
        available
    }

    // 8,192,000 kB are 8,388,608,000 bytes; the swap beside them is none of it.
    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 16384000 kB\nMemFree: 100 kB\nMemAvailable: 8192000 kB\nSwapFree: 9999999 kB\n",
    );

    #[test]
    fn without_a_limit_the_kernels_own_figure_counts() {
        assert_eq!(available("none", &[MEMINFO]), Some(8_388_608_000));
        let no_limit = [
            MEMINFO,
            ("proc/self/cgroup", "0::/app\n"),
            ("sys/fs/cgroup/app/memory.max", "max\n"),
            ("sys/fs/cgroup/app/memory.current", "1000\n"),
        ];
        assert_eq!(available("max", &no_limit), Some(8_388_608_000));
        assert_eq!(available("nothing", &[("proc/other", "")]), None);
    }

    #[test]
    fn a_group_above_may_have_less_left_than_the_own_one() {
        let nested = [
            MEMINFO,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/memory.max", "1000000\n"),
            ("sys/fs/cgroup/outer/memory.current", "990000\n"),
            (
                "sys/fs/cgroup/outer/memory.stat",
                "anon 1\ninactive_file 40000\nactive_file 20000\n",
            ),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/inner/memory.high", "500000\n"),
            ("sys/fs/cgroup/outer/inner/memory.current", "100000\n"),
        ];
        // 1,000,000 - (990,000 - 60,000 of cache); the inner group would have 400,000.
        assert_eq!(available("nested", &nested), Some(70_000));
    }

    #[test]
    fn version_1_is_read_with_its_own_files() {
        let groups = ("proc/self/cgroup", "9:cpu:/x\n4:memory:/docker/a\n0::/\n");
        let limited = [
            MEMINFO,
            groups,
            (
                "sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes",
                "2000000\n",
            ),
            (
                "sys/fs/cgroup/memory/docker/a/memory.usage_in_bytes",
                "1500000\n",
            ),
            (
                "sys/fs/cgroup/memory/docker/a/memory.stat",
                "active_file 7\ntotal_active_file 300000\ntotal_inactive_file 200000\n",
            ),
            // The largest number of whole pages: no limit.
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "9000000\n"),
        ];
        assert_eq!(available("first", &limited), Some(1_000_000));
        // In a container the mount point itself is the group.
        let contained = [
            MEMINFO,
            groups,
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n"),
        ];
        assert_eq!(available("contained", &contained), Some(1_500_000));
    }

    #[test]
    fn some_memory_is_available_and_no_more_than_the_machine_has() {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
        let total = field(&meminfo, "MemTotal:").unwrap() * 1024;
        let available = memory_available().unwrap();
        assert!(available > 0 && available < total);
    }

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(!allowed_cpus().unwrap().is_empty());
    }
}
