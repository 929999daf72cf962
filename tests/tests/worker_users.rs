//! The worker serving users side by side: what llama-batched-bench times, for each kind of memory.

#![allow(clippy::panic)]

use twospeed_engine::Settings;
use twospeed_engine::protocol::*;
use twospeed_tests::smollm2;
use twospeed_tests::worker::{Worker, after, phases, samples, settings, test, tiny};

/// That many users of 32 + 8 tokens.
fn ask(users: u32, split_kv: bool, shared_prompt: bool) -> Users {
    Users {
        users,
        n_prompt: 32,
        n_gen: 8,
        split_kv,
        shared_prompt,
        settings: settings(),
        repetitions: 2,
        warmup: true,
        seed: 1,
    }
}

/// What was placed, and the readings of each repetition.
#[track_caller]
fn served(worker: &mut Worker, ask: Users) -> (Placement, Vec<UsersReading>) {
    let said = worker.serve(&Request::Users(ask));
    let Some(Event::Placed(placement)) = said.first() else {
        panic!("placement comes first: {said:?}")
    };
    let readings = samples(&said).into_iter().map(|sample| {
        let Some(Reading::Users(reading)) = sample.reading else {
            panic!("{sample:?}")
        };
        assert_eq!(sample.ns, reading.prefill_ns + reading.decode_ns);
        reading
    });
    (placement.clone(), readings.collect())
}

#[test]
fn every_user_has_a_first_token_and_room_of_their_own() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    for users in [1, 2, 4] {
        for split in [false, true] {
            for shared in [false, true] {
                let (placement, readings) = served(
                    &mut worker,
                    Users {
                        n_gen: 3,
                        repetitions: 1,
                        warmup: false,
                        ..ask(users, split, shared)
                    },
                );
                // Tokens as llama-batched-bench counts them, in the engine's steps of 256: all of
                // these fit into one, or into one each.
                let n_ctx = if split { users * 256 } else { 256 };
                assert_eq!(placement.n_ctx, n_ctx, "{users} {split} {shared}");
                // A cache of 30 layers x 2 x 3 heads x 64 x 2 bytes a token, however it is divided.
                let kv = placement
                    .buffers
                    .iter()
                    .filter(|b| b.holds == BufferUse::Kv);
                assert_eq!(
                    kv.map(|buffer| buffer.bytes).sum::<u64>(),
                    u64::from(n_ctx) * 30 * 2 * 3 * 64 * 2
                );
                assert_eq!(readings.len(), 1);
                for reading in readings {
                    assert_eq!(reading.ttft_ns.len(), users as usize);
                    assert!(reading.ttft_ns.iter().all(|ns| *ns > 0));
                    assert!(reading.ttft_ns.iter().all(|ns| *ns <= reading.prefill_ns));
                    assert!(reading.decode_ns > 0);
                }
            }
        }
    }
}

#[test]
fn the_last_user_waits_for_the_batches_before_and_a_shared_prompt_is_one_wait() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let a_prompt_a_batch = Settings {
        n_batch: 32,
        ..settings()
    };
    let each = Users {
        settings: a_prompt_a_batch,
        ..ask(4, false, false)
    };
    for reading in served(&mut worker, each.clone()).1 {
        assert!(reading.ttft_ns.is_sorted_by(|one, next| one < next));
    }
    let shared = Users {
        shared_prompt: true,
        ..each
    };
    let (_, of_each) = served(&mut worker, ask(4, false, false));
    for reading in served(&mut worker, shared).1 {
        assert!(reading.ttft_ns.iter().all(|ns| *ns == reading.ttft_ns[0]));
        // 32 tokens are computed instead of 128.
        let slowest = of_each.iter().map(|reading| reading.prefill_ns).max();
        assert!(reading.prefill_ns < slowest.unwrap());
    }
}

#[test]
fn one_user_decodes_about_as_fast_as_the_speed_test() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let said = worker.serve(&Request::Measure(Measure {
        repetitions: 4,
        ..test(0, 16, 32)
    }));
    let alone = samples(&said).iter().map(|sample| sample.ns).min().unwrap();
    let (_, readings) = served(
        &mut worker,
        Users {
            n_gen: 16,
            repetitions: 4,
            ..ask(1, true, false)
        },
    );
    let of_a_user = readings.iter().map(|reading| reading.decode_ns).min();
    let ratio = of_a_user.unwrap() as f64 / alone as f64;
    assert!(
        (0.5..2.0).contains(&ratio),
        "16 tokens at a depth of 32 take {ratio} times as long for a user"
    );
}

