//! The worker serving real requests: every part timed, the prefix it has reused and told honestly.

#![allow(clippy::panic)]

use twospeed_engine::protocol::*;
use twospeed_tests::smollm2;
use twospeed_tests::worker::{Worker, after, settings, tiny};

fn ask(prompt: &str) -> Generate {
    Generate {
        prompt: prompt.into(),
        n_predict: 12,
        n_ctx: 0,
        settings: settings(),
        reuse_prefix: true,
        temperature: 0.0,
        seed: 1,
        ignore_eos: true,
    }
}

/// What was answered: the text, and the closing event.
fn answer(worker: &mut Worker, ask: Generate) -> (String, Generated) {
    let said = worker.serve(&Request::Generate(ask));
    let text = said
        .iter()
        .filter_map(|event| match event {
            Event::Token(token) => Some(token.text.as_str()),
            _ => None,
        })
        .collect();
    match said.into_iter().last() {
        Some(Event::Generated(generated)) => (text, generated),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_has_text_and_its_parts_add_up() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let (text, done) = answer(&mut worker, ask("The capital of France is"));
    assert!(text.starts_with(" Paris"), "{text}");
    assert_eq!((done.n_prompt, done.n_reused, done.n_generated), (5, 0, 12));
    assert_eq!(done.stop, Stop::Length);
    assert!(done.tokenize_ns > 0 && done.prefill_ns > 0 && done.first_sample_ns > 0);
    assert_eq!(
        done.ttft_ns,
        done.tokenize_ns + done.prefill_ns + done.first_sample_ns
    );
    assert_eq!(done.token_at_ns.len(), 12);
    assert!(done.token_at_ns.is_sorted());
    assert_eq!(done.token_at_ns[0], done.ttft_ns);
    assert_eq!(done.decode_ns, done.token_at_ns[11] - done.token_at_ns[0]);
}

#[test]
fn a_repeated_prompt_reuses_all_but_its_last_token_and_answers_the_same() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let prompt = "Once upon a time there was a small house at the edge of a large forest. In it";
    let (cold, first) = answer(&mut worker, ask(prompt));
    let (warm, second) = answer(&mut worker, ask(prompt));
    assert_eq!(cold, warm);
    assert_eq!(first.n_reused, 0);
    assert_eq!(
        second.n_reused,
        second.n_prompt - 1,
        "the last token is always computed"
    );

    let (_, changed) = answer(&mut worker, ask(&format!("{prompt} lived a king")));
    assert_eq!(
        changed.n_reused, first.n_prompt,
        "up to where the prompts part"
    );
    let (_, anew) = answer(
        &mut worker,
        Generate {
            reuse_prefix: false,
            ..ask(prompt)
        },
    );
    assert_eq!(anew.n_reused, 0, "nobody asked for it");
}

#[test]
fn characters_are_whole_and_a_seed_repeats_its_answer() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let by_chance = |seed| Generate {
        temperature: 1.5,
        seed,
        n_predict: 24,
        ..ask("日本語の文章:")
    };
    let (one, _) = answer(&mut worker, by_chance(5));
    let (same, _) = answer(&mut worker, by_chance(5));
    let (other, _) = answer(&mut worker, by_chance(6));
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[test]
fn a_context_is_never_overfilled() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let (_, done) = answer(
        &mut worker,
        Generate {
            n_ctx: 8,
            n_predict: 100,
            ..ask("The capital of France is")
        },
    );
    assert_eq!(done.stop, Stop::ContextFull);
    // 5 of the prompt, 3 more in the cache, and one sampled from the last of them.
    assert_eq!(done.n_generated, 4);
    let failure = worker.failure(&Request::Generate(Generate {
        n_ctx: 5,
        ..ask("The capital of France is")
    }));
    assert_eq!(failure.code, FailureCode::ContextTooSmall);
    assert!(failure.message.contains("5 tokens"), "{}", failure.message);
}

#[test]
fn a_cancelled_answer_keeps_what_was_written() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.ask(&Request::Generate(Generate {
        n_predict: 4000,
        ..ask("Count: one, two,")
    }));
    while !matches!(worker.hear(), Event::Token(_)) {}
    worker.ask(&Request::Cancel);
    let closing = worker.closing();
    let Event::Generated(done) = closing else {
        panic!("{closing:?}")
    };
    assert_eq!(done.stop, Stop::Cancelled);
    assert!(done.n_generated >= 1 && done.n_generated < 4000);
    let (text, _) = answer(&mut worker, ask("The capital of France is"));
    assert!(text.starts_with(" Paris"), "it goes on: {text}");
}

#[test]
fn what_cannot_answer_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let key = b"tokenizer.ggml.model\x08\0\0\0\x04\0\0\0\0\0\0\0test";
        let at = after(header, key);
        header[at - 4..at].copy_from_slice(b"none");
    }));
    let failure = worker.failure(&Request::Generate(ask("hello")));
    assert_eq!(failure.code, FailureCode::NotAble, "{}", failure.message);
    assert!(
        failure.message.contains("no tokenizer"),
        "{}",
        failure.message
    );

    worker.load(&smollm2());
    for (wrong, names) in [
        (
            Generate {
                n_predict: 0,
                ..ask("x")
            },
            "n_predict",
        ),
        (
            Generate {
                temperature: -1.0,
                ..ask("x")
            },
            "temperature",
        ),
        (ask(""), "empty"),
    ] {
        let failure = worker.failure(&Request::Generate(wrong));
        assert_eq!(failure.code, FailureCode::BadSetting);
        assert!(failure.message.contains(names), "{}", failure.message);
    }
}
