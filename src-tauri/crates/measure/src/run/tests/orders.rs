//! What is asked of the engine, in which order, and what is kept.

use std::time::Duration;

use twospeed_engine::protocol::{Ability, Phase};

use super::*;
use crate::warning::Warning;

#[tokio::test(start_paused = true)]
async fn a_plan_is_measured_in_its_order_with_one_load_for_each_model() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&quick(&["A", "B"])).await;
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(
        story(&outcome),
        [
            "pp512 of A: done",
            "tg128 of A: done",
            "pp512 of B: done",
            "tg128 of B: done"
        ]
    );
    let positions: Vec<_> = outcome.tests.iter().map(|t| t.test.position).collect();
    assert_eq!(positions, [0, 1, 2, 3]);
    assert_eq!(scene.count(is_load), 2);
    assert_eq!(scene.engine.starts().len(), 1, "one worker for the plan");
}

#[tokio::test(start_paused = true)]
async fn everything_is_kept_as_it_is_returned() {
    let mut scene = Scene::of(FakeEngine::new());
    let plan = quick(&["A"]);
    let outcome = scene.run(&plan).await;
    let kept = scene.kept();
    assert_eq!(kept.runs, std::slice::from_ref(&outcome.run));
    assert_eq!(outcome.run.plan.as_ref(), Some(&plan));
    assert_eq!(outcome.run.owner_pid, std::process::id());
    let tests: Vec<_> = outcome.tests.iter().map(|t| t.test.clone()).collect();
    assert_eq!(kept.tests, tests);
    let samples: Vec<_> = outcome
        .tests
        .iter()
        .flat_map(|t| t.samples.clone())
        .collect();
    assert_eq!(kept.samples, samples);
    assert_eq!(samples.len(), 6);
    let ends: Vec<_> = outcome.tests.iter().map(|t| t.end.clone()).collect();
    assert_eq!(kept.test_ends, ends);
    let (run, _, complete) = kept.run_ends[0];
    assert_eq!((run, complete), (outcome.run.id, true));
}

#[tokio::test(start_paused = true)]
async fn a_sample_is_stored_before_the_next_section_begins() {
    let scene = Scene::of(FakeEngine::new());
    let engine = scene.engine.clone();
    let begun = Arc::new(Mutex::new(Vec::new()));
    let stored = begun.clone();
    let recorder = Before {
        act: move |asked| {
            if asked == Asked::Sample {
                let requests = engine.requests();
                let gos = requests.iter().filter(|r| **r == Request::Go).count();
                stored.lock().unwrap().push(gos);
            }
            Ok(())
        },
        inner: &scene.recorder,
    };
    let plan = quick(&["A"]);
    let outcome = run_on(&scene, &recorder, &plan).await;
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(
        *begun.lock().unwrap(),
        [1, 2, 3, 4, 5, 6],
        "when the n-th sample is stored, n sections were begun"
    );
}

/// Checks at each look at the machine that no section is being timed.
struct Watch {
    engine: FakeEngine,
    repetitions: usize,
    /// Readings of the whole state.
    readings: usize,
    begun: usize,
    ended: usize,
}

impl Watch {
    fn of(scene: &Scene) -> Self {
        Self {
            engine: scene.engine.clone(),
            repetitions: 3,
            readings: 0,
            begun: 0,
            ended: 0,
        }
    }

    fn asked(&self, what: fn(&Request) -> bool) -> usize {
        self.engine.requests().iter().filter(|r| what(r)).count()
    }

    fn gos(&self) -> usize {
        self.asked(|request| *request == Request::Go)
    }
}

impl Probe for Watch {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn read(&mut self, _worker: Option<u32>) -> Snapshot {
        let tests = self.asked(|request| matches!(request, Request::Measure(_)));
        assert_eq!(self.gos(), tests * self.repetitions, "a test is going on");
        self.readings += 1;
        Snapshot::default()
    }

    fn section_begins(&mut self) {
        assert_eq!(self.gos(), self.begun, "before it is let go");
        assert_eq!(self.ended, self.begun, "the one before has ended");
        self.begun += 1;
    }

