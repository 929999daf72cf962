//! Results made by hand, for tests of what is said about them.

use jiff::{SignedDuration, Timestamp};
use twospeed_engine::protocol::{Ability, Sample};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Settings, TestSpec, fake};
use twospeed_history::{Origin, Run, RunStatus, Test, WholeRun};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{SampleRecord, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

pub(super) fn machine(id: &str) -> Machine {
    Machine {
        id: id.into(),
        name: Some(format!("desk {id}")),
        cpu: "Scripted CPU".into(),
        physical_cores: Some(2),
        logical_cores: Some(2),
        last_level_cache_bytes: None,
        memory_bytes: Some(24_000_000_000),
        os: "Linux".into(),
    }
}

pub(super) fn model(name: &str, quantization: &str, file_bytes: u64) -> MeasuredModel {
    MeasuredModel {
        fingerprint: format!("content of {name} {quantization}"),
        path: ModelPath(format!("/models/{name}-{quantization}.gguf").into()),
        name: name.into(),
        architecture: Some("llama".into()),
        quantization: Some(quantization.into()),
        file_bytes,
        parameters: 134_515_008,
        active_parameters: Some(134_515_008),
        weight_bytes_per_token: Some(file_bytes),
        ability: Some(Ability::Generates),
        synthetic: false,
    }
}

pub(super) fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-11-30T14:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

/// A run without tests.
pub(super) fn run(began: i64) -> WholeRun {
    WholeRun {
        run: Run {
            id: Uuid::now_v7(),
            origin: Origin::Measured,
            imported_at: None,
            started_at: at(began),
            ended_at: Some(at(began + 60)),
            status: RunStatus::Complete,
            machine: machine("here"),
            app_version: "0.1.0".into(),
            preset: "quick".into(),
            note: None,
            deleted_at: None,
        },
        plan: None,
        tests: Vec::new(),
        unreadable: Vec::new(),
    }
}

/// A test that made samples of these speeds, tokens per second, in 10 s with an anchor of 300 ms.
pub(super) fn test(
    run: &WholeRun,
    model: &MeasuredModel,
    (n_prompt, n_gen, n_depth): (u32, u32, u32),
    speeds: &[f64],
) -> Test {
    let position = u32::try_from(run.tests.len()).unwrap();
    let spec = TestSpec {
        n_prompt,
        n_gen,
        n_depth,
    };
    let started_at = run.run.started_at + SignedDuration::from_secs(i64::from(position) * 20);
    let record = TestRecord {
        id: Uuid::now_v7(),
        run: run.run.id,
        position,
        model: model.clone(),
        spec,
        kind: twospeed_measure::Kind::Speed,
        settings: Settings {
            n_threads: 2,
            ..Settings::default()
        },
        repetitions: u32::try_from(speeds.len()).unwrap(),
        warmup: true,
        started_at,
    };
    let ended_at = started_at + SignedDuration::from_secs(10);
    Test {
        samples: speeds
            .iter()
            .zip(0..)
            .map(|(speed, index)| SampleRecord {
                test: record.id,
                sample: Sample {
                    index,
                    ns: (1e9 * spec.tokens() as f64 / speed).round() as u64,
                    involuntary_switches: Some(0),
                    major_faults: Some(0),
                    reading: None,
                },
                at: ended_at,
                conditions: twospeed_measure::Conditions::default(),
            })
            .collect(),
        end: Some(TestEnd {
            test: record.id,
            status: TestStatus::Done,
            ended_at,
            worker: Some(fake::hello()),
            loaded: None,
            placement: None,
            anchor_before_ns: Some(300_000_000),
            anchor_after_ns: Some(300_000_000),
            state_before: None,
            state_after: None,
            peak_rss_bytes: None,
            warnings: Vec::new(),
        }),
        record,
        unknown: Vec::new(),
        reported: None,
        told: None,
        suspect: None,
        extra: serde_json::Map::new(),
    }
}

/// A run of both speeds of a model, at 512 and 128 tokens.
pub(super) fn both(began: i64, model: &MeasuredModel, prefill: &[f64], decode: &[f64]) -> WholeRun {
    let mut run = run(began);
    for (spec, speeds) in [((512, 0, 0), prefill), ((0, 128, 0), decode)] {
        if !speeds.is_empty() {
            let test = test(&run, model, spec, speeds);
            run.tests.push(test);
        }
    }
    run
}
