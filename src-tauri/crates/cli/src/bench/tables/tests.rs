//! The tables of results whose numbers were worked out by hand.

use jiff::Timestamp;
use twospeed_engine::protocol::{
    AgainstBase, LoadReading, PageCache, QualityReading, Sample, UsersReading,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Settings, TestSpec};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::Until;
use twospeed_measure::{Conditions, PlannedTest, SampleRecord, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

use super::*;

fn model(quantization: &str) -> MeasuredModel {
    MeasuredModel {
        fingerprint: quantization.into(),
        path: ModelPath("m.gguf".into()),
        name: "M".into(),
        architecture: None,
        quantization: Some(quantization.into()),
        file_bytes: 1,
        parameters: 1,
        active_parameters: None,
        weight_bytes_per_token: None,
        ability: None,
        synthetic: false,
    }
}

fn spec(n_prompt: u32, n_gen: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen,
        n_depth: 0,
    }
}

fn outcome(kind: Kind, spec: TestSpec, samples: Vec<(u64, Option<Reading>)>) -> TestOutcome {
    let id = Uuid::nil();
    let record = |(index, (ns, reading)): (u32, (u64, Option<Reading>))| SampleRecord {
        test: id,
        sample: Sample {
            index,
            ns,
            involuntary_switches: None,
            major_faults: None,
            reading,
        },
        at: Timestamp::UNIX_EPOCH,
        conditions: Conditions::default(),
    };
    TestOutcome {
        test: TestRecord {
            id,
            run: id,
            position: 0,
            model: model("Q4_0"),
            spec,
            kind,
            settings: Settings::default(),
            repetitions: 2,
            warmup: true,
            started_at: Timestamp::UNIX_EPOCH,
        },
        samples: (0..).zip(samples).map(record).collect(),
        end: TestEnd {
            test: id,
            status: TestStatus::Done,
            ended_at: Timestamp::UNIX_EPOCH,
            worker: None,
            loaded: None,
            placement: None,
            anchor_before_ns: None,
            anchor_after_ns: None,
            state_before: None,
            state_after: None,
            peak_rss_bytes: None,
            warnings: vec![],
        },
    }
}

fn plan(tests: &[TestOutcome]) -> Plan {
    let planned = |test: &TestOutcome| PlannedTest {
        model: test.test.model.clone(),
        settings: test.test.settings.clone(),
        spec: test.test.spec,
        kind: test.test.kind.clone(),
        variant: None,
    };
    Plan::new("bench", tests.iter().map(planned).collect())
}

fn written(plan: &Plan, tests: &[TestOutcome]) -> String {
    let mut out = Vec::new();
    write(&mut out, plan, tests).unwrap();
    String::from_utf8(out).unwrap()
}

/// The cells of a row, by its place below the headings.
fn row(text: &str, at: usize) -> Vec<&str> {
    let line = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .nth(at + 2);
    let cells = line.unwrap().trim_matches('|').split('|');
    cells.map(str::trim).collect()
}

fn served(n_reused: u32, n_shared: u32, prefill_ms: u64, ttft_ms: u64) -> ServedReading {
    ServedReading {
        n_prompt: 512,
        n_reused,
        n_shared,
        tokenize_ns: 500_000,
        prefill_ns: prefill_ms * 1_000_000,
        first_sample_ns: 250_000,
        ttft_ns: ttft_ms * 1_000_000,
        first_decode_ns: Some(8_000_000),
        n_generated: 2,
        decode_ns: 8_000_000,
    }
}

#[test]
fn speeds_alone_have_no_table_of_their_own() {
    let tests = [outcome(Kind::Speed, spec(512, 0), vec![(1, None)])];
    assert_eq!(written(&plan(&tests), &tests), "");
}

