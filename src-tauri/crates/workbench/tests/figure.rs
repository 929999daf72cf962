//! From a plan to the figure, over the scripted engine and a real history.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used)]

mod support;

use jiff::tz::TimeZone;
use support::model;
use twospeed_chart::{Frame, Overlays, Speeds};
use twospeed_engine::fake::FakeEngine;
use twospeed_engine::{Settings, TestSpec};
use twospeed_history::{History, LatestFilter, ReadReading, WholeRun};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Lease, Plan, PlannedTest, Progress, Stop, Warning, platform};
use twospeed_workbench::{ReadSpeed, RunRequest, SpeedsOptions, missing_sizes, run, speeds};

fn tests(model: &MeasuredModel, specs: &[(u32, u32, u32)], threads: u32) -> Vec<PlannedTest> {
    specs
        .iter()
        .map(|(n_prompt, n_gen, n_depth)| PlannedTest {
            model: model.clone(),
            settings: Settings {
                n_threads: threads,
                ..Settings::default()
            },
            spec: TestSpec {
                n_prompt: *n_prompt,
                n_gen: *n_gen,
                n_depth: *n_depth,
            },
            kind: twospeed_measure::Kind::Speed,
            variant: None,
        })
        .collect()
}

/// Runs a plan with the scripted engine into a history of its own; what the history then has.
async fn measured(folder: &std::path::Path, tests: Vec<PlannedTest>) -> Vec<WholeRun> {
    let history = support::measure(folder, tests).await;
    history.latest(&LatestFilter::default()).await.unwrap()
}

fn figure_of(runs: &[WholeRun]) -> Speeds {
    let options = SpeedsOptions {
        ceiling: &|_, model| Some(16e9 / model.weight_bytes_per_token? as f64),
        ceiling_source: &|_| Some("Ceiling: given.".into()),
        expected: &|_| None,
        expected_source: None,
        overlays: Overlays {
            ceiling: true,
            expected: false,
            breakdown: false,
        },
        time_zone: TimeZone::UTC,
    };
    speeds(runs, &options).unwrap()
}

const BOTH: [(u32, u32, u32); 2] = [(512, 0, 0), (0, 128, 0)];

#[tokio::test]
async fn rows_are_the_historys_numbers_smallest_file_first() {
    let folder = tempfile::tempdir().unwrap();
    let large = model("Small", "Q8_0", 145_000_000);
    let small = model("Small", "Q4_0", 92_000_000);
    let plan = [tests(&large, &BOTH, 2), tests(&small, &BOTH, 2)].concat();
    let runs = measured(folder.path(), plan).await;
    let figure = figure_of(&runs);
    let labels: Vec<_> = figure.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["Q4_0", "Q8_0"]);
    for row in &figure.rows {
        let test = runs[0]
            .tests
            .iter()
            .find(|test| {
                test.record.model.quantization.as_deref() == Some(row.label.as_str())
                    && test.record.spec.n_prompt == 512
            })
            .unwrap();
        let by_hand: Vec<f64> = test
            .samples
            .iter()
            .map(|record| 1e9 * 512.0 / record.sample.ns as f64)
            .collect();
        let prefill = row.prefill.measured.as_ref().unwrap();
        assert_eq!(prefill.samples, by_hand);
        let mean = by_hand.iter().sum::<f64>() / 3.0;
        assert!((prefill.mean - mean).abs() < 1e-9 * mean);
        assert!(row.decode.measured.is_some());
        assert_eq!(row.group, None, "one model needs no headings");
        assert_eq!(row.detail, None, "nothing but the quantization differs");
    }
    // 16e9 / 92e6
    let ceiling = figure.rows[0].decode.ceiling.unwrap();
    assert!((ceiling - 173.913).abs() < 0.001);
    assert_eq!(figure.rows[0].prefill.ceiling, None);
    assert!(
        figure.subtitle.contains("2 quantizations"),
        "{}",
        figure.subtitle
    );
    assert!(
        figure.subtitle.contains("Mean of 3 samples, 2 threads."),
        "{}",
        figure.subtitle
    );
    let drawn = twospeed_chart::speeds(&figure, &Frame::default()).unwrap();
    assert_eq!(drawn.data.rows.len(), 2);
}

#[tokio::test]
async fn what_differs_is_said_and_what_was_not_measured_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let one = model("Small", "Q4_0", 92_000_000);
    let plan = [
        tests(&one, &BOTH, 2),
        tests(&one, &[(0, 128, 4096)], 2),
        tests(&one, &[(512, 0, 8192)], 1),
    ]
    .concat();
    let runs = measured(folder.path(), plan).await;
    let figure = figure_of(&runs);
    let details: Vec<_> = figure
        .rows
        .iter()
        .map(|row| row.detail.as_deref())
        .collect();
    assert_eq!(
        details,
        [
            Some("2 threads"),
            Some("depth 4,096, 2 threads"),
            Some("depth 8,192, 1 thread")
        ]
    );
    assert!(figure.rows[1].prefill.measured.is_none());
    assert!(figure.rows[2].decode.measured.is_none());
}

