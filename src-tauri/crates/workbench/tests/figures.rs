//! From measured tests of every kind to their figures, over the scripted engine and a real history.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use support::model;
use twospeed_chart::{Divergence, Frame, Part, Request};
use twospeed_engine::protocol::{PageCache, Reading};
use twospeed_engine::{Settings, TestSpec};
use twospeed_history::{RunFilter, Suspect, WholeRun};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::Order;
use twospeed_measure::{Kind, PlannedTest};
use twospeed_workbench::figures::{figure, row_sources, series};
use twospeed_workbench::{FigureInput, FigureKind};

fn small() -> MeasuredModel {
    model("Small", "Q4_0", 92_000_000)
}

fn test(
    model: &MeasuredModel,
    kind: Kind,
    (n_prompt, n_gen, n_depth): (u32, u32, u32),
) -> PlannedTest {
    PlannedTest {
        model: model.clone(),
        settings: Settings {
            n_threads: 2,
            ..Settings::default()
        },
        spec: TestSpec {
            n_prompt,
            n_gen,
            n_depth,
        },
        kind,
        variant: None,
    }
}

/// Runs a plan of three repetitions with the scripted engine; what the history then has.
async fn measured(tests: Vec<PlannedTest>) -> Vec<WholeRun> {
    let folder = tempfile::tempdir().unwrap();
    let history = support::measure(folder.path(), tests).await;
    history.whole_runs(&RunFilter::default()).await.unwrap()
}

