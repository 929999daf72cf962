//! A parent of its own, so that it can be killed, starved and measured.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::*;

/// A process that keeps one session with a stand-in. It is killed when dropped.
pub struct Parent {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
    worker: u32,
}

impl Parent {
    pub fn with(fault: &str, prepare: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut process = prepare(&mut Command::new(STAND_IN))
            .args(["parent", fault])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            said: BufReader::new(process.stdout.take().unwrap()).lines(),
            process,
            worker: 0,
        }
    }

    pub fn of(fault: &str) -> Self {
        Self::with(fault, |command| command)
    }

    /// Lets it start its worker.
    pub fn go(&mut self) {
        writeln!(self.process.stdin.as_ref().unwrap()).unwrap();
    }

    /// The next thing it says under this name.
    pub fn hear(&mut self, name: &str) -> Value {
        for line in self.said.by_ref() {
            let mut value: Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert!(value["error"].is_null(), "{value}");
            if !value[name].is_null() {
                return value[name].take();
            }
        }
        panic!("the parent ended and said no {name}");
    }

    /// Its worker's process.
    pub fn worker(&mut self) -> u32 {
        self.worker = self.hear("pid").as_u64().unwrap().try_into().unwrap();
        self.worker
    }

    /// Ends its worker and gives the worker's last lines.
    pub fn stop_worker_and_hear_its_log(&mut self) -> Vec<String> {
        self.hear("peak_kib");
        let pid = Pid::from_raw(self.worker.try_into().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let end: WorkerEnd = serde_json::from_value(self.hear("end")).unwrap();
        end.log
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_killed_parent_leaves_no_worker() {
    for fault in ["none", "request:hang"] {
        let mut parent = Parent::of(fault);
        parent.go();
        let worker = parent.worker();
        assert!(is_there(worker));
        drop(parent);
        assert_gone(worker).await;
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_parent_sleeps_while_its_worker_is_at_work() {
    let mut parent = Parent::of("request:hang");
    parent.go();
    parent.worker();
    // Time for what is left of the start.
    std::thread::sleep(Duration::from_millis(300));
    let before = switches(parent.process.id());
    std::thread::sleep(Duration::from_millis(700));
    let woken = switches(parent.process.id()) - before;
    assert_eq!(woken, 0, "wakes disturb what is measured");
}

/// How often the threads of a process went to sleep so far.
#[cfg(target_os = "linux")]
fn switches(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .map(|task| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let line = |line: &str| {
                line.strip_prefix("voluntary_ctxt_switches:")
                    .map(str::to_owned)
            };
            let count = status.lines().find_map(line).unwrap();
            count.trim().parse::<u64>().unwrap()
        })
        .sum()
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_line_eats_no_memory() {
    let mut parent = Parent::of("request:endless-line");
    parent.go();
    let peak = parent.hear("peak_kib").as_u64().unwrap();
    assert!(
        peak < 100 << 10,
        "300 MiB without a line's end took {peak} KiB"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_for_memory_is_told_from_any_other() {
    let Some(cgroup) = crate::cgroup::Cgroup::new(96 << 20) else {
        eprintln!("not tested: this needs root and a memory cgroup");
        return;
    };
    let mut parent = Parent::of("request:eat-memory");
    cgroup.add(parent.process.id());
    parent.go();
    let end: WorkerEnd = serde_json::from_value(parent.hear("end")).unwrap();
    assert_eq!(end.code(), "engine_out_of_memory");
    let sentence = end.sentence(Some("Qwen3"));
    assert!(
        sentence.starts_with("Memory ran out while loading Qwen3"),
        "{sentence}"
    );

    let mut parent = Parent::of("request:SIGKILL");
    cgroup.add(parent.process.id());
    parent.go();
    let end: WorkerEnd = serde_json::from_value(parent.hear("end")).unwrap();
    assert_eq!(end.code(), "engine_killed");
    assert!(end.sentence(None).contains("perhaps out of memory"));
}
