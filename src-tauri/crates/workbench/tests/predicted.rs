//! From results and estimates to the figures of what is expected, over the scripted engine and a
//! real history. The estimates are made here, so that every number can be told by hand.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::path::Path;

use jiff::tz::TimeZone;
use support::model;
use twospeed_chart::{Cause, Frame};
use twospeed_engine::{Settings, TestSpec};
use twospeed_estimate::roofline::{Roofline, Step};
use twospeed_estimate::{
    Bandwidth, Bytes, BytesPerSecond, Calibration, Estimate, Flops, Question, Term, TermBasis,
    TokensPerSecond, What, estimate,
};
use twospeed_gguf::TensorType;
use twospeed_history::{RunFilter, WholeRun};
use twospeed_measure::{Kind, PlannedTest};
use twospeed_workbench::figures::{
    Predicted, PredictedKind, PredictedOptions, Predictor, predicted, predicted_series,
};
use twospeed_workbench::{FigureInput, Grounds};

fn test((n_prompt, n_gen): (u32, u32)) -> PlannedTest {
    PlannedTest {
        model: model("Small", "Q4_0", 92_000_000),
        settings: Settings {
            n_threads: 2,
            ..Settings::default()
        },
        spec: TestSpec {
            n_prompt,
            n_gen,
            n_depth: 0,
        },
        kind: Kind::Speed,
        variant: None,
    }
}

async fn measured(tests: &[(u32, u32)]) -> Vec<WholeRun> {
    let folder = tempfile::tempdir().unwrap();
    let tests = tests.iter().map(|spec| test(*spec)).collect();
    let history = support::measure(folder.path(), tests).await;
    history.whole_runs(&RunFilter::default()).await.unwrap()
}

