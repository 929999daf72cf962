//! What llama.cpp build 11434 allocates for made-up models of every architecture
//! (`tests/data/archs/shapes.jsonl`), held against the closed forms.
#![allow(clippy::unwrap_used, clippy::panic)] // as in any test

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use twospeed_estimate::{Bytes, Cache, ContextSettings, FlashAttention, Shape};
use twospeed_gguf::{Field, Model, TensorType, Writer, read_from};

#[derive(Debug, Deserialize)]
struct MadeUp {
    architecture: String,
    keys: Map<String, Value>,
    tensors: Vec<String>,
    bytes: BTreeMap<String, u64>,
}

impl MadeUp {
    fn model(&self) -> Model {
        let mut writer = Writer::new();
        writer.set("general.architecture", self.architecture.as_str());
        for (key, value) in &self.keys {
            writer.set(format!("{}.{key}", self.architecture), field(value));
        }
        for name in &self.tensors {
            writer.tensor(name, TensorType::F32, &[32]).unwrap();
        }
        let header = writer.header();
        read_from(&header[..], "made-up.gguf", header.len() as u64).unwrap()
    }
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

fn settings(name: &str) -> ContextSettings {
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
            flash_attention: FlashAttention::Off,
            ..base
        },
        "c100" => ContextSettings {
            context: 100,
            ..base
        },
        other => panic!("{other}"),
    }
}

#[test]
fn made_up_models_of_every_architecture_are_sized_to_the_byte() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/archs/shapes.jsonl");
    let mut architectures = BTreeSet::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let made_up: MadeUp = serde_json::from_str(line).unwrap();
        let shape = Shape::from_model(&made_up.model()).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_eq!(made_up.bytes.len(), 5, "{line}");
        for (setting, bytes) in &made_up.bytes {
            let cache = Cache::of(&shape, &settings(setting)).unwrap();
            assert_eq!(
                cache.kv() + cache.state,
                Bytes(*bytes),
                "{setting} of {line}"
            );
        }
        architectures.insert(made_up.architecture);
    }
    // All but three: a draft head that reads another model's cache, one that is only ever used
    // with another model, and one that needs tensors to load.
    assert_eq!(architectures.len(), 149);
}
