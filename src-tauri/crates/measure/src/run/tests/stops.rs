//! Runs that are stopped, by the person or by a recorder that cannot keep any more.

use twospeed_engine::protocol::Phase;

use super::orders::run_on;
use super::*;

fn is_second_sample(step: &Progress) -> bool {
    matches!(step, Progress::Sample { sample, .. } if sample.sample.index == 1)
}

fn reasons(outcome: &RunOutcome) -> Vec<&str> {
    outcome
        .tests
        .iter()
        .filter_map(|test| match &test.end.status {
            TestStatus::Skipped { reason } => Some(reason.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_keeps_what_is_done() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0));
    let outcome = scene
        .run_with(
            &quick(&["A", "B"]),
            &mut FakeProbe::default(),
            |step, stop| {
                if is_second_sample(step) {
                    stop.now();
                }
            },
        )
        .await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["cancelled", "skipped", "skipped", "skipped"]);
    assert_eq!(outcome.end, RunEnd::Stopped);
    assert_eq!(outcome.tests[0].samples.len(), 2);
    assert_eq!(scene.kept().samples.len(), 2);
    assert!(reasons(&outcome)[0].contains("stopped"));
    let (_, _, complete) = scene.kept().run_ends[0];
    assert!(!complete);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_inside_a_timed_section_does_not_wait_for_its_end() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1000.0));
    let stop = scene.stop.clone();
    let mut began = None;
    let outcome = scene
        .run_with(&quick(&["A"]), &mut FakeProbe::default(), |step, _| {
            let section = matches!(
                step,
                Progress::Phase {
                    phase: Phase::Repetition { .. },
                    ..
                }
            );
            if section {
                assert_eq!(began, None, "only one section begins");
                began = Some(tokio::time::Instant::now());
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                    stop.now();
                });
            }
        })
        .await;
    assert_eq!(ended(&outcome.tests[0]), "cancelled");
    assert_eq!(outcome.tests[0].samples, []);
    // The section would take about 880 s at this pace.
    let took = began.unwrap().elapsed().as_secs_f64();
    assert!((1.0..2.5).contains(&took), "{took} s");
}