#[tokio::test]
async fn prompt_and_answer_timed_as_one_have_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let one = model("Small", "Q4_0", 92_000_000);
    let runs = measured(folder.path(), tests(&one, &[(512, 128, 0)], 2)).await;
    let options = SpeedsOptions {
        ceiling: &|_, _| None,
        ceiling_source: &|_| None,
        expected: &|_| None,
        expected_source: None,
        overlays: Overlays::default(),
        time_zone: TimeZone::UTC,
    };
    assert!(speeds(&runs, &options).is_none());
}

#[tokio::test]
async fn read_speed_is_kept_by_size_and_gives_ceilings_of_this_machine_alone() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let mut machine = platform::machine();
    machine.last_level_cache_bytes = Some(32 << 20);
    let empty = ReadSpeed::load(&history, &machine).await.unwrap();
    let small = model("Small", "Q4_0", 92_000_000);
    assert_eq!(
        empty.decode_ceiling(&machine, &small),
        None,
        "never measured is unknown"
    );
    let sets = [
        twospeed_estimate::Bytes(92_000_000),
        twospeed_estimate::Bytes(93_000_000),
    ];
    let sizes = missing_sizes(&empty, &sets, Some(24 << 30));
    assert_eq!(
        sizes,
        [92_000_000, 512 << 20],
        "sizes alike are read once, and one beyond the cache"
    );

    let at = jiff::Timestamp::now();
    let reading = |buffer_bytes, gb_s: u64| ReadReading {
        buffer_bytes,
        bytes_per_second: gb_s * 1_000_000_000,
        threads: 2,
        at,
    };
    let readings = [reading(92_000_000, 30), reading(512 << 20, 16)];
    history.keep_read_speeds(&machine, &readings).await.unwrap();
    let known = ReadSpeed::load(&history, &machine).await.unwrap();
    assert_eq!(
        missing_sizes(&known, &sets, Some(24 << 30)),
        Vec::<u64>::new()
    );
    // 92 MB do not fit 32 MiB of cache, so memory decides: 16e9 / 92e6.
    let ceiling = known.decode_ceiling(&machine, &small).unwrap();
    assert!((ceiling - 173.913).abs() < 0.001, "{ceiling}");
    let mut other = machine.clone();
    other.id = "another".into();
    assert_eq!(known.decode_ceiling(&other, &small), None);
}

#[tokio::test]
async fn what_disturbed_a_measurement_stands_in_the_footer() {
    let folder = tempfile::tempdir().unwrap();
    let models = [model("A", "Q4_0", 100), model("A", "Q8_0", 200)];
    let specs = [(512, 0, 0), (0, 128, 0)];
    let tests = models
        .iter()
        .flat_map(|model| tests(model, &specs, 2))
        .collect();
    let mut runs = measured(folder.path(), tests).await;
    let disturb = |runs: &mut [WholeRun], at: usize, warnings: &[Warning]| {
        runs[0].tests[at].end.as_mut().unwrap().warnings = warnings.to_vec();
    };
    for at in 0..4 {
        disturb(&mut runs, at, &[]);
    }
    let care = |runs: &[WholeRun]| {
        let footer = figure_of(runs).footer;
        footer.into_iter().find(|line| line.contains("with care"))
    };
    assert_eq!(care(&runs), None);
    let (load, spread) = (
        Warning::OtherLoad { cores: 1.0 },
        Warning::HighVariance { relative: 0.2 },
    );
    disturb(&mut runs, 0, std::slice::from_ref(&load));
    disturb(&mut runs, 1, &[spread, load.clone()]);
    assert_eq!(
        care(&runs).as_deref(),
        Some("To be read with care, 1 of 2 results: other programs at work, samples far apart.")
    );
    disturb(&mut runs, 2, &[load]);
    assert_eq!(
        care(&runs).as_deref(),
        Some("To be read with care: other programs at work, samples far apart.")
    );
}

