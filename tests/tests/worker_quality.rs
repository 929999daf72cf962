//! The worker judging predictions of a text: what llama-perplexity finds, and what is refused.

#![allow(clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use twospeed_engine::Settings;
use twospeed_engine::protocol::*;
use twospeed_engine::settings::ModelPath;
use twospeed_tests::worker::{Worker, after, phases, samples, settings, test, tiny};
use twospeed_tests::{model, smollm2};

/// Two chunks of 256 tokens of the bundled text.
fn ask(base: Option<&Path>) -> Quality {
    Quality {
        n_ctx: 256,
        chunks: 2,
        text: None,
        base: base.map(|path| ModelPath(path.to_owned())),
        settings: settings(),
    }
}

#[track_caller]
fn reading(worker: &mut Worker, ask: Quality) -> QualityReading {
    let said = worker.serve(&Request::Quality(ask));
    let [sample] = &samples(&said)[..] else {
        panic!("{:?}", said.last())
    };
    match sample.reading {
        Some(Reading::Quality(reading)) => reading,
        _ => panic!("{sample:?}"),
    }
}

#[track_caller]
fn refused(worker: &mut Worker, ask: Quality, code: FailureCode, why: &str) {
    let failure = worker.failure(&Request::Quality(ask));
    assert_eq!(failure.code, code, "{}", failure.message);
    assert!(failure.message.contains(why), "{}", failure.message);
}

/// Within that share of what llama-perplexity printed.
#[track_caller]
fn near(found: f64, printed: f64, share: f64) {
    assert!(
        (found / printed - 1.0).abs() < share,
        "{found}, not {printed}"
    );
}

/// SmolLM2 in Q4_0, made by the engine from the Q4_1 file.
fn q4_0(worker: &mut Worker, folder: &Path) -> PathBuf {
    let output = folder.join("Q4_0.gguf");
    worker.ask(&Request::Quantize(Quantize {
        input: ModelPath(smollm2()),
        output: ModelPath(output.clone()),
        file_type: 2,
        n_threads: 1,
        allow_requantize: true,
    }));
    loop {
        match worker.hear() {
            Event::Quantized(_) => return output,
            Event::QuantizeProgress { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// llama-perplexity of build 11434 with the CPU variant haswell (another one adds up in another
/// order: some 0.5 % in so short a text), FILE.gguf being the Q4_1 one and then a Q4_0 that
/// `llama-quantize --allow-requantize` made of it:
///
/// ```text
/// llama-perplexity -m FILE.gguf -f moby-dick.txt -c 256 -b 256 --chunks 2 -t 1 --kl-divergence-base base.bin
/// llama-perplexity -m Q4_0.gguf -f moby-dick.txt -c 256 -b 256 --chunks 2 -t 1 --kl-divergence-base base.bin --kl-divergence
/// ```
#[cfg(target_arch = "x86_64")]
#[test]
fn perplexity_and_divergence_are_llama_perplexitys() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&["--variant", "haswell"]);
    worker.load(&smollm2());
    let alone = reading(&mut worker, ask(None));
    near(alone.perplexity, 68.0174, 0.001);
    near(alone.perplexity_error, 14.39442, 0.001);
    // 127 predictions of each chunk.
    assert_eq!((alone.n_ctx, alone.chunks, alone.n_scored), (256, 2, 254));
    assert_eq!(alone.against_base, None);

    let small = q4_0(&mut worker, folder.path());
    worker.load(&small);
    let compared = reading(&mut worker, ask(Some(&smollm2())));
    near(compared.perplexity, 78.367_225, 0.001);
    near(compared.perplexity_error, 15.672_386, 0.001);
    let against = compared.against_base.unwrap();
    near(against.base_perplexity, 68.017_751, 0.001);
    near(against.kl_mean, 0.296_503, 0.01);
    near(against.kl_error, 0.014_880, 0.01);
    near(against.kl_max, 1.848_353, 0.01);
    near(against.kl_p99, 1.145_966, 0.01);
    near(against.kl_median, 0.233_892, 0.01);
    // 179 of 254.
    near(against.same_top, 0.704_72, 0.01);
}

/// The same of Gemma 3, whose texts begin with a token of their own, and so each chunk does:
/// `-c 128 -b 128 --chunks 2 -t 1`.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_chunk_begins_as_every_text_of_the_model_does() {
    let mut worker = Worker::start(&["--variant", "haswell"]);
    worker.load(&model("gemma-3-270m-q4_k_m.gguf"));
    let short = Quality {
        n_ctx: 128,
        ..ask(None)
    };
    near(reading(&mut worker, short).perplexity, 80.9363, 0.001);
}

/// Weights of zero give every token the same logit: a perplexity of the whole vocabulary.
#[test]
fn a_model_of_zeros_takes_all_of_its_tokens_for_equally_likely() {
    let folder = tempfile::tempdir().unwrap();
    // A sliding window and recurrent state.
    for name in ["gemma3-dense-Q8_0", "mamba-dense-Q8_0"] {
        let path = tiny(folder.path(), name, |_| {});
        let mut worker = Worker::start(&[]);
        let n_vocab = f64::from(worker.load(&path).n_vocab);
        let found = reading(&mut worker, ask(Some(&path)));
        near(found.perplexity, n_vocab, 1e-9);
        let against = found.against_base.unwrap();
        near(against.base_perplexity, n_vocab, 1e-6);
        assert!(against.kl_max.abs() < 1e-6, "{name}: {against:?}");
        assert_eq!(against.same_top, 1.0, "{name}");
    }
}

#[test]
fn batches_threads_and_the_texts_path_change_nothing() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let ask = |base| Quality {
        n_ctx: 192,
        ..ask(base)
    };
    let whole = reading(&mut worker, ask(None));
    // Micro-batches below 64 tokens take another way through the engine, and llama-perplexity too
    // finds 1 % less or more then.
    let in_pieces = Quality {
        settings: Settings {
            n_batch: 100,
            n_ubatch: 64,
            n_threads: 2,
            n_outputs: 1,
            ..settings()
        },
        ..ask(None)
    };
    let pieces = reading(&mut worker, in_pieces);
    near(pieces.perplexity, whole.perplexity, 0.001);
    assert_eq!(pieces.n_scored, whole.n_scored);
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../src-tauri/crates/worker/texts/moby-dick.txt");
    let by_path = Quality {
        text: Some(ModelPath(bundled)),
        ..ask(None)
    };
    assert_eq!(reading(&mut worker, by_path), whole);
}

