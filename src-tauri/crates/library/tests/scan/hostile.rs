//! Folders that mean harm.

use crate::*;

/// Malformed files, each with one thing wrong, and sound ones that hold no model.
fn malformed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/gguf/hostile")
}

#[test]
fn every_malformed_file_is_a_row_and_none_ends_the_scan() {
    let expectations = fs::read_to_string(malformed().join("expectations.csv")).unwrap();
    let started = std::time::Instant::now();
    let scan = scanned(&malformed());
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(scan.items.len(), expectations.lines().count() - 1);
    assert!(seconds < 0.1 * scan.items.len() as f64);
    for item in &scan.items {
        // name, should_load, ...: none of them holds a model.
        let row = expectations
            .lines()
            .find(|row| row.starts_with(&item.label))
            .unwrap();
        let role = match row.split(',').nth(1) {
            Some("yes") => Role::Helper,
            _ => Role::Broken,
        };
        assert_eq!(item.role(), role, "{row}");
        let sentence = item.hindrance().unwrap();
        assert!(
            !sentence.is_empty() && !sentence.contains('\n'),
            "{sentence}"
        );
    }
}

#[cfg(unix)]
#[test]
fn names_that_mean_harm_are_shown_harmless_and_open() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(250) + ".gguf";
    let names: [(&[u8], &str); 6] = [
        (b"\x1b[31mred\n.gguf", "␛[31mred␊.gguf"),
        (
            b"<img src=x onerror=alert(1)>.gguf",
            "<img src=x onerror=alert(1)>.gguf",
        ),
        (b"\xff\xfe.gguf", "\u{fffd}\u{fffd}.gguf"),
        (
            "a\u{202e}fugg.exe.gguf".as_bytes(),
            "a<U+202E>fugg.exe.gguf",
        ),
        (
            b"$(reboot) `id` ; -rf *.gguf",
            "$(reboot) `id` ; -rf *.gguf",
        ),
        (long.as_bytes(), &long),
    ];
    for (name, _) in names {
        put(folder.path().join(OsStr::from_bytes(name)), model("M"));
    }
    let scan = scanned(folder.path());
    let mut wanted: Vec<&str> = names.iter().map(|(_, shown)| *shown).collect();
    let mut seen = labels(&scan);
    wanted.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, wanted);
    for item in &scan.items {
        assert_eq!(
            item.hindrance(),
            None,
            "{} opens under its real name",
            item.label
        );
        assert!(item.path.exists());
    }
}

#[cfg(unix)]
#[test]
fn pipes_sockets_and_sparse_giants_do_not_hold_it_up() {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.gguf");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let _socket = UnixListener::bind(folder.path().join("socket.gguf")).unwrap();
    let giant = fs::File::create(folder.path().join("giant.gguf")).unwrap();
    giant.set_len(1 << 40).unwrap();
    let scan = scanned(folder.path());
    assert_eq!(labels(&scan), ["giant.gguf"], "what is no file is no model");
    assert_eq!(scan.items[0].role(), Role::Broken);
}

/// Root may read everything: then there is nothing to see here.
#[cfg(unix)]
#[test]
fn a_folder_without_permission_is_a_note_and_the_others_are_listed() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    put(folder.path().join("closed/m.gguf"), model("M"));
    put(folder.path().join("open/m.gguf"), model("M"));
    let closed = folder.path().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let readable = fs::read_dir(&closed).is_ok();
    let scan = scanned(folder.path());
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    if readable {
        return;
    }
    assert_eq!(labels(&scan), ["m.gguf"]);
    assert_eq!(
        scan.notes,
        [Note::Unreadable {
            folder: closed,
            reason: "permission denied".into()
        }]
    );
}
