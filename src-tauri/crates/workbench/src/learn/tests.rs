use jiff::Timestamp;
use twospeed_engine::protocol::Sample;
use twospeed_engine::{FlashAttention, TestSpec};
use twospeed_estimate::TokensPerSecond;
use twospeed_gguf::Data;
use twospeed_history::Suspect;
use twospeed_measure::{Conditions as Around, Kind, SampleRecord, TestEnd, TestRecord, TestStatus};

use super::*;

fn header() -> Model {
    let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let mut header = twospeed_gguf::read(&path).unwrap();
    header.data = Data::Complete;
    header
}

fn calibration() -> Arc<Calibration> {
    Arc::new(Calibration {
        id: "one".into(),
        at: "2026-12-01T12:00:00Z".into(),
        backend: "CPU".into(),
        variant: "zen4".into(),
        threads: 2,
        build: 11434,
        ubatch: 512,
        last_level_cache: None,
        reads: Vec::new(),
        kernels: Vec::new(),
        step_ns: None,
    })
}

/// tg100 in 1.0, 2.0 and 0.5 s: 100, 50 and 200 tok/s.
fn test() -> Test {
    let at = Timestamp::UNIX_EPOCH;
    let record = TestRecord {
        id: Uuid::from_u128(7),
        run: Uuid::from_u128(5),
        position: 0,
        model: MeasuredModel::of(&header(), "content".into(), None, false).unwrap(),
        spec: TestSpec {
            n_prompt: 0,
            n_gen: 100,
            n_depth: 4096,
        },
        kind: Kind::Speed,
        settings: Settings {
            n_threads: 2,
            type_k: "q8_0".into(),
            flash_attn: FlashAttention::On,
            ..Settings::default()
        },
        repetitions: 3,
        warmup: true,
        started_at: at,
    };
    let samples = (0..).zip([1_000_000_000, 2_000_000_000, 500_000_000]);
    let samples = samples.map(|(index, ns)| SampleRecord {
        test: record.id,
        sample: Sample {
            index,
            ns,
            involuntary_switches: None,
            major_faults: None,
            reading: None,
        },
        at,
        conditions: Around::default(),
    });
    let end = TestEnd {
        test: record.id,
        status: TestStatus::Done,
        ended_at: at,
        worker: None,
        loaded: None,
        placement: None,
        anchor_before_ns: None,
        anchor_after_ns: None,
        state_before: None,
        state_after: None,
        peak_rss_bytes: None,
        warnings: vec![Warning::Outliers { count: 1, by: 2.0 }],
    };
    let samples = samples.collect();
    Test::new(record, Some(end), samples)
}

fn asked(test: &Test) -> Option<Question> {
    question(test, &calibration(), &BandwidthFrom::Unknown)
}

#[test]
fn a_test_is_held_against_what_is_expected_of_its_own_settings() {
    let question = asked(&test()).unwrap();
    assert_eq!((question.depth, question.generate), (4096, 100));
    assert_eq!(question.context.type_k, twospeed_estimate::KvType::Q8_0);
    assert_eq!(question.context.context, 4196);
    assert_eq!(
        question.corrections,
        twospeed_estimate::Corrections::default(),
        "what was learnt is not learnt from again"
    );
    let expects = |model: &Model, question: &Question| {
        let mut said = estimate(model, question);
        said.decode.expected_tok_s = Some(TokensPerSecond(80.0));
        said.prefill.expected_tok_s = Some(TokensPerSecond(1.0));
        said
    };
    let found = residual(&test(), &header(), &question, expects).unwrap();
    // The median of 100, 50 and 200 is 100.
    assert_eq!(found.ratio, 1.25);
    assert_eq!(found.phase, Phase::Decode);
    assert_eq!(found.run, 5);
    assert_eq!(found.model, ModelKey::of(&header()));
    assert_eq!(found.conditions.looks_back, 4146);
}

#[test]
fn where_nothing_is_expected_nothing_is_learnt() {
    let question = asked(&test()).unwrap();
    let expects = |model: &Model, _: &Question| estimate(model, &Question::default());
    assert_eq!(residual(&test(), &header(), &question, expects), None);
}

#[test]
fn what_was_disturbed_or_is_no_plain_speed_teaches_nothing() {
    let refused = |change: fn(&mut Test)| {
        let mut test = test();
        change(&mut test);
        assert_eq!(asked(&test), None, "{test:?}");
    };
    let disturbances: [fn(&mut Test); 4] = [
        |test| warn(test, Warning::SwapInUse { bytes: 1 }),
        |test| warn(test, Warning::OtherLoad { cores: 1.0 }),
        |test| warn(test, Warning::Throttled { times: 1 }),
        |test| warn(test, Warning::Drift { relative: 0.2 }),
    ];
    for disturb in disturbances {
        refused(disturb);
    }
    refused(|test| test.record.spec.n_prompt = 10);
    refused(|test| test.record.warmup = false);
    refused(|test| test.end = None);
    refused(|test| test.record.kind = Kind::PrefixCache { changed: 1 });
    refused(|test| {
        test.suspect = Some(Suspect {
            reason: "too fast".into(),
            allowed_at: None,
        });
    });
    // Of these the estimate knows nothing.
    refused(|test| test.record.settings.repack = false);
    refused(|test| test.record.settings.cpu_mask = "0x1".into());
    refused(|test| test.record.settings.tensor_buft_overrides = "a=CPU".into());
}

fn warn(test: &mut Test, warning: Warning) {
    if let Some(end) = &mut test.end {
        end.warnings.push(warning);
    }
}

#[test]
fn another_file_under_the_same_name_is_not_the_model() {
    let header = header();
    let measured = MeasuredModel::of(&header, "content".into(), None, false).unwrap();
    assert!(is_of(&header, &measured));
    let with = |change: fn(&mut MeasuredModel)| {
        let mut other = measured.clone();
        change(&mut other);
        is_of(&header, &other)
    };
    assert!(!with(|model| model.file_bytes += 1));
    assert!(!with(|model| model.quantization = Some("Q4_0".into())));
}

#[test]
fn when_time_is_up_the_rest_is_for_another_answer() {
    let folder = tempfile::tempdir().unwrap();
    let measured = |name: &str| {
        let mut header = header();
        header.path = folder.path().join(name);
        MeasuredModel::of(&header, name.into(), None, false).unwrap()
    };
    let copied = measured("here.gguf");
    std::fs::copy(header().path, &copied.path.0).unwrap();
    let mut headers = Headers::until(Instant::now());
    let first = headers.of(&copied).expect("one is always read");
    assert!(first.is_some());
    assert_eq!(headers.of(&measured("other.gguf")), None, "not looked at");
    assert!(headers.of(&copied).flatten().is_some(), "read already");
    let mut headers = Headers::until(Instant::now() + Duration::from_secs(60));
    assert_eq!(
        headers.of(&measured("gone.gguf")),
        Some(None),
        "looked at and gone"
    );
}