/// The figure of all that there is for it, drawn once.
fn figure_of(kind: FigureKind, runs: &[WholeRun]) -> FigureInput {
    let sources = series(kind, runs);
    let input = figure(kind, &sources, runs, &TimeZone::UTC).unwrap();
    let drawn = input.draw(&Frame::default()).unwrap();
    assert_eq!(drawn.data.rows.len(), row_sources(kind, &sources).len());
    input
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

#[tokio::test]
async fn a_context_curve_has_the_historys_numbers_at_each_depth() {
    let mut tests = Vec::new();
    for depth in [0, 512, 1024] {
        tests.push(test(&small(), Kind::Speed, (512, 0, depth)));
        tests.push(test(&small(), Kind::Speed, (0, 64, depth)));
    }
    let runs = measured(tests).await;
    let FigureInput::Context(input) = figure_of(FigureKind::Context, &runs) else {
        panic!("another figure");
    };
    assert_eq!(input.series.len(), 1);
    let decode = &input.series[0].decode;
    let depths: Vec<f64> = decode.iter().map(|point| point.place).collect();
    assert_eq!(depths, [0.0, 512.0, 1024.0]);
    let at_depth = runs[0]
        .tests
        .iter()
        .find(|test| test.record.spec.n_depth == 512 && test.record.spec.n_gen == 64);
    let by_hand: Vec<f64> = at_depth
        .unwrap()
        .samples
        .iter()
        .map(|record| 1e9 * 64.0 / record.sample.ns as f64)
        .collect();
    assert_eq!(decode[1].value.as_ref().unwrap().samples, by_hand);
    assert_eq!(input.prefill_test.as_deref(), Some("reading 512 tokens"));
    assert!(
        input.subtitle.contains("logarithmic axis"),
        "{}",
        input.subtitle
    );
    assert!(
        input.footer[0].contains("Small-Q4_0.gguf"),
        "{:?}",
        input.footer
    );
}

#[tokio::test]
async fn one_depth_alone_is_no_curve() {
    let runs = measured(vec![
        test(&small(), Kind::Speed, (512, 0, 512)),
        test(&small(), Kind::Speed, (0, 64, 512)),
    ])
    .await;
    assert!(series(FigureKind::Context, &runs).is_empty());
    assert!(figure(FigureKind::Context, &[], &runs, &TimeZone::UTC).is_none());
    let sentence = FigureKind::Context.nothing();
    assert!(sentence.contains("--context-curve"), "{sentence}");
}

#[tokio::test]
async fn other_settings_are_another_line_and_named() {
    let mut tests = Vec::new();
    for threads in [2, 1] {
        for depth in [0, 512] {
            let mut test = test(&small(), Kind::Speed, (0, 64, depth));
            test.settings.n_threads = threads;
            tests.push(test);
        }
    }
    let runs = measured(tests).await;
    let FigureInput::Context(input) = figure_of(FigureKind::Context, &runs) else {
        panic!("another figure");
    };
    let mut details: Vec<_> = input
        .series
        .iter()
        .map(|series| series.name.detail.clone().unwrap())
        .collect();
    details.sort();
    assert_eq!(details, ["1 thread", "2 threads"]);
}

#[tokio::test]
async fn lines_that_are_equal_in_everything_are_told_apart_by_their_time() {
    let plan = || {
        vec![
            test(&small(), Kind::Speed, (0, 64, 0)),
            test(&small(), Kind::Speed, (0, 64, 512)),
        ]
    };
    let mut runs = measured(plan()).await;
    runs.extend(measured(plan()).await);
    let FigureInput::Context(input) = figure_of(FigureKind::Context, &runs) else {
        panic!("another figure");
    };
    assert_eq!(input.series.len(), 2);
    assert!(
        input
            .series
            .iter()
            .all(|series| series.name.detail.is_some())
    );
}

fn users(users: u32, split_kv: bool) -> Kind {
    Kind::Users {
        users,
        split_kv,
        shared_prompt: false,
    }
}

#[tokio::test]
async fn users_are_counted_as_llama_batched_bench_counts_them() {
    let tests = [1, 2, 4].map(|count| test(&small(), users(count, false), (128, 32, 0)));
    let runs = measured(tests.into()).await;
    let FigureInput::Users(input) = figure_of(FigureKind::Users, &runs) else {
        panic!("another figure");
    };
    let four = runs[0]
        .tests
        .iter()
        .find(|test| test.record.kind.sequences() == 4)
        .unwrap();
    let Some(Reading::Users(reading)) = &four.samples[0].sample.reading else {
        panic!("no reading");
    };
    let together = input.series[0].together[2].value.as_ref().unwrap();
    let each = input.series[0].each[2].value.as_ref().unwrap();
    near(
        together.samples[0],
        4.0 * 32.0 * 1e9 / reading.decode_ns as f64,
    );
    near(each.samples[0], together.samples[0] / 4.0);
    let mut waits = reading.ttft_ns.clone();
    waits.sort_unstable();
    let worst = input.series[0].worst_wait_ms[2].value.as_ref().unwrap();
    near(worst.samples[0], waits[3] as f64 / 1e6);
    let median = input.series[0].median_wait_ms[2].value.as_ref().unwrap();
    near(median.samples[0], (waits[1] + waits[2]) as f64 / 2e6);
    assert!(
        input.subtitle.contains("Shared cache."),
        "{}",
        input.subtitle
    );
}

#[tokio::test]
async fn a_split_cache_is_another_line() {
    let tests = [false, true]
        .into_iter()
        .flat_map(|split| [1, 2].map(|count| test(&small(), users(count, split), (128, 32, 0))));
    let runs = measured(tests.collect()).await;
    let FigureInput::Users(input) = figure_of(FigureKind::Users, &runs) else {
        panic!("another figure");
    };
    let details: Vec<_> = input
        .series
        .iter()
        .map(|series| series.name.detail.as_deref())
        .collect();
    assert_eq!(details, [Some("shared cache"), Some("split cache")]);
}

#[tokio::test]
async fn waits_are_the_sums_of_their_parts_and_reused_tokens_are_told() {
    let first = |page_cache| test(&small(), Kind::FirstToken { page_cache }, (512, 16, 0));
    let runs = measured(vec![
        first(PageCache::Warm),
        first(PageCache::Drop),
        test(&small(), Kind::PrefixCache { changed: 32 }, (512, 16, 0)),
    ])
    .await;
    let FigureInput::FirstToken(input) = figure_of(FigureKind::FirstToken, &runs) else {
        panic!("another figure");
    };
    let requests: Vec<_> = input.waits.iter().map(|wait| wait.request).collect();
    assert_eq!(
        requests,
        [
            Request::Cold,
            Request::Warm,
            Request::New,
            Request::Repeated,
            Request::ChangedTail
        ]
    );
    let repeated = &input.waits[3];
    // All of the prompt but its last token, whose logits are needed.
    assert_eq!((repeated.prompt_tokens, repeated.reused_tokens), (512, 511));
    assert_eq!(input.waits[4].reused_tokens, 480);
    let prefix = runs[0]
        .tests
        .iter()
        .find(|test| matches!(test.record.kind, Kind::PrefixCache { .. }))
        .unwrap();
    let Some(Reading::Served { requests, .. }) = &prefix.samples[0].sample.reading else {
        panic!("no reading");
    };
    near(
        repeated.total_ms.as_ref().unwrap().samples[0],
        requests[1].ttft_ns as f64 / 1e6,
    );
    let cold = &input.waits[0];
    let names: Vec<Part> = cold.parts.iter().map(|(part, _)| *part).collect();
    assert_eq!(names[..2], [Part::Load, Part::Context]);
    let before_the_token: f64 = cold
        .parts
        .iter()
        .filter(|(part, _)| *part != Part::FirstDecode)
        .map(|(_, ms)| ms)
        .sum();
    near(cold.total_ms.as_ref().unwrap().mean, before_the_token);
    assert!(
        input.subtitle.contains("the last 32 are others"),
        "{}",
        input.subtitle
    );
}

#[tokio::test]
async fn quality_comes_from_the_newest_test_and_the_base_is_named() {
    let large = model("Small", "Q8_0", 145_000_000);
    let judge = |model: &MeasuredModel, base: Option<&MeasuredModel>| {
        let kind = Kind::Quality {
            n_ctx: 512,
            text: None,
            base: base.cloned().map(Box::new),
        };
        test(model, kind, (4096, 0, 0))
    };
    let speeds = |model: &MeasuredModel| {
        [(512, 0, 0), (0, 128, 0)].map(|spec| test(model, Kind::Speed, spec))
    };
    let tests = [
        speeds(&small()).to_vec(),
        speeds(&large).to_vec(),
        vec![judge(&small(), Some(&large))],
    ]
    .concat();
    let runs = measured(tests).await;
    let FigureInput::Quantization(input) = figure_of(FigureKind::Quantization, &runs) else {
        panic!("another figure");
    };
    let labels: Vec<_> = input.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["Q4_0", "Q8_0"]);
    let quality = |row: usize| input.rows[row].quality.clone().unwrap();
    // As the scripted engine says: 18.5 against 17.9, 0.041 ± 0.001 nats.
    assert_eq!(quality(0).perplexity, 18.5);
    assert_eq!(
        quality(0).divergence,
        Some(Divergence::Nats {
            mean: 0.041,
            error: 0.001
        })
    );
    assert_eq!(
        (quality(1).perplexity, quality(1).perplexity_error),
        (17.9, None)
    );
    assert_eq!(quality(1).divergence, Some(Divergence::Base));
    assert!(
        input
            .rows
            .iter()
            .all(|row| row.prefill.is_some() && row.decode.is_some())
    );
}

