//! Tests that are repeated until their mean is known.

use std::time::Duration;

use twospeed_engine::fake::Script;
use twospeed_engine::protocol::{PageCache, Sample};

use super::*;
use crate::kind::Kind;
use crate::plan::{Order, Until};
use crate::warning::Warning;

/// An engine whose repetitions take these times in milliseconds, over and over, whatever the test.
fn takes(times: &'static [u64]) -> FakeEngine {
    let made = Mutex::new(0);
    FakeEngine::new().answers(move |asked| {
        let Request::Measure(measure) = asked.request else {
            return None;
        };
        // In turn, each request makes one: the next one then. Otherwise from the start.
        let mut made = made.lock().unwrap();
        let first = if measure.repetitions == 1 { *made } else { 0 };
        *made += 1;
        let script = (0..measure.repetitions).fold(Script::new(), |script, index| {
            let ns = times[(first + index as usize) % times.len()] * 1_000_000;
            let sample = Sample {
                index,
                ns,
                involuntary_switches: None,
                major_faults: None,
                reading: None,
            };
            script.repetition(sample, Duration::ZERO)
        });
        Some(script.measured(None))
    })
}

fn plan(relative: f64, at_most: u32) -> Plan {
    let mut plan = quick(&["A"]);
    plan.tests.truncate(1);
    plan.repetitions = 3;
    plan.until = Some(Until { relative, at_most });
    plan
}

fn enough(scene: &Scene) -> usize {
    scene.count(|request| *request == Request::Enough)
}

#[tokio::test(start_paused = true)]
async fn a_quiet_test_ends_with_the_fewest() {
    let mut scene = Scene::of(takes(&[1000, 1002, 998]));
    let outcome = scene.run(&plan(0.02, 20)).await;
    let test = &outcome.tests[0];
    assert_eq!(ended(test), "done");
    assert_eq!(test.samples.len(), 3);
    assert_eq!(test.end.warnings, []);
    assert_eq!(enough(&scene), 1);
    assert_eq!(test.test.repetitions, 20, "as many as were asked for");
    let repetitions = scene.heard.iter().filter(|step| {
        matches!(
            step,
            Progress::Phase {
                phase: twospeed_engine::protocol::Phase::Repetition { .. },
                ..
            }
        )
    });
    assert_eq!(
        repetitions.count(),
        3,
        "one that does not begin is not told"
    );
}

#[tokio::test(start_paused = true)]
async fn no_fewer_than_the_plan_says_are_made() {
    let mut scene = Scene::of(takes(&[1000]));
    let mut asked = plan(0.02, 20);
    asked.repetitions = 7;
    assert_eq!(scene.run(&asked).await.tests[0].samples.len(), 7);
    asked.repetitions = 1;
    assert_eq!(scene.run(&asked).await.tests[0].samples.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_test_that_does_not_settle_ends_at_the_cap_and_says_so() {
    let mut scene = Scene::of(takes(&[800, 1200]));
    let outcome = scene.run(&plan(0.02, 6)).await;
    let test = &outcome.tests[0];
    assert_eq!(ended(test), "done");
    assert_eq!(test.samples.len(), 6);
    assert_eq!(enough(&scene), 0);
    // Of speeds 1.25 and 0.833 in turn: 2.571 * 0.2282 / sqrt(6) / 1.0417 = 0.230.
    let settled = test.end.warnings.iter().find_map(|warning| match warning {
        Warning::NotSettled { relative, target } => Some((*relative, *target)),
        _ => None,
    });
    let (relative, target) = settled.unwrap();
    assert!((relative - 0.230).abs() < 1e-3, "{relative}");
    assert_eq!(target, 0.02);
}

#[tokio::test(start_paused = true)]
async fn one_outlier_does_not_hold_a_test_up() {
    let mut scene = Scene::of(takes(&[1000, 2000, 1002, 998, 1001, 999]));
    let outcome = scene.run(&plan(0.02, 30)).await;
    let test = &outcome.tests[0];
    assert_eq!(test.samples.len(), 5);
    let outliers = test
        .end
        .warnings
        .iter()
        .any(|warning| matches!(warning, Warning::Outliers { count: 1, .. }));
    assert!(outliers, "{:?}", test.end.warnings);
}

#[tokio::test(start_paused = true)]
async fn a_first_token_is_repeated_until_it_is_known_too() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut asked = plan(0.05, 20);
    asked.tests[0].spec.n_gen = 1;
    asked.tests[0].kind = Kind::FirstToken {
        page_cache: PageCache::Warm,
    };
    let outcome = scene.run(&asked).await;
    // The fake's times lie within 1 % of each other.
    assert_eq!(outcome.tests[0].samples.len(), 3);
    assert_eq!(scene.count(is_load), 3, "no model is loaded for nothing");
}

#[tokio::test(start_paused = true)]
async fn in_turn_each_test_ends_by_itself() {
    let mut scene = Scene::of(takes(&[1000, 900, 1001, 1100, 999, 1000]));
    let mut asked = quick(&["A"]);
    asked.order = Order::Interleaved;
    asked.until = Some(Until {
        relative: 0.02,
        at_most: 4,
    });
    let outcome = scene.run(&asked).await;
    // The first gets 1000, 1001, 999; the second 900, 1100, 1000 and one more.
    let made: Vec<_> = outcome.tests.iter().map(|t| t.samples.len()).collect();
    assert_eq!(made, [3, 4]);
    let warned = |test: &TestOutcome| {
        let mut warnings = test.end.warnings.iter();
        warnings.any(|warning| matches!(warning, Warning::NotSettled { .. }))
    };
    assert!(!warned(&outcome.tests[0]) && warned(&outcome.tests[1]));
}
