//! A disk that fills up: what was stored stands, can be looked at, and storing goes on once there
//! is room again.
#![cfg(target_os = "linux")]
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use twospeed_tests::worker::tiny;
use twospeed_tests::{Desk, json, twospeed};

/// In a mount namespace of its own: a tiny disk as the data folder.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=1m none "$DISK" || exit 77
bench() { "$TWOSPEED" bench -m "$MODEL" -t 1 -n 0 -r "$2" -o jsonl -p "$1" 2>>"$SAID" >>"$ROWS"; echo $? >>"$CODES"; }
look() { "$TWOSPEED" runs --json >"$1" 2>>"$SAID"; echo $? >>"$CODES"; }
bench 8 2
cat /dev/zero >"$DISK/other" 2>/dev/null
look "$FULL"
bench 8 2
head -c 750000 /dev/zero >"$DISK/other"
bench 8-40+1 20
cat /dev/zero >"$DISK/more" 2>/dev/null
look "$FILLED"
rm "$DISK/more" "$DISK/other"
bench 8 2
look "$AFTER"
"#;

#[test]
fn a_full_disk_loses_nothing_and_hides_nothing() {
    let desk = Desk::new();
    let disk = desk.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let place = |name: &str| desk.path().join(name);
    let status = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", SCRIPT])
        .env("DISK", &disk)
        .env("TWOSPEED_DATA_DIR", &disk)
        .env("TWOSPEED", twospeed())
        .env("MODEL", tiny(desk.path(), "llama-dense-Q8_0", |_| {}))
        .envs(["SAID", "ROWS", "CODES", "FULL", "FILLED", "AFTER"].map(|name| (name, place(name))))
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("not run: this system lets nobody mount a disk of their own here");
        return;
    }
    let read = |name: &str| std::fs::read_to_string(place(name)).unwrap();
    let (codes, said) = (read("CODES"), read("SAID"));
    let codes: Vec<_> = codes.split_whitespace().collect();
    assert_eq!(codes, ["0", "0", "1", "1", "0", "0", "0"], "{said}");
    assert!(
        said.contains("is full: the history can be looked at"),
        "{said}"
    );
    assert!(said.contains("Free some space"), "{said}");
    assert!(!said.contains("panicked"), "{said}");

    let [full, filled, after] = ["FULL", "FILLED", "AFTER"].map(|name| json(&read(name)));
    let samples = |runs: &serde_json::Value| -> Vec<u64> {
        let runs = runs.as_array().unwrap();
        let samples = runs
            .iter()
            .rev()
            .map(|run| run["samples"].as_u64().unwrap());
        samples.collect()
    };
    assert_eq!(
        samples(&full),
        [2],
        "what lies on a full disk can be looked at"
    );
    // The disk filled up in the middle of a run: it stands as far as it came.
    let [2, made] = samples(&filled)[..] else {
        panic!("{filled:#}");
    };
    assert!(made > 0, "{filled:#}");
    let done = filled[0]["tests"]["done"].as_u64().unwrap();
    let rows = read("ROWS").lines().count() as u64;
    assert_eq!(rows, 1 + done + 1, "what was printed is what is kept");
    // With room again nothing is gone, what was cut short says so, and storing goes on.
    assert_eq!(samples(&after), [2, made, 2]);
    let cut_short = after[1]["run"]["status"].as_str().unwrap();
    assert!(["interrupted", "stopped"].contains(&cut_short), "{after:#}");
}
