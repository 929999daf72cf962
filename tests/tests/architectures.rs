//! Made-up models of every architecture, each given the tensors that the engine asks for, and what
//! the engine would allocate for them held against the closed forms.
//!
//! Layers, windows and the kinds of layers are those of `data/archs/shapes.jsonl`; sizes are such
//! that the engine can build a graph of them. The engine says which key or tensor is missing and
//! which shape it expects: so a header grows until it is accepted. Some never are (a key whose
//! meaning has to be known, tensors that depend on each other), so the number of those that were
//! compared is asserted.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use twospeed_engine::FlashAttention;
use twospeed_engine::protocol::{
    BufferUse, Event, Foresee, ForeseeContext, Foreseen, Placement, Request,
};
use twospeed_engine::settings::ModelPath;
use twospeed_estimate::{self as estimate, Cache, ContextSettings, Shape};
use twospeed_gguf::{Field, TensorType, Writer};
use twospeed_tests::data;
use twospeed_tests::worker::{Worker, settings};

/// Answers until a header is given up.
const PATIENCE: usize = 2000;

#[derive(Debug, Deserialize)]
struct MadeUp {
    architecture: String,
    keys: Map<String, Value>,
}

/// Sizes that go together, whatever the architecture.
const SIZES: [(&str, u32); 15] = [
    ("embedding_length", 256),
    ("attention.head_count", 4),
    ("attention.head_count_kv", 2),
    ("attention.key_length", 64),
    ("attention.value_length", 64),
    ("feed_forward_length", 512),
    ("rope.dimension_count", 64),
    ("ssm.inner_size", 512),
    ("ssm.state_size", 16),
    ("ssm.time_step_rank", 8),
    ("ssm.group_count", 1),
    ("ssm.conv_kernel", 4),
    ("nextn_predict_layers", 0),
    ("attention.shared_kv_layers", 0),
    ("num_loops", 1),
];

/// Sizes that a model has only where its architecture uses them: the engine takes the first that
/// it finds.
const OF_SOME: [(&str, &[&str]); 7] = [
    ("attention.key_length_mla", &[]),
    ("attention.value_length_mla", &[]),
    ("attention.key_length_swa", &[]),
    ("attention.value_length_swa", &[]),
    ("wkv.head_size", &["rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"]),
    (
        "kda.head_dim",
        &["bailingmoe3", "glm5-next", "kimi-k3", "kimi-linear"],
    ),
    ("shortconv.l_cache", &["lfm2", "lfm2moe"]),
];

/// Architectures whose layers without KV heads are recurrent.
const HYBRIDS: [&str; 11] = [
    "bailingmoe3",
    "glm5-next",
    "granitehybrid",
    "jamba",
    "kimi-k3",
    "kimi-linear",
    "lfm2",
    "lfm2moe",
    "nemotron_h",
    "nemotron_h_moe",
    "plamo2",
];

/// Architectures that the engine refuses without experts.
const EXPERTS: &str = "afmoe arctic bailingmoe bailingmoe2 bailingmoe3 cohere2moe dbrx deepseek \
    deepseek2 deepseek32 deepseek4 dots1 dots3note ernie4_5-moe exaone-moe glm-dsa glm4moe \
    glm5-next gpt-oss granitemoe grovemoe grok hunyuan-moe hunyuan_vl hy_v3 hy_v4 kimi-linear \
    kimi-k3 laguna lfm2moe llada-moe llama4 minimax-01 minimax-m2 minimax-m3 mistral4 \
    nemotron_h_moe olmoe phimoe qwen2moe qwen3moe qwen3next qwen35moe qwen3vlmoe qwen4exp rnd1 \
    smallthinker step35 maple mimo2 mellum spark2_5 muse-glimmer";

const SETTINGS: [&str; 5] = [
    "c100",
    "c4096-f16",
    "c4096-nofa",
    "c4096-s4-split",
    "c4096-s4-unified",
];

/// A header that grows.
struct Growing {
    keys: BTreeMap<String, Field>,
    tensors: Vec<(String, Vec<u64>)>,
    /// Shapes by what a tensor is for: layers are mostly alike.
    shapes: BTreeMap<String, Vec<u64>>,
}

