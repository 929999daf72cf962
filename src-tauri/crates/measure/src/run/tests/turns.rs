//! Tests that take turns: A B A B, or for a set time.

use twospeed_engine::fake::Script;

use super::orders::run_on;
use super::stops::{full_disk, refuses};
use super::*;
use crate::kind::Kind;
use crate::plan::Order;

fn in_turn(models: &[&str]) -> Plan {
    Plan {
        order: Order::Interleaved,
        ..quick(models)
    }
}

/// The model and position of each sample, in the order they were made.
fn samples(scene: &Scene) -> Vec<u32> {
    let kept = scene.kept();
    let position = |id| kept.tests.iter().find(|t| t.id == id).unwrap().position;
    kept.samples.iter().map(|s| position(s.test)).collect()
}

fn warmups(scene: &Scene) -> usize {
    scene.count(|request| matches!(request, Request::Measure(measure) if measure.warmup))
}

#[tokio::test(start_paused = true)]
async fn tests_of_one_model_take_turns_without_loading_again() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&in_turn(&["A"])).await;
    assert_eq!(samples(&scene), [0, 1, 0, 1, 0, 1]);
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: done"]);
    for test in &outcome.tests {
        let indices: Vec<_> = test.samples.iter().map(|s| s.sample.index).collect();
        assert_eq!(indices, [0, 1, 2]);
        assert_eq!(test.test.repetitions, 3);
    }
    assert_eq!(scene.count(is_load), 1);
    assert_eq!(warmups(&scene), 6, "each turn has a context of its own");
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn tests_of_different_models_load_at_each_turn() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = in_turn(&["A", "B"]);
    plan.tests.retain(|test| test.spec.n_gen == 0);
    scene.run(&plan).await;
    assert_eq!(samples(&scene), [0, 1, 0, 1, 0, 1]);
    assert_eq!(scene.count(is_load), 6);
    assert_eq!(warmups(&scene), 6);
}