#[tokio::test]
async fn the_footer_names_the_read_speeds_that_the_ceilings_stand_on() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let mut machine = platform::machine();
    machine.last_level_cache_bytes = Some(32 << 20);
    let reading = |buffer_bytes, gb_s: u64| ReadReading {
        buffer_bytes,
        bytes_per_second: gb_s * 1_000_000_000,
        threads: 2,
        at: jiff::Timestamp::now(),
    };
    let readings = [reading(1_000_000, 200), reading(512 << 20, 16)];
    history.keep_read_speeds(&machine, &readings).await.unwrap();
    let known = ReadSpeed::load(&history, &machine).await.unwrap();
    let (tiny, large) = (
        model("Tiny", "Q4_0", 1_000_000),
        model("Large", "Q4_0", 92_000_000),
    );
    assert_eq!(
        known.source(&[&large]).unwrap(),
        "Ceiling: weights of a token read at the speed measured here, 16.0 GB/s."
    );
    assert_eq!(
        known.source(&[&tiny]).unwrap(),
        "Ceiling: weights of a token read at the speed measured here, 200 GB/s.",
        "it stays in the cache"
    );
    assert_eq!(
        known.source(&[&large, &tiny]).unwrap(),
        "Ceiling: weights of a token read at the speed measured here, 16.0 GB/s to 200 GB/s, by their size."
    );
    assert_eq!(known.source(&[]), None);
}

#[tokio::test]
async fn a_test_that_was_cancelled_is_not_shown_as_measured() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let place = folder.path().join("lease");
    let lease = Lease::acquire(&place, "test", jiff::Timestamp::now, |_| {})
        .await
        .unwrap();
    let plan = Plan::new("test", tests(&model("Small", "Q4_0", 92_000_000), &BOTH, 2));
    let stop = Stop::new();
    let request = RunRequest {
        plan: &plan,
        engine: &FakeEngine::new(),
        recorder: &history,
        needs: &|_| None,
        stop: &stop,
    };
    let mut progress = |step| {
        if matches!(step, Progress::Sample { sample, .. } if sample.sample.index == 1) {
            stop.now();
        }
    };
    let outcome = run(request, &lease, &mut progress).await.unwrap();
    let whole = history.run(outcome.run.id).await.unwrap().unwrap();
    assert_eq!(whole.tests[0].samples.len(), 2, "they are kept");
    let options = SpeedsOptions {
        ceiling: &|_, _| None,
        ceiling_source: &|_| None,
        expected: &|_| None,
        expected_source: None,
        overlays: Overlays::default(),
        time_zone: TimeZone::UTC,
    };
    assert!(speeds(&[whole], &options).is_none());
}

#[tokio::test]
async fn the_same_test_twice_is_told_apart_by_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let small = model("Small", "Q4_0", 92_000_000);
    let mut first = measured(folder.path(), tests(&small, &BOTH, 2)).await;
    // Not at the clock's own time: a second later could be the next minute.
    for test in &mut first[0].tests {
        test.record.started_at = "2026-11-30T14:02:07Z".parse().unwrap();
    }
    let mut second = first.clone();
    let mut moved = |seconds: i64| {
        for test in &mut second[0].tests {
            test.record.started_at += jiff::SignedDuration::from_secs(seconds);
        }
        let both = [first.clone(), second.clone()].concat();
        let figure = figure_of(&both);
        let details = figure.rows.into_iter().map(|row| row.detail.unwrap());
        details.collect::<Vec<_>>()
    };
    let minutes = moved(600);
    assert_eq!(minutes[0].len(), "2026-11-30 14:02".len(), "{minutes:?}");
    assert_ne!(minutes[0], minutes[1]);
    let seconds = moved(-599);
    assert_eq!(seconds[0].len(), "2026-11-30 14:02:07".len(), "{seconds:?}");
    assert_ne!(seconds[0], seconds[1]);
}

#[tokio::test]
async fn rows_that_differ_in_any_setting_are_told_apart_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let one = model("Small", "Q4_0", 92_000_000);
    let mut plan = tests(&one, &BOTH, 2);
    let mut other = tests(&one, &BOTH, 2);
    for test in &mut other {
        test.settings.repack = false;
        test.settings.type_k = "q8_0".into();
    }
    plan.extend(other);
    let figure = figure_of(&measured(folder.path(), plan).await);
    let details: Vec<_> = figure
        .rows
        .iter()
        .filter_map(|row| row.detail.as_deref())
        .collect();
    assert_eq!(details, ["K f16, repack 1", "K q8_0, repack 0"]);
}

#[tokio::test]
async fn the_usual_lengths_are_those_of_the_tests_that_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let one = model("Small", "Q4_0", 92_000_000);
    // More tests of 32 + 8 in one than of anything else, and none of them has a bar.
    let plan = tests(
        &one,
        &[(512, 0, 0), (0, 128, 0), (32, 8, 0), (32, 8, 64)],
        2,
    );
    let figure = figure_of(&measured(folder.path(), plan).await);
    assert_eq!(
        figure.prefill_test.as_deref(),
        Some("reading a 512-token prompt")
    );
    assert_eq!(figure.decode_test.as_deref(), Some("writing 128 tokens"));
}
