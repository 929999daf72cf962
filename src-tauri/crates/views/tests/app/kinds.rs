//! Runs that are more than both speeds, and runs that go on.

use std::time::Duration;

use twospeed_engine::FakeEngine;
use twospeed_views::measure::*;

use crate::Window;
use crate::measure::{Page, code, end_of, ended, ends, follow, quick, run, until, with_models};

fn asked(models: &[String], tests: Tests) -> PlanRequest {
    PlanRequest {
        tests,
        ..quick(models)
    }
}

fn users(users: &[u32]) -> Tests {
    Tests::Users {
        users: users.to_vec(),
        prompt: 16,
        generate: 8,
        split_kv: false,
        shared_prompt: false,
    }
}

/// Position, value and what was found of each sample.
fn samples(steps: &[RunStep]) -> Vec<(u32, f64, &Found)> {
    steps
        .iter()
        .filter_map(|step| match step {
            RunStep::Sample {
                position,
                value,
                found,
                ..
            } => Some((*position, *value, found)),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_told_together_and_each() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let steps = run(&window, asked(&rows[..1], users(&[1, 4]))).await;
    assert_eq!(end_of(&steps).0, &RunEnd::Complete);
    let samples = samples(&steps);
    assert_eq!(samples.len(), 6);
    for (position, together, found) in samples {
        let Found::Users {
            each,
            median,
            worst,
            ..
        } = found
        else {
            panic!("{found:?}");
        };
        let users = [1.0, 4.0][position as usize];
        assert!((together / each - users).abs() < 1e-6, "{together}, {each}");
        assert!(worst >= median);
    }
    let RunStep::Asked { plan, .. } = &steps[0] else {
        panic!("{:?}", steps[0]);
    };
    assert!(matches!(plan.rows[1].what, RowKind::Users { users: 4, .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_token_and_a_prefix_cache_are_told_with_their_parts() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let first = Tests::FirstToken {
        prompt: 64,
        cache: FileCaches::Each,
    };
    let steps = run(&window, asked(&rows[..1], first)).await;
    assert_eq!(end_of(&steps).0, &RunEnd::Complete);
    let told = samples(&steps);
    assert_eq!(told.len(), 6, "cold and warm, three times each");
    for (_, seconds, found) in told {
        let Found::FirstToken {
            load: Some(load),
            context,
            tokenize,
            prefill,
            sample,
            ..
        } = found
        else {
            panic!("{found:?}");
        };
        let parts = load + context.unwrap_or(0.0) + tokenize + prefill + sample;
        assert!((parts - seconds).abs() < 1e-6, "{parts} is not {seconds}");
    }
    let cache = Tests::PrefixCache {
        prompt: 64,
        changed: 16,
    };
    let steps = run(&window, asked(&rows[..1], cache)).await;
    for (_, again, found) in samples(&steps) {
        let Found::PrefixCache { requests } = found else {
            panic!("{found:?}");
        };
        let reused: Vec<_> = requests.iter().map(|one| one.reused).collect();
        assert_eq!(reused, [0, 63, 48]);
        assert_eq!(again, requests[1].ttft);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_face_off_judges_what_is_smaller_against_what_is_larger() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let tests = Tests::FaceOff {
        base: None,
        quality: true,
    };
    let plan = window.app.plan(asked(&rows, tests)).await.unwrap();
    let judged: Vec<_> = plan
        .rows
        .iter()
        .filter_map(|row| match &row.what {
            RowKind::Quality { base, .. } => Some((row.quantization.as_str(), base.as_deref())),
            _ => None,
        })
        .collect();
    // Random weights predict nothing that is right, so nothing is held against them.
    assert!(judged.is_empty(), "{judged:?}");
    assert_eq!(plan.rows.len(), 4, "both speeds of both");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_in_turn_are_told_each_with_its_own_samples() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let tests = Tests::Own {
        prompt: vec![16],
        generate: vec![8],
        depth: Vec::new(),
        repetitions: 3,
        until: None,
        interleaved: true,
        sweep: Box::default(),
    };
    let steps = run(&window, asked(&rows[..1], tests)).await;
    let order: Vec<u32> = samples(&steps)
        .iter()
        .map(|(position, ..)| *position)
        .collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
    let ends = ends(&steps);
    assert_eq!(ends, [(0, &TestEnd::Done), (1, &TestEnd::Done)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_run_goes_on_with_what_is_missing() {
    let (window, rows) = with_models(FakeEngine::new().with_pace(0.1)).await;
    assert_eq!(window.app.resumable().await.unwrap(), None);
    window.app.start_run(quick(&rows)).await.unwrap();
    let mut heard = follow(&window.app, Page::Sleeps);
    until(&mut heard, |step| matches!(step, RunStep::Sample { .. })).await;
    window.app.stop_run(StopHow::AfterTest).await.unwrap();
    let first = ended(&mut heard).await;
    let found = window.app.resumable().await.unwrap().unwrap();
    assert_eq!((found.missing, found.of, found.interrupted), (3, 4, false));
    assert_eq!(found.models.len(), 2);

    window.app.resume_run(found.run.clone()).await.unwrap();
    let steps = ended(&mut follow(&window.app, Page::Sleeps)).await;
    assert_eq!(end_of(&steps).0, &RunEnd::Complete);
    let RunStep::Asked { plan, .. } = &steps[0] else {
        panic!("{:?}", steps[0]);
    };
    assert_eq!((plan.rows.len(), &plan.asked), (4, &None));
    let done: Vec<u32> = ends(&steps).iter().map(|(position, _)| *position).collect();
    assert_eq!(done, [0, 1, 2, 3], "the kept one is told first");
    let of_first = |steps: &[RunStep]| -> Vec<f64> {
        let of = samples(steps)
            .into_iter()
            .filter(|(position, ..)| *position == 0);
        of.map(|(_, value, _)| value).collect()
    };
    assert_eq!(
        of_first(&steps),
        of_first(&first),
        "as it was measured then"
    );
    assert!(steps.contains(&RunStep::Started {
        run: found.run.clone()
    }));
    assert_eq!(
        window.app.resumable().await.unwrap(),
        None,
        "nothing is missing"
    );
    code(window.app.resume_run(found.run).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_model_is_gone_does_not_go_on() {
    let (window, rows) = with_models(FakeEngine::new().with_pace(0.1)).await;
    window.app.start_run(quick(&rows[..1])).await.unwrap();
    let mut heard = follow(&window.app, Page::Sleeps);
    until(&mut heard, |step| matches!(step, RunStep::Sample { .. })).await;
    window.app.stop_run(StopHow::Now).await.unwrap();
    ended(&mut heard).await;
    let found = window.app.resumable().await.unwrap().unwrap();
    std::fs::remove_file(window.path("models").join("a.Q8_0.gguf")).unwrap();
    assert_eq!(code(window.app.resume_run(found.run).await), "model_gone");
    assert!(
        !window.app.start().await.unwrap().running,
        "the place is free"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_raced_and_what_came_of_it_is_told() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let tests = Tests::Tune {
        target: TuneFor::Decode,
    };
    let plan = window.app.plan(asked(&rows[..1], tests.clone())).await;
    let plan = plan.unwrap();
    assert_eq!((plan.rows.len(), plan.rows[0].unit), (1, Unit::Gain));
    let steps = run(&window, asked(&rows[..1], tests)).await;
    assert_eq!(end_of(&steps), (&RunEnd::Complete, &[][..]));
    let stages = steps.iter().filter(|step| {
        matches!(
            step,
            RunStep::Tuning {
                what: TuneStep::Stage { .. },
                ..
            }
        )
    });
    assert!(stages.count() >= 1);
    let found = steps.iter().find_map(|step| match step {
        RunStep::TestEnded {
            position: 0,
            end,
            mean,
            found,
            ..
        } => Some((end.clone(), *mean, found.clone())),
        _ => None,
    });
    let Some((TestEnd::Done, Some(gain), Some(Found::Tuned { usual, .. }))) = found else {
        panic!("{found:?}");
    };
    assert!(gain >= 1.0, "never below the usual settings: {gain}");
    assert!(usual.decode.is_some());
}

async fn offers(window: &Window, rows: &[String]) -> Offers {
    let request = OffersRequest {
        models: rows.to_vec(),
        tests: vec![
            Tests::Quick,
            users(&[]),
            Tests::Sustained { minutes: 10 },
            Tests::Tune {
                target: TuneFor::Decode,
            },
        ],
        threads: None,
    };
    window.app.offers(request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_each_choice_would_take_is_known_after_a_run() {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let before = offers(&window, &rows[..1]).await;
    assert_eq!(
        (before.offers[0].tests, before.offers[0].seconds),
        (2, None)
    );
    let refused = before.offers[1].why_not.as_deref().unwrap();
    assert!(refused.ends_with('.'), "{refused}");
    assert_eq!(before.offers[2].seconds, Some(600.0));
    assert!(before.variants.is_empty() && before.gpus.is_empty());
    run(&window, quick(&rows[..1])).await;
    let known = async || loop {
        let offers = offers(&window, &rows[..1]).await;
        if !offers.variants.is_empty() {
            return offers;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let after = tokio::time::timeout(Duration::from_secs(20), known()).await;
    let after = after.expect("the engine never named its variants");
    assert!(after.offers[0].seconds.is_some());
    assert!(after.offers[3].seconds.is_some(), "of a race too");
    assert!(after.gpus.is_empty());
}
