//! The worker on models of other kinds: tiny ones of real architectures, with zeros for weights.

use twospeed_engine::Settings;
use twospeed_engine::protocol::*;
use twospeed_tests::worker::{Worker, after, load, samples, settings, test, tiny};

#[test]
fn batches_shorter_than_the_prompt_and_than_the_micro_batch_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    worker.load(&tiny(folder.path(), "llama-dense-Q8_0", |_| {}));
    for (n_batch, n_ubatch) in [(32, 512), (32, 64), (100, 7), (64, 0)] {
        let shaped = Settings {
            n_batch,
            n_ubatch,
            ..settings()
        };
        let said = worker.serve(&Request::Measure(Measure {
            settings: shaped,
            ..test(100, 2, 30)
        }));
        assert_eq!(
            samples(&said).len(),
            2,
            "-b {n_batch} -ub {n_ubatch}: {:?}",
            said.last()
        );
    }
}

#[test]
fn every_kind_of_memory_is_measured_at_a_depth() {
    let folder = tempfile::tempdir().unwrap();
    // Full attention, sliding windows, experts with compressed attention, recurrent, both at once.
    for name in [
        "llama-dense-Q8_0",
        "gemma3-dense-Q8_0",
        "deepseek2-moe-Q8_0",
        "mamba-dense-Q8_0",
        "jamba-dense-Q8_0",
    ] {
        let mut worker = Worker::start(&[]);
        let loaded = worker.load(&tiny(folder.path(), name, |_| {}));
        assert_eq!(
            loaded.recurrent,
            name.starts_with("mamba") || name.starts_with("jamba")
        );
        let said = worker.serve(&Request::Measure(test(16, 4, 100)));
        assert_eq!(samples(&said).len(), 2, "{name}: {:?}", said.last());
    }
}

#[test]
fn an_embedding_model_has_a_prefill_speed_only() {
    let folder = tempfile::tempdir().unwrap();
    // The header says that attention is causal: a byte after the key's name and its type (7, bool).
    let path = tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let key = b"llama.attention.causal\x07\0\0\0";
        let at = after(header, key);
        header[at] = 0;
    });
    let mut worker = Worker::start(&[]);
    assert_eq!(worker.load(&path).ability, Ability::Embeds);
    assert_eq!(
        worker.failure(&Request::Measure(test(0, 4, 0))).code,
        FailureCode::NotAble
    );
    assert_eq!(
        worker.failure(&Request::Measure(test(8, 0, 8))).code,
        FailureCode::NotAble
    );
    // One pass only: more tokens than a micro-batch would abort the engine.
    let long = worker.failure(&Request::Measure(test(600, 0, 0)));
    assert!(long.message.contains("-ub"), "{}", long.message);
    let said = worker.serve(&Request::Measure(test(100, 0, 0)));
    assert_eq!(samples(&said).len(), 2, "{:?}", said.last());
}

#[test]
fn positions_that_a_model_never_learned_are_refused_instead_of_aborting() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    let loaded = worker.load(&tiny(folder.path(), "gpt2-dense-Q8_0", |_| {}));
    let beyond = worker.failure(&Request::Measure(test(8, 0, loaded.n_ctx_train)));
    assert_eq!(beyond.code, FailureCode::ContextRefused);
    let said = worker.serve(&Request::Measure(test(loaded.n_ctx_train, 0, 0)));
    assert_eq!(samples(&said).len(), 2, "up to the last one it has");
}

#[cfg(unix)]
#[test]
fn a_file_may_have_any_name_the_system_allows() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let plain = tiny(folder.path(), "llama-dense-Q8_0", |_| {});
    let odd = folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"<b>\xff \n.gguf"));
    std::fs::rename(plain, &odd).unwrap();
    let mut worker = Worker::start(&[]);
    assert_eq!(worker.load(&odd).n_layer, 2);
}

#[cfg(unix)]
#[test]
fn a_file_that_aborts_the_engine_ends_its_worker_alone() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().unwrap();
    // More layers than the engine is compiled for trip an assertion inside it.
    let path = tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let key = b"llama.block_count\x04\0\0\0";
        let at = after(header, key);
        header[at..at + 4].copy_from_slice(&100_000_u32.to_le_bytes());
    });
    let mut worker = Worker::start(&[]);
    worker.ask(&load(&path, PageCache::AsIs));
    let status = worker.child.wait().unwrap();
    assert_eq!(
        status.signal(),
        Some(6),
        "SIGABRT, and no debugger in between: {status}"
    );
}
