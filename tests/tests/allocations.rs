//! What the engine says it would allocate, held against what it did allocate
//! (`data/archs/allocations.csv`: 28 models in six settings each) and against the closed forms.
//!
//! Weights are not compared: copies that are repacked depend on the processor.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use twospeed_engine::protocol::{
    BufferUse, Event, FailureCode, Foresee, ForeseeContext, Foreseen, Placement, Request, Users,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{FlashAttention, Settings};
use twospeed_estimate as estimate;
use twospeed_estimate::{Bytes, Cache, ContextSettings, Shape};
use twospeed_tests::worker::{Worker, after, settings, tiny};
use twospeed_tests::{Desk, data, json, model};

#[derive(Debug, Clone, Deserialize)]
struct Row {
    file: String,
    setting: String,
    n_ctx: u32,
    n_seq: u32,
    unified: String,
    type_k: String,
    type_v: String,
    flash_attn: String,
    kv_bytes_total: u64,
    rs_bytes: u64,
    compute_bytes: u64,
    output_bytes: u64,
}

/// KV, state, working buffers, logits.
type Four = [u64; 4];

impl Row {
    fn context(&self) -> ForeseeContext {
        ForeseeContext {
            settings: Settings {
                type_k: self.type_k.clone(),
                type_v: self.type_v.clone(),
                flash_attn: match self.flash_attn.as_str() {
                    "auto: on" => FlashAttention::Auto,
                    "on" => FlashAttention::On,
                    "off" => FlashAttention::Off,
                    other => panic!("{other}"),
                },
                ..settings()
            },
            n_ctx: self.n_ctx,
            n_seq: self.n_seq,
            split_kv: self.is_split(),
        }
    }

    fn is_split(&self) -> bool {
        self.n_seq > 1 && self.unified == "no"
    }

    fn formula(&self) -> ContextSettings {
        ContextSettings {
            context: self.n_ctx.into(),
            sequences: self.n_seq.into(),
            split: self.is_split(),
            type_k: self.type_k.parse().unwrap(),
            type_v: self.type_v.parse().unwrap(),
            flash_attention: match self.context().settings.flash_attn {
                FlashAttention::Auto => estimate::FlashAttention::Auto,
                FlashAttention::On => estimate::FlashAttention::On,
                FlashAttention::Off => estimate::FlashAttention::Off,
            },
            ..ContextSettings::default()
        }
    }

    fn allocated(&self) -> Four {
        [
            self.kv_bytes_total,
            self.rs_bytes,
            self.compute_bytes,
            self.output_bytes,
        ]
    }

    /// The flags of `estimate` that ask for this.
    fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            "-c".to_owned(),
            self.n_ctx.to_string(),
            "--parallel".to_owned(),
            self.n_seq.to_string(),
            "-ctk".to_owned(),
            self.type_k.clone(),
            "-ctv".to_owned(),
            self.type_v.clone(),
            "-fa".to_owned(),
            match self.context().settings.flash_attn {
                FlashAttention::Auto => "auto",
                FlashAttention::On => "1",
                FlashAttention::Off => "0",
            }
            .to_owned(),
        ];
        if self.is_split() {
            flags.push("--split-kv".to_owned());
        }
        flags
    }
}

/// The table by file, in its order of settings.
fn table() -> BTreeMap<String, Vec<Row>> {
    let mut list = csv::Reader::from_path(data("archs/allocations.csv")).unwrap();
    let mut files = BTreeMap::<String, Vec<Row>>::new();
    for row in list.deserialize() {
        let row: Row = row.unwrap();
        files.entry(row.file.clone()).or_default().push(row);
    }
    assert_eq!(files.len(), 28);
    assert!(files.values().all(|rows| rows.len() == 6));
    files
}

/// Measured on real models, which the cache of models has.
const REAL: [&str; 2] = [
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma-3-270m-q4_k_m.gguf",
];

/// A model of the table, all of it; of the tiny ones the weights are zeros.
fn whole(folder: &Path, file: &str) -> PathBuf {
    if REAL.contains(&file) {
        return model(file);
    }
    let name = file.replace(".header", "").replace(".gguf", "");
    tiny(folder, &name, |_| {})
}

/// Its header alone, as a file of its own.
fn header(folder: &Path, whole: &Path) -> PathBuf {
    let length = twospeed_gguf::read(whole).unwrap().header_bytes;
    let path = folder.join("header.gguf");
    let mut copy = File::create(&path).unwrap();
    io::copy(&mut File::open(whole).unwrap().take(length), &mut copy).unwrap();
    path
}

