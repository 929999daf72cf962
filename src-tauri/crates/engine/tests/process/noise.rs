//! A worker that says what it should not.

use twospeed_engine::StartError;
use twospeed_engine::protocol::Event;

use crate::*;

fn hurried() -> Patience {
    Patience {
        hello: Duration::from_millis(300),
        ..Patience::default()
    }
}

#[tokio::test]
async fn lines_that_are_no_message_go_to_the_log() {
    let mut session = start("chatty").await.unwrap();
    session.send(load("model.gguf")).unwrap();
    assert_eq!(
        event(&mut session).await,
        Event::LoadProgress { fraction: 0.5 }
    );
    assert!(matches!(event(&mut session).await, Event::Loaded(_)));
    let log = session.stop().await.log;
    for line in [
        "(gdb) quit",
        r#"{"event":"unheard of"}"#,
        // A message in itself, but nobody asked.
        r#"{"event":"anchor","ns":5}"#,
        "ggml prints what it likes",
    ] {
        assert!(log.iter().any(|l| l == line), "{line} is not in {log:?}");
    }
}

#[tokio::test]
async fn a_worker_of_another_version_is_refused() {
    let error = start("other-protocol").await.unwrap_err();
    assert!(matches!(error, StartError::Version { .. }), "{error:?}");
    assert_eq!(error.code(), "engine_version");
}

#[tokio::test]
async fn a_hello_that_cannot_be_read_is_refused_at_once() {
    let before = Instant::now();
    let error = start("other-hello").await.unwrap_err();
    assert!(matches!(error, StartError::BadHello { .. }), "{error:?}");
    assert!(before.elapsed() < Patience::default().hello);
}

#[tokio::test]
async fn a_worker_that_says_no_hello_is_given_up() {
    let error = start_with("silent", hurried()).await.unwrap_err();
    assert_eq!(error.code(), "engine_silent");
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_told_from_a_missing_one() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let no_program = dir.path().join("text");
    std::fs::write(&no_program, "no program").unwrap();
    let code = async |path| {
        let error = WorkerProcess::at(path).start(&Start::default()).await;
        error.unwrap_err().code()
    };
    assert_eq!(code(missing).await, "engine_missing");
    assert_eq!(code(no_program).await, "engine_not_runnable");
    assert_eq!(code("/usr/bin/true".into()).await, "engine_exited");
}