#[test]
fn a_first_token_shows_its_parts_and_its_load() {
    let kind = Kind::FirstToken {
        page_cache: PageCache::Drop,
    };
    let reading = |load_ms: u64, resident| {
        Some(Reading::Served {
            load: Some(LoadReading {
                load_ns: load_ms * 1_000_000,
                context_ns: 20_000_000,
                resident_before: Some(resident),
                page_cache: PageCache::Drop,
            }),
            requests: vec![served(0, 0, 1024, 1030)],
        })
    };
    let tests = [outcome(
        kind,
        spec(512, 2),
        vec![(1, reading(200, 0.0)), (1, reading(300, 0.25))],
    )];
    let text = written(&plan(&tests), &tests);
    // Loads of 200 and 300 ms: mean 250, deviation 100 / sqrt(2) = 70.7. 512 tokens in 1.024 s.
    assert_eq!(
        row(&text, 0),
        [
            "M Q4_0",
            "first-token pp512 cold",
            "0.0 % to 25.0 %",
            "250.0 ± 70.7",
            "20.0 ± 0.0",
            "0.50 ± 0.00",
            "1024 ± 0",
            "500.0 ± 0.0",
            "0.25 ± 0.00",
            "1030 ± 0",
            "1300 ± 71",
            "8.00 ± 0.00"
        ]
    );
    assert!(
        text.contains("was no cold load: this system kept 25.0 %"),
        "a cold load that was none is not called one: {text}"
    );
}

#[test]
fn a_kept_prompt_is_compared_with_the_cold_one() {
    let kind = Kind::PrefixCache { changed: 128 };
    let requests = vec![
        served(0, 0, 1024, 1030),
        served(511, 512, 8, 10),
        served(384, 384, 256, 260),
    ];
    let reading = Reading::Served {
        load: None,
        requests,
    };
    let tests = [outcome(
        kind.clone(),
        spec(512, 2),
        vec![(1, Some(reading))],
    )];
    let text = written(&plan(&tests), &tests);
    assert_eq!(
        row(&text, 1)[2..],
        [
            "again", "512", "512", "511", "1", "8.00", "125.0", "10.0", "1.0 %"
        ]
    );
    // 128 tokens in 0.256 s.
    assert_eq!(
        row(&text, 2)[2..],
        [
            "last 128 changed",
            "512",
            "384",
            "384",
            "128",
            "256.0",
            "500.0",
            "260.0",
            "25.2 %"
        ]
    );
    assert!(!text.contains("cannot drop a tail"));

    let recurrent = vec![served(0, 0, 1024, 1030), served(0, 512, 1024, 1030)];
    let reading = Reading::Served {
        load: None,
        requests: recurrent,
    };
    let tests = [outcome(kind, spec(512, 2), vec![(1, Some(reading))])];
    assert!(written(&plan(&tests), &tests).contains("cannot drop a tail"));
}

#[test]
fn users_are_counted_together_and_each() {
    let kind = |shared_prompt| Kind::Users {
        users: 4,
        split_kv: false,
        shared_prompt,
    };
    let reading = || {
        Some(Reading::Users(UsersReading {
            prefill_ns: 512_000_000,
            decode_ns: 640_000_000,
            ttft_ns: [128, 256, 384, 512].map(|ms| ms * 1_000_000).to_vec(),
        }))
    };
    let tests = [
        outcome(kind(false), spec(128, 32), vec![(1, reading())]),
        outcome(kind(true), spec(128, 32), vec![(1, reading())]),
    ];
    let text = written(&plan(&tests), &tests);
    // 4 x 128 tokens in 0.512 s; 4 x 32 in 0.64 s.
    assert_eq!(
        row(&text, 0)[2..],
        [
            "4", "1000", "200.0", "50.0", "320.0", "512.0", "unknown", "unknown"
        ]
    );
    assert_eq!(row(&text, 1)[3], "250.0", "a shared prompt counts once");
}

