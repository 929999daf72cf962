//! The built-in model, made for real.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use twospeed_gguf::{Data, Kind, Model};
use twospeed_library::builtin::{self, BuiltinError};
use twospeed_library::is_synthetic;

/// sha256 of the file, on every machine: written down once, when it had been run by llama.cpp's
/// own tools (finite logits of standard deviation 1, perplexity 47,485 of a vocabulary of 32,000).
const SHA256: &str = "562be142debbb1a4067ce21508daf64bdfe425fd2f18617fdbf1751cf786bb8e";

fn made(folder: &Path) -> Model {
    let path = builtin::ensure(folder, &mut |_, _| true).unwrap();
    twospeed_gguf::read(&path).unwrap()
}

fn must_not_be_made(_: u64, _: u64) -> bool {
    panic!("it was made although a sound one is there")
}

#[test]
fn it_is_the_same_on_every_machine() {
    let folder = tempfile::tempdir().unwrap();
    let model = made(folder.path());
    let bytes = fs::read(&model.path).unwrap();
    let hash = Sha256::digest(&bytes);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (hash.as_str(), bytes.len() as u64),
        (SHA256, builtin::BYTES),
        "the recipe has changed: check the new file with llama.cpp, then note it here and in builtin.rs"
    );
    assert_eq!(
        twospeed_gguf::fingerprint(&model).unwrap(),
        builtin::FINGERPRINT
    );
}

#[test]
fn its_header_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let model = made(folder.path());
    model.check_decodes().unwrap();
    assert_eq!(model.kind, Kind::Generates);
    assert_eq!(model.data, Data::Complete);
    assert_eq!(model.name, "Twospeed built-in 150M (random weights)");
    assert_eq!(model.architecture.as_deref(), Some("llama"));
    assert_eq!(model.quantization.as_deref(), Some("Q4_K_M"));
    assert_eq!(model.layers, Some(16));
    assert_eq!(model.context_length, Some(8192));
    assert_eq!(model.warnings, []);
    assert!(is_synthetic(&model));
    assert_eq!(
        model.metadata().array_len("tokenizer.ggml.tokens"),
        Some(32_000)
    );
}

#[test]
fn its_bytes_by_type_are_those_of_a_true_q4_k_m() {
    let folder = tempfile::tempdir().unwrap();
    let model = made(folder.path());

    // By hand. A block of 256 weights takes 144 bytes in Q4_K and 210 in Q6_K.
    let embedding = 32_000 * 768;
    let key_or_value = 768 * 256;
    let query_or_output = 768 * 768;
    let feed_forward = 768 * 2048;
    let all = 2 * embedding + 16 * (2 * key_or_value + 2 * query_or_output + 3 * feed_forward);
    let six = embedding + 8 * (key_or_value + feed_forward);
    let norms = 33 * 768;
    assert_eq!((all, six), (149_815_296, 38_731_776));

    let share = |name: &str| {
        let share = model.types.iter().find(|s| s.tensor_type.name() == name);
        share.map(|share| (share.parameters, share.bytes))
    };
    assert_eq!(share("Q4_K"), Some((all - six, (all - six) / 256 * 144)));
    assert_eq!(share("Q6_K"), Some((six, six / 256 * 210)));
    assert_eq!(share("F32"), Some((norms, norms * 4)));
    assert_eq!(model.types.len(), 3, "and no other type");
    assert_eq!(model.parameters, all + norms);
}

#[test]
fn a_sound_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = builtin::ensure(folder.path(), &mut |_, _| true).unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(
        builtin::ensure(folder.path(), &mut must_not_be_made).unwrap(),
        path
    );
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(path, builtin::path(folder.path()));
}

#[test]
fn a_damaged_file_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = builtin::path(folder.path());
    let sound = |path: &Path| {
        let model = twospeed_gguf::read(path).unwrap();
        twospeed_gguf::fingerprint(&model).unwrap() == builtin::FINGERPRINT
    };
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("cut off", |path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(1_000_000).unwrap();
        }),
        ("another model of the same size", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[builtin::BYTES as usize / 2..].fill(7);
            fs::write(path, bytes).unwrap();
        }),
        ("not a model", |path| fs::write(path, "<html>").unwrap()),
    ];
    builtin::ensure(folder.path(), &mut |_, _| true).unwrap();
    for (what, damage) in damages {
        damage(&path);
        builtin::ensure(folder.path(), &mut |_, _| true).unwrap();
        assert!(sound(&path), "{what}");
    }
}

#[test]
fn stopping_it_leaves_nothing_that_looks_like_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = builtin::ensure(folder.path(), &mut |done, _| done < 10_000_000);
    assert!(matches!(stopped, Err(BuiltinError::Stopped)));
    let left: Vec<String> = fs::read_dir(folder.path().join("models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["twospeed-builtin-150m-Q4_K_M.gguf.lock"]);
}

#[test]
fn what_an_earlier_crash_left_is_no_hindrance() {
    let folder = tempfile::tempdir().unwrap();
    let path = builtin::path(folder.path());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let rest = path.with_extension("gguf.part");
    fs::write(&rest, vec![1; 200_000_000]).unwrap();
    builtin::ensure(folder.path(), &mut |_, _| true).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), builtin::BYTES);
    assert!(!rest.exists());
}

#[test]
fn two_at_a_time_make_one() {
    let folder = tempfile::tempdir().unwrap();
    let made: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut calls = 0;
                    builtin::ensure(folder.path(), &mut |_, _| {
                        calls += 1;
                        true
                    })
                    .unwrap();
                    usize::from(calls > 0)
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    assert_eq!(made, 1, "the second waits and finds it there");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    fs::write(&file, "").unwrap();
    let error = builtin::ensure(&file, &mut |_, _| true).unwrap_err();
    let sentence = error.to_string();
    assert!(
        sentence.contains(&*file.join("models").to_string_lossy()),
        "{sentence}"
    );
    assert!(sentence.contains("95 MB"), "{sentence}");
}

#[test]
fn its_header_is_known_before_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let before = builtin::model(folder.path()).unwrap();
    // As of a file elsewhere: the header and the whole size are known.
    assert_eq!(before.data, Data::Complete);
    assert!(!before.path.exists());
    let after = made(folder.path());
    assert_eq!(before.path, after.path);
    assert_eq!(before.tensors, after.tensors);
    assert_eq!(
        (
            &before.name,
            &before.quantization,
            before.parameters,
            before.header_bytes
        ),
        (
            &after.name,
            &after.quantization,
            after.parameters,
            after.header_bytes
        )
    );
}