#[tokio::test(start_paused = true)]
async fn the_anchor_stands_before_the_first_turn_and_after_the_last() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&in_turn(&["A"])).await;
    let order: String = scene
        .engine
        .requests()
        .iter()
        .filter_map(|request| match request {
            Request::Anchor(_) => Some('a'),
            Request::Measure(measure) if measure.spec.n_prompt > 0 => Some('P'),
            Request::Measure(_) => Some('T'),
            _ => None,
        })
        .collect();
    assert_eq!(order, "aPaTPTPaTa");
    for test in &outcome.tests {
        assert!(test.end.anchor_before_ns.is_some() && test.end.anchor_after_ns.is_some());
        assert!(test.end.state_before.is_some() && test.end.state_after.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_one_test_and_the_others_go_on() {
    // The second turn of pp512 of B ends the engine.
    let turns = Mutex::new(0);
    let engine = FakeEngine::new().answers(move |asked| match asked.request {
        Request::Measure(measure) if measure.spec.n_prompt > 0 => {
            let mut turns = turns.lock().unwrap();
            *turns += 1;
            // A B A B: the fourth.
            (*turns == 4).then(|| Script::new().die(signal(9, "SIGKILL")))
        }
        _ => None,
    });
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&in_turn(&["A", "B"])).await;
    assert_eq!(
        story(&outcome),
        [
            "pp512 of B: engine_killed",
            "pp512 of A: done",
            "tg128 of A: done",
            "tg128 of B: done"
        ]
    );
    let made: Vec<_> = outcome.tests.iter().map(|t| t.samples.len()).collect();
    assert_eq!(made, [1, 3, 3, 3]);
    assert_eq!(scene.engine.starts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_test_is_not_made_of_two_cpu_variants() {
    // The best variant dies in the second turn of tg128; pp512 has two samples by then.
    let turns = Mutex::new(0);
    let engine = FakeEngine::new()
        .with_variants(&["icelake", "haswell"])
        .answers(move |asked| match asked.request {
            Request::Measure(measure) if measure.spec.n_gen > 0 => {
                let mut turns = turns.lock().unwrap();
                *turns += 1;
                (*turns == 2).then(|| Script::new().die(signal(4, "SIGILL")))
            }
            _ => None,
        });
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&in_turn(&["A"])).await;
    assert_eq!(
        story(&outcome),
        [
            "tg128 of A: engine_illegal_instruction",
            "pp512 of A: variant_changed",
            "tg128 of A: done",
            "pp512 of A: done"
        ]
    );
    for test in &outcome.tests[2..] {
        assert_eq!(test.samples.len(), 3);
        assert_eq!(test.end.worker.as_ref().unwrap().variant.name, "haswell");
    }
    assert_eq!(outcome.tests[1].samples.len(), 2, "they stay");
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_stop_now_cancels_all_that_are_open() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0));
    let mut made = 0;
    let outcome = scene
        .run_with(
            &in_turn(&["A", "B"]),
            &mut FakeProbe::default(),
            |step, stop| {
                made += u32::from(matches!(step, Progress::Sample { .. }));
                if made == 3 {
                    stop.now();
                }
            },
        )
        .await;
    let mut story = story(&outcome);
    story.sort();
    assert_eq!(
        story,
        [
            "pp512 of A: cancelled",
            "pp512 of B: cancelled",
            "tg128 of A: cancelled",
            "tg128 of B: cancelled"
        ]
    );
    assert_eq!(outcome.end, RunEnd::Stopped);
    assert_eq!(scene.kept().test_ends.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_first_turn_leaves_the_rest_untried() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0));
    let outcome = scene
        .run_with(
            &in_turn(&["A", "B"]),
            &mut FakeProbe::default(),
            |step, stop| {
                if matches!(step, Progress::Sample { .. }) {
                    stop.now();
                }
            },
        )
        .await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["cancelled", "cancelled", "skipped", "skipped"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_the_test_ends_the_turn_that_goes_on() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene
        .run_with(&in_turn(&["A"]), &mut FakeProbe::default(), |step, stop| {
            if matches!(step, Progress::Sample { .. }) {
                stop.after_test();
            }
        })
        .await;
    assert_eq!(samples(&scene), [0, 1]);
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["cancelled", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_cannot_be_stored_ends_all_that_are_open() {
    let scene = Scene::of(FakeEngine::new());
    let recorder = refuses(Asked::Sample, 4, &scene.recorder);
    let outcome = run_on(&scene, &recorder, &in_turn(&["A"])).await;
    assert_eq!(outcome.end, RunEnd::NotKept(full_disk()));
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["not_stored", "not_stored"]);
    assert_eq!(scene.kept().samples.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn without_an_engine_what_is_open_says_so() {
    let engine = FakeEngine::new()
        .starts_with(|_, start| (start > 0).then(|| Script::new().die(How::Exited { code: 127 })));
    let engine = engine.dies_after_samples(3, signal(9, "SIGKILL"));
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&in_turn(&["A"])).await;
    assert_eq!(
        story(&outcome),
        ["pp512 of A: engine_killed", "tg128 of A: engine_failed"]
    );
    assert!(matches!(outcome.end, RunEnd::NoEngine { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_sustained_run_takes_turns_until_the_time_is_up() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0));
    let mut plan = quick(&["A"]);
    plan.order = Order::Sustained { seconds: 60 };
    let begin = tokio::time::Instant::now();
    let outcome = scene.run(&plan).await;
    let took = begin.elapsed().as_secs_f64();
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: done"]);
    // pp512 takes 0.88 s and tg128 1.44 s, each with a warm-up as long: some 13 rounds.
    let made = samples(&scene);
    assert!((24..=28).contains(&made.len()), "{}", made.len());
    assert!(
        made.chunks(2).all(|turn| turn[0] == 0),
        "in turn to the end"
    );
    // The last turn and two anchors end after the time.
    assert!((60.0..64.0).contains(&took), "{took}");
    assert!(
        outcome
            .tests
            .iter()
            .all(|t| t.end.anchor_after_ns.is_some())
    );
}

#[tokio::test(start_paused = true)]
async fn a_sustained_run_makes_at_least_one_of_each() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(100.0));
    let mut plan = quick(&["A", "B"]);
    plan.order = Order::Sustained { seconds: 1 };
    let outcome = scene.run(&plan).await;
    let made: Vec<_> = outcome.tests.iter().map(|t| t.samples.len()).collect();
    assert_eq!(made, [1, 1, 1, 1]);
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["done"; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_death_in_the_last_turn_leaves_the_others_done() {
    // pp512 outlasts the time, and tg128, which has its one turn all the same, ends the engine.
    let engine = FakeEngine::new().with_pace(100.0);
    let engine = engine.answers(|asked| match asked.request {
        Request::Measure(measure) if measure.spec.n_gen > 0 => {
            Some(Script::new().die(signal(9, "SIGKILL")))
        }
        _ => None,
    });
    let mut scene = Scene::of(engine);
    let mut plan = quick(&["A"]);
    plan.order = Order::Sustained { seconds: 1 };
    let outcome = scene.run(&plan).await;
    assert_eq!(
        story(&outcome),
        ["tg128 of A: engine_killed", "pp512 of A: done"]
    );
    let done = &outcome.tests[1].end;
    assert!(done.anchor_before_ns.is_some());
    assert_eq!(done.anchor_after_ns, None, "nobody is there to run it");
}

#[tokio::test(start_paused = true)]
async fn what_is_judged_once_takes_one_turn() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = in_turn(&["A"]);
    plan.tests[1].spec = plan.tests[0].spec;
    plan.tests[1].kind = Kind::Quality {
        n_ctx: 256,
        text: None,
        base: None,
    };
    scene.run(&plan).await;
    assert_eq!(samples(&scene), [0, 1, 0, 0]);
}
