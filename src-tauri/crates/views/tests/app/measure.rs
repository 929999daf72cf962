use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;
use twospeed_engine::{FakeEngine, How};
use twospeed_history::{History, RunStatus};
use twospeed_library::FileType;
use twospeed_measure::lease::{Attempt, Lease};
use twospeed_views::Problem;
use twospeed_views::app::App;
use twospeed_views::frame::AppEvent;
use twospeed_views::measure::*;

use crate::{Window, row, write_model};

/// Steps with the time when they arrived.
pub(crate) type Heard = watch::Receiver<Vec<(Instant, RunEvent)>>;

/// What a page does when it is told that a section is about to be timed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Page {
    /// Paints within a moment.
    Paints,
    /// Never does.
    Sleeps,
}

pub(crate) fn follow(app: &Arc<App>, page: Page) -> Heard {
    let (say, heard) = watch::channel(Vec::new());
    let say = std::sync::Mutex::new(say);
    let (app, painter) = (app.clone(), app.clone());
    let runtime = tokio::runtime::Handle::current();
    tokio::spawn(async move {
        let tell = Arc::new(move |event: RunEvent| {
            if let RunStep::Doing {
                what: Doing::Timing { ticket, .. },
                ..
            } = event.step
                && page == Page::Paints
            {
                let painter = painter.clone();
                runtime.spawn(async move {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    painter.painted(ticket).await
                });
            }
            let now = Instant::now();
            say.lock()
                .unwrap()
                .send_modify(|heard: &mut Vec<(Instant, RunEvent)>| heard.push((now, event)));
        });
        app.follow_run(tell).await.unwrap();
    });
    heard
}

pub(crate) async fn until(heard: &mut Heard, wanted: impl Fn(&RunStep) -> bool) -> Vec<RunStep> {
    let all = heard.wait_for(|heard| heard.iter().any(|(_, event)| wanted(&event.step)));
    let all = tokio::time::timeout(Duration::from_secs(60), all).await;
    let all = all.expect("it never happened").unwrap();
    all.iter().map(|(_, event)| event.step.clone()).collect()
}

pub(crate) async fn ended(heard: &mut Heard) -> Vec<RunStep> {
    until(heard, |step| matches!(step, RunStep::Ended { .. })).await
}

pub(crate) fn end_of(steps: &[RunStep]) -> (&RunEnd, &[String]) {
    match steps.last() {
        Some(RunStep::Ended { end, results }) => (end, results),
        other => panic!("{other:?}"),
    }
}

/// How the tests ended, by position.
pub(crate) fn ends(steps: &[RunStep]) -> Vec<(u32, &TestEnd)> {
    steps
        .iter()
        .filter_map(|step| match step {
            RunStep::TestEnded { position, end, .. } => Some((*position, end)),
            _ => None,
        })
        .collect()
}

/// A window with one model in two quantizations; the rows of both.
pub(crate) async fn with_models(engine: FakeEngine) -> (Window, Vec<String>) {
    let around = Arc::new(tempfile::tempdir().unwrap());
    let window = Window::with(Arc::new(engine), around).await;
    for (file, kind) in [
        ("a.Q8_0.gguf", FileType::Q8_0),
        ("a.F16.gguf", FileType::F16),
    ] {
        write_model(&window.path("models").join(file), "Small One", kind);
    }
    window.app.start().await.unwrap();
    let folder = window.path("models").to_string_lossy().into_owned();
    window.app.add_path(folder).await.unwrap();
    let view = window.scanned().await;
    let rows = ["Q8_0", "F16"].map(|label| row(&view, "Small One", label).id.clone());
    (window, rows.into())
}

pub(crate) fn quick(models: &[String]) -> PlanRequest {
    PlanRequest {
        models: models.to_vec(),
        tests: Tests::Quick,
        threads: Some(2),
    }
}

fn own(models: &[String], prompt: &[u32], generate: &[u32], repetitions: u32) -> PlanRequest {
    PlanRequest {
        tests: Tests::Own {
            prompt: prompt.to_vec(),
            generate: generate.to_vec(),
            depth: Vec::new(),
            repetitions,
            until: None,
            interleaved: false,
            sweep: Box::default(),
        },
        ..quick(models)
    }
}

