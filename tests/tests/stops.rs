//! Asked to end at any moment, and nobody listening: what is measured is kept, nothing stays behind.
#![cfg(target_os = "linux")]
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use twospeed_tests::worker::tiny;
use twospeed_tests::{Desk, Ran, json};

fn model(folder: &Path) -> PathBuf {
    tiny(folder, "llama-dense-Q8_0", |_| {})
}

/// The command line's worker: its child process.
fn worker_of(parent: &Child) -> Pid {
    let parent = parent.id();
    let begun = Instant::now();
    loop {
        let place = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(place).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            return Pid::from_raw(child.parse().unwrap()).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "no worker came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The end of a command that was asked to end: within seconds, whatever it was doing.
fn end(mut child: Child) -> Ran {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!(
                "it goes on: {:?}",
                Ran::from(child.wait_with_output().unwrap())
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_bench_asked_to_end_at_any_moment_keeps_what_is_done() {
    let desk = Desk::new();
    let model = model(desk.path());
    // Loading, anchor, warm-up, repetitions, anchor, the next test: all within a second or so.
    let moments = (0..14).map(|step| Duration::from_millis(step * 90));
    for (moment, signal) in moments.zip([Signal::INT, Signal::TERM].into_iter().cycle()) {
        let child = desk
            .command([
                "bench",
                "-m",
                model.to_str().unwrap(),
                "-t",
                "1",
                "-o",
                "jsonl",
            ])
            .args(["-p", "8,9,10,11,12,13", "-n", "0", "-r", "3"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let worker = worker_of(&child);
        std::thread::sleep(moment);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ran = end(child);
        assert!(test_kill_process(worker).is_err(), "the worker is there");
        if ran.code == Some(0) {
            // The machine was quick, and the request came after the last test.
            continue;
        }
        assert_eq!(ran.code, Some(1), "{moment:?}: {ran:?}");
        assert!(ran.err.contains("Stopped before"), "{}", ran.err);
        assert!(
            !ran.err.contains("Not tried"),
            "who stops knows why: {}",
            ran.err
        );
        let runs = json(&desk.run(["runs", "--json"]).ok());
        let newest = &runs[0];
        assert_eq!(newest["run"]["status"], "stopped", "{moment:?}");
        let done = newest["tests"]["done"].as_u64().unwrap();
        assert_eq!(
            done,
            ran.out.lines().count() as u64,
            "{moment:?}: {}",
            ran.out
        );
    }
}

#[test]
fn words_that_nobody_can_hear_end_nothing() {
    let desk = Desk::new();
    let model = model(desk.path());
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let arguments = [
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-t",
        "1",
        "-o",
        "jsonl",
        "--progress",
    ];
    let output = desk
        .command(arguments)
        .args(["-p", "8,9", "-n", "0", "-r", "2"])
        .stderr(full())
        .output()
        .unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.out.lines().count(), 2);

    let nowhere = desk.path().join("nowhere.gguf");
    let failed = desk
        .command(["inspect".as_ref(), nowhere.as_os_str()])
        .stderr(full())
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1), "its exit code says the same");
}

#[test]
fn a_reader_that_has_read_enough_ends_it_quietly() {
    let desk = Desk::new();
    let model = model(desk.path());
    let model = model.to_str().unwrap();
    desk.run([
        "bench", "-m", model, "-t", "1", "-p", "8", "-n", "0", "-r", "1",
    ])
    .ok();
    for arguments in [
        vec![
            "bench", "-m", model, "-t", "1", "-p", "8,9", "-n", "0", "-r", "1",
        ],
        vec!["generate", "-m", model, "-t", "1", "-p", "0"],
        vec!["inspect", model, "--json"],
        vec!["runs"],
        vec!["export"],
        vec!["bench", "--help"],
    ] {
        let mut child = desk
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("written"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure_with_a_sentence() {
    let desk = Desk::new();
    let model = model(desk.path());
    for arguments in [
        vec!["inspect", model.to_str().unwrap()],
        vec!["export"],
        vec![
            "bench",
            "-m",
            model.to_str().unwrap(),
            "-t",
            "1",
            "-p",
            "8",
            "-n",
            "0",
            "-r",
            "1",
        ],
    ] {
        let output = desk
            .command(&arguments)
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let ran = Ran::from(output);
        assert_eq!(ran.code, Some(1), "{arguments:?}");
        assert!(ran.err.contains("could not be written"), "{}", ran.err);
    }
}
