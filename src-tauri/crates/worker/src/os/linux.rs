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

/// Memory that can be had without pushing anything out: MemAvailable, or less where a cgroup
/// allows less. Page cache counts as free in both.
pub fn memory_available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = field(&meminfo, "MemAvailable:")? * 1024;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .map(|path| Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')));
    // A limit holds for everything below it.
    let limits = group.iter().flat_map(|path| path.ancestors());
    let allowed = limits
        .take_while(|path| path.starts_with("/sys/fs/cgroup"))
        .filter_map(cgroup_available)
        .min();
    Some(allowed.map_or(machine, |allowed| allowed.min(machine)))
}

fn cgroup_available(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    // "max" is no number: no limit.
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let current: u64 = read("memory.current")?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache = ["inactive_file ", "active_file ", "slab_reclaimable "]
        .iter()
        .filter_map(|name| field(&stat, name))
        .sum();
    Some(limit.saturating_sub(current.saturating_sub(cache)))
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