impl Growing {
    fn of(made_up: &MadeUp) -> Self {
        let architecture = &made_up.architecture;
        let mut keys = BTreeMap::new();
        keys.insert(
            "general.architecture".to_owned(),
            Field::from(architecture.as_str()),
        );
        keys.insert("tokenizer.ggml.model".to_owned(), Field::from("none"));
        keys.insert(format!("{architecture}.vocab_size"), Field::from(128_u32));
        let name = |key: &str| format!("{architecture}.{key}");
        for (key, value) in &made_up.keys {
            let others = OF_SOME.iter().find(|(some, _)| some == key);
            if others.is_none_or(|(_, users)| users.contains(&architecture.as_str())) {
                keys.insert(name(key), field(value));
            }
        }
        for (key, size) in SIZES {
            keys.insert(name(key), Field::from(size));
        }
        let heads = made_up.keys.get("attention.head_count_kv");
        if let (true, Some(Value::Array(heads))) = (HYBRIDS.contains(&architecture.as_str()), heads)
        {
            let heads: Vec<u32> = heads.iter().map(|n| if *n == 0 { 0 } else { 2 }).collect();
            keys.insert(name("attention.head_count_kv"), Field::from(&heads[..]));
        }
        if EXPERTS
            .split_whitespace()
            .any(|known| known == architecture)
        {
            for (key, size) in [
                ("expert_count", 4_u32),
                ("expert_used_count", 2),
                ("expert_feed_forward_length", 128),
                ("expert_shared_feed_forward_length", 128),
            ] {
                keys.insert(name(key), Field::from(size));
            }
        }
        Self {
            keys,
            tensors: Vec::new(),
            shapes: BTreeMap::new(),
        }
    }

    fn write(&self, folder: &Path) -> PathBuf {
        let mut writer = Writer::new();
        for (key, value) in &self.keys {
            writer.set(key, value.clone());
        }
        for (name, dimensions) in &self.tensors {
            writer.tensor(name, TensorType::F32, dimensions).unwrap();
        }
        let path = folder.join("made-up.gguf");
        fs::write(&path, writer.header()).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(writer.file_bytes()).unwrap();
        path
    }

    /// Takes up what the engine misses; `None` when it says nothing that helps.
    fn learn(&mut self, message: &str) -> Option<()> {
        let missing = between(message, "missing tensor '", "'")
            .or_else(|| between(message, "tensor '", "' not found"));
        if let Some(name) = missing {
            if self.tensors.iter().any(|(known, _)| known == name) {
                return None;
            }
            let shape = self.shapes.get(&role(name)).cloned();
            let shape = shape.unwrap_or_else(|| vec![1]);
            self.tensors.push((name.to_owned(), shape));
            return Some(());
        }
        if let Some(rest) = message.split("tensor '").nth(1)
            && let Some(expected) = between(rest, "expected", ", got")
        {
            let name = rest.split('\'').next()?;
            let shape: Vec<u64> = expected
                .split(',')
                .map(|size| size.trim().parse().ok())
                .collect::<Option<_>>()?;
            let tensor = self.tensors.iter_mut().find(|(known, _)| known == name)?;
            if tensor.1 == shape {
                return None;
            }
            tensor.1.clone_from(&shape);
            self.shapes.insert(role(name), shape);
            return Some(());
        }
        if let Some((key, rest)) = message.split_once(" has wrong type ") {
            let key = key.split(' ').next_back()?;
            let (_, wanted) = rest.split_once("expected type ")?;
            let value = match wanted.trim_end_matches('.') {
                "f32" => Field::from(1_f32),
                "bool" => Field::from(true),
                "i32" => Field::from(1_i32),
                _ => return None,
            };
            let before = self.keys.insert(key.to_owned(), value.clone());
            return (before.as_ref() != Some(&value)).then_some(());
        }
        let key = message.split("key not found in model: ").nth(1)?;
        let key = key.trim_end_matches('.').to_owned();
        let value = if key.ends_with("dimension_sections") {
            Field::from(&[1_i32; 4][..])
        } else if key.ends_with("epsilon") || key.ends_with("eps") {
            Field::from(1e-5_f32)
        } else if ["scale", "freq_base", "clamp", "limit"]
            .iter()
            .any(|part| key.contains(part))
        {
            Field::from(1_f32)
        } else {
            Field::from(2_u32)
        };
        self.keys.insert(key, value).is_none().then_some(())
    }
}

