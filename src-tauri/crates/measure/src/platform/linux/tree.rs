//! Reads the system's files, below `/` or below a test's folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where `/proc`, `/sys` and `/etc` are.
#[derive(Debug, Clone)]
pub(super) struct Tree(PathBuf);

impl Tree {
    /// The system itself.
    pub(super) fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file without the white space around it.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.at(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that holds one number.
    pub(super) fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder, in order; `None` when it cannot be read.
    pub(super) fn names(&self, folder: impl AsRef<Path>) -> Option<Vec<String>> {
        let mut names: Vec<String> = fs::read_dir(self.at(folder))
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        Some(names)
    }

    pub(super) fn is_folder(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).is_dir()
    }
}

/// The value of `key` in lines of `key value` or `key: value unit`.
pub(super) fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        (name.strip_suffix(':').unwrap_or(name) == key)
            .then(|| words.next()?.parse().ok())
            .flatten()
    })
}

/// The numbers of a list like `0-3,8,10-11`.
pub(super) fn list(text: &str) -> Vec<u32> {
    // A list is never longer than this: it keeps a broken file from becoming a long loop.
    const MAX: u32 = 1 << 16;
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.trim().split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().ok()?;
            let last: u32 = last.trim().parse().ok()?;
            (last < MAX).then_some(first..=last)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A folder with the given files, as a system to read.
    pub(in super::super) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let tree = Tree(folder.path().to_owned());
        (folder, tree)
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        assert_eq!(list("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list("0"), [0]);
        assert_eq!(list(""), [0u32; 0]);
        assert_eq!(list("nonsense,5,3-1,0-4294967295"), [5]);
    }

    #[test]
    fn values_are_found_by_their_whole_name() {
        let meminfo = "MemTotal:       24576 kB\nMemFree:  12 kB\n";
        assert_eq!(value(meminfo, "MemTotal"), Some(24576));
        assert_eq!(value(meminfo, "Mem"), None);
        assert_eq!(value("inactive_file 7\nfile 9", "file"), Some(9));
    }

    #[test]
    fn a_missing_file_is_unknown() {
        let (_folder, tree) = tree(&[("proc/loadavg", "0.5 0.4 0.3 1/2 3\n")]);
        assert_eq!(tree.text("/proc/loadavg").unwrap(), "0.5 0.4 0.3 1/2 3");
        assert_eq!(tree.text("/proc/missing"), None);
        assert_eq!(tree.number::<u32>("/proc/loadavg"), None);
    }
}