/// The header extended to the length it claims, without a byte written.
fn extended(folder: &Path, whole: &Path) -> PathBuf {
    let path = header(folder, whole);
    let claimed = twospeed_gguf::read(&path).unwrap().bytes_expected;
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(claimed)
        .unwrap();
    path
}

fn ask(worker: &mut Worker, path: &Path, contexts: Vec<ForeseeContext>) -> Vec<Foreseen> {
    let request = Request::Foresee(Foresee {
        model: ModelPath(path.to_owned()),
        contexts,
    });
    match worker.serve(&request).pop() {
        Some(Event::Foreseen { contexts }) => contexts,
        other => panic!("{}: {other:?}", path.display()),
    }
}

fn placed(foreseen: &Foreseen) -> &Placement {
    match foreseen {
        Foreseen::Placed(placement) => placement,
        Foreseen::Refused { message } => panic!("{message}"),
    }
}

fn held(placement: &Placement, holds: BufferUse) -> u64 {
    let buffers = placement.buffers.iter();
    buffers
        .filter(|buffer| buffer.holds == holds)
        .map(|buffer| buffer.bytes)
        .sum()
}

fn four(placement: &Placement) -> Four {
    [
        BufferUse::Kv,
        BufferUse::State,
        BufferUse::Compute,
        BufferUse::Output,
    ]
    .map(|holds| held(placement, holds))
}

#[test]
fn every_row_is_foreseen_to_the_byte_from_the_file_and_from_its_header() {
    let mut worker = Worker::start(&[]);
    let mut wrong = Vec::new();
    for (file, rows) in table() {
        let folder = tempfile::tempdir().unwrap();
        let whole = whole(folder.path(), &file);
        let extended = extended(folder.path(), &whole);
        let contexts: Vec<_> = rows.iter().map(Row::context).collect();
        let begun = Instant::now();
        let of_file = ask(&mut worker, &whole, contexts.clone());
        let of_header = ask(&mut worker, &extended, contexts);
        println!("{file}: {:?} for 12 contexts", begun.elapsed());
        for ((row, of_file), of_header) in rows.iter().zip(&of_file).zip(&of_header) {
            let (of_file, of_header) = (placed(of_file), placed(of_header));
            if four(of_file) != row.allocated() || four(of_header) != row.allocated() {
                wrong.push(format!(
                    "{file} {}: allocated {:?}, foreseen {:?} and {:?}",
                    row.setting,
                    row.allocated(),
                    four(of_file),
                    four(of_header)
                ));
            }
            assert!(held(of_header, BufferUse::Model) > 0, "{file}");
            assert_eq!(of_file.buffers, of_header.buffers, "{file}");
        }
    }
    assert_eq!(wrong, [""; 0], "[KV, state, working buffers, logits]");
}

#[test]
fn every_row_is_what_the_closed_forms_say() {
    for (file, rows) in table() {
        let folder = tempfile::tempdir().unwrap();
        let model = twospeed_gguf::read(&whole(folder.path(), &file)).unwrap();
        let shape = Shape::from_model(&model).unwrap();
        for row in rows {
            let cache = Cache::of(&shape, &row.formula()).unwrap();
            let what = format!("{file} {}", row.setting);
            assert_eq!(cache.kv(), Bytes(row.kv_bytes_total), "{what}");
            assert_eq!(cache.state, Bytes(row.rs_bytes), "{what}");
            let output = estimate::output_bytes(&shape, &row.formula());
            assert_eq!(output, Some(Bytes(row.output_bytes)), "{what}");
        }
    }
}

