use std::path::Path;

use twospeed_gguf::Data;

use super::*;

fn own(
    prompt: &[u32],
    generate: &[u32],
    depth: &[u32],
    repetitions: u32,
) -> Result<Choice, Problem> {
    Choice::of(&Tests::Own {
        prompt: prompt.to_vec(),
        generate: generate.to_vec(),
        depth: depth.to_vec(),
        repetitions,
        until: None,
        interleaved: false,
        sweep: Box::default(),
    })
}

/// Names of the tests that a choice makes of a model for so much context.
fn names(choice: &Choice, context: u32) -> Vec<String> {
    let kinds = choice.kinds(&Limits { context }, None);
    kinds.iter().map(|(spec, kind)| kind.name(*spec)).collect()
}

/// A real header, taken for a file that holds its weights too.
fn subject() -> Subject {
    let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let mut header = twospeed_gguf::read(&path).unwrap();
    header.data = Data::Complete;
    header.context_length = Some(8192);
    let measured = MeasuredModel::of(&header, "content".into(), Some(7), false).unwrap();
    Subject { header, measured }
}

fn around(available: Option<u64>) -> Around<'static> {
    Around {
        asked: None,
        threads: 2,
        available,
        earlier: &[],
        ceiling: &|_| Some(7.0),
        variants: 2,
        base: &|_| None,
    }
}

fn prepared(subject: Subject, choice: &Choice, available: Option<u64>) -> Prepared {
    let candidate = Candidate {
        row: "row".into(),
        name: None,
        read: Ok(subject),
    };
    prepare(vec![candidate], choice, &around(available)).unwrap()
}

#[test]
fn own_tests_run_in_llama_benchs_order() {
    let choice = own(&[512, 1024], &[128, 0], &[0, 4096, 0], 2).unwrap();
    assert_eq!(
        names(&choice, 8192),
        [
            "pp512",
            "pp1024",
            "tg128",
            "pp512 @ d4096",
            "pp1024 @ d4096",
            "tg128 @ d4096"
        ]
    );
    assert_eq!((choice.preset.as_str(), choice.repetitions), ("own", 2));
}

#[test]
fn presets_are_the_cores() {
    let quick = Choice::of(&Tests::Quick).unwrap();
    assert_eq!((quick.preset.as_str(), quick.repetitions), ("quick", 3));
    let article = Choice::of(&Tests::Article).unwrap();
    assert_eq!(names(&article, 8192), names(&quick, 8192));
    assert_eq!(article.repetitions, 5);
    let roofline = Choice::of(&Tests::Roofline).unwrap();
    assert_eq!(
        (roofline.preset.as_str(), roofline.repetitions),
        ("roofline", 3)
    );
    let roofline = names(&roofline, 8192);
    assert_eq!((roofline.len(), roofline[0].as_str()), (11, "pp1"));
}

#[test]
fn an_embedding_model_is_measured_by_its_prefill_alone() {
    let mut bert = subject();
    bert.measured.ability = Some(Ability::Embeds);
    let quick = Choice::of(&Tests::Quick).unwrap();
    let view = prepared(bert.clone(), &quick, None).view;
    assert_eq!(view.rows.len(), 1);
    assert!(matches!(
        view.rows[0].what,
        RowKind::Speed {
            phase: PhaseName::Prefill,
            ..
        }
    ));
    assert!(view.hindrances.is_empty(), "nothing is wrong with it");
    let view = prepared(bert, &own(&[], &[128], &[], 1).unwrap(), None).view;
    assert!(view.rows.is_empty() && view.seconds.is_none());
    let sentence = &view.hindrances[0].sentence;
    assert!(sentence.contains("give a prompt length"), "{sentence}");
}

#[test]
fn what_memory_cannot_hold_is_left_out_and_the_rest_is_measured() {
    let choice = own(&[16], &[], &[0, 64], 1).unwrap();
    let all = prepared(subject(), &choice, Some(1 << 40)).view;
    assert!(all.hindrances.is_empty(), "{:?}", all.hindrances);
    let plenty = all.rows.len();
    let none = prepared(subject(), &choice, Some(1)).view;
    assert!(none.rows.is_empty());
    assert!(none.hindrances[0].sentence.contains("of memory"));
    assert_eq!(plenty, 2);
}

#[test]
fn positions_are_those_of_the_plan_and_only_decode_has_a_ceiling() {
    let quick = Choice::of(&Tests::Quick).unwrap();
    let prepared = prepared(subject(), &quick, None);
    let rows = &prepared.view.rows;
    assert_eq!(prepared.plan.tests.len(), rows.len());
    let facts: Vec<_> = rows
        .iter()
        .map(|row| (row.position, row.what.clone(), row.ceiling))
        .collect();
    let speed = |phase, tokens| RowKind::Speed {
        phase,
        tokens,
        depth: 0,
    };
    assert_eq!(
        facts,
        [
            (0, speed(PhaseName::Prefill, 512), None),
            (1, speed(PhaseName::Decode, 128), Some(7.0))
        ]
    );
    assert_eq!(prepared.plan.tests[0].settings.n_threads, 2);
    assert_eq!(prepared.view.threads, 2);
}

#[test]
fn a_curve_goes_as_deep_as_the_context_or_as_was_asked() {
    let curve = |deepest| Choice::of(&Tests::ContextCurve { deepest }).unwrap();
    let deepest = |choice: &Choice| names(choice, 8192).last().cloned();
    assert_eq!(deepest(&curve(None)).as_deref(), Some("tg128 @ d7680"));
    assert_eq!(
        deepest(&curve(Some(2048))).as_deref(),
        Some("tg128 @ d2048")
    );
}

