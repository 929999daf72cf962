//! While a section is timed, no thread of the command line wakes up: by its counters, not by time.
#![cfg(target_os = "linux")]
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use twospeed_tests::{Desk, smollm2};

/// How often each thread of a process went to sleep so far, by the thread's number.
fn switches(process: u32) -> BTreeMap<u32, u64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let threads = tasks.map(|task| {
        let task = task.unwrap();
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let mut lines = status.lines();
        let count = lines
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .unwrap();
        let number = task.file_name().to_str().unwrap().parse().unwrap();
        (number, count.trim().parse().unwrap())
    });
    threads.collect()
}

#[test]
fn the_command_line_sleeps_through_a_timed_section_though_it_reads_the_machine_around_it() {
    let desk = Desk::new();
    let model = smollm2();
    let mut child = desk
        .command(["bench", "-m", model.to_str().unwrap(), "--progress"])
        .args(["-p", "0", "-n", "384", "-r", "2", "-t", "1", "-o", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut watched = 0;
    while let Some(Ok(line)) = said.next() {
        if !line.contains("repetition ") {
            continue;
        }
        // It says so, reads the machine, lets the engine go and sleeps.
        std::thread::sleep(Duration::from_millis(200));
        let before = switches(child.id());
        std::thread::sleep(Duration::from_millis(600));
        let after = switches(child.id());
        assert_eq!(
            before, after,
            "a thread woke, began or ended in what is measured"
        );
        watched += 1;
    }
    assert_eq!(watched, 2, "both sections were watched");
    let output = child.wait_with_output().unwrap();
    let rows = String::from_utf8(output.stdout).unwrap();
    let row: serde_json::Value = serde_json::from_str(rows.trim()).unwrap();
    let shortest = row["samples_ns"].as_array().unwrap().iter();
    let shortest = shortest.map(|ns| ns.as_u64().unwrap()).min().unwrap();
    assert!(
        shortest > 900_000_000,
        "the sections went on while they were watched: {shortest} ns"
    );
}
