//! Cancel, stop, drop: what we do to a worker.

use twospeed_engine::protocol::{Event, Phase};
use twospeed_engine::{How, SendError};

use crate::*;

const HURRIED: Patience = Patience {
    hello: Duration::from_secs(30),
    cancel: Duration::from_millis(200),
    stop: Duration::from_millis(200),
};

/// A session in the middle of a test, waiting to be told to go.
async fn in_a_test(fault: &str) -> Session {
    let mut session = start_with(fault, HURRIED).await.unwrap();
    session.send(measure(3)).unwrap();
    loop {
        if let Event::Phase(Phase::Repetition { .. }) = event(&mut session).await {
            return session;
        }
    }
}

#[tokio::test]
async fn a_worker_serves_one_request_after_another_and_leaves_when_asked() {
    let mut session = in_a_test("none").await;
    let pid = session.pid().unwrap();
    assert_eq!(session.send(load("model.gguf")), Err(SendError::Busy));
    let mut samples = 0;
    session.send(Request::Go).unwrap();
    loop {
        match event(&mut session).await {
            Event::Phase(_) => session.send(Request::Go).unwrap(),
            Event::Sample(_) => samples += 1,
            Event::Measured(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(samples, 3);
    session.send(load("model.gguf")).unwrap();
    while !event(&mut session).await.is_closing() {}
    let end = session.stop().await;
    assert_eq!(end.how, How::Exited { code: 0 });
    assert_gone(pid).await;
}

#[tokio::test]
async fn a_cancelled_worker_serves_on() {
    let mut session = in_a_test("none").await;
    session.cancel();
    assert_eq!(event(&mut session).await, Event::Cancelled);
    session.send(load("model.gguf")).unwrap();
    while !event(&mut session).await.is_closing() {}
    // The cancel before must not reach out for the request after it.
    tokio::time::sleep(2 * HURRIED.cancel).await;
    session.send(load("model.gguf")).unwrap();
    while !event(&mut session).await.is_closing() {}
}

#[tokio::test]
async fn what_steers_a_request_is_not_sent_without_one() {
    let session = start("none").await.unwrap();
    for request in [Request::Go, Request::Enough, Request::Cancel] {
        session.send(request).unwrap();
    }
    session.cancel();
    let log = session.stop().await.log;
    assert!(log.iter().all(|line| !line.contains("unasked")), "{log:?}");
}

#[tokio::test]
async fn a_worker_deaf_to_a_cancel_is_killed_after_its_grace() {
    let mut session = in_a_test("deaf").await;
    let pid = session.pid().unwrap();
    let before = Instant::now();
    session.cancel();
    let end = end(&mut session).await;
    assert!(before.elapsed() >= HURRIED.cancel);
    assert_eq!(
        (end.how, end.doing),
        (How::Killed, twospeed_engine::Doing::Measuring)
    );
    assert_gone(pid).await;
}

#[tokio::test]
async fn a_worker_deaf_to_a_stop_is_killed_after_its_grace() {
    let session = in_a_test("deaf").await;
    let pid = session.pid().unwrap();
    let before = Instant::now();
    let end = session.stop().await;
    assert!(before.elapsed() < TOLD_WITHIN);
    assert_eq!(end.how, How::Killed);
    assert_gone(pid).await;
}

#[tokio::test]
async fn a_dropped_session_leaves_no_process() {
    let session = in_a_test("deaf").await;
    let pid = session.pid().unwrap();
    drop(session);
    assert_gone(pid).await;
}

#[test]
fn a_runtime_that_is_shut_down_leaves_no_process() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let first = runtime();
    let session = first.block_on(in_a_test("deaf"));
    let pid = session.pid().unwrap();
    drop(first);
    // Tokio collects such children when it starts the next one or hears of a death.
    runtime().block_on(async {
        drop(start("none").await);
        assert_gone(pid).await;
    });
    drop(session);
}

#[tokio::test]
async fn a_path_relative_to_us_is_found_by_the_worker() {
    let mut session = start("none").await.unwrap();
    session.send(load("some/missing.gguf")).unwrap();
    let failure = loop {
        if let Event::Failed(failure) = event(&mut session).await {
            break failure;
        }
    };
    let here = std::env::current_dir().unwrap().join("some/missing.gguf");
    assert_eq!(failure.message, here.to_str().unwrap());
}
