//! Broken and hostile headers by the thousand: no panic, little memory, no long run.
//!
//! `TWOSPEED_FUZZ_SECONDS=600 cargo test --release -p twospeed-gguf --test fuzz` for a long run.

#![allow(unsafe_code)] // an allocator that counts
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use support::{file, fixtures, llama};
use twospeed_gguf::{Field, Model, Rng, TensorType, Writer, read_from};

/// What one read may allocate at a time.
const MOST_MEMORY: usize = 16 << 20;

/// What one read may take.
const LONGEST: Duration = Duration::from_secs(1);

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn grew(bytes: usize) {
    // A thread that is ending has no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get().saturating_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn shrank(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: everything is passed on to the system's allocator; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrank(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may be there at the same time.
        grew(size);
        shrank(layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads bytes as a file of `total` bytes, uses what came out, and holds memory and time against
/// their limits.
fn read_within_limits(bytes: &[u8], total: u64) -> Result<Model, String> {
    let began = Instant::now();
    let held = HELD.get();
    PEAK.set(held);
    let result = read_from(bytes, "fuzz.gguf", total).map_err(|error| error.to_string());
    if let Ok(model) = &result {
        use_it(model);
    }
    let (peak, took) = (PEAK.get() - held, began.elapsed());
    assert!(peak < MOST_MEMORY, "{peak} bytes were allocated at a time");
    assert!(took < LONGEST, "it took {took:?}");
    result
}

/// Everything that callers do with a model.
fn use_it(model: &Model) {
    let json = serde_json::to_string(model).expect("a model is JSON");
    assert!(json.len() < 1 << 20, "{} bytes of JSON", json.len());
    let _ = (model.check(), model.check_loads(), model.check_decodes());
    for suffix in [
        "attention.head_count_kv",
        "expert_used_count",
        "feed_forward_length",
    ] {
        let _ = model.metadata().per_layer_u64(suffix);
        let _ = model.metadata().arch_u64(suffix);
    }
    for tensor in &model.tensors {
        let _ = tensor.layer();
        assert!(model.parts[tensor.part as usize].header_bytes <= model.header_bytes);
    }
    assert!(
        model
            .active_parameters
            .is_none_or(|active| active <= model.parameters)
    );
}

/// Files to break: hostile ones, headers of real architectures, and some of our own.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for folder in ["hostile", "archs"] {
        let mut paths: Vec<_> = std::fs::read_dir(fixtures().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "gguf"))
            .collect();
        paths.sort();
        corpus.extend(paths.iter().map(|path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.truncate(64 * 1024); // of the data there is no need
            bytes
        }));
    }
    assert_eq!(corpus.len(), 25 + 26);
    let mut writer = llama();
    writer.set("split.no", 1u16).set("split.count", 3u16);
    writer.set(
        "nested",
        Field::raw(9, [&9u32.to_le_bytes()[..], &[0; 8]].concat()),
    );
    writer.set(
        "tokenizer.ggml.tokens",
        Field::texts((0..5000).map(|n| n.to_string())),
    );
    writer.set("llama.expert_used_count", &[1u32, 2][..]);
    writer
        .tensor("blk.0.ffn_up_exps.weight", TensorType::Mxfp4, &[32, 2, 4])
        .unwrap();
    corpus.push(file(&writer));
    corpus
}

/// Numbers that break arithmetic.
const EVIL: [u64; 12] = [
    0,
    1,
    5,
    13,
    0xff,
    0xffff,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 62,
    1 << 63,
    u64::MAX,
];

/// Breaks a file at one place.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng, other: &[u8]) {
    // Most of what matters stands at the start.
    let reach = if rng.below(2) == 0 {
        bytes.len().min(400)
    } else {
        bytes.len()
    };
    let at = rng.below(reach as u64) as usize;
    let evil = EVIL[rng.below(EVIL.len() as u64) as usize].to_le_bytes();
    let length = (rng.below(64) as usize).min(bytes.len() - at);
    match rng.below(8) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.next_u64() as u8,
        2 => {
            let end = (at + 8).min(bytes.len());
            bytes[at..end].copy_from_slice(&evil[..end - at]);
        }
        3 => {
            let end = (at + 4).min(bytes.len());
            bytes[at..end].copy_from_slice(&evil[..end - at]);
        }
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..at + length)),
        6 => {
            let chunk = bytes[at..at + length].to_vec();
            bytes.splice(at..at, chunk);
        }
        _ => {
            let from = rng.below(other.len() as u64) as usize;
            let chunk = other[from..]
                .iter()
                .take(length)
                .copied()
                .collect::<Vec<u8>>();
            bytes.splice(at..at, chunk);
        }
    }
}