#[test]
fn users_have_a_context_each_so_training_does_not_bound_their_number() {
    let users = Tests::Users {
        users: vec![1, 64],
        prompt: 128,
        generate: 32,
        split_kv: false,
        shared_prompt: false,
    };
    let choice = Choice::of(&users).unwrap();
    // 64 x 160 = 10,240 tokens, of a model made for 8,192.
    let view = prepared(subject(), &choice, Some(1 << 40)).view;
    assert_eq!(view.rows.len(), 2, "{:?}", view.hindrances);
    assert_eq!(view.rows[1].unit, Unit::TokensPerSecond);
    assert!(matches!(
        view.rows[1].what,
        RowKind::Users { users: 64, .. }
    ));
    let most = Choice::of(&Tests::Users {
        users: vec![300],
        prompt: 1,
        generate: 1,
        split_kv: false,
        shared_prompt: false,
    });
    assert_eq!(most.unwrap_err().code, "users_impossible");
}

#[test]
fn a_face_off_holds_a_quantization_against_its_base_and_the_base_against_nothing() {
    let tests = Tests::FaceOff {
        base: None,
        quality: true,
    };
    let choice = Choice::of(&tests).unwrap();
    assert!(choice.needs_base());
    let (other, mut base) = (subject(), subject().measured);
    base.fingerprint = "best".into();
    base.quantization = Some("F16".into());
    let view = |subject: Subject| {
        let candidate = Candidate {
            row: "row".into(),
            name: None,
            read: Ok(subject),
        };
        let base = base.clone();
        let around = Around {
            base: &move |_| Some(base.clone()),
            ..around(None)
        };
        prepare(vec![candidate], &choice, &around).unwrap().view
    };
    let quality = |view: &PlanView| match &view.rows[2].what {
        RowKind::Quality { base, .. } => (base.clone(), view.rows[2].unit),
        other => panic!("{other:?}"),
    };
    let held = view(other);
    assert_eq!(quality(&held), (Some("F16".into()), Unit::Divergence));
    let itself = view(Subject {
        measured: base.clone(),
        ..subject()
    });
    assert_eq!(quality(&itself), (None, Unit::Perplexity));
}

#[test]
fn a_sweep_measures_each_with_each_and_its_rows_say_what_differs() {
    let tests = Tests::Own {
        prompt: vec![512],
        generate: vec![],
        depth: vec![],
        repetitions: 3,
        until: Some(2.0),
        interleaved: true,
        sweep: Box::new(Sweep {
            threads: vec![1, 2, 2],
            cache: vec!["f16".into(), "q8_0".into()],
            repack: vec![true],
            ..Sweep::default()
        }),
    };
    let prepared = prepared(subject(), &Choice::of(&tests).unwrap(), None);
    let said: Vec<String> = prepared
        .view
        .rows
        .iter()
        .map(|row| {
            let pairs = row
                .settings
                .iter()
                .map(|one| format!("{}={}", one.key, one.value));
            pairs.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        said,
        [
            "type_kv=f16 n_threads=1",
            "type_kv=f16 n_threads=2",
            "type_kv=q8_0 n_threads=1",
            "type_kv=q8_0 n_threads=2"
        ]
    );
    assert_eq!(prepared.plan.order, Order::Interleaved);
    let until = prepared.view.until.unwrap();
    assert!((until.relative - 0.02).abs() < 1e-12);
    let unknown = |sweep| {
        let mut tests = tests.clone();
        if let Tests::Own { sweep: own, .. } = &mut tests {
            **own = sweep;
        }
        Choice::of(&tests).unwrap_err().code
    };
    let kv = Sweep {
        cache: vec!["q9".into()],
        ..Sweep::default()
    };
    assert_eq!(unknown(kv), "setting_unknown");
    let batch = Sweep {
        micro_batch: vec![0],
        ..Sweep::default()
    };
    assert_eq!(unknown(batch), "batch_impossible");
}

#[test]
fn offload_goes_in_quarters_of_the_layers_and_the_output() {
    let usual = Settings::default();
    let layers = |known| -> Vec<i32> {
        let all = sweep::offload(&usual, known);
        all.iter()
            .map(|(settings, _)| settings.n_gpu_layers)
            .collect()
    };
    assert_eq!(layers(Some(31)), [0, 8, 16, 24, 32]);
    assert_eq!(layers(Some(1)), [0, 1, 2], "each count once");
}

#[test]
fn what_is_left_out_is_named_as_rows() {
    let choice = own(&[512, 16_384], &[], &[], 1).unwrap();
    let view = prepared(subject(), &choice, None).view;
    assert_eq!(view.rows.len(), 1);
    assert!(matches!(
        view.hindrances[0].rows[..],
        [RowKind::Speed { tokens: 16_384, .. }]
    ));
}

#[test]
fn impossible_choices_are_refused_with_a_sentence() {
    for (tests, code) in [
        (Tests::Sustained { minutes: 0 }, "minutes_impossible"),
        (
            Tests::PrefixCache {
                prompt: 512,
                changed: 512,
            },
            "tail_impossible",
        ),
        (
            Tests::FirstToken {
                prompt: 0,
                cache: FileCaches::Each,
            },
            "no_tests",
        ),
    ] {
        let problem = Choice::of(&tests).unwrap_err();
        assert_eq!(problem.code, code);
        assert!(problem.message.ends_with('.'), "{}", problem.message);
    }
}

#[test]
fn a_number_is_grouped_by_thousands() {
    for (number, text) in [
        (0_u64, "0"),
        (999, "999"),
        (1000, "1,000"),
        (131_072, "131,072"),
    ] {
        assert_eq!(grouped(number), text);
    }
}