/// Stops the run a moment after a step that an anchor follows.
async fn stopped_while_an_anchor_runs(after: fn(&Progress) -> bool) -> RunOutcome {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0));
    let stop = scene.stop.clone();
    let plan = quick(&["A"]);
    let mut probe = FakeProbe::default();
    let run = scene.run_with(&plan, &mut probe, |step, _| {
        if after(step) {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                stop.now();
            });
        }
    });
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), run).await;
    ended.expect("a stopped run comes to its end")
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_anchor_before_a_test_runs_cancels_the_test() {
    let outcome = stopped_while_an_anchor_runs(
        |step| matches!(step, Progress::Loading { fraction, .. } if *fraction == 1.0),
    )
    .await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["cancelled", "skipped"]);
    assert_eq!(outcome.tests[0].samples, []);
    assert_eq!(outcome.end, RunEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_anchor_after_a_test_runs_leaves_the_test_done() {
    let outcome = stopped_while_an_anchor_runs(
        |step| matches!(step, Progress::Sample { sample, .. } if sample.sample.index == 2),
    )
    .await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["done", "skipped"]);
    assert_eq!(outcome.end, RunEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_hears_no_cancel_is_killed_and_the_test_is_cancelled() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0).deaf());
    let stop = scene.stop.clone();
    let outcome = scene
        .run_with(&quick(&["A"]), &mut FakeProbe::default(), |step, _| {
            if matches!(step, Progress::Sample { .. }) {
                stop.now();
            }
        })
        .await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["cancelled", "skipped"]);
    assert_eq!(outcome.tests[0].samples.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_stopped_after_the_test_that_runs() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene
        .run_with(&quick(&["A"]), &mut FakeProbe::default(), |step, stop| {
            if is_second_sample(step) {
                stop.after_test();
            }
        })
        .await;
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: skipped"]);
    assert_eq!(outcome.tests[0].samples.len(), 3);
    assert_eq!(outcome.end, RunEnd::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_before_its_first_test_starts_no_engine() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene
        .run_with(&quick(&["A"]), &mut FakeProbe::default(), |step, stop| {
            if matches!(step, Progress::RunStarted { .. }) {
                stop.after_test();
            }
        })
        .await;
    assert_eq!(
        story(&outcome),
        ["pp512 of A: skipped", "tg128 of A: skipped"]
    );
    assert_eq!(scene.engine.starts(), []);
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_the_last_test_leaves_the_run_complete() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene
        .run_with(&quick(&["A"]), &mut FakeProbe::default(), |step, stop| {
            if matches!(step, Progress::TestStarted { test } if test.position == 1) {
                stop.after_test();
            }
        })
        .await;
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: done"]);
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_delay_can_be_cancelled() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = quick(&["A"]);
    plan.delay_ms = 3_600_000;
    let begin = tokio::time::Instant::now();
    let outcome = scene
        .run_with(&plan, &mut FakeProbe::default(), |step, stop| {
            if matches!(step, Progress::Loading { fraction, .. } if *fraction == 1.0) {
                stop.now();
            }
        })
        .await;
    assert_eq!(ended(&outcome.tests[0]), "cancelled");
    assert!(begin.elapsed().as_secs() < 60);
}

pub(super) fn full_disk() -> RecorderError {
    RecorderError {
        message: "The disk of /data is full. Make room and measure again.".into(),
    }
}

/// Refuses the n-th (from 1) of what it is asked to keep.
pub(super) fn refuses(
    what: Asked,
    nth: usize,
    inner: &InMemory,
) -> Before<'_, impl Fn(Asked) -> Result<(), RecorderError> + Send + Sync> {
    let asked = Mutex::new(0);
    Before {
        act: move |now| {
            if now != what {
                return Ok(());
            }
            let mut asked = asked.lock().unwrap();
            *asked += 1;
            if *asked == nth {
                Err(full_disk())
            } else {
                Ok(())
            }
        },
        inner,
    }
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_cannot_be_stored_ends_the_run_and_loses_nothing_before() {
    let scene = Scene::of(FakeEngine::new());
    let recorder = refuses(Asked::Sample, 5, &scene.recorder);
    let outcome = run_on(&scene, &recorder, &quick(&["A", "B"])).await;
    assert_eq!(outcome.end, RunEnd::NotKept(full_disk()));
    assert_eq!(
        story(&outcome),
        ["pp512 of A: done", "tg128 of A: not_stored"],
        "no other test is begun"
    );
    let kept = scene.kept();
    assert_eq!(kept.samples.len(), 4);
    assert_eq!(
        outcome.tests[1].samples.len(),
        1,
        "only what is stored is shown"
    );
    assert_eq!(kept.test_ends.len(), 2, "the end could be stored");
    let (_, _, complete) = kept.run_ends[0];
    assert!(!complete);
    let gos = scene.count(|request| *request == Request::Go);
    assert_eq!(gos, 5, "no section was begun after it");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_stored_is_not_begun() {
    for (what, starts) in [(Asked::RunStarted, 0), (Asked::TestStarted, 0)] {
        let scene = Scene::of(FakeEngine::new());
        let recorder = refuses(what, 1, &scene.recorder);
        let outcome = run_on(&scene, &recorder, &quick(&["A"])).await;
        assert_eq!(outcome.end, RunEnd::NotKept(full_disk()), "{what:?}");
        assert_eq!(scene.engine.starts().len(), starts, "{what:?}");
        assert_eq!(outcome.tests, []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_stored_is_told() {
    for what in [Asked::TestEnded, Asked::RunEnded] {
        let scene = Scene::of(FakeEngine::new());
        let recorder = refuses(what, 1, &scene.recorder);
        let outcome = run_on(&scene, &recorder, &quick(&["A"])).await;
        assert_eq!(outcome.end, RunEnd::NotKept(full_disk()), "{what:?}");
        assert!(scene.kept().samples.len() >= 3);
    }
}