#[tokio::test]
async fn one_quantization_without_quality_is_no_comparison() {
    let runs = measured(vec![test(&small(), Kind::Speed, (0, 128, 0))]).await;
    assert!(series(FigureKind::Quantization, &runs).is_empty());
}

#[tokio::test]
async fn a_course_is_counted_from_its_first_sample_with_what_the_machine_did() {
    let mut runs = measured(vec![
        test(&small(), Kind::Speed, (512, 0, 0)),
        test(&small(), Kind::Speed, (0, 128, 0)),
    ])
    .await;
    assert!(
        series(FigureKind::Sustained, &runs).is_empty(),
        "it did not last"
    );
    runs[0].plan.as_mut().unwrap().order = Order::Sustained { seconds: 600 };
    let start: jiff::Timestamp = "2026-11-30T14:00:00Z".parse().unwrap();
    for (i, test) in (0..).zip(&mut runs[0].tests) {
        for (j, record) in (0..).zip(&mut test.samples) {
            record.sample.ns = 2_000_000_000;
            record.at = start + SignedDuration::from_secs(2 + 10 * j + 4 * i);
            record.conditions.clock_hz = (i == 0).then_some(3.1e9);
        }
    }
    let FigureInput::Sustained(input) = figure_of(FigureKind::Sustained, &runs) else {
        panic!("another figure");
    };
    let series = &input.series[0];
    // The first began at 0 s and ended at 2 s; 512 tokens in 2 s.
    assert_eq!(series.prefill, [(2.0, 256.0), (12.0, 256.0), (22.0, 256.0)]);
    assert_eq!(series.decode[1], (16.0, 64.0));
    assert_eq!(series.clock_ghz, [(2.0, 3.1), (12.0, 3.1), (22.0, 3.1)]);
    assert_eq!(series.temperature_c, [], "not readable is no point");
    assert!(
        input.subtitle.contains("in turn for 10 minutes"),
        "{}",
        input.subtitle
    );
}

#[tokio::test]
async fn what_cannot_be_right_is_left_out_until_it_is_allowed() {
    let mut runs = measured(vec![
        test(&small(), Kind::Speed, (0, 64, 0)),
        test(&small(), Kind::Speed, (0, 64, 512)),
    ])
    .await;
    runs[0].tests[0].suspect = Some(Suspect {
        reason: "It is faster than any memory.".into(),
        allowed_at: None,
    });
    assert!(series(FigureKind::Context, &runs).is_empty());
    assert_eq!(series(FigureKind::Speeds, &runs).len(), 1);
    let suspect = runs[0].tests[0].suspect.as_mut().unwrap();
    suspect.allowed_at = Some(jiff::Timestamp::now());
    assert_eq!(series(FigureKind::Context, &runs).len(), 1);
}

#[tokio::test]
async fn tests_of_other_kinds_are_no_speeds() {
    let runs = measured(vec![test(&small(), users(2, false), (128, 32, 0))]).await;
    assert!(series(FigureKind::Speeds, &runs).is_empty());
    for kind in FigureKind::ALL {
        assert!(
            kind.nothing().ends_with(|c: char| c.is_alphanumeric()),
            "a command to copy"
        );
    }
}
