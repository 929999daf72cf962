//! Processes killed while they write, at moments that nobody chose.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlx::{ConnectOptions, Connection};
use twospeed_history::{History, RunFilter, RunStatus};
use twospeed_measure::{Recorder, TestStatus, platform};
use uuid::Uuid;

use crate::{open, records};

/// Set for the child process: the data folder it writes to.
const FOLDER: &str = "TWOSPEED_KILL_TEST_FOLDER";

/// A process that measures until it is killed. It says each sample on stdout once it is stored.
#[test]
#[ignore = "a process of the test below, not a test"]
fn measures_until_it_is_killed() {
    let folder = std::env::var_os(FOLDER).expect("only the test below starts this");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let history = open(Path::new(&folder)).await;
        let mut run = records::run();
        run.machine = platform::machine();
        history.run_started(&run).await.unwrap();
        for position in 0.. {
            let model = records::model("aa", "Smol");
            let test = records::test(run.id, position, model, records::spec(512, 0));
            history.test_started(&test).await.unwrap();
            for index in 0..5 {
                let sample = records::sample(&test, index);
                history.sample(&sample).await.unwrap();
                let line = format!("stored {} {index} {}\n", test.id, sample.sample.ns);
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
            let end = records::end(&test, TestStatus::Done);
            history.test_ended(&end).await.unwrap();
        }
    });
}

fn start_measuring(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::measures_until_it_is_killed"])
        .args(["--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Kills the process and gives the samples it had said were stored: test, index, duration.
fn kill(mut process: Child) -> Vec<(Uuid, u32, u64)> {
    process.kill().unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(!output.status.success(), "it ended by itself");
    let said = String::from_utf8(output.stdout).unwrap();
    // A last line without its end was cut by the kill: nothing was promised.
    let whole_lines = said.rsplit_once('\n').map_or("", |(lines, _)| lines);
    (whole_lines.lines())
        .filter_map(|line| line.split_once("stored "))
        .map(|(_, said)| {
            let mut words = said.split(' ');
            let mut word = || words.next().unwrap();
            let test = word().parse().unwrap();
            (test, word().parse().unwrap(), word().parse().unwrap())
        })
        .collect()
}

/// Numbers without a pattern (a linear congruence after Knuth), the same in every test run.
fn moments() -> impl FnMut() -> Duration {
    let mut state: u64 = 20_261_130;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_micros((state >> 33) % 100_000)
    }
}

/// `TWOSPEED_KILLS` sets how many processes are killed.
fn kills() -> usize {
    std::env::var("TWOSPEED_KILLS").map_or(20, |kills| kills.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_lose_no_sample_they_had_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut moment = moments();
    let mut stored = Vec::new();
    let mut rounds = 0;
    // A slow machine stores little before a kill: it gets more of them.
    while rounds < kills().div_ceil(2) || (stored.len() <= kills() && rounds < 10 * kills()) {
        rounds += 1;
        // Two at a time: one dies while the other writes.
        let (one, other) = (
            start_measuring(folder.path()),
            start_measuring(folder.path()),
        );
        std::thread::sleep(moment());
        stored.extend(kill(one));
        std::thread::sleep(moment());
        stored.extend(kill(other));
        let history = open(folder.path()).await;
        all_are_there(&history, &stored).await;
        history.close().await;
        is_sound(history.path()).await;
    }
    assert!(
        stored.len() > kills(),
        "only {} samples: too little to mean anything",
        stored.len()
    );
}

async fn all_are_there(history: &History, stored: &[(Uuid, u32, u64)]) {
    let runs = history.whole_runs(&RunFilter::default()).await.unwrap();
    assert!(
        runs.iter()
            .all(|run| run.run.status == RunStatus::Interrupted),
        "every run here was cut off"
    );
    let samples: HashMap<_, _> = (runs.iter())
        .flat_map(|run| &run.tests)
        .flat_map(|test| &test.samples)
        .map(|record| ((record.test, record.sample.index), record.sample.ns))
        .collect();
    for (test, index, ns) in stored {
        assert_eq!(
            samples.get(&(*test, *index)),
            Some(ns),
            "sample {index} of {test}"
        );
    }
}

async fn is_sound(path: &Path) {
    let mut connection = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    let found: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(found, "ok");
    let strays = sqlx::query("PRAGMA foreign_key_check")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert!(strays.is_empty());
    connection.close().await.unwrap();
}
