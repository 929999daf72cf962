//! The worker serving requests of a real text one after the other: what is reused, what each part takes.

#![allow(clippy::panic)]

use twospeed_engine::Settings;
use twospeed_engine::protocol::*;
use twospeed_tests::smollm2;
use twospeed_tests::worker::{Worker, after, phases, samples, settings, tiny};

/// A prompt of that many tokens, requested once for each of `changed`.
fn ask(n_prompt: u32, changed: &[u32]) -> Serve {
    Serve {
        n_prompt,
        n_gen: 3,
        requests: changed
            .iter()
            .map(|changed| ServeAsk { changed: *changed })
            .collect(),
        settings: settings(),
        repetitions: 1,
        warmup: false,
    }
}

/// The requests of each repetition.
#[track_caller]
fn served(worker: &mut Worker, ask: Serve) -> Vec<Vec<ServedReading>> {
    let said = worker.serve(&Request::Serve(ask));
    assert!(
        matches!(said.last(), Some(Event::Measured(_))),
        "{:?}",
        said.last()
    );
    let readings = samples(&said).into_iter().map(|sample| {
        let Some(Reading::Served { load, requests }) = sample.reading else {
            panic!("{sample:?}")
        };
        assert_eq!(load, None, "the worker loads nothing for a repetition");
        let parts = requests.iter().map(|r| r.ttft_ns + r.decode_ns);
        assert_eq!(sample.ns, parts.sum::<u64>());
        requests
    });
    readings.collect()
}

/// Tokens that each request shared and reused.
fn counts(requests: &[ServedReading]) -> Vec<(u32, u32)> {
    requests
        .iter()
        .map(|request| (request.n_shared, request.n_reused))
        .collect()
}

#[test]
fn a_repeated_prompt_reuses_all_but_its_last_token_and_a_changed_one_what_lies_before() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let repetitions = served(
        &mut worker,
        Serve {
            repetitions: 2,
            warmup: true,
            ..ask(512, &[0, 0, 128])
        },
    );
    assert_eq!(repetitions.len(), 2);
    for requests in &repetitions {
        // The article's 511 of 512; 512 - 128 = 384. Every repetition begins with nothing.
        assert_eq!(counts(requests), [(0, 0), (512, 511), (384, 384)]);
        for request in requests {
            assert_eq!((request.n_prompt, request.n_generated), (512, 3));
            assert_eq!(
                request.ttft_ns,
                request.tokenize_ns + request.prefill_ns + request.first_sample_ns
            );
            assert!(request.tokenize_ns > 0, "each request is tokenized");
            let first_decode_ns = request.first_decode_ns.unwrap();
            assert!(first_decode_ns > 0 && first_decode_ns < request.decode_ns);
        }
        // One token is computed instead of 512, and 128 are.
        let [cold, again, changed] = &requests[..] else {
            panic!("three requests")
        };
        assert!(again.ttft_ns < cold.ttft_ns / 2, "{requests:?}");
        assert!(again.ttft_ns < changed.ttft_ns, "{requests:?}");
    }
}

#[test]
fn placement_comes_first_and_enough_is_enough() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let asked = Serve {
        repetitions: 9,
        warmup: true,
        ..ask(40, &[0, 8])
    };
    worker.ask(&Request::Serve(asked.clone()));
    let Event::Placed(placement) = worker.hear() else {
        panic!("placement comes first")
    };
    // 40 + 3 tokens, in the engine's steps of 256.
    assert_eq!(placement.n_ctx, 256);
    assert_eq!(worker.hear(), Event::Phase(Phase::Warmup));
    assert_eq!(worker.hear(), Event::Phase(Phase::Repetition { number: 1 }));
    worker.ask(&Request::Cancel);
    assert_eq!(worker.hear(), Event::Cancelled);

    let measured = worker.ends_after_one(&Request::Serve(asked));
    // More than its weights were in memory, where the system tells.
    assert!(
        measured
            .peak_rss_bytes
            .is_none_or(|bytes| bytes > 96_576_768)
    );
}