#[test]
fn broken_files_are_read_or_refused_within_limits() {
    let seconds = std::env::var("TWOSPEED_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(3));
    // Each long run goes its own way; the seed of a failing one is in its message.
    let seed = match seconds {
        Some(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64,
        None => 1,
    };
    let corpus = corpus();
    let (mut runs, mut taken) = (0u64, 0u64);
    while Instant::now() < end {
        let mut rng = Rng::new(seed.wrapping_add(runs));
        let pick = |rng: &mut Rng| &corpus[rng.below(corpus.len() as u64) as usize];
        let mut bytes = pick(&mut rng).clone();
        for _ in 0..=rng.below(4) {
            if !bytes.is_empty() {
                let other = pick(&mut rng);
                mutate(&mut bytes, &mut rng, other);
            }
        }
        let total = match rng.below(4) {
            0 => bytes.len() as u64 + rng.below(1 << 40),
            _ => bytes.len() as u64,
        };
        let outcome = std::panic::catch_unwind(|| read_within_limits(&bytes, total).is_ok());
        taken += u64::from(outcome.unwrap_or_else(|_| panic!("seed {seed}, run {runs}")));
        runs += 1;
    }
    println!("{runs} broken files, {taken} of them still readable");
    assert!(runs > 1000, "only {runs} runs");
    assert!(
        taken > runs / 50 && taken < runs,
        "the mutations neither all kill nor all spare"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_after_the_magic_are_refused_or_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        keys in 0u64..4,
        tensors in 0u64..4,
    ) {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend_from_slice(&tensors.to_le_bytes());
        file.extend_from_slice(&keys.to_le_bytes());
        file.extend_from_slice(&bytes);
        let _ = read_within_limits(&file, file.len() as u64);
    }

    #[test]
    fn what_is_written_is_read_back(
        keys in proptest::collection::btree_map("[a-z._]{1,40}", any::<i64>(), 0..20),
        shapes in proptest::collection::vec((1u64..5, 1u64..5, 0usize..TensorType::ALL.len()), 0..20),
        log2 in 0u32..8,
    ) {
        let mut writer = Writer::with_alignment(log2);
        for (key, value) in &keys {
            writer.set(key, *value);
        }
        for (index, (blocks, rows, tensor_type)) in shapes.iter().enumerate() {
            let tensor_type = TensorType::ALL[*tensor_type];
            let row = blocks * tensor_type.block_elements();
            writer.tensor(&format!("t{index}"), tensor_type, &[row, *rows]).unwrap();
        }
        let bytes = file(&writer);
        let model = read_within_limits(&bytes, bytes.len() as u64).unwrap();
        prop_assert_eq!(&model.tensors[..], writer.tensors());
        for (key, value) in &keys {
            let read = model.metadata().get(key);
            prop_assert_eq!(read, Some(&twospeed_gguf::Value::Integer((*value).into())));
        }
        model.check().unwrap();
    }

    #[test]
    fn a_file_cut_anywhere_is_never_complete(cut in 0usize..139_264) {
        let whole = file(&llama());
        let bytes = &whole[..whole.len() - 1 - cut];
        if let Ok(model) = read_within_limits(bytes, bytes.len() as u64) {
            prop_assert_ne!(model.data, twospeed_gguf::Data::Complete);
        }
    }
}

#[test]
fn the_largest_header_that_is_read_stays_within_limits() {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "llama")
        .set("llama.block_count", 512u32);
    for key in 0..16_000u32 {
        writer.set(format!("key.{key:05}.{}", "x".repeat(50)), &[key; 100][..]);
    }
    let words = (0..300_000u32).map(|word| format!("a word of some length, number {word}"));
    writer.set("tokenizer.ggml.tokens", Field::texts(words));
    let bytes = file(&writer);
    let model = read_within_limits(&bytes, bytes.len() as u64).unwrap();
    assert_eq!(
        model.metadata().array_len("tokenizer.ggml.tokens"),
        Some(300_000)
    );
    let last = model
        .metadata()
        .array(&format!("key.15999.{}", "x".repeat(50)))
        .unwrap();
    assert_eq!(
        (last.length, last.numbers.is_some()),
        (100, false),
        "beyond the budget: its length"
    );
}

#[test]
fn the_longest_tensor_list_that_is_read_stays_within_limits() {
    // Names of 63 bytes, by hand: the writer looks for duplicates one by one.
    let list = |count: u64| {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&0u64.to_le_bytes());
        for number in 0..count {
            bytes.extend_from_slice(&63u64.to_le_bytes());
            bytes.extend_from_slice(format!("{number:063}").replace('0', "\u{1}").as_bytes());
            bytes.extend_from_slice(&1u32.to_le_bytes());
            bytes.extend_from_slice(&8u64.to_le_bytes());
            bytes.extend_from_slice(&0u32.to_le_bytes());
            bytes.extend_from_slice(&(32 * number).to_le_bytes());
        }
        bytes
    };
    let most = list(16_384);
    let model = read_within_limits(&most, most.len() as u64).unwrap();
    assert_eq!(model.tensors.len(), 16_384);
    let more = list(16_385);
    let refusal = read_within_limits(&more, more.len() as u64).unwrap_err();
    assert!(
        refusal.contains("16385 tensors; no model has more than 16384"),
        "{refusal}"
    );
}