#[test]
fn how_far_it_is_is_told_from_the_first_chunk_to_the_last() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let short = Quality {
        n_ctx: 16,
        chunks: 40,
        ..ask(None)
    };
    let said = worker.serve(&Request::Quality(short));
    assert!(
        matches!(said[0], Event::Placed(Placement { n_ctx: 256, .. })),
        "{:?}",
        said[0]
    );
    let done: Vec<u32> = phases(&said)
        .iter()
        .map(|phase| match phase {
            Phase::Text { done, chunks: 40 } => *done,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((done.first(), done.last()), (Some(&0), Some(&40)));
    assert!(done.is_sorted_by(|a, b| a < b), "{done:?}");
    assert!(matches!(
        said.last(),
        Some(Event::Measured(Measured { repetitions: 1, .. }))
    ));
}

#[test]
fn a_text_that_is_too_short_or_no_text_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        Quality {
            text: Some(ModelPath(path)),
            ..ask(None)
        }
    };
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    // 511 times " word" are 511 tokens, and 512 are what two chunks have.
    let short = text("short.txt", " word".repeat(511).as_bytes());
    let why = "has 511 tokens and chunks of 256 need at least 512";
    refused(&mut worker, short, FailureCode::BadSetting, why);
    let enough = text("enough.txt", " word".repeat(512).as_bytes());
    assert_eq!(reading(&mut worker, enough).chunks, 2);
    // The names of special tokens are text here, not tokens.
    let special = text("special.txt", "<|im_start|>".repeat(128).as_bytes());
    assert_eq!(reading(&mut worker, special).chunks, 2);
    let latin = text("latin.txt", b"caf\xe9");
    refused(&mut worker, latin, FailureCode::FileUnreadable, "no UTF-8");
    let tiny_chunks = Quality {
        n_ctx: 4,
        ..ask(None)
    };
    let why = "at least 8 tokens";
    refused(&mut worker, tiny_chunks, FailureCode::BadSetting, why);
}

#[test]
fn what_cannot_be_a_base_is_refused_and_the_model_stays() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let gemma = ask(Some(&model("gemma-3-270m-q4_k_m.gguf")));
    let why = "its vocabulary has 262144 tokens, not 49152";
    refused(&mut worker, gemma, FailureCode::NotAble, why);
    let missing = ask(Some(Path::new("/nowhere/x.gguf")));
    refused(
        &mut worker,
        missing,
        FailureCode::FileUnreadable,
        "/nowhere/x.gguf",
    );
    let said = worker.serve(&Request::Measure(test(8, 0, 0)));
    assert!(matches!(said.last(), Some(Event::Measured(_))), "{said:?}");
}

#[test]
fn a_base_that_takes_one_token_for_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = tiny(folder.path(), "llama-dense-Q8_0", |header| {
        // Its token 10 is called "tok_10".
        let end = after(header, b"tok_10");
        header[end - 1] = b'x';
    });
    let base = folder.path().join("base.gguf");
    fs::rename(other, &base).unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |_| {}));
    let small = Quality {
        n_ctx: 64,
        ..ask(Some(&base))
    };
    refused(&mut worker, small, FailureCode::NotAble, "another token 10");
}

/// A file with holes takes no room on a disk that knows them.
#[cfg(target_os = "linux")]
#[test]
fn a_base_that_does_not_fit_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge.gguf");
    let file = fs::File::create(&huge).unwrap();
    file.set_len(8 << 40).unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let ask = ask(Some(&huge));
    // 8 TiB and two times 256 rows of 49,152 floats.
    let why = "at least 8192.1 GiB of memory and";
    refused(&mut worker, ask, FailureCode::ContextRefused, why);
}

#[test]
fn a_model_that_predicts_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    let small = Quality {
        n_ctx: 64,
        ..ask(None)
    };
    refused(
        &mut worker,
        small.clone(),
        FailureCode::NothingLoaded,
        "load",
    );
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let at = after(header, b"llama.attention.causal\x07\0\0\0");
        header[at] = 0;
    }));
    refused(
        &mut worker,
        small.clone(),
        FailureCode::NotAble,
        "embedding",
    );
    // Zeros where positions are divided by: every logit is no number.
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |_| {}));
    refused(&mut worker, small, FailureCode::DecodeFailed, "no numbers");
}

#[test]
fn cancel_stops_the_reading_and_the_worker_takes_the_next() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.ask(&Request::Quality(Quality {
        n_ctx: 512,
        chunks: 0,
        ..ask(Some(&smollm2()))
    }));
    while !matches!(worker.hear(), Event::Phase(Phase::Text { done: 0, .. })) {}
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    worker.ask(&Request::Cancel);
    let last = loop {
        let event = worker.hear();
        if event.is_closing() {
            break event;
        }
    };
    assert_eq!(last, Event::Cancelled);
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "{:?}",
        asked.elapsed()
    );
    let next = Quality {
        n_ctx: 16,
        ..ask(None)
    };
    assert_eq!(reading(&mut worker, next).chunks, 2);
}
