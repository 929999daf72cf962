//! A worker that dies: told within a second, in a plain sentence, and nothing of it is left.

use twospeed_engine::protocol::{Event, Generate, Request};
use twospeed_engine::{Doing, How, ProtocolFault, Settings, StartError, WorkerEnd};

use crate::*;

/// Lets a worker die of `what` at `moment` and gives its end.
async fn death(moment: &str, what: &str) -> WorkerEnd {
    let fault = format!("{moment}:{what}");
    let mut session = match start(&fault).await {
        Ok(session) => session,
        Err(StartError::Ended(end)) if moment == "start" => return *end,
        Err(error) => panic!("{fault}: {error:?}"),
    };
    let pid = session.pid().unwrap();
    let _ = session.send(load("model.gguf"));
    let end = end(&mut session).await;
    assert_gone(pid).await;
    assert_eq!(
        session.next().await,
        Incoming::Ended(end.clone()),
        "{fault}"
    );
    assert_eq!(end.variant.as_deref(), Some(fault.as_str()));
    end
}

#[tokio::test]
async fn every_signal_is_told_at_every_moment() {
    let moments = [
        ("start", Doing::Starting),
        ("request", Doing::Loading),
        ("mid", Doing::Loading),
    ];
    for (moment, doing) in moments {
        for (signal, number) in [
            ("SIGKILL", 9),
            ("SIGSEGV", 11),
            ("SIGABRT", 6),
            ("SIGILL", 4),
            ("SIGTERM", 15),
        ] {
            let end = death(moment, signal).await;
            let name = signal.to_owned();
            assert_eq!(end.how, How::Signal { number, name }, "at {moment}");
            assert_eq!(end.doing, doing, "{signal} at {moment}");
        }
    }
}

#[tokio::test]
async fn a_death_between_requests_is_told() {
    let mut session = start("idle:SIGSEGV").await.unwrap();
    let pid = session.pid().unwrap();
    let end = end(&mut session).await;
    assert_eq!((end.code(), end.doing), ("engine_crashed", Doing::Waiting));
    assert_gone(pid).await;
    assert_eq!(
        session
            .send(load("model.gguf"))
            .err()
            .map(|e| e.to_string()),
        Some("The engine has ended. Start it again.".to_owned())
    );
}

#[tokio::test]
async fn an_illegal_instruction_names_the_cpu_variant() {
    let end = death("mid", "SIGILL").await;
    assert!(end.how.is_illegal_instruction());
    let sentence = end.sentence(Some("Qwen3"));
    assert!(sentence.contains("build for mid:SIGILL CPUs"), "{sentence}");
    assert!(sentence.contains("while loading Qwen3"), "{sentence}");
}

#[tokio::test]
async fn a_failed_check_of_the_engine_is_quoted() {
    let end = death("mid", "assert").await;
    assert_eq!(end.code(), "engine_check_failed");
    let sentence = end.sentence(Some("Qwen3"));
    assert!(
        sentence.contains("failed while loading Qwen3: ggml.c:7: GGML_ASSERT(a == b) failed. "),
        "{sentence}"
    );
}

#[tokio::test]
async fn an_abort_for_want_of_memory_is_told_as_one() {
    let end = death("mid", "no-memory").await;
    assert_eq!(end.how, How::OutOfMemory);
}

#[tokio::test]
async fn a_worker_that_gives_up_is_quoted() {
    let end = death("start", "exit").await;
    assert_eq!(end.how, How::Exited { code: 3 });
    let sentence = end.sentence(None);
    assert!(sentence.contains("exit code 3"), "{sentence}");
    assert!(
        sentence.contains("the engine folder is empty"),
        "{sentence}"
    );
}

#[tokio::test]
async fn a_worker_that_lives_on_without_a_pipe_is_ended() {
    let faults = [
        ("idle:close-output", ProtocolFault::OutputClosed),
        ("idle:close-input", ProtocolFault::InputClosed),
    ];
    for (habit, fault) in faults {
        let mut session = start(habit).await.unwrap();
        let pid = session.pid().unwrap();
        // A closed input is noticed only by who writes after that.
        tokio::time::sleep(Duration::from_millis(300)).await;
        session.send(load("model.gguf")).unwrap();
        let end = end_within(&mut session, Duration::from_secs(4)).await;
        assert_eq!(end.how, How::Protocol { fault }, "{habit}");
        assert_gone(pid).await;
    }
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_delays_nothing_and_dies_too() {
    let end = death("mid", "grandchild").await;
    assert_eq!(end.code(), "engine_crashed");
    assert_gone(left_behind(&end)).await;
}

#[cfg(target_os = "linux")] // elsewhere there is no `setsid`
#[tokio::test]
async fn a_grandchild_out_of_reach_delays_nothing() {
    let end = death("mid", "escaped-grandchild").await;
    assert_eq!(end.code(), "engine_crashed");
    let pid = left_behind(&end);
    assert!(is_there(pid), "this test needs a grandchild that lives");
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn left_behind(end: &WorkerEnd) -> u32 {
    let line = end.log.iter().find(|line| line.starts_with("left "));
    let pid = line.and_then(|line| line.split(' ').nth(1));
    pid.unwrap_or_else(|| panic!("{:?}", end.log))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn all_that_was_said_before_a_death_is_heard_by_the_slowest_listener() {
    let mut session = start("mid:SIGKILL").await.unwrap();
    session
        .send(Request::Generate(Generate {
            prompt: String::new(),
            n_predict: 5000,
            n_ctx: 0,
            settings: Settings::default(),
            reuse_prefix: false,
            temperature: 0.0,
            seed: 0,
            ignore_eos: true,
        }))
        .unwrap();
    let mut heard = 0;
    loop {
        if heard % 500 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        match session.next().await {
            Incoming::Event(Event::Token(token)) => {
                assert_eq!(token.at_ns, heard);
                heard += 1;
            }
            Incoming::Event(event) => panic!("{event:?}"),
            Incoming::Ended(end) => {
                assert_eq!(end.code(), "engine_killed");
                break;
            }
        }
    }
    assert_eq!(heard, 5000);
}
