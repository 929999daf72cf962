//! The worker's process under a supervisor, with a stand-in that misbehaves on command.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)] // as in any test

#[cfg(target_os = "linux")]
mod cgroup;
mod deaths;
mod isolation;
mod noise;
mod orders;
mod parent;

use std::time::{Duration, Instant};

use tokio::time::timeout;
use twospeed_engine::protocol::{Event, Load, Measure, PageCache, Request};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{
    Engine, Incoming, Patience, Session, Settings, Start, StartError, TestSpec, WorkerEnd,
    WorkerProcess,
};

/// The parent learns of a death within this time.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// No process is left after this time.
const GONE_WITHIN: Duration = Duration::from_secs(2);

const STAND_IN: &str = env!("CARGO_BIN_EXE_twospeed-stand-in");

/// Starts a stand-in with this fault.
async fn start(fault: &str) -> Result<Session, StartError> {
    start_with(fault, Patience::default()).await
}

async fn start_with(fault: &str, patience: Patience) -> Result<Session, StartError> {
    WorkerProcess::at(STAND_IN)
        .with_patience(patience)
        .start(&Start {
            variant: Some(fault.to_owned()),
            set_aside: Vec::new(),
        })
        .await
}

fn load(path: &str) -> Request {
    Request::Load(Load {
        model: ModelPath(path.into()),
        settings: Settings::default(),
        page_cache: PageCache::AsIs,
    })
}

fn measure(repetitions: u32) -> Request {
    Request::Measure(Measure {
        spec: TestSpec {
            n_prompt: 8,
            n_gen: 0,
            n_depth: 0,
        },
        settings: Settings::default(),
        repetitions,
        warmup: false,
        seed: 1,
    })
}

/// The next event of a worker that is expected to live.
async fn event(session: &mut Session) -> Event {
    match timeout(Duration::from_secs(20), session.next()).await {
        Ok(Incoming::Event(event)) => event,
        other => panic!("no event but {other:?}"),
    }
}

/// Hears the end of a worker that is dead or dying, and checks that it comes in time.
async fn end(session: &mut Session) -> WorkerEnd {
    end_within(session, TOLD_WITHIN).await
}

async fn end_within(session: &mut Session, limit: Duration) -> WorkerEnd {
    let before = Instant::now();
    loop {
        match timeout(Duration::from_secs(20), session.next()).await {
            Ok(Incoming::Ended(end)) => {
                let told = before.elapsed();
                assert!(told < limit, "told after {told:?}");
                return end;
            }
            Ok(Incoming::Event(_)) => {}
            Err(_) => panic!("the worker's death was never told"),
        }
    }
}

/// Checks that a process is gone in time, and no zombie either.
async fn assert_gone(pid: u32) {
    let before = Instant::now();
    while is_there(pid) {
        let waited = before.elapsed();
        assert!(
            waited < GONE_WITHIN,
            "process {pid} is there after {waited:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_there(pid: u32) -> bool {
    let process = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::test_kill_process(process).is_ok() && !waits_for_init(pid)
}

/// Whether it has ended and only its foster parent has yet to notice, which takes its own time.
#[cfg(target_os = "linux")]
fn waits_for_init(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let (_, facts) = stat.rsplit_once(')').unwrap();
    let mut facts = facts.split_whitespace();
    let (state, parent) = (facts.next(), facts.next());
    state == Some("Z") && parent != Some(&std::process::id().to_string())
}

#[cfg(not(target_os = "linux"))]
fn waits_for_init(_: u32) -> bool {
    false
}
