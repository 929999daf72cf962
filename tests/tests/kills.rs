//! Whatever ends the worker or its parent, what was measured is kept and nothing stays behind.
#![cfg(target_os = "linux")]
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use twospeed_tests::{Desk, Running, json, smollm2};

/// One measurement at a time on a machine, so these tests take turns instead of waiting for each
/// other inside their patience.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The worker of a running command line: its child process.
fn worker_of(parent: u32) -> Option<Pid> {
    let children =
        std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let pid = children.split_whitespace().next()?.parse().ok()?;
    Pid::from_raw(pid)
}

fn wait_for<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begun.elapsed() < patience,
            "{what} did not come within {patience:?}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a plan of three tests.
fn start(desk: &Desk) -> Running {
    let model = smollm2();
    let model = model.to_str().unwrap();
    Running::start(&mut desk.command([
        "bench",
        "-m",
        model,
        "-p",
        "32,48",
        "-n",
        "8",
        "-r",
        "4",
        "-o",
        "jsonl",
        "--progress",
    ]))
}

/// Samples, tests and integrity as the database itself says.
fn database(folder: &Path) -> serde_json::Value {
    let script = "import sqlite3,sys,json
c=sqlite3.connect(sys.argv[1])
q=lambda s:c.execute(s).fetchall()
print(json.dumps({'integrity':q('PRAGMA integrity_check')[0][0],'foreign':len(q('PRAGMA foreign_key_check')),
'samples':q('select count(*) from sample')[0][0],
'gaps':q('select count(*) from (select test, count(*) n, max(sample_index) m from sample group by test) where m<>n-1')[0][0],
'done':q(\"select count(*) from test where status='done'\")[0][0],
'short':q(\"select count(*) from test where status='done' and (select count(*) from sample where test=test.id)<>repetitions\")[0][0]}))";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(folder.join("history.sqlite"))
        .output()
        .unwrap();
    json(&String::from_utf8(output.stdout).unwrap())
}

#[track_caller]
fn assert_sound(found: &serde_json::Value) {
    assert_eq!(found["integrity"], "ok");
    assert_eq!(found["foreign"], 0);
    assert_eq!(found["gaps"], 0, "samples of a test have no holes: {found}");
    assert_eq!(
        found["short"], 0,
        "a finished test has all its samples: {found}"
    );
}

/// A number in 0..range that differs from run to run; its seed is printed with a failure.
struct Chance(u64);

impl Chance {
    fn below(&mut self, range: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % range
    }
}

/// Sends a signal that ends the process; whether it was there to be hit. Rust's own handler of
/// SIGSEGV takes the first one that comes from outside for a stray, so it is sent twice.
fn kill(process: Pid, signal: Signal) -> bool {
    let hit = kill_process(process, signal).is_ok();
    if signal == Signal::SEGV {
        std::thread::sleep(Duration::from_millis(5));
        let _ = kill_process(process, signal);
    }
    hit
}

#[test]
fn a_worker_killed_at_any_moment_leaves_its_samples_and_the_plan_goes_on() {
    let _turn = turn();
    let kills: u64 = std::env::var("TWOSPEED_KILLS").map_or(8, |count| count.parse().unwrap());
    let signals = [Signal::KILL, Signal::SEGV, Signal::ABORT, Signal::ILL];
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64
        | 1;
    println!("seed {seed}");
    let mut chance = Chance(seed);
    let mut desk = Desk::new();
    let mut samples = 0;
    for round in 0..kills {
        if round % 16 == 15 {
            // Each SIGILL sets a CPU variant aside in its history, and there are not many.
            desk = Desk::new();
            samples = 0;
        }
        let signal = signals[usize::try_from(round % 4).unwrap()];
        let parent = start(&desk);
        let worker = wait_for("the worker", Duration::from_secs(120), || {
            worker_of(parent.pid())
        });
        std::thread::sleep(Duration::from_millis(chance.below(3000)));
        let hit = kill(worker, signal);
        let ran = parent.end();
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        assert!(ran.code == Some(0) || ran.code == Some(1), "{ran:?}");
        if ran.code == Some(1) {
            assert!(hit, "nobody killed it: {}", ran.err);
            let sentence = ran
                .err
                .lines()
                .find(|line| line.contains("engine") || line.contains("memory"));
            assert!(
                sentence.is_some(),
                "no sentence for {signal:?}: {}",
                ran.err
            );
        }
        let found = database(desk.path());
        assert_sound(&found);
        let now = found["samples"].as_u64().unwrap();
        assert!(now >= samples, "samples were lost");
        samples = now;
        // What was printed as done is kept.
        let printed = ran.out.lines().count() as u64;
        assert!(found["done"].as_u64().unwrap() >= printed, "{found}");
    }
    assert!(
        samples > 0,
        "some tests ended before their worker was killed"
    );
}

#[test]
fn a_worker_killed_in_a_test_costs_that_test_alone() {
    let _turn = turn();
    let desk = Desk::new();
    let model = smollm2();
    let parent = Running::start(&mut desk.command([
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-p",
        "16",
        "-n",
        "400,8",
        "-r",
        "5",
        "-o",
        "jsonl",
    ]));
    // The second test takes seconds: it is at work once the first is printed in the database.
    wait_for("the first test", Duration::from_secs(120), || {
        let found = std::panic::catch_unwind(|| database(desk.path())).ok()?;
        (found["samples"].as_u64()? > 5).then_some(())
    });
    let worker = wait_for("the worker", Duration::from_secs(5), || {
        worker_of(parent.pid())
    });
    kill_process(worker, Signal::KILL).unwrap();
    let killed = Instant::now();
    wait_for("a new worker", Duration::from_secs(2), || {
        worker_of(parent.pid()).filter(|pid| *pid != worker)
    });
    assert!(killed.elapsed() < Duration::from_secs(2));
    let ran = parent.end();
    assert_eq!(ran.code, Some(1));
    let done: Vec<_> = ran
        .out
        .lines()
        .map(|line| json(line)["n_gen"].as_u64().unwrap())
        .collect();
    assert_eq!(done.first(), Some(&0));
    assert!(
        !done.contains(&400),
        "the test that was hit is not shown as measured: {done:?}"
    );
    let found = database(desk.path());
    assert_sound(&found);
    assert!(
        found["samples"].as_u64().unwrap() > 5,
        "samples of the test that was hit are kept"
    );
}

#[test]
fn a_cpu_variant_that_dies_is_replaced_and_remembered() {
    let _turn = turn();
    let desk = Desk::new();
    let model = smollm2();
    let arguments = [
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-p",
        "256",
        "-n",
        "0",
        "-r",
        "5",
        "-o",
        "results",
    ];
    let parent = Running::start(&mut desk.command(arguments));
    // The first sample shows that the worker is inside the test.
    wait_for("a sample", Duration::from_secs(120), || {
        let found = std::panic::catch_unwind(|| database(desk.path())).ok()?;
        (found["samples"].as_u64()? > 0).then_some(())
    });
    let worker = worker_of(parent.pid()).unwrap();
    kill_process(worker, Signal::ILL).unwrap();
    let ran = parent.end();
    let first = json(&ran.ok());
    let tests = first["runs"][0]["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 2, "the test was run again");
    let variant = |test: &serde_json::Value| test["end"]["worker"]["variant"]["name"].clone();
    assert_eq!(tests[0]["end"]["code"], "engine_illegal_instruction");
    assert_eq!(tests[1]["end"]["status"], "done");
    assert_ne!(variant(&tests[0]), variant(&tests[1]));
    let warnings = tests[1]["end"]["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning["warning"] == "variant_set_aside"),
        "{warnings:?}"
    );

    let second = json(&desk.run(arguments).ok());
    let tests = second["runs"][0]["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 1, "the dead variant is not tried again");
}

#[test]
fn an_answer_goes_on_with_the_next_variant_when_one_dies() {
    let _turn = turn();
    let desk = Desk::new();
    let model = smollm2();
    let model = model.to_str().unwrap();
    // Long enough to be hit while it is read.
    let prompt = "The sea is wide and the road is long. ".repeat(120);
    let ask = ["generate", "-m", model, "-n", "4", "--json", "-p", &prompt];
    let parent = Running::start(&mut desk.command(ask));
    let worker = wait_for("the worker", Duration::from_secs(120), || {
        worker_of(parent.pid())
    });
    std::thread::sleep(Duration::from_millis(800));
    kill_process(worker, Signal::ILL).unwrap();
    let ran = parent.end();
    assert!(ran.err.contains("SIGILL"), "{}", ran.err);
    let first = json(&ran.ok())["variant"].clone();
    let second = json(&desk.run(ask).ok())["variant"].clone();
    assert_eq!(first, second, "the dead variant is not tried again");
    let best = json(&Desk::new().run(ask).ok())["variant"].clone();
    assert_ne!(first, best);
}

#[test]
fn a_killed_parent_leaves_no_worker_and_a_run_marked_as_cut_off() {
    let _turn = turn();
    let desk = Desk::new();
    let parent = start(&desk);
    let worker = wait_for("the worker", Duration::from_secs(120), || {
        worker_of(parent.pid())
    });
    std::thread::sleep(Duration::from_millis(700));
    parent.kill();
    wait_for("the worker's end", Duration::from_secs(2), || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/stat", worker.as_raw_nonzero())).ok();
        status
            .is_none_or(|status| status.contains(") Z "))
            .then_some(())
    });
    let runs = desk.run(["runs", "--json"]);
    assert!(runs.err.contains("cut off"), "{}", runs.err);
    assert_eq!(json(&runs.ok())[0]["run"]["status"], "interrupted");
    assert_sound(&database(desk.path()));
}

#[test]
fn a_worker_out_of_memory_is_told_from_a_crash() {
    let _turn = turn();
    let Some(group) = MemoryGroup::new(24 << 20) else {
        println!(
            "not run: this system lets nobody limit a process's memory here (no writable cgroup)"
        );
        return;
    };
    let desk = Desk::new();
    let model = smollm2();
    let parent = Running::start(&mut desk.command([
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-p",
        "8,512",
        "-n",
        "0",
        "-r",
        "1",
        "-o",
        "jsonl",
    ]));
    let worker = wait_for("the worker", Duration::from_secs(120), || {
        worker_of(parent.pid())
    });
    group.add(worker);
    let ran = parent.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("memory"), "{}", ran.err);
    assert_sound(&database(desk.path()));
}

/// A cgroup with a memory limit, removed with its value.
struct MemoryGroup(std::path::PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> Option<Self> {
        for (root, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let folder = Path::new(root).join(format!("twospeed-test-{}", std::process::id()));
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if std::fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }

    fn add(&self, process: Pid) {
        std::fs::write(
            self.0.join("cgroup.procs"),
            process.as_raw_nonzero().to_string(),
        )
        .unwrap();
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
