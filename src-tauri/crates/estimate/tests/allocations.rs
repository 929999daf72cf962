//! What llama.cpp build 11434 really allocated (`tests/data/archs/allocations.csv`: 26
//! architectures, 6 settings each), held against the closed forms.
#![allow(clippy::unwrap_used, clippy::panic)] // as in any test

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use twospeed_estimate::{
    Bytes, Cache, CachePart, ContextSettings, FlashAttention, Shape, StoreKind, loaded_bytes,
    output_bytes,
};
use twospeed_gguf::Model;

/// Measured on real models, which are too large to lie beside the tests.
const NOT_HERE: [&str; 2] = [
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma-3-270m-q4_k_m.gguf",
];

#[derive(Debug, Deserialize)]
struct Row {
    file: String,
    setting: String,
    n_ctx: u64,
    n_seq: u64,
    unified: String,
    type_k: String,
    type_v: String,
    flash_attn: String,
    kv_bytes_total: u64,
    kv_detail: String,
    rs_bytes: u64,
    output_bytes: u64,
    source_note: String,
}

impl Row {
    fn settings(&self) -> ContextSettings {
        ContextSettings {
            context: self.n_ctx,
            sequences: self.n_seq,
            split: self.n_seq > 1 && self.unified == "no",
            type_k: self.type_k.parse().unwrap(),
            type_v: self.type_v.parse().unwrap(),
            flash_attention: match self.flash_attn.as_str() {
                "auto: on" => FlashAttention::Auto,
                "on" => FlashAttention::On,
                "off" => FlashAttention::Off,
                other => panic!("{other}"),
            },
            ..ContextSettings::default()
        }
    }
}

fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/data")
        .join(path)
}

fn rows() -> Vec<Row> {
    let mut list = csv::Reader::from_path(data("archs/allocations.csv")).unwrap();
    let rows: Vec<Row> = list.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 168, "28 files in 6 settings");
    rows
}

/// The rows whose header lies beside the tests.
fn rows_with_models() -> Vec<(Row, Model)> {
    let rows: Vec<_> = rows()
        .into_iter()
        .filter(|row| !NOT_HERE.contains(&row.file.as_str()))
        .map(|row| {
            let name = row
                .file
                .replace(".header", "")
                .replace(".gguf", ".header.gguf");
            let model = twospeed_gguf::read(&data("gguf/archs").join(name)).unwrap();
            (row, model)
        })
        .collect();
    assert_eq!(rows.len(), 156, "26 files in 6 settings");
    rows
}

#[test]
fn every_cache_and_state_is_allocated_to_the_byte() {
    for (row, model) in rows_with_models() {
        let shape = Shape::from_model(&model).unwrap();
        let cache = Cache::of(&shape, &row.settings()).unwrap();
        let what = format!("{} {}", row.file, row.setting);
        assert_eq!(cache.kv(), Bytes(row.kv_bytes_total), "{what}");
        assert_eq!(cache.state, Bytes(row.rs_bytes), "{what}");
    }
}

#[test]
fn every_cell_belongs_to_the_cache_and_the_layers_it_was_allocated_for() {
    for (row, model) in rows_with_models() {
        let shape = Shape::from_model(&model).unwrap();
        let cache = Cache::of(&shape, &row.settings()).unwrap();
        let detail: Vec<Value> = serde_json::from_str(&row.kv_detail).unwrap();
        let what = format!("{} {}", row.file, row.setting);
        let measured: BTreeMap<_, _> = detail
            .iter()
            .filter(|part| part["cache"] != "recurrent" && part["layers"] != Value::Array(vec![]))
            .map(|part| (part["cache"].as_str().unwrap().to_owned(), part))
            .collect();
        assert_eq!(
            cache.parts.len(),
            measured.len(),
            "{what}: {:?}",
            cache.parts
        );
        for part in &cache.parts {
            let measured = measured[name(part)];
            assert_eq!(part.cells, measured["cells"], "{what}");
            assert_eq!(part.streams, measured["streams"], "{what}");
            assert_eq!(
                Value::from(part.layers.clone()),
                measured["layers"],
                "{what}"
            );
            assert_eq!(part.keys.0, measured["k_bytes"], "{what}");
            assert_eq!(part.values.0, measured["v_bytes"], "{what}");
        }
    }
}

fn name(part: &CachePart) -> &'static str {
    match part.kind {
        StoreKind::Full => "full",
        StoreKind::Window => "swa",
        _ => panic!("no such cache was measured: {part:?}"),
    }
}

#[test]
fn recurrent_layers_are_those_that_got_a_state() {
    for (row, model) in rows_with_models() {
        let shape = Shape::from_model(&model).unwrap();
        let detail: Vec<Value> = serde_json::from_str(&row.kv_detail).unwrap();
        let measured = detail.iter().find(|part| part["cache"] == "recurrent");
        let layers: Vec<usize> = (0..shape.layers.len())
            .filter(|i| shape.layers[*i].state > 0)
            .collect();
        match measured {
            None => assert_eq!(layers, [0; 0], "{}", row.file),
            Some(part) => {
                assert_eq!(Value::from(layers), part["layers"], "{}", row.file);
                let elements = part["r_row"].as_u64().unwrap() + part["s_row"].as_u64().unwrap();
                let state = shape.layers.iter().map(|layer| layer.state).max();
                assert_eq!(state, Some(elements), "{}", row.file);
            }
        }
    }
}

#[test]
fn the_span_of_the_weights_is_what_the_engine_maps() {
    for (row, model) in rows_with_models() {
        let mapped: u64 = row
            .source_note
            .split("CPU_Mapped ")
            .nth(1)
            .and_then(|rest| rest.split([',', '+', ';']).next())
            .and_then(|bytes| bytes.trim().parse().ok())
            .unwrap_or_else(|| panic!("{}", row.source_note));
        assert_eq!(loaded_bytes(&model), Ok(Bytes(mapped)), "{}", row.file);
    }
}

#[test]
fn output_is_a_row_of_logits_for_each_sequence() {
    for (row, model) in rows_with_models() {
        let shape = Shape::from_model(&model).unwrap();
        let settings = row.settings();
        assert_eq!(
            output_bytes(&shape, &settings),
            Some(Bytes(row.output_bytes)),
            "{} {}",
            row.file,
            row.setting
        );
    }
}