#[test]
fn quality_names_what_it_is_held_against() {
    let against = AgainstBase {
        base_perplexity: 17.9,
        kl_mean: 0.041,
        kl_error: 0.001,
        kl_max: 2.3,
        kl_p99: 0.4,
        kl_median: 0.02,
        same_top: 0.912,
    };
    let reading = |against_base| {
        Some(Reading::Quality(QualityReading {
            n_ctx: 512,
            chunks: 16,
            n_scored: 4080,
            perplexity: 18.42,
            perplexity_error: 0.3,
            against_base,
        }))
    };
    let kind = |base: Option<&str>| Kind::Quality {
        n_ctx: 512,
        text: None,
        base: base.map(|base| Box::new(model(base))),
    };
    let tests = [
        outcome(
            kind(Some("F16")),
            spec(8192, 0),
            vec![(1, reading(Some(against)))],
        ),
        outcome(kind(None), spec(8192, 0), vec![(1, reading(None))]),
    ];
    let text = written(&plan(&tests), &tests);
    assert_eq!(
        row(&text, 0)[1..],
        [
            "kl8192 ctx512",
            "4080",
            "18.4200 ± 0.3000",
            "M F16",
            "17.9000",
            "0.041000 ± 0.001000",
            "0.020000",
            "0.4000",
            "2.3000",
            "91.2 %"
        ]
    );
    assert_eq!(row(&text, 1)[4..6], ["nothing", ""]);
}

#[test]
fn a_target_is_reached_or_said_not_to_be() {
    // 100 and 125 tok/s in turn: mean 112.5, deviation 14.43 of four, t(3) = 3.182: 22.96, 20.4 %.
    let times = [1_000_000_000, 800_000_000, 1_000_000_000, 800_000_000];
    let samples = times.map(|ns| (ns, None)).to_vec();
    let tests = [outcome(Kind::Speed, spec(100, 0), samples)];
    let mut plan = plan(&tests);
    plan.repetitions = 3;
    plan.until = Some(Until {
        relative: 0.25,
        at_most: 4,
    });
    assert_eq!(
        row(&written(&plan, &tests), 0)[2..],
        [
            "4",
            "112.5",
            "± 20.4 %",
            "112.5",
            "12.5",
            "t/s",
            "25.0 % reached"
        ]
    );
    plan.until = Some(Until {
        relative: 0.02,
        at_most: 4,
    });
    assert_eq!(
        row(&written(&plan, &tests), 0).last(),
        Some(&"2.0 % not reached")
    );
}

#[test]
fn what_is_held_is_the_last_tenth_over_the_first() {
    // 100 tok/s for ten repetitions, then 80 for ten.
    let samples = (0..20).map(|at| match at {
        0..10 => (1_000_000_000, None),
        _ => (1_250_000_000, None),
    });
    let tests = [outcome(Kind::Speed, spec(100, 0), samples.collect())];
    let mut plan = plan(&tests);
    plan.order = Order::Sustained { seconds: 20 };
    assert_eq!(
        row(&written(&plan, &tests), 0)[2..],
        [
            "20", "100.0", "80.0", "80.0 %", "80.0", "100.0", "unknown", "unknown", "unknown"
        ]
    );
}

#[test]
fn settings_that_differ_have_a_column() {
    let reading = Reading::Users(UsersReading {
        prefill_ns: 1,
        decode_ns: 1,
        ttft_ns: vec![1],
    });
    let kind = Kind::Users {
        users: 1,
        split_kv: false,
        shared_prompt: false,
    };
    let mut tests = vec![
        outcome(kind.clone(), spec(8, 8), vec![(1, Some(reading.clone()))]),
        outcome(kind, spec(8, 8), vec![(1, Some(reading))]),
    ];
    tests[1].test.settings.n_ubatch = 128;
    let text = written(&plan(&tests), &tests);
    assert!(text.contains("| n_ubatch |"), "{text}");
    assert_eq!((row(&text, 0)[1], row(&text, 1)[1]), ("512", "128"));
}