/// `attn_q.weight` of `blk.3.attn_q.weight`.
fn role(name: &str) -> String {
    let parts = name.split('.').filter(|part| part.parse::<u32>().is_err());
    parts.collect::<Vec<_>>().join(".")
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

fn field(value: &Value) -> Field {
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    match value {
        Value::Number(_) => Field::from(number(value)),
        Value::Array(list) if list.iter().all(Value::is_boolean) => {
            let flags: Vec<bool> = list.iter().map(|flag| flag.as_bool().unwrap()).collect();
            Field::from(&flags[..])
        }
        Value::Array(list) => {
            let numbers: Vec<u32> = list.iter().map(number).collect();
            Field::from(&numbers[..])
        }
        other => panic!("{other}"),
    }
}

fn formula(name: &str) -> ContextSettings {
    let base = ContextSettings::default();
    match name {
        "c4096-f16" => base,
        "c4096-s4-unified" => ContextSettings {
            sequences: 4,
            ..base
        },
        "c4096-s4-split" => ContextSettings {
            sequences: 4,
            split: true,
            ..base
        },
        "c4096-nofa" => ContextSettings {
            flash_attention: estimate::FlashAttention::Off,
            ..base
        },
        "c100" => ContextSettings {
            context: 100,
            ..base
        },
        other => panic!("{other}"),
    }
}

fn context(of: &ContextSettings) -> ForeseeContext {
    let mut settings = settings();
    if of.flash_attention == estimate::FlashAttention::Off {
        settings.flash_attn = FlashAttention::Off;
    }
    ForeseeContext {
        settings,
        n_ctx: u32::try_from(of.context).unwrap(),
        n_seq: u32::try_from(of.sequences).unwrap(),
        split_kv: of.split,
    }
}

/// Answers; `None` when the worker ended over it.
fn ask(worker: &mut Worker, path: &Path, contexts: Vec<ForeseeContext>) -> Option<Vec<Foreseen>> {
    worker.ask(&Request::Foresee(Foresee {
        model: ModelPath(path.to_owned()),
        contexts,
    }));
    match worker.hear_or_end()? {
        Event::Foreseen { contexts } => Some(contexts),
        other => panic!("{other:?}"),
    }
}

fn held(placement: &Placement, holds: BufferUse) -> u64 {
    let buffers = placement.buffers.iter();
    buffers
        .filter(|buffer| buffer.holds == holds)
        .map(|buffer| buffer.bytes)
        .sum()
}

/// The engine's answers for a made-up model in each of its settings, once it accepts a header;
/// else why it never does.
fn grown(
    worker: &mut Worker,
    folder: &Path,
    made_up: &MadeUp,
) -> Result<(PathBuf, Vec<Foreseen>), String> {
    let mut growing = Growing::of(made_up);
    let contexts: Vec<_> = SETTINGS
        .iter()
        .map(|name| context(&formula(name)))
        .collect();
    for _ in 0..PATIENCE {
        let path = growing.write(folder);
        let Some(answers) = ask(worker, &path, contexts.clone()) else {
            *worker = Worker::start(&[]);
            return Err("it ended the engine".to_owned());
        };
        let refusal = answers.iter().find_map(|answer| match answer {
            Foreseen::Refused { message } => Some(message),
            Foreseen::Placed(_) => None,
        });
        match refusal {
            None => return Ok((path, answers)),
            Some(message) => {
                if growing.learn(message).is_none() {
                    return Err(message.clone());
                }
            }
        }
    }
    Err("it is never content".to_owned())
}

#[test]
fn the_engine_and_the_closed_forms_agree_on_made_up_models() {
    let list = fs::read_to_string(data("archs/shapes.jsonl")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(&[]);
    let mut compared = BTreeSet::new();
    let mut given_up = Vec::new();
    let mut wrong = Vec::new();
    for line in list.lines() {
        let made_up: MadeUp = serde_json::from_str(line).unwrap();
        if compared.contains(&made_up.architecture) {
            continue;
        }
        let (path, answers) = match grown(&mut worker, folder.path(), &made_up) {
            Ok(grown) => grown,
            Err(why) => {
                given_up.push(format!("{}: {why}", made_up.architecture));
                continue;
            }
        };
        let shape = Shape::from_model(&twospeed_gguf::read(&path).unwrap()).unwrap();
        for (name, answer) in SETTINGS.iter().zip(&answers) {
            let Foreseen::Placed(placement) = answer else {
                panic!("{answer:?}");
            };
            let engine = [BufferUse::Kv, BufferUse::State].map(|holds| held(placement, holds));
            let cache = Cache::of(&shape, &formula(name)).unwrap();
            let closed = [cache.kv().0, cache.state.0];
            if engine != closed {
                wrong.push(format!(
                    "{} {name}: engine {engine:?}, closed forms {closed:?}",
                    made_up.architecture
                ));
            }
        }
        compared.insert(made_up.architecture);
    }
    println!("compared {}: {compared:?}", compared.len());
    println!("given up:\n{}", given_up.join("\n"));
    assert_eq!(wrong, [""; 0], "[KV, state]");
    assert!(compared.len() >= 105, "{} {compared:?}", compared.len());
}