/// An estimate's JSON, once nobody else measures on this machine: until then no engine is asked.
fn undisturbed(desk: &Desk, arguments: &[String]) -> Value {
    let begun = Instant::now();
    loop {
        let answer = json(&desk.run(arguments).ok());
        let waits = answer["basis"]["notes"]
            .to_string()
            .contains("so as not to disturb it");
        if !waits || begun.elapsed() > Duration::from_secs(300) {
            return answer;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn estimate_shows_the_engines_count_of_a_header() {
    let desk = Desk::new();
    for (file, rows) in table() {
        let folder = tempfile::tempdir().unwrap();
        let whole = whole(folder.path(), &file);
        let header = header(folder.path(), &whole);
        // One setting of each file, another each time.
        let row = &rows[file.len() % rows.len()];
        let mut arguments = vec!["estimate".to_owned(), header.to_str().unwrap().to_owned()];
        arguments.extend(row.flags());
        arguments.push("--json".to_owned());
        let answer = undisturbed(&desk, &arguments);
        let memory = &answer["memory"];
        let what = format!("{file} {}: {}", row.setting, answer["basis"]["notes"]);
        assert_eq!(memory["source"], "engine", "{what}");
        let shown = ["kv_bytes", "state_bytes", "compute_bytes", "output_bytes"]
            .map(|part| memory[part].as_u64().unwrap());
        assert_eq!(shown, row.allocated(), "{what}");
        let weights = memory["weights_bytes"].as_u64().unwrap();
        let total = memory["total_bytes"].as_u64().unwrap();
        assert_eq!(total, weights + shown.iter().sum::<u64>(), "{what}");
        let free = memory["available_bytes"].as_u64().unwrap();
        assert_eq!(memory["fits"], Value::Bool(total <= free), "{what}");
        let notes = answer["basis"]["notes"].to_string();
        assert!(!notes.contains("the engine's count is shown"), "{what}");
        assert!(!notes.contains("Working buffers are known"), "{what}");
    }
}

#[test]
fn a_measured_context_tells_cache_and_state_apart_to_the_byte() {
    for name in ["jamba-dense-Q8_0", "lfm2-dense-Q8_0", "qwen3next-moe-Q8_0"] {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Worker::start(&[]);
        worker.load(&tiny(folder.path(), name, |_| {}));
        let rows = table().remove(&format!("{name}.gguf")).unwrap();
        let row = rows
            .iter()
            .find(|row| row.setting.ends_with("s4-split"))
            .unwrap();
        let said = worker.serve(&Request::Users(Users {
            users: row.n_seq,
            n_prompt: 1000,
            n_gen: 24,
            split_kv: true,
            shared_prompt: false,
            settings: settings(),
            repetitions: 1,
            warmup: false,
            seed: 1,
        }));
        let placement = said.iter().find_map(|event| match event {
            Event::Placed(placement) => Some(placement),
            _ => None,
        });
        let placement = placement.unwrap_or_else(|| panic!("{name}: {said:?}"));
        assert_eq!(placement.n_ctx, row.n_ctx, "{name}");
        // Room for fewer logits than the table's, so the working buffers are others.
        assert_eq!(held(placement, BufferUse::Kv), row.kv_bytes_total, "{name}");
        assert_eq!(held(placement, BufferUse::State), row.rs_bytes, "{name}");
        assert_eq!(
            held(placement, BufferUse::Output),
            row.output_bytes,
            "{name}"
        );
    }
}

fn at(n_ctx: u32) -> ForeseeContext {
    ForeseeContext {
        settings: settings(),
        n_ctx,
        n_seq: 1,
        split_kv: false,
    }
}

fn refused(foreseen: &Foreseen, names: &str) {
    let Foreseen::Refused { message } = foreseen else {
        panic!("{names}: {foreseen:?}");
    };
    assert!(message.contains(names), "{message}");
    assert!(
        message.ends_with('.') && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn what_the_engine_refuses_is_answered_in_a_sentence_and_the_rest_is_placed() {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny(folder.path(), "llama-dense-Q8_0", |_| {});
    let with = |change: fn(&mut ForeseeContext)| {
        let mut context = at(4096);
        change(&mut context);
        context
    };
    let contexts = vec![
        with(|asked| {
            asked.settings.type_v = "q8_0".into();
            asked.settings.flash_attn = FlashAttention::Off;
        }),
        with(|asked| asked.settings.type_k = "q3_k".into()),
        with(|asked| asked.n_seq = 0),
        with(|asked| asked.n_seq = 257),
        with(|asked| asked.n_ctx = u32::MAX),
        // Not the cache, which is only counted: what is remembered of each token.
        with(|asked| asked.n_ctx = i32::MAX as u32 - 1000),
        with(|asked| {
            asked.n_seq = 8;
            asked.settings.n_batch = 4;
        }),
        // Room for fewer rows of logits than there are sequences would abort the engine.
        with(|asked| {
            asked.n_seq = 4;
            asked.settings.n_outputs = 1;
        }),
    ];
    let mut worker = Worker::start(&[]);
    let answers = ask(&mut worker, &path, contexts);
    refused(&answers[0], "quantized V cache");
    refused(&answers[1], "q3_k");
    refused(&answers[2], "no sequences");
    refused(&answers[3], "256");
    refused(&answers[4], "more than any context holds");
    refused(&answers[5], "is free");
    refused(&answers[6], "n_batch is 4 for 8 sequences");
    assert_eq!(held(placed(&answers[7]), BufferUse::Output), 4 * 512);
    // And none of it has hurt the worker.
    let answer = ask(&mut worker, &path, vec![at(4096)]);
    assert_eq!(held(placed(&answer[0]), BufferUse::Kv), 8_388_608);
}

#[test]
fn no_tokens_are_those_the_model_was_trained_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny(folder.path(), "llama-dense-Q8_0", |_| {});
    let trained = twospeed_gguf::read(&path).unwrap().context_length.unwrap();
    let mut worker = Worker::start(&[]);
    let answer = ask(&mut worker, &path, vec![at(0)]);
    assert_eq!(
        u64::from(placed(&answer[0]).n_ctx),
        trained.next_multiple_of(256)
    );
}

#[test]
fn a_file_that_changed_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let llama = tiny(folder.path(), "llama-dense-Q8_0", |_| {});
    let gemma = tiny(folder.path(), "gemma3-dense-Q8_0", |_| {});
    let mut worker = Worker::start(&[]);
    let kv = |worker: &mut Worker| {
        held(
            placed(&ask(worker, &llama, vec![at(4096)])[0]),
            BufferUse::Kv,
        )
    };
    let before = kv(&mut worker);
    assert_eq!(kv(&mut worker), before);
    fs::rename(&gemma, &llama).unwrap();
    assert_ne!(kv(&mut worker), before, "another file of the same name");
}

#[test]
fn a_model_that_is_loaded_stays_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let llama = tiny(folder.path(), "llama-dense-Q8_0", |_| {});
    let gemma = tiny(folder.path(), "gemma3-dense-Q8_0", |_| {});
    let mut worker = Worker::start(&[]);
    worker.load(&llama);
    let answer = ask(&mut worker, &gemma, vec![at(4096)]);
    assert!(held(placed(&answer[0]), BufferUse::Kv) > 0);
    let said = worker.serve(&Request::Measure(twospeed_tests::worker::test(8, 2, 0)));
    assert_eq!(twospeed_tests::worker::samples(&said).len(), 2);
}

#[test]
fn a_header_that_claims_a_state_beyond_all_memory_is_refused_before_it_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    // 2^31 values of state for each inner one: petabytes, which even counting allocates.
    let path = tiny(folder.path(), "jamba-dense-Q8_0", |header| {
        let at = after(header, b"jamba.ssm.state_size\x04\0\0\0");
        header[at..at + 4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
    });
    let mut worker = Worker::start(&[]);
    let answers = ask(&mut worker, &path, vec![at(4096)]);
    assert!(
        matches!(answers[0], Foreseen::Refused { .. }),
        "{answers:?}"
    );
}

#[test]
fn an_architecture_that_the_engine_does_not_know_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny(folder.path(), "llama-dense-Q8_0", |header| {
        let key = b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0";
        let at = after(header, key);
        header[at..at + 5].copy_from_slice(b"llamo");
    });
    let mut worker = Worker::start(&[]);
    refused(&ask(&mut worker, &path, vec![at(4096)])[0], "llamo");
    // A header alone is too short for the engine, and no file at all is a failure of the request.
    let whole = tiny(folder.path(), "gemma3-dense-Q8_0", |_| {});
    let header = header(folder.path(), &whole);
    refused(&ask(&mut worker, &header, vec![at(4096)])[0], "bounds");
    let missing = Request::Foresee(Foresee {
        model: ModelPath(folder.path().join("missing.gguf")),
        contexts: vec![at(4096)],
    });
    worker.refuses(&missing, FailureCode::FileUnreadable, "does not exist");
    fs::remove_file(header).unwrap();
}

#[test]
fn a_header_that_ends_its_worker_leaves_the_estimate_a_formula_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    // Keys narrower than the heads trip an assertion while the context's graph is built.
    let path = tiny(folder.path(), "starcoder2-dense-Q8_0", |header| {
        let at = after(header, b"starcoder2.attention.key_length\x04\0\0\0");
        header[at..at + 4].copy_from_slice(&64_u32.to_le_bytes());
    });
    let desk = Desk::new();
    let answer = json(
        &desk
            .run(["estimate", path.to_str().unwrap(), "--json"])
            .ok(),
    );
    assert_eq!(answer["memory"]["source"], "formula");
    assert_eq!(answer["memory"]["compute_bytes"], Value::Null);
    assert!(answer["memory"]["kv_bytes"].is_u64());
    let notes = answer["basis"]["notes"].to_string();
    assert!(notes.contains("So the memory is computed"), "{notes}");
}

