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
    })
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

fn prepared(subject: Subject, choice: &Choice, available: Option<u64>) -> Prepared {
    let candidate = Candidate {
        row: "row".into(),
        name: None,
        read: Ok(subject),
    };
    let around = Around {
        threads: 2,
        available,
        earlier: &[],
        ceiling: &|_| Some(7.0),
    };
    prepare(vec![candidate], choice, &around).unwrap()
}

#[test]
fn own_tests_run_in_llama_benchs_order() {
    let choice = own(&[512, 1024], &[128, 0], &[0, 4096, 0], 2).unwrap();
    let names: Vec<_> = choice.specs.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
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
    assert_eq!(article.specs, quick.specs);
    assert_eq!(article.repetitions, 5);
}

#[test]
fn an_embedding_model_is_measured_by_its_prefill_alone() {
    let mut bert = subject();
    bert.measured.ability = Some(Ability::Embeds);
    let quick = Choice::of(&Tests::Quick).unwrap();
    let view = prepared(bert.clone(), &quick, None).view;
    assert_eq!(view.rows.len(), 1);
    assert_eq!(view.rows[0].phase, PhaseName::Prefill);
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
        .map(|row| (row.position, row.tokens, row.ceiling))
        .collect();
    assert_eq!(facts, [(0, 512, None), (1, 128, Some(7.0))]);
    assert_eq!(prepared.plan.tests[0].settings.n_threads, 2);
    assert_eq!(prepared.view.threads, 2);
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