fn header() -> twospeed_gguf::Model {
    let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
    twospeed_gguf::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

fn term(what: What, ms: f64) -> Term {
    Term {
        what,
        ns: ms * 1e6,
        bytes: None,
        flops: None,
        basis: TermBasis::Measured,
    }
}

/// A token takes 8 ms, a prompt of 512 takes 800 ms.
fn expectation() -> Estimate {
    let tensor_type = TensorType::Q4_0;
    let mut all = estimate(&header(), &Question::default());
    let speed = |tokens_per_second| Some(TokensPerSecond(tokens_per_second));
    all.decode.ceiling_tok_s = speed(200.0);
    all.decode.expected_tok_s = speed(125.0);
    all.decode.expected_low = speed(100.0);
    all.decode.expected_high = speed(160.0);
    all.decode.breakdown = vec![
        term(What::Weights { tensor_type }, 5.0),
        term(What::Output { tensor_type }, 1.5),
        term(What::Attention, 0.5),
        term(What::Layers, 0.8),
        term(What::Step, 0.2),
    ];
    all.prefill.expected_tok_s = speed(640.0);
    all.prefill.expected_low = speed(512.0);
    all.prefill.expected_high = speed(800.0);
    all.prefill.breakdown = vec![
        term(What::Weights { tensor_type }, 700.0),
        term(What::Attention, 100.0),
    ];
    all
}

fn calibration() -> Calibration {
    Calibration {
        id: "one".into(),
        at: "2026-12-01T12:30:00Z".into(),
        backend: "CPU".into(),
        variant: "zen4".into(),
        threads: 2,
        build: 11434,
        ubatch: 512,
        last_level_cache: None,
        reads: Vec::new(),
        kernels: Vec::new(),
        step_ns: None,
    }
}

fn drawn(kind: PredictedKind, rows: &[Predicted<'_>]) -> FigureInput {
    let calibration = calibration();
    let options = PredictedOptions {
        calibration: Some(&calibration),
        breakdown: false,
        time_zone: &TimeZone::UTC,
    };
    let input = predicted(kind, rows, options).unwrap();
    input.draw(&Frame::default()).unwrap();
    input
}

/// The result of these runs with what is expected of it, and a file without one.
fn rows(runs: &[WholeRun], kind: PredictedKind) -> Vec<Predicted<'_>> {
    let [source] = &predicted_series(kind, runs)[..] else {
        panic!("one result");
    };
    vec![
        Predicted {
            source: Some(source.clone()),
            estimate: Some(expectation()),
            ..Predicted::default()
        },
        Predicted {
            estimate: Some(expectation()),
            file: Some("other.gguf".into()),
            ..Predicted::default()
        },
    ]
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

#[tokio::test]
async fn times_are_those_of_a_whole_prompt_and_of_one_token() {
    let runs = measured(&[(512, 0), (0, 128)]).await;
    let FigureInput::Breakdown(input) = drawn(
        PredictedKind::Breakdown,
        &rows(&runs, PredictedKind::Breakdown),
    ) else {
        panic!("another figure");
    };
    assert_eq!(input.prefill_of, "reading a prompt of 512 tokens");
    let row = &input.rows[0];
    let expected = row.decode.expected.unwrap();
    // The fastest end of a speed is the shortest time.
    near(expected.value, 8.0);
    near(expected.low, 6.25);
    near(expected.high, 10.0);
    near(row.prefill.expected.unwrap().value, 800.0);
    let names: Vec<&str> = row
        .decode
        .parts
        .iter()
        .map(|part| part.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "weights Q4_0",
            "output matrix Q4_0",
            "attention",
            "small operations",
            "starting steps"
        ]
    );
    let causes: Vec<Cause> = row.decode.parts.iter().map(|part| part.cause).collect();
    assert_eq!(causes[1..4], [Cause::Weights, Cause::Cache, Cause::Fixed]);
    // Samples are kept as nanoseconds: of a whole test.
    let ns = |index: usize| {
        let samples = runs[0].tests[index].samples.iter();
        samples
            .map(|record| record.sample.ns as f64)
            .collect::<Vec<_>>()
    };
    for (sample, ns) in row
        .prefill
        .measured
        .as_ref()
        .unwrap()
        .samples
        .iter()
        .zip(ns(0))
    {
        near(*sample, ns / 1e6);
    }
    for (sample, ns) in row
        .decode
        .measured
        .as_ref()
        .unwrap()
        .samples
        .iter()
        .zip(ns(1))
    {
        near(*sample, ns / 1e6 / 128.0);
    }
    assert_eq!(input.rows[1].decode.measured, None);
    near(input.rows[1].decode.expected.unwrap().value, 8.0);
}

#[tokio::test]
async fn a_phase_that_was_not_measured_is_not_told_of_a_result() {
    let runs = measured(&[(0, 128)]).await;
    let FigureInput::Breakdown(input) = drawn(
        PredictedKind::Breakdown,
        &rows(&runs, PredictedKind::Breakdown),
    ) else {
        panic!("another figure");
    };
    assert!(input.rows[0].prefill.parts.is_empty());
    assert!(
        !input.rows[1].prefill.parts.is_empty(),
        "of a file both are"
    );
}

#[tokio::test]
async fn expected_and_measured_stand_in_one_row() {
    let runs = measured(&[(512, 0), (0, 128)]).await;
    let FigureInput::Estimate(input) = drawn(
        PredictedKind::Estimate,
        &rows(&runs, PredictedKind::Estimate),
    ) else {
        panic!("another figure");
    };
    let decode = &input.rows[0].decode;
    let expected = decode.expected.unwrap();
    assert_eq!(
        (expected.value, expected.low, expected.high),
        (125.0, 100.0, 160.0)
    );
    assert_eq!(decode.ceiling, Some(200.0));
    let by_hand: Vec<f64> = runs[0].tests[1]
        .samples
        .iter()
        .map(|record| 128e9 / record.sample.ns as f64)
        .collect();
    assert_eq!(decode.measured.as_ref().unwrap().samples, by_hand);
    assert_eq!(input.rows[1].detail.as_deref(), Some("not measured"));
    let footer = input.footer.join(" ");
    assert!(
        footer.contains("Expected: calibration of 1 December 2026, 12:30, CPU zen4, 2 threads."),
        "{footer}"
    );
    assert!(footer.contains("Without a result: other.gguf."), "{footer}");
    assert!(footer.contains("Small-Q4_0.gguf"), "{footer}");
}

#[tokio::test]
async fn prompts_of_one_batch_and_an_answer_are_steps_of_a_roofline() {
    // One of 4,096 tokens takes eight micro-batches: it is no step.
    let runs = measured(&[(0, 64), (2, 0), (512, 0), (4096, 0)]).await;
    let mut rows = rows(&runs, PredictedKind::Roofline);
    let step = |tokens: u64| Step {
        tokens,
        flops: Flops(268_000_000 * tokens),
        bytes: Bytes(90_000_000),
        expected: (tokens < 512).then_some([50.0, 40.0, 60.0].map(TokensPerSecond)),
    };
    let roofline = Roofline {
        reading: Some(Bandwidth::given(BytesPerSecond(18_000_000_000))),
        arithmetic: Some(168e9),
        steps: vec![step(1), step(2), step(4), step(512)],
    };
    for row in &mut rows {
        row.roofline = Some(roofline.clone());
    }
    let FigureInput::Roofline(input) = drawn(PredictedKind::Roofline, &rows) else {
        panic!("another figure");
    };
    let series = &input.series[0];
    assert_eq!(
        (series.reading, series.arithmetic),
        (Some(18.0), Some(168.0))
    );
    let [one, two, four, most] = &series.steps[..] else {
        panic!("four steps");
    };
    // 268e6 operations for each token.
    let of_test = |index: usize, tokens: f64| {
        let sample = &runs[0].tests[index].samples[0].sample;
        tokens * 1e9 / sample.ns as f64 * 268e6 / 1e9
    };
    near(one.measured.as_ref().unwrap().samples[0], of_test(0, 64.0));
    near(two.measured.as_ref().unwrap().samples[0], of_test(1, 2.0));
    near(
        most.measured.as_ref().unwrap().samples[0],
        of_test(2, 512.0),
    );
    assert_eq!(four.measured, None);
    assert_eq!(most.expected, None);
    let expected = four.expected.unwrap();
    near(expected.value, 13.4);
    near(expected.low, 10.72);
    near(four.intensity, 268.0 * 4.0 / 90.0);
    assert!(
        input.series[1]
            .steps
            .iter()
            .all(|step| step.measured.is_none())
    );
}

#[tokio::test]
async fn without_a_calibration_nothing_is_expected_and_the_figure_says_so() {
    let runs = measured(&[(512, 0), (0, 128)]).await;
    let machine = runs[0].run.machine.clone();
    let grounds = Grounds::default();
    let predictor = Predictor {
        grounds: &grounds,
        machine: &machine,
    };
    let sources = predicted_series(PredictedKind::Estimate, &runs);
    let rows = predictor.rows(PredictedKind::Estimate, sources, &[], &Question::default());
    assert_eq!(rows.len(), 1);
    assert!(rows[0].estimate.is_none() && rows[0].prefill_ceiling.is_none());
    let options = PredictedOptions {
        calibration: None,
        breakdown: false,
        time_zone: &TimeZone::UTC,
    };
    let Some(FigureInput::Estimate(input)) = predicted(PredictedKind::Estimate, &rows, options)
    else {
        panic!("another figure");
    };
    let footer = input.footer.join(" ");
    assert!(footer.contains("twospeed calibrate"), "{footer}");
    assert!(predicted(PredictedKind::Estimate, &[], options).is_none());
}