#[test]
fn a_type_from_the_future_leaves_an_estimate_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny(folder.path(), "llama-dense-Q8_0", |header| {
        // Behind the name: two dimensions of 8 bytes, their number before.
        let at = after(header, b"blk.0.ffn_down.weight") + 4 + 16;
        assert_eq!(header[at], 8, "Q8_0");
        header[at] = 99;
    });
    let desk = Desk::new();
    let path = path.to_str().unwrap();
    let inspected = desk.run(["inspect", path, "--json"]);
    let known = json(&inspected.out);
    assert!(inspected.fails(1).contains("type 99, which is not known"));
    let ran = desk
        .run(["estimate", path, "--bandwidth", "10", "--json"])
        .ok();
    let answer = json(&ran);
    let notes = answer["basis"]["notes"].to_string();
    assert!(notes.contains("1 tensor is of type 99"), "{notes}");
    assert!(notes.contains("taken from Q8_0"), "{notes}");
    assert!(answer["memory"]["kv_bytes"].as_u64() > Some(0));
    assert!(answer["memory"]["weights_bytes"].as_u64() > Some(0));
    assert!(answer["decode"]["ceiling_tok_s"].as_f64() > Some(0.0));
    let types = known["types"].as_array().unwrap();
    assert!(
        types.iter().any(|share| share["new_type"] == 99),
        "{types:?}"
    );
    let sentence = desk.run(["bench", "-m", path]).fails(1);
    assert!(sentence.contains("type 99"), "{sentence}");
}