/// Runs to the end; its steps.
pub(crate) async fn run(window: &Window, request: PlanRequest) -> Vec<RunStep> {
    window.app.start_run(request).await.unwrap();
    ended(&mut follow(&window.app, Page::Paints)).await
}

async fn history(window: &Window) -> History {
    History::open(&window.path("data")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_told_from_its_start_to_its_end_and_equals_the_history() {
    let (mut window, rows) = with_models(FakeEngine::new()).await;
    let planned = window.app.plan(quick(&rows)).await.unwrap();
    assert_eq!(planned.seconds, None, "nothing was measured yet");
    assert_eq!(planned.rows.len(), 4);
    assert!(planned.hindrances.is_empty(), "{:?}", planned.hindrances);
    let steps = run(&window, quick(&rows)).await;

    let RunStep::Asked { plan, .. } = &steps[0] else {
        panic!("{:?}", steps[0]);
    };
    assert_eq!(*plan, planned);
    let RunStep::Started { run: id } = &steps[1] else {
        panic!("{:?}", steps[1]);
    };
    assert!(matches!(
        &steps[2],
        RunStep::TestStarted { position: 0, .. }
    ));
    assert!(matches!(
        &steps[3],
        RunStep::Engine { build: 11434, devices, .. } if devices[..] == ["Scripted CPU"]
    ));
    let (end, results) = end_of(&steps);
    assert_eq!(*end, RunEnd::Complete);
    assert_eq!(results.len(), 2, "two models, each with both speeds");

    let history = history(&window).await;
    let whole = history.run(id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(whole.run.status, RunStatus::Complete);
    assert_eq!(whole.run.preset, "quick");
    for test in &whole.tests {
        let tokens = test.record.spec.tokens() as f64;
        let by_hand: Vec<f64> = test
            .samples
            .iter()
            .map(|sample| 1e9 * tokens / sample.sample.ns as f64)
            .collect();
        let told: Vec<f64> = steps
            .iter()
            .filter_map(|step| match step {
                RunStep::Sample {
                    position, value, ..
                } if *position == test.record.position => Some(*value),
                _ => None,
            })
            .collect();
        assert_eq!(told, by_hand);
        let mean_told = steps.iter().find_map(|step| match step {
            RunStep::TestEnded { position, mean, .. } if *position == test.record.position => *mean,
            _ => None,
        });
        let mean = by_hand.iter().sum::<f64>() / 3.0;
        assert!((mean_told.unwrap() - mean).abs() < 1e-9 * mean);
    }
    assert!(steps.contains(&RunStep::ReadSpeed));
    window
        .hear(|event| matches!(event, AppEvent::ResultsChanged).then_some(()))
        .await;
    let view = window.app.results().await.unwrap();
    let listed: Vec<_> = view.groups[0].rows.iter().map(|row| &row.id).collect();
    for result in results {
        assert!(listed.contains(&result), "Compare knows what the run tells");
    }

    let again = window.app.plan(quick(&rows)).await.unwrap();
    assert!(again.seconds.is_some(), "it was measured before");
    let ceilings: Vec<_> = again.rows.iter().map(|row| row.ceiling.is_some()).collect();
    assert_eq!(ceilings, [false, true, false, true], "of decode alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_late_is_told_everything_and_of_an_old_run_too() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let none = follow(&window.app, Page::Paints);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(none.borrow().is_empty(), "there was no run");
    let first = run(&window, quick(&rows)).await;
    let late = ended(&mut follow(&window.app, Page::Sleeps)).await;
    assert_eq!(first.first(), late.first());
    assert_eq!(first.last(), late.last());
    assert!(!window.app.start().await.unwrap().running);
}

/// Time between two steps as the page heard them.
fn heard_at(heard: &Heard, wanted: impl Fn(&RunStep) -> bool) -> Vec<Instant> {
    let heard = heard.borrow();
    let wanted = heard.iter().filter(|(_, event)| wanted(&event.step));
    wanted.map(|(at, _)| *at).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_while_a_section_is_timed() {
    let (window, rows) = with_models(FakeEngine::new().with_pace(0.3)).await;
    window.app.start_run(quick(&rows[..1])).await.unwrap();
    let mut heard = follow(&window.app, Page::Paints);
    let timing = |step: &RunStep| {
        matches!(
            step,
            RunStep::Doing {
                what: Doing::Timing { .. },
                ..
            }
        )
    };
    until(&mut heard, timing).await;
    // The section takes 0.25 s; the page has painted long before its middle.
    tokio::time::sleep(Duration::from_millis(80)).await;
    let before = heard.borrow().len();
    window.app.drop_hover(true);
    let late = follow(&window.app, Page::Sleeps);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(heard.borrow().len(), before);
    let hover = AppEvent::DropHover { over: true };
    assert!(!window.heard.borrow().contains(&hover));
    assert!(late.borrow().is_empty(), "who comes now waits as well");
    ended(&mut heard).await;
    assert!(window.heard.borrow().contains(&hover), "it came after");
    assert!(!late.borrow().is_empty());

    // Each sample arrives together with the step after it, never inside the next section.
    let samples = heard_at(&heard, |step| matches!(step, RunStep::Sample { .. }));
    let sections = heard_at(&heard, timing);
    assert_eq!((samples.len(), sections.len()), (6, 6));
    for (sample, next) in [(0, 1), (1, 2), (3, 4), (4, 5)] {
        let apart = sections[next].duration_since(samples[sample]);
        assert!(apart < Duration::from_millis(50), "{apart:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_does_not_paint_holds_nobody_up_for_long() {
    // One sample each, of no duration: what takes time is the waiting.
    let (window, rows) = with_models(FakeEngine::new()).await;
    let request = || own(&rows[..1], &[512], &[], 1);
    let took = async |page: Option<Page>| {
        let began = Instant::now();
        window.app.start_run(request()).await.unwrap();
        let mut heard = page.map(|page| follow(&window.app, page));
        match &mut heard {
            Some(heard) => drop(ended(heard).await),
            None => {
                while window.app.start().await.unwrap().running {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
        began.elapsed()
    };
    // The first run measures the read speed too.
    took(None).await;
    let alone = took(None).await;
    let painted = took(Some(Page::Paints)).await;
    let asleep = took(Some(Page::Sleeps)).await;
    assert!(
        asleep >= alone + Duration::from_millis(200),
        "the first picture is waited for: {alone:?}, {asleep:?}"
    );
    assert!(
        asleep < alone + Duration::from_millis(900),
        "{alone:?} {asleep:?}"
    );
    assert!(
        painted >= alone + Duration::from_secs(1),
        "what was painted comes to rest first: {alone:?}, {painted:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samples_that_are_over_in_a_moment_do_not_wait_for_a_picture_each() {
    // 16 tokens at 600 a second: 27 ms a sample.
    let (window, rows) = with_models(FakeEngine::new().with_pace(1.0)).await;
    let request = own(&rows[..1], &[16], &[], 20);
    window.app.start_run(request).await.unwrap();
    let mut heard = follow(&window.app, Page::Sleeps);
    let steps = ended(&mut heard).await;
    let count = |wanted: fn(&RunStep) -> bool| steps.iter().filter(|step| wanted(step)).count();
    assert_eq!(count(|step| matches!(step, RunStep::Sample { .. })), 20);
    let sections = count(|step| {
        matches!(
            step,
            RunStep::Doing {
                what: Doing::Timing { .. },
                ..
            }
        )
    });
    assert!(
        (1..=3).contains(&sections),
        "some, but not each: {sections}"
    );
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Problem>) -> String {
    let problem = result.unwrap_err();
    assert!(problem.message.ends_with('.'), "{}", problem.message);
    problem.code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_run_at_a_time_and_stopping_keeps_what_is_done() {
    let (window, rows) = with_models(FakeEngine::new().with_pace(0.3)).await;
    window.app.start_run(quick(&rows)).await.unwrap();
    assert!(window.app.start().await.unwrap().running);
    assert_eq!(code(window.app.start_run(quick(&rows)).await), "busy");
    let mut heard = follow(&window.app, Page::Paints);
    until(&mut heard, |step| matches!(step, RunStep::Sample { .. })).await;
    window.app.stop_run(StopHow::Now).await.unwrap();
    let steps = ended(&mut heard).await;
    let (end, results) = end_of(&steps);
    assert_eq!((end, results), (&RunEnd::Stopped, &[][..]));
    let ends = ends(&steps);
    assert_eq!(ends[0], (0, &TestEnd::Cancelled));
    assert!(matches!(ends[1], (1, TestEnd::Skipped { .. })));
    let view = window.app.results().await.unwrap();
    assert!(view.groups.is_empty());
    assert_eq!(view.runs.len(), 1, "its page says why");
    let page = window.app.run_page(view.runs[0].id.clone()).await.unwrap();
    assert!(!page.tests[0].samples.is_empty(), "kept, though no result");
    // Stopping what is over does nothing, and the next run is not stopped by it.
    window.app.stop_run(StopHow::Now).await.unwrap();
    let steps = run(&window, own(&rows[..1], &[64], &[], 1)).await;
    assert_eq!(end_of(&steps).0, &RunEnd::Complete);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_test_the_rest_is_not_begun() {
    let (window, rows) = with_models(FakeEngine::new().with_pace(0.1)).await;
    window.app.start_run(quick(&rows)).await.unwrap();
    let mut heard = follow(&window.app, Page::Paints);
    until(&mut heard, |step| matches!(step, RunStep::Sample { .. })).await;
    window.app.stop_run(StopHow::AfterTest).await.unwrap();
    let steps = ended(&mut heard).await;
    let (end, results) = end_of(&steps);
    assert_eq!((end, results.len()), (&RunEnd::Stopped, 1));
    assert_eq!(ends(&steps)[0], (0, &TestEnd::Done));
}

fn hold(window: &Window) -> Lease {
    match Lease::try_acquire(&window.path("lease"), "calibration", Timestamp::now()).unwrap() {
        Attempt::Held(lease) => lease,
        Attempt::Busy(_) => panic!("nobody else measures here"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_waits_for_the_machine_and_says_for_whom() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let lease = hold(&window);
    window.app.start_run(quick(&rows)).await.unwrap();
    let mut heard = follow(&window.app, Page::Paints);
    let steps = until(&mut heard, |step| matches!(step, RunStep::Waiting { .. })).await;
    assert!(matches!(&steps[1], RunStep::Waiting { sentence } if sentence.contains("calibration")));
    drop(lease);
    assert_eq!(end_of(&ended(&mut heard).await).0, &RunEnd::Complete);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_can_be_given_up_either_way() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let _lease = hold(&window);
    for how in [StopHow::Now, StopHow::AfterTest] {
        window.app.start_run(quick(&rows)).await.unwrap();
        let mut heard = follow(&window.app, Page::Paints);
        until(&mut heard, |step| matches!(step, RunStep::Waiting { .. })).await;
        window.app.stop_run(how).await.unwrap();
        let steps = ended(&mut heard).await;
        assert_eq!(end_of(&steps), (&RunEnd::Stopped, &[][..]));
        assert!(window.app.results().await.unwrap().runs.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_is_told_where_it_happened_and_the_rest_goes_on() {
    let kill = How::Signal {
        number: 9,
        name: "SIGKILL".into(),
    };
    let engine = FakeEngine::new().dies_after_samples(4, kill);
    let (window, rows) = with_models(engine).await;
    let steps = run(&window, quick(&rows)).await;
    let (end, results) = end_of(&steps);
    assert_eq!(*end, RunEnd::Complete);
    let ends = ends(&steps);
    assert_eq!(ends[0], (0, &TestEnd::Done));
    let (1, TestEnd::Failed { message, .. }) = ends[1] else {
        panic!("{:?}", ends[1]);
    };
    assert!(message.ends_with('.'), "{message}");
    assert_eq!(&ends[2..], [(2, &TestEnd::Done), (3, &TestEnd::Done)]);
    assert_eq!(results.len(), 2, "the prefill of the first stands");
    let mean = steps.iter().find_map(|step| match step {
        RunStep::TestEnded {
            position: 1,
            mean,
            deviation,
            ..
        } => Some((mean.is_some(), deviation.is_some())),
        _ => None,
    });
    assert_eq!(mean, Some((true, false)), "of its one sample");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_engine_the_run_says_so() {
    use twospeed_engine::fake::Script;
    let engine = FakeEngine::new().starts_with(|_, _| {
        Some(
            Script::new()
                .log("no libllama")
                .die(How::Exited { code: 127 }),
        )
    });
    let (window, rows) = with_models(engine).await;
    let steps = run(&window, quick(&rows)).await;
    let (RunEnd::Failed { message, .. }, []) = end_of(&steps) else {
        panic!("{:?}", steps.last());
    };
    assert!(message.contains("no libllama"), "{message}");
    assert!(!window.app.start().await.unwrap().running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_never_be_measured_is_refused_with_a_sentence() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let plan = async |request| code(window.app.plan(request).await);
    assert_eq!(plan(quick(&[])).await, "no_models");
    assert_eq!(plan(own(&rows, &[], &[], 3)).await, "no_tests");
    assert_eq!(plan(own(&rows, &[0], &[0], 3)).await, "no_tests");
    assert_eq!(plan(own(&rows, &[512], &[], 0)).await, "no_repetitions");
    let lengths: Vec<u32> = (1..400).collect();
    assert_eq!(plan(own(&rows, &lengths, &[], 1)).await, "too_many_tests");
    for (threads, wanted) in [(0, "threads_too_few"), (513, "threads_too_many")] {
        let request = PlanRequest {
            threads: Some(threads),
            ..quick(&rows)
        };
        assert_eq!(plan(request).await, wanted);
    }
    // The model was made for 2,048 tokens.
    let view = window.app.plan(own(&rows[..1], &[512, 4096], &[], 1)).await;
    let view = view.unwrap();
    assert_eq!(view.rows.len(), 1);
    let sentence = &view.hindrances[0].sentence;
    assert!(
        sentence.contains("2,048") && sentence.contains("4,096"),
        "{sentence}"
    );
    let request = own(&rows, &[4096], &[], 1);
    assert_eq!(
        code(window.app.start_run(request).await),
        "nothing_to_measure"
    );
    let view = window
        .app
        .plan(quick(&["nobody".into(), rows[0].clone()]))
        .await;
    let view = view.unwrap();
    assert_eq!((view.rows.len(), view.hindrances.len()), (2, 1));
    assert!(
        !window.app.start().await.unwrap().running,
        "the place is free"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_replaced_since_it_was_listed_is_not_measured_under_its_old_name() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let file = window.path("models").join("a.Q8_0.gguf");
    write_model(&file, "Another One", FileType::F16);
    let refused = window.app.start_run(quick(&rows[..1])).await.unwrap_err();
    assert_eq!(refused.code, "nothing_to_measure");
    assert!(
        refused.message.contains("another model"),
        "{}",
        refused.message
    );
    // The list is read again by itself, and then it is measured as what it is.
    let listed = async || loop {
        let view = window.scanned().await;
        if view.groups.iter().any(|group| group.name == "Another One") {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let view = tokio::time::timeout(Duration::from_secs(20), listed()).await;
    let row = row(&view.unwrap(), "Another One", "F16").id.clone();
    let plan = window.app.plan(quick(&[row])).await.unwrap();
    assert_eq!(
        (plan.rows[0].name.as_str(), plan.rows.len()),
        ("Another One", 2)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_gone_is_named_without_a_word_about_terminals() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    std::fs::remove_file(window.path("models").join("a.Q8_0.gguf")).unwrap();
    let plan = window.app.plan(quick(&rows)).await.unwrap();
    let sentence = &plan.hindrances[0].sentence;
    assert!(sentence.contains("is not there any more"), "{sentence}");
    assert!(!sentence.contains('`'), "{sentence}");
    assert_eq!(plan.rows.len(), 2, "the other one is measured");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_was_removed_takes_no_run_that_would_be_lost() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    history(&window).await;
    std::fs::remove_file(window.path("data").join("history.sqlite")).unwrap();
    assert_eq!(
        code(window.app.start_run(quick(&rows)).await),
        "history_gone"
    );
    assert!(
        !window.app.start().await.unwrap().running,
        "the place is free"
    );
}
