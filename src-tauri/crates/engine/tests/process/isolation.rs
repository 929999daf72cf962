//! What a worker inherits and what it does not.

use std::path::Path;

use rustix::process::{Pid, getpgid};

use crate::parent::Parent;
use crate::*;

#[tokio::test]
async fn a_worker_has_a_process_group_of_its_own() {
    let session = start("none").await.unwrap();
    let pid = Pid::from_raw(session.pid().unwrap().try_into().unwrap()).unwrap();
    assert_eq!(getpgid(Some(pid)), Ok(pid), "Ctrl-C would reach the worker");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_dies_for_memory_before_us_and_dumps_no_core() {
    let session = start("none").await.unwrap();
    let read =
        |pid: &str, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let pid = session.pid().unwrap().to_string();
    let score = |pid| read(pid, "oom_score_adj").trim().parse::<i32>().unwrap();
    assert!(score(&pid) > score("self"));
    let limits = read(&pid, "limits");
    let core = limits.lines().find(|l| l.starts_with("Max core file size"));
    assert_eq!(core.unwrap().split_whitespace().nth(4), Some("1"));
}

#[tokio::test]
async fn a_worker_starts_where_the_engine_lies_and_not_where_we_are() {
    let session = start("inventory").await.unwrap();
    let log = session.stop().await.log;
    let directory = log.iter().find_map(|l| l.strip_prefix("directory "));
    let engine = Path::new(STAND_IN).canonicalize().unwrap();
    assert_eq!(directory.map(Path::new), engine.parent());
    assert_ne!(
        std::env::current_dir().unwrap(),
        Path::new(directory.unwrap())
    );
}

#[tokio::test]
async fn a_worker_inherits_no_variables_of_a_window_nor_somebodys_library() {
    let mut parent = Parent::with("inventory", |command| {
        command
            .env("WEBKIT_DISABLE_COMPOSITING_MODE", "1")
            .env("GTK_PATH", "/nowhere")
            .env("GGML_BACKEND_PATH", "/nowhere/planted.so")
            .env("OMP_PROC_BIND", "close")
            .env("GGML_NO_BACKTRACE", "0")
    });
    parent.go();
    parent.worker();
    let log = parent.stop_worker_and_hear_its_log();
    let has = |line: &str| log.iter().any(|l| l.contains(line));
    assert!(has("variable OMP_PROC_BIND=close"), "{log:?}");
    assert!(has("variable GGML_NO_BACKTRACE=1"), "{log:?}");
    assert!(
        !has("WEBKIT_") && !has("GTK_PATH") && !has("planted"),
        "{log:?}"
    );
}
