//! Workers that die, fail or never live.

use twospeed_engine::fake::Script;
use twospeed_engine::protocol::FailureCode;

use super::*;
use crate::warning::Warning;

/// The requests of a quick plan of one model, counted from 0: load, then anchor, measure, anchor
/// for each test.
const FIRST_MEASURE: usize = 2;

#[tokio::test(start_paused = true)]
async fn a_failing_test_does_not_end_the_plan() {
    let engine = FakeEngine::new().fails_on(
        FIRST_MEASURE,
        FailureCode::ContextRefused,
        "A has no room for its context.",
    );
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    assert_eq!(
        story(&outcome),
        ["pp512 of A: context_refused", "tg128 of A: done"]
    );
    let TestStatus::Failed { message, log, .. } = &outcome.tests[0].end.status else {
        panic!("it failed");
    };
    assert_eq!(message, "A has no room for its context.");
    assert!(!log.is_empty(), "the engine's last words go with it");
    assert_eq!(
        scene.count(is_load),
        1,
        "the worker lives and keeps the model"
    );
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_worker_killed_mid_run_leaves_its_samples() {
    let engine = FakeEngine::new().dies_after_samples(2, signal(9, "SIGKILL"));
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    assert_eq!(
        story(&outcome),
        ["pp512 of A: engine_killed", "tg128 of A: done"]
    );
    assert_eq!(outcome.tests[0].samples.len(), 2);
    assert_eq!(scene.kept().samples.len(), 2 + 3);
    assert_eq!(scene.engine.starts().len(), 2, "a fresh worker went on");
    let end = &outcome.tests[0].end;
    assert!(end.state_after.is_some() && end.placement.is_some());
    assert_eq!(end.anchor_after_ns, None);
}

#[tokio::test(start_paused = true)]
async fn a_variant_that_dies_of_an_illegal_instruction_is_replaced_under_the_same_test() {
    let engine = FakeEngine::new()
        .with_variants(&["sapphirerapids", "icelake", "haswell"])
        .variant_dies("sapphirerapids");
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    assert_eq!(
        story(&outcome),
        [
            "pp512 of A: engine_illegal_instruction",
            "pp512 of A: done",
            "tg128 of A: done"
        ]
    );
    let [died, again, next] = outcome.tests.as_slice() else {
        panic!("three attempts");
    };
    assert_eq!(died.test.position, again.test.position);
    assert_ne!(died.test.id, again.test.id);
    assert_eq!(
        died.end.worker.as_ref().unwrap().variant.name,
        "sapphirerapids"
    );
    for test in [again, next] {
        assert_eq!(test.end.worker.as_ref().unwrap().variant.name, "icelake");
        assert_eq!(
            test.end.warnings,
            [Warning::VariantSetAside {
                died: "sapphirerapids".into(),
                ran: "icelake".into()
            }]
        );
    }
    let kept = scene.kept();
    let [(build, variant, reason)] = kept.set_aside.as_slice() else {
        panic!("one variant died");
    };
    assert_eq!(
        (build.build_number, variant.as_str()),
        (11434, "sapphirerapids")
    );
    assert!(reason.contains("SIGILL"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_variant_that_died_is_remembered_in_the_next_run() {
    let engine = FakeEngine::new()
        .with_variants(&["sapphirerapids", "icelake"])
        .variant_dies("sapphirerapids");
    let mut scene = Scene::of(engine);
    scene.run(&quick(&["A"])).await;
    let starts = scene.engine.starts().len();
    let outcome = scene.run(&quick(&["A"])).await;
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: done"]);
    assert_eq!(
        outcome.tests[0].end.warnings,
        [Warning::VariantSetAside {
            died: "sapphirerapids".into(),
            ran: "icelake".into()
        }]
    );
    assert_eq!(
        scene.engine.starts()[starts..]
            .iter()
            .map(|start| start.set_aside.len())
            .collect::<Vec<_>>(),
        [0, 1],
        "the build is known only from a hello"
    );
    assert_eq!(scene.kept().set_aside.len(), 1, "and it is not told twice");
}

#[tokio::test(start_paused = true)]
async fn when_every_variant_dies_the_test_fails_and_names_them() {
    let engine = FakeEngine::new()
        .with_variants(&["icelake", "haswell"])
        .variant_dies("icelake")
        .variant_dies("haswell");
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    let TestStatus::Failed { message, .. } = &outcome.tests[1].end.status else {
        panic!("the second variant died too");
    };
    assert!(message.contains("icelake, haswell"), "{message}");
    assert_eq!(outcome.end, RunEnd::Complete);
    assert!(
        scene.engine.starts().len() <= 4,
        "it does not go round in circles"
    );
}

#[tokio::test(start_paused = true)]
async fn a_variant_asked_for_by_name_is_not_replaced() {
    let engine = FakeEngine::new()
        .with_variants(&["sapphirerapids", "icelake"])
        .variant_dies("sapphirerapids");
    let mut scene = Scene::of(engine);
    let mut plan = quick(&["A"]);
    plan.tests[0].variant = Some("sapphirerapids".into());
    plan.tests[1].variant = Some("icelake".into());
    let outcome = scene.run(&plan).await;
    assert_eq!(
        story(&outcome),
        ["pp512 of A: engine_illegal_instruction", "tg128 of A: done"]
    );
    assert_eq!(
        outcome.tests[1].end.worker.as_ref().unwrap().variant.name,
        "icelake"
    );
}

#[tokio::test(start_paused = true)]
async fn a_death_before_the_hello_ends_the_run_since_no_variant_is_known() {
    let engine = FakeEngine::new().starts_with(|_, _| Some(Script::new().die(signal(4, "SIGILL"))));
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    let RunEnd::NoEngine { code, .. } = &outcome.end else {
        panic!("{:?}", outcome.end);
    };
    assert_eq!(code, "engine_illegal_instruction");
    assert_eq!(scene.kept().set_aside, []);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_aborts_while_loading_is_not_loaded_again() {
    let engine = FakeEngine::new().answers(|asked| match asked.request {
        Request::Load(load) if load.model.0.ends_with("Bad.gguf") => Some(
            Script::new()
                .log("ggml.c:1: GGML_ASSERT(x) failed")
                .die(abort()),
        ),
        _ => None,
    });
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["Bad", "A"])).await;
    assert_eq!(
        story(&outcome),
        [
            "pp512 of Bad: engine_check_failed",
            "tg128 of Bad: skipped",
            "pp512 of A: done",
            "tg128 of A: done"
        ]
    );
    assert_eq!(scene.count(is_load), 2);
    let TestStatus::Skipped { reason } = &outcome.tests[1].end.status else {
        panic!("it was skipped");
    };
    assert!(reason.contains("Bad ended the engine before"), "{reason}");
    let TestStatus::Failed { message, .. } = &outcome.tests[0].end.status else {
        panic!("it failed");
    };
    assert!(message.contains("GGML_ASSERT(x)"), "{message}");
    assert!(!reason.contains("GGML_ASSERT(x)"), "told once: {reason}");
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn one_failing_combination_does_not_kill_a_sweep() {
    // A type of KV cache that the engine's own check refuses.
    let engine = FakeEngine::new().answers(|asked| match asked.request {
        Request::Measure(measure) if measure.settings.type_v == "q4_0" => {
            Some(Script::new().die(abort()))
        }
        _ => None,
    });
    let mut scene = Scene::of(engine);
    let sweep = ["f16", "q4_0", "q8_0"].map(|type_v| Settings {
        type_v: type_v.into(),
        ..Settings::default()
    });
    let mut prefill = presets::quick();
    prefill.tests.truncate(1);
    let plan = Plan::new("bench", tests_of(&[model("A")], &sweep, &prefill));
    let outcome = scene.run(&plan).await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["done", "engine_check_failed", "done"]);
}

#[tokio::test(start_paused = true)]
async fn twelve_tests_of_which_three_fail_in_three_ways_complete_the_other_nine() {
    // Six models, two tests each. B aborts in its first test, C's first is killed, D's second is
    // refused for memory.
    let engine = FakeEngine::new().answers(|asked| match asked.request {
        Request::Measure(measure) => {
            let is_prefill = measure.spec.n_prompt > 0;
            let killed = match (asked.session, is_prefill) {
                (0, true) if asked.number == 9 => Some(abort()),
                _ => None,
            };
            killed.map(|how| Script::new().die(how))
        }
        _ => None,
    });
    let engine = engine.dies_after_samples(10, signal(9, "SIGKILL"));
    let mut scene = Scene::of(engine);
    scene.needs = Box::new(|test| {
        let refused = test.model.name == "D" && test.spec.n_gen > 0;
        Some(if refused { u64::MAX } else { 1 }.into())
    });
    let mut probe = FakeProbe {
        state: MachineState {
            memory_available_bytes: Some(1 << 30),
            ..MachineState::default()
        },
        ..FakeProbe::default()
    };
    let outcome = scene
        .run_with(
            &quick(&["A", "B", "C", "D", "E", "F"]),
            &mut probe,
            |_, _| {},
        )
        .await;
    assert_eq!(
        story(&outcome),
        [
            "pp512 of A: done",
            "tg128 of A: done",
            "pp512 of B: engine_check_failed",
            "tg128 of B: done",
            "pp512 of C: engine_killed",
            "tg128 of C: done",
            "pp512 of D: done",
            "tg128 of D: too_little_memory",
            "pp512 of E: done",
            "tg128 of E: done",
            "pp512 of F: done",
            "tg128 of F: done"
        ]
    );
    assert_eq!(
        outcome.tests[4].samples.len(),
        1,
        "what was made before the kill stands"
    );
    assert_eq!(outcome.end, RunEnd::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_death_in_the_anchor_after_does_not_undo_the_test() {
    let engine = FakeEngine::new().dies_on(FIRST_MEASURE + 1, signal(11, "SIGSEGV"));
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: done"]);
    assert_eq!(outcome.tests[0].end.anchor_after_ns, None);
    assert_eq!(scene.engine.starts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_anchor_that_fails_leaves_the_drift_unknown() {
    let engine = FakeEngine::new().fails_on(1, FailureCode::Internal, "no anchor");
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A"])).await;
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of A: done"]);
    assert_eq!(outcome.tests[0].end.anchor_before_ns, None);
    assert!(outcome.tests[0].end.anchor_after_ns.is_some());
}

#[tokio::test(start_paused = true)]
async fn without_an_engine_the_run_ends_and_says_so() {
    let engine =
        FakeEngine::new().starts_with(|_, _| Some(Script::new().die(How::Exited { code: 127 })));
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A", "B"])).await;
    let RunEnd::NoEngine { message, .. } = &outcome.end else {
        panic!("{:?}", outcome.end);
    };
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["engine_failed", "skipped", "skipped", "skipped"]);
    let TestStatus::Skipped { reason } = &outcome.tests[3].end.status else {
        panic!("it was skipped");
    };
    assert!(reason.contains(message), "{reason}");
    assert_eq!(
        scene.engine.starts().len(),
        1,
        "it is not started again and again"
    );
    assert_eq!(scene.kept().run_ends.len(), 1);
    assert!(!scene.kept().run_ends[0].2, "not every test was tried");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_leaves_between_tests_is_replaced() {
    let engine = FakeEngine::new().answers(|asked| {
        // It answers the anchor after the first test and then leaves.
        (asked.session == 0 && asked.number == FIRST_MEASURE + 1)
            .then(|| asked.usual().die(How::Exited { code: 0 }))
    });
    let mut scene = Scene::of(engine);
    let outcome = scene.run(&quick(&["A", "B"])).await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends[0], "done");
    assert_eq!(
        &ends[2..],
        ["done", "done"],
        "whatever became of the second, the plan went on"
    );
}