#[test]
fn every_kind_of_memory_serves_users_as_far_as_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    // Full attention, sliding windows, experts with compressed attention, recurrent, both at once.
    for name in [
        "llama-dense-Q8_0",
        "gemma3-dense-Q8_0",
        "deepseek2-moe-Q8_0",
        "mamba-dense-Q8_0",
        "jamba-dense-Q8_0",
    ] {
        worker.load(&tiny(folder.path(), name, |_| {}));
        for (split, shared) in [(false, false), (false, true), (true, false), (true, true)] {
            let asked = Users {
                n_prompt: 100,
                ..ask(3, split, shared)
            };
            if split && shared && name.starts_with("jamba") {
                worker.refuses(&Request::Users(asked), FailureCode::NotAble, "jamba");
                continue;
            }
            let said = worker.serve(&Request::Users(asked));
            assert_eq!(
                samples(&said).len(),
                2,
                "{name} {split} {shared}: {:?}",
                said.last()
            );
        }
    }
}

#[test]
fn more_users_than_a_micro_batch_and_as_many_as_the_engine_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |_| {}));
    let narrow = Settings {
        n_batch: 256,
        n_ubatch: 7,
        ..settings()
    };
    for (users, split_kv) in [(256, false), (40, true)] {
        let (_, readings) = served(
            &mut worker,
            Users {
                settings: narrow.clone(),
                repetitions: 1,
                ..ask(users, split_kv, false)
            },
        );
        assert_eq!(readings[0].ttft_ns.len(), users as usize);
    }
}

#[test]
fn it_waits_for_go_and_ends_when_it_is_enough_or_cancelled() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.ends_after_one(&Request::Users(Users {
        repetitions: 9,
        ..ask(2, false, false)
    }));

    worker.begin(&Request::Users(Users {
        n_gen: 4000,
        warmup: false,
        ..ask(2, false, false)
    }));
    worker.ask(&Request::Cancel);
    assert_eq!(worker.closing(), Event::Cancelled);
    let said = worker.serve(&Request::Users(ask(1, false, false)));
    assert_eq!(
        phases(&said),
        [
            Phase::Warmup,
            Phase::Repetition { number: 1 },
            Phase::Repetition { number: 2 },
        ]
    );
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let with = |change: &dyn Fn(&mut Users)| {
        let mut asked = ask(4, false, false);
        change(&mut asked);
        Request::Users(asked)
    };
    for (request, code, names) in [
        (
            with(&|asked| asked.users = 0),
            FailureCode::BadSetting,
            "0 users",
        ),
        (
            // llama.cpp's LLAMA_MAX_SEQ.
            with(&|asked| asked.users = 257),
            FailureCode::BadSetting,
            "256 sequences",
        ),
        (
            with(&|asked| asked.n_prompt = 0),
            FailureCode::BadSetting,
            "0 prompt tokens",
        ),
        (
            with(&|asked| asked.n_gen = 0),
            FailureCode::BadSetting,
            "0 tokens to write",
        ),
        (
            with(&|asked| asked.repetitions = 0),
            FailureCode::BadSetting,
            "repetitions",
        ),
        // The engine would abort.
        (
            with(&|asked| asked.settings.n_outputs = 3),
            FailureCode::BadSetting,
            "n_outputs",
        ),
        (
            with(&|asked| asked.settings.n_batch = 3),
            FailureCode::BadSetting,
            "n_batch",
        ),
        (
            with(&|asked| asked.settings.no_host = true),
            FailureCode::BadSetting,
            "other settings",
        ),
        (
            with(&|asked| asked.n_prompt = 20_000_000),
            FailureCode::ContextRefused,
            "GiB",
        ),
        (
            with(&|asked| asked.n_prompt = u32::MAX),
            FailureCode::ContextRefused,
            "more than any context",
        ),
    ] {
        worker.refuses(&request, code, names);
    }

    // The header says that attention is causal: a byte after the key's name and its type (7, bool).
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let at = after(header, b"llama.attention.causal\x07\0\0\0");
        header[at] = 0;
    }));
    let asked = Request::Users(ask(2, false, false));
    worker.refuses(&asked, FailureCode::NotAble, "embedding model");
}
