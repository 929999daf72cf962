//! Setting a damaged history aside: under another name, never overwritten, with its log.
//!
//! The log (`-wal`) holds what was committed last, so it moves with the file; the index of the log
//! (`-shm`) is rebuilt from it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::notice::Notice;

/// Ends of the files that SQLite keeps beside a database in use.
const LOG: &str = "-wal";
const LOG_INDEX: &str = "-shm";

/// Leaves a mark that a read met damage. Where even that fails, the next read meets it again.
pub(crate) fn mark_damaged(path: &Path) {
    let _ = fs::write(mark(path), "The next start checks the history in full.\n");
}

/// Whether a read met damage since the file was last checked in full.
pub(crate) fn is_marked_damaged(path: &Path) -> bool {
    mark(path).exists()
}

pub(crate) fn remove_mark(path: &Path) {
    let _ = fs::remove_file(mark(path));
}

fn mark(path: &Path) -> PathBuf {
    beside(path, "-damaged")
}

/// Whether the log is there without what it belongs to. SQLite would delete it.
pub(crate) fn is_a_log_alone(path: &Path) -> bool {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    bytes(path) == 0 && bytes(&log(path)) > 0
}

/// Where the log of a history lies, when there is one.
pub(crate) fn log(path: &Path) -> PathBuf {
    beside(path, LOG)
}

/// Moves the history and its log to a free name with a time stamp.
pub(crate) fn set_aside(path: &Path, now: Timestamp, reason: String) -> io::Result<Notice> {
    let kept_as = free_name(path, now);
    for end in ["", LOG, LOG_INDEX] {
        match fs::rename(beside(path, end), beside(&kept_as, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    remove_mark(path);
    Ok(Notice::SetAside {
        path: path.to_owned(),
        kept_as,
        reason,
    })
}

/// `history.damaged-20261130T221151Z.sqlite`, numbered where two were set aside in one second.
fn free_name(path: &Path, now: Timestamp) -> PathBuf {
    let stamp = now.strftime("%Y%m%dT%H%M%SZ");
    (1..)
        .map(|attempt| match attempt {
            1 => format!("history.damaged-{stamp}.sqlite"),
            n => format!("history.damaged-{stamp}-{n}.sqlite"),
        })
        .map(|name| path.with_file_name(name))
        .find(|candidate| {
            ["", LOG, LOG_INDEX]
                .iter()
                .all(|end| !beside(candidate, end).exists())
        })
        .expect("BUG: the integers end before the names do")
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_aside_before_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.sqlite");
        let now: Timestamp = "2026-11-30T22:11:51Z".parse().unwrap();
        let mut kept = Vec::new();
        for content in ["first", "second", "third"] {
            fs::write(&path, content).unwrap();
            fs::write(log(&path), format!("log of the {content}")).unwrap();
            match set_aside(&path, now, "for a test".into()).unwrap() {
                Notice::SetAside { kept_as, .. } => kept.push((content, kept_as)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            kept[0].1.file_name().unwrap(),
            "history.damaged-20261130T221151Z.sqlite"
        );
        for (content, kept_as) in kept {
            assert_eq!(fs::read_to_string(&kept_as).unwrap(), content);
            assert_eq!(
                fs::read_to_string(log(&kept_as)).unwrap(),
                format!("log of the {content}"),
                "the log moves with its file"
            );
        }
        assert!(!path.exists());
    }
}
