//! The scripted engine keeps to the protocol, and its misbehaviour is met like a real one's.
//!
//! Time is paused: it moves on by itself when everybody waits.
#![allow(clippy::unwrap_used, clippy::panic)] // as in any test

use std::time::Duration;

use tokio::time::Instant;
use twospeed_engine::fake::{FakeEngine, FakeModel, Script};
use twospeed_engine::protocol::{
    Ability, AnchorRequest, Event, FailureCode, Generate, Load, Measure, PageCache, Phase, Request,
    Sample,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{
    Doing, Engine, How, Incoming, Session, Settings, Start, StartError, TestSpec, WorkerEnd,
};

const SIGSEGV: i32 = 11;

fn crash() -> How {
    How::Signal {
        number: SIGSEGV,
        name: "SIGSEGV".into(),
    }
}

fn load(path: &str) -> Request {
    Request::Load(Load {
        model: ModelPath(path.into()),
        settings: Settings::default(),
        page_cache: PageCache::AsIs,
    })
}

fn measure(n_prompt: u32, n_gen: u32, n_depth: u32) -> Request {
    Request::Measure(Measure {
        spec: TestSpec {
            n_prompt,
            n_gen,
            n_depth,
        },
        settings: Settings::default(),
        repetitions: 3,
        warmup: true,
        seed: 7,
    })
}

fn anchor() -> Request {
    Request::Anchor(AnchorRequest { n_threads: 1 })
}

async fn start(engine: &FakeEngine) -> Session {
    engine.start(&Start::default()).await.unwrap()
}

/// What is said to one request, with every repetition told to go; the end, if it comes to that.
async fn ask(
    session: &mut Session,
    request: Request,
) -> Result<Vec<Event>, (Vec<Event>, WorkerEnd)> {
    session.send(request).unwrap();
    let mut said = Vec::new();
    loop {
        match session.next().await {
            Incoming::Ended(end) => return Err((said, end)),
            Incoming::Event(event) => {
                if matches!(event, Event::Phase(Phase::Repetition { .. })) {
                    session.send(Request::Go).unwrap();
                }
                let closed = event.is_closing();
                said.push(event);
                if closed {
                    return Ok(said);
                }
            }
        }
    }
}

fn samples(said: &[Event]) -> Vec<Sample> {
    let sample = |event: &Event| match event {
        Event::Sample(sample) => Some(sample.clone()),
        _ => None,
    };
    said.iter().filter_map(sample).collect()
}

/// Tokens per second over all samples of a test.
async fn speed(session: &mut Session, n_prompt: u32, n_gen: u32, n_depth: u32) -> f64 {
    let said = ask(session, measure(n_prompt, n_gen, n_depth)).await;
    let samples = samples(&said.unwrap());
    let ns: u64 = samples.iter().map(|sample| sample.ns).sum();
    f64::from(n_prompt + n_gen) * samples.len() as f64 * 1e9 / ns as f64
}

#[tokio::test(start_paused = true)]
async fn it_answers_like_a_worker() {
    let mut session = start(&FakeEngine::new()).await;
    let said = ask(&mut session, load("model.gguf")).await.unwrap();
    assert!(matches!(said[0], Event::LoadProgress { .. }));
    assert!(matches!(said.last(), Some(Event::Loaded(_))));

    let said = ask(&mut session, measure(512, 0, 1024)).await.unwrap();
    assert!(matches!(said[0], Event::Placed(_)));
    assert_eq!(said[1], Event::Phase(Phase::Warmup));
    assert_eq!(said[2], Event::Phase(Phase::Depth { restored: false }));
    assert_eq!(said[3], Event::Phase(Phase::Repetition { number: 1 }));
    assert!(matches!(said[4], Event::Sample(_)));
    assert_eq!(said[5], Event::Phase(Phase::Depth { restored: true }));
    assert_eq!(samples(&said).len(), 3);
    let Some(Event::Measured(measured)) = said.last() else {
        panic!("{said:?}");
    };
    assert_eq!(measured.repetitions, 3);

    let end = session.stop().await;
    assert_eq!(end.how, How::Exited { code: 0 });
}

#[tokio::test(start_paused = true)]
async fn its_speeds_are_plausible_and_the_same_each_time() {
    let mut session = start(&FakeEngine::new()).await;
    ask(&mut session, load("model.gguf")).await.unwrap();
    let prefill = speed(&mut session, 512, 0, 0).await;
    let decode = speed(&mut session, 0, 128, 0).await;
    assert!(prefill > 5.0 * decode, "{prefill} and {decode}");
    assert!(speed(&mut session, 0, 128, 4096).await < 0.8 * decode);
    assert_eq!(speed(&mut session, 0, 128, 0).await, decode);
}

#[tokio::test(start_paused = true)]
async fn it_takes_the_time_it_reports_when_asked_to() {
    let mut session = start(&FakeEngine::new().with_pace(1.0)).await;
    ask(&mut session, load("model.gguf")).await.unwrap();
    let before = Instant::now();
    let said = ask(&mut session, measure(512, 0, 0)).await.unwrap();
    let reported: u64 = samples(&said).iter().map(|sample| sample.ns).sum();
    assert!(before.elapsed() >= Duration::from_nanos(reported));
}

#[tokio::test(start_paused = true)]
async fn enough_is_enough() {
    let mut session = start(&FakeEngine::new()).await;
    ask(&mut session, load("model.gguf")).await.unwrap();
    session.send(measure(512, 0, 0)).unwrap();
    let measured = loop {
        match session.next().await {
            Incoming::Event(Event::Phase(Phase::Repetition { number })) => {
                let answer = if number < 3 {
                    Request::Go
                } else {
                    Request::Enough
                };
                session.send(answer).unwrap();
            }
            Incoming::Event(Event::Measured(measured)) => break measured,
            Incoming::Event(_) => {}
            Incoming::Ended(end) => panic!("{end:?}"),
        }
    };
    assert_eq!(measured.repetitions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_goes_on_reuses_what_was_computed() {
    let mut session = start(&FakeEngine::new()).await;
    ask(&mut session, load("model.gguf")).await.unwrap();
    let mut answered = Vec::new();
    for prompt in ["once upon a time", "once upon a time there was"] {
        let said = ask(
            &mut session,
            Request::Generate(Generate {
                prompt: prompt.into(),
                n_predict: 4,
                n_ctx: 0,
                settings: Settings::default(),
                reuse_prefix: true,
                temperature: 0.0,
                seed: 0,
                ignore_eos: true,
            }),
        )
        .await
        .unwrap();
        match said.last() {
            Some(Event::Generated(generated)) => answered.push(generated.clone()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((answered[0].n_prompt, answered[0].n_reused), (4, 0));
    assert_eq!((answered[1].n_prompt, answered[1].n_reused), (6, 4));
    assert!(answered[1].ttft_ns < answered[0].ttft_ns);
    assert_eq!(answered[0].token_at_ns[0], answered[0].ttft_ns);
    let last = answered[0].token_at_ns[3];
    assert_eq!(last - answered[0].ttft_ns, answered[0].decode_ns);
}

#[tokio::test(start_paused = true)]
async fn it_dies_where_it_is_told_to() {
    let engine = FakeEngine::new().dies_after_samples(2, crash());
    let mut session = start(&engine).await;
    ask(&mut session, load("model.gguf")).await.unwrap();
    let (said, end) = ask(&mut session, measure(512, 0, 0)).await.unwrap_err();
    assert_eq!(samples(&said).len(), 2);
    assert_eq!((end.how, end.doing), (crash(), Doing::Measuring));

    // The count goes on over sessions: the next one lives.
    let mut session = start(&engine).await;
    ask(&mut session, load("model.gguf")).await.unwrap();
    ask(&mut session, measure(512, 0, 0)).await.unwrap();
    assert_eq!(engine.starts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_variant_dies_and_the_next_lives() {
    let engine = FakeEngine::new()
        .with_variants(&["sapphirerapids", "icelake"])
        .variant_dies("sapphirerapids");
    let mut session = start(&engine).await;
    assert_eq!(session.hello().variant.name, "sapphirerapids");
    ask(&mut session, load("model.gguf")).await.unwrap();
    let (_, end) = ask(&mut session, measure(512, 0, 0)).await.unwrap_err();
    assert_eq!(end.code(), "engine_illegal_instruction");
    assert_eq!(end.variant.as_deref(), Some("sapphirerapids"));

    let set_aside = vec!["sapphirerapids".to_owned()];
    let start = Start {
        variant: None,
        set_aside,
    };
    let mut session = engine.start(&start).await.unwrap();
    assert_eq!(session.hello().variant.name, "icelake");
    ask(&mut session, load("model.gguf")).await.unwrap();
    ask(&mut session, measure(512, 0, 0)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_death_before_the_hello_is_an_error_of_the_start() {
    let engine = FakeEngine::new()
        .starts_with(|_, number| (number == 0).then(|| Script::new().log("no").die(crash())));
    let StartError::Ended(end) = engine.start(&Start::default()).await.unwrap_err() else {
        panic!("it ended");
    };
    assert_eq!((end.how, end.log), (crash(), vec!["no".to_owned()]));
    start(&engine).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_start_and_another_version_are_refused() {
    let silent = FakeEngine::new().starts_with(|_, _| Some(Script::new().hang()));
    let error = silent.start(&Start::default()).await.unwrap_err();
    assert_eq!(error.code(), "engine_silent");
    let other = FakeEngine::new()
        .starts_with(|_, _| Some(Script::new().line(r#"{"event":"hello","protocol":99}"#)));
    let error = other.start(&Start::default()).await.unwrap_err();
    assert_eq!(error.code(), "engine_version");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_answered_or_ends_in_a_kill() {
    let slow = || Script::new().wait(Duration::from_secs(3600));
    let mut session = start(&FakeEngine::new().answers(move |_| Some(slow()))).await;
    session.send(anchor()).unwrap();
    session.cancel();
    assert_eq!(session.next().await, Incoming::Event(Event::Cancelled));

    let mut session = start(&FakeEngine::new().hangs_on(0)).await;
    session.send(anchor()).unwrap();
    let before = Instant::now();
    session.cancel();
    let Incoming::Ended(end) = session.next().await else {
        panic!("it hangs");
    };
    assert_eq!(end.how, How::Killed);
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_too_late_harms_nobody() {
    let mut session = start(&FakeEngine::new()).await;
    for _ in 0..500 {
        session.send(anchor()).unwrap();
        // The answer is on its way or not, as it happens.
        tokio::task::yield_now().await;
        session.cancel();
        let heard = session.next().await;
        assert!(matches!(heard, Incoming::Event(_)), "{heard:?}");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    ask(&mut session, anchor()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn noise_goes_to_the_log_and_rules_can_change_the_usual_answer() {
    let engine = FakeEngine::new().answers(|asked| {
        Some(
            Script::new()
                .line(b"\xff\xfe{ no message".as_slice())
                .log("a word of the engine")
                .then(asked.usual()),
        )
    });
    let mut session = start(&engine).await;
    let said = ask(&mut session, anchor()).await.unwrap();
    assert!(
        matches!(said.as_slice(), [Event::Anchor { .. }]),
        "{said:?}"
    );
    let log = session.stop().await.log;
    assert!(
        log.iter().any(|line| line.ends_with("{ no message")),
        "{log:?}"
    );
    assert!(log.iter().any(|line| line == "a word of the engine"));
}

#[tokio::test(start_paused = true)]
async fn it_fails_as_a_worker_fails() {
    let embedder = FakeModel {
        loaded: twospeed_engine::protocol::Loaded {
            ability: Ability::Embeds,
            ..FakeModel::default().loaded
        },
        ..FakeModel::default()
    };
    let engine =
        FakeEngine::new()
            .with_model("bge", embedder)
            .fails_on(2, FailureCode::ModelRefused, "No.");
    let mut session = start(&engine).await;
    let mut code = async |request| match ask(&mut session, request).await.unwrap().last() {
        Some(Event::Failed(failure)) => Some(failure.code),
        _ => None,
    };
    assert_eq!(
        code(measure(1, 0, 0)).await,
        Some(FailureCode::NothingLoaded)
    );
    assert_eq!(code(load("/models/bge-small.gguf")).await, None);
    assert_eq!(code(anchor()).await, Some(FailureCode::ModelRefused));
    assert_eq!(code(measure(0, 1, 0)).await, Some(FailureCode::NotAble));
    assert_eq!(code(measure(1, 0, 0)).await, None);
    assert_eq!(
        engine.requests().len(),
        8,
        "five requests and three times Go"
    );
}