    fn section_ended(&mut self) -> Conditions {
        self.ended += 1;
        assert_eq!(self.ended, self.begun);
        assert_eq!(self.gos(), self.begun, "and the next is not begun");
        Conditions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_machine_is_read_only_while_nothing_is_timed() {
    let mut scene = Scene::of(FakeEngine::new().with_pace(1.0));
    let mut watch = Watch::of(&scene);
    let outcome = scene.run_with(&quick(&["A"]), &mut watch, |_, _| {}).await;
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(
        watch.readings, 5,
        "once before all, and twice for each test"
    );
    assert_eq!((watch.begun, watch.ended), (6, 6), "around each section");
}

#[tokio::test(start_paused = true)]
async fn the_anchor_stands_before_and_after_each_test() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&quick(&["A"])).await;
    for test in &outcome.tests {
        assert_eq!(test.end.anchor_before_ns, Some(300_000_000));
        assert_eq!(test.end.anchor_after_ns, Some(300_000_000));
    }
    let order: Vec<_> = scene
        .engine
        .requests()
        .iter()
        .filter(|request| **request != Request::Go)
        .map(|request| match request {
            Request::Load(_) => "load",
            Request::Anchor(_) => "anchor",
            Request::Measure(_) => "measure",
            _ => "other",
        })
        .collect();
    assert_eq!(
        order,
        [
            "load", "anchor", "measure", "anchor", "anchor", "measure", "anchor"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_an_anchor_none_is_run() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = quick(&["A"]);
    plan.anchor = false;
    let outcome = scene.run(&plan).await;
    assert_eq!(outcome.tests[0].end.anchor_before_ns, None);
    assert_eq!(scene.count(|r| matches!(r, Request::Anchor(_))), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_found_stands_with_the_test() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&quick(&["A"])).await;
    for test in &outcome.tests {
        let end = &test.end;
        assert_eq!(end.worker.as_ref().unwrap().variant.name, "icelake");
        assert_eq!(end.loaded.as_ref().unwrap().load_ns, 90_000_000);
        assert!(end.placement.as_ref().unwrap().n_ctx >= 128);
        assert!(end.peak_rss_bytes.is_some());
        assert!(end.state_before.is_some() && end.state_after.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn settings_that_shape_the_load_load_again() {
    let mut scene = Scene::of(FakeEngine::new());
    let settings = |n_threads, n_gpu_layers| Settings {
        n_threads,
        n_gpu_layers,
        ..Settings::default()
    };
    let sweep = [settings(1, -1), settings(2, -1), settings(2, 0)];
    let plan = Plan::new("bench", tests_of(&[model("A")], &sweep, &presets::quick()));
    let outcome = scene.run(&plan).await;
    assert_eq!(outcome.tests.len(), 6);
    assert_eq!(scene.count(is_load), 2);
}

#[tokio::test(start_paused = true)]
async fn steps_are_told_in_their_order() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = quick(&["A"]);
    plan.tests.truncate(1);
    plan.repetitions = 2;
    scene.run(&plan).await;
    let steps: Vec<String> = scene
        .heard
        .iter()
        .filter(|step| !matches!(step, Progress::Loading { .. }))
        .map(|step| match step {
            Progress::RunStarted { tests, .. } => format!("run of {tests}"),
            Progress::EngineStarted { .. } => "engine".into(),
            Progress::TestStarted { .. } => "test".into(),
            Progress::Loading { .. } => "loading".into(),
            Progress::Phase { phase, .. } => match phase {
                Phase::Warmup => "warm-up".into(),
                Phase::Depth { .. } => "depth".into(),
                Phase::Text { .. } => "text".into(),
                Phase::Repetition { number } => format!("repetition {number}"),
            },
            Progress::Sample {
                tokens_per_second, ..
            } => format!("sample {}", tokens_per_second.is_some()),
            Progress::TestEnded { .. } => "test ended".into(),
            Progress::RunEnded { complete, .. } => format!("run ended {complete}"),
        })
        .collect();
    assert_eq!(
        steps,
        [
            "run of 1",
            "test",
            "engine",
            "warm-up",
            "repetition 1",
            "sample true",
            "repetition 2",
            "sample true",
            "test ended",
            "run ended true"
        ]
    );
    let fractions = scene
        .heard
        .iter()
        .filter(|step| matches!(step, Progress::Loading { .. }));
    assert_eq!(fractions.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_delay_is_waited_before_each_test() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = quick(&["A"]);
    plan.delay_ms = 5_000;
    let before = tokio::time::Instant::now();
    scene.run(&plan).await;
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_fit_is_refused_and_the_rest_is_measured() {
    let mut scene = Scene::of(FakeEngine::new());
    scene.needs = Box::new(|test| {
        let huge = test.model.name == "Huge";
        Some(Need::from(if huge { 9 << 30 } else { 1 << 30 }))
    });
    let mut probe = FakeProbe {
        state: MachineState {
            memory_available_bytes: Some(8 << 30),
            ..MachineState::default()
        },
        ..FakeProbe::default()
    };
    let outcome = scene
        .run_with(&quick(&["Huge", "A"]), &mut probe, |_, _| {})
        .await;
    assert_eq!(
        story(&outcome),
        [
            "pp512 of Huge: too_little_memory",
            "tg128 of Huge: too_little_memory",
            "pp512 of A: done",
            "tg128 of A: done"
        ]
    );
    assert_eq!(scene.count(is_load), 1, "the engine never saw it");
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn an_embedding_model_is_measured_where_it_is_able() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = quick(&["Embed"]);
    for test in &mut plan.tests {
        test.model.ability = Some(Ability::Embeds);
    }
    let outcome = scene.run(&plan).await;
    assert_eq!(
        story(&outcome),
        ["pp512 of Embed: done", "tg128 of Embed: not_able"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_threads_starts_nothing() {
    let scene = Scene::of(FakeEngine::new());
    let mut plan = quick(&["A"]);
    plan.tests[0].settings.n_threads = 0;
    let result = try_run_on(&scene, &scene.recorder, &plan).await;
    assert_eq!(result.unwrap_err(), PlanError::NoThreads);
    assert_eq!(scene.engine.starts(), []);
    assert_eq!(scene.kept(), Kept::default());
}

#[tokio::test(start_paused = true)]
async fn what_was_around_a_test_becomes_its_warnings() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut probe = FakeProbe {
        state: MachineState {
            swap_used_bytes: Some(1 << 30),
            ..MachineState::default()
        },
        ..FakeProbe::default()
    };
    let outcome = scene.run_with(&quick(&["A"]), &mut probe, |_, _| {}).await;
    assert_eq!(
        outcome.tests[0].end.warnings,
        [Warning::SwapInUse { bytes: 1 << 30 }]
    );
}

#[tokio::test(start_paused = true)]
async fn the_article_preset_makes_five_samples_of_each_speed() {
    let mut scene = Scene::of(FakeEngine::new());
    let plan = Plan::of(&presets::article(), &[model("A")], &Settings::default());
    let outcome = scene.run(&plan).await;
    let samples: Vec<_> = outcome.tests.iter().map(|t| t.samples.len()).collect();
    assert_eq!(samples, [5, 5]);
}

/// The window runs plans on a runtime with several threads.
#[tokio::test]
async fn a_run_may_move_between_threads() {
    fn moves<T: Send>(future: T) -> T {
        future
    }
    let scene = Scene::of(FakeEngine::new());
    let outcome = moves(run_on(&scene, &scene.recorder, &quick(&["A"]))).await;
    assert_eq!(outcome.end, RunEnd::Complete);
}

async fn try_run_on(
    scene: &Scene,
    recorder: &dyn Recorder,
    plan: &Plan,
) -> Result<RunOutcome, PlanError> {
    let lease = lease();
    let bench = Bench {
        recorder,
        ..scene.bench(&lease)
    };
    bench
        .run(plan, &mut FakeProbe::default(), &scene.stop, &mut |_| {})
        .await
}

pub(super) async fn run_on(scene: &Scene, recorder: &dyn Recorder, plan: &Plan) -> RunOutcome {
    try_run_on(scene, recorder, plan).await.unwrap()
}