#[test]
fn the_words_of_an_estimate_are_a_table_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny(folder.path(), "jamba-dense-Q8_0", |_| {});
    let desk = Desk::new();
    let words = desk
        .run(["estimate", path.to_str().unwrap(), "-c", "0"])
        .ok();
    let value = |name: &str| {
        let line = words
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name} in {words}"));
        line.trim_start()[name.len()..].trim().to_owned()
    };
    let trained = twospeed_gguf::read(&path).unwrap().context_length.unwrap();
    assert_eq!(value("context"), format!("{trained} tokens"));
    for name in [
        "weights",
        "KV cache",
        "recurrent state",
        "working buffers",
        "logits",
        "total",
    ] {
        assert!(value(name).ends_with('B'), "{name}: {}", value(name));
    }
    assert_eq!(value("fits"), "yes");
    assert!(words.contains("memory, by the engine"), "{words}");
}

/// Numbers that look random and are the same each time (splitmix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % most as u64).unwrap()
    }
}

#[test]
fn whatever_a_header_claims_an_estimate_says_something_and_leaves_nothing_behind() {
    let cases = std::env::var("TWOSPEED_HEADERS").map_or(24, |cases| cases.parse().unwrap());
    let names = [
        "jamba-dense-Q8_0",
        "gemma3-dense-Q8_0",
        "deepseek2-moe-Q8_0",
        "mamba2-dense-Q8_0",
    ];
    let desk = Desk::new();
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut noise = Noise(5);
    let mut by_engine = 0;
    for case in 0..cases {
        let name = names[case % names.len()];
        let mut header = fs::read(data(&format!("gguf/archs/{name}.header.gguf"))).unwrap();
        // Numbers of keys: what follows a key's name and a type of 4 bytes.
        for _ in 0..=noise.below(3) {
            let at = noise.below(header.len() / 4) + 24;
            let value = [0, 1, 0xff, 0x80, 0x7f][noise.below(5)];
            header[at] = value;
        }
        let path = folder.path().join("changed.gguf");
        fs::write(&path, header).unwrap();
        let output = desk
            .command(["estimate", path.to_str().unwrap(), "--json"])
            .env("TMPDIR", temporary.path())
            .output()
            .unwrap();
        let ran = twospeed_tests::Ran::from(output);
        assert!(!ran.err.contains("panicked"), "case {case}: {}", ran.err);
        match ran.code {
            Some(0) => {
                let memory = &json(&ran.out)["memory"];
                assert_ne!(memory["weights_bytes"], 0, "case {case}");
                by_engine += usize::from(memory["source"] == "engine");
            }
            Some(1) => assert_eq!(
                ran.err.trim().lines().count(),
                1,
                "case {case}: {}",
                ran.err
            ),
            other => panic!("case {case}: {other:?}"),
        }
        let left = fs::read_dir(temporary.path()).unwrap().count();
        assert_eq!(left, 0, "case {case} left something behind");
    }
    assert!(by_engine > 0, "some of them the engine accepts");
}