#[test]
fn a_cancelled_request_leaves_a_worker_that_serves_the_next() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.begin(&Request::Serve(ask(4000, &[0])));
    worker.ask(&Request::Cancel);
    assert_eq!(worker.closing(), Event::Cancelled);
    let requests = served(&mut worker, ask(16, &[0, 16])).remove(0);
    assert_eq!(
        counts(&requests),
        [(0, 0), (0, 0)],
        "a prompt that changed from its first token on"
    );
}

#[test]
fn one_token_has_no_second() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let asked = Serve {
        n_gen: 1,
        ..ask(8, &[0])
    };
    let request = served(&mut worker, asked).remove(0).remove(0);
    assert_eq!(request.first_decode_ns, None);
    assert_eq!((request.n_generated, request.decode_ns), (1, 0));
}

#[test]
fn a_prompt_longer_than_a_batch_is_served_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |_| {}));
    let small_batches = Settings {
        n_batch: 700,
        n_ubatch: 100,
        ..settings()
    };
    let long = Serve {
        settings: small_batches,
        ..ask(3000, &[0, 0, 1])
    };
    let requests = served(&mut worker, long).remove(0);
    assert_eq!(counts(&requests), [(0, 0), (3000, 2999), (2999, 2999)]);
}

#[test]
fn memory_that_cannot_go_back_shares_and_does_not_reuse() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    // Recurrent state alone, and beside a cache.
    for name in ["mamba-dense-Q8_0", "jamba-dense-Q8_0"] {
        worker.load(&tiny(folder.path(), name, |_| {}));
        let requests = served(&mut worker, ask(200, &[0, 0, 50])).remove(0);
        assert_eq!(counts(&requests), [(0, 0), (200, 0), (150, 0)], "{name}");
    }
    // A window that has moved on from where the prompts part, and one that has not.
    worker.load(&tiny(folder.path(), "gemma3-dense-Q8_0", |_| {}));
    let requests = served(&mut worker, ask(3000, &[0, 0, 2900])).remove(0);
    assert_eq!(counts(&requests), [(0, 0), (3000, 2999), (100, 0)]);
}

#[test]
fn what_cannot_be_served_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    let nothing = worker.failure(&Request::Serve(ask(8, &[0])));
    assert_eq!(nothing.code, FailureCode::NothingLoaded);

    worker.load(&smollm2());
    let with = |change: &dyn Fn(&mut Serve)| {
        let mut asked = ask(8, &[0]);
        change(&mut asked);
        Request::Serve(asked)
    };
    for (request, names) in [
        (with(&|asked| asked.n_prompt = 0), "n_prompt"),
        (with(&|asked| asked.n_gen = 0), "n_gen"),
        (with(&|asked| asked.requests.clear()), "requests"),
        (with(&|asked| asked.requests[0].changed = 9), "9 tokens"),
        (with(&|asked| asked.repetitions = 0), "repetitions"),
        (
            with(&|asked| asked.settings.embeddings = true),
            "embeddings",
        ),
        (
            with(&|asked| asked.settings.no_host = true),
            "other settings",
        ),
    ] {
        worker.refuses(&request, FailureCode::BadSetting, names);
    }
    let said = worker.serve(&with(&|_| {}));
    assert!(matches!(said.last(), Some(Event::Measured(_))));
    assert_eq!(phases(&said), [Phase::Repetition { number: 1 }]);

    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let key = b"tokenizer.ggml.model\x08\0\0\0\x04\0\0\0\0\0\0\0test";
        let at = after(header, key);
        header[at - 4..at].copy_from_slice(b"none");
    }));
    let asked = Request::Serve(ask(8, &[0]));
    worker.refuses(&asked, FailureCode::NotAble, "no tokenizer");
}
