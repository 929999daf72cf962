//! Headers of 26 architectures, held against what llama.cpp found when it loaded the whole files.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests

mod support;

use std::fs::File;

use support::{fixtures, table};
use twospeed_gguf::{Data, Kind, Model, read, read_from};

/// A header, read as if its whole file were there.
fn whole(name: &str, bytes: u64) -> Model {
    let path = fixtures().join("archs").join(name);
    read_from(File::open(path).unwrap(), name, bytes).unwrap()
}

#[test]
fn sizes_are_those_that_llama_cpp_counted() {
    let rows = table(&fixtures().join("archs/expectations.csv"), 5);
    assert_eq!(rows.len(), 26);
    for row in rows {
        let name = &row[0];
        let number = |column: usize| row[column].parse::<u64>().unwrap();
        let model = whole(name, number(2));
        assert_eq!(model.architecture.as_ref(), Some(&row[1]), "{name}");
        assert_eq!(model.kind, Kind::Generates, "{name}");
        assert_eq!(model.data, Data::Complete, "{name}");
        assert_eq!(model.header_bytes, number(3), "{name}");
        assert_eq!(model.weight_bytes(), number(4), "{name}");
        assert_eq!(model.quantization.as_deref(), Some("Q8_0"), "{name}");
        assert_eq!(model.context_length, Some(256), "{name}");
        assert!(model.warnings.is_empty(), "{name}: {:?}", model.warnings);
        model.check_decodes().unwrap();
    }
}

#[test]
fn a_header_file_expects_the_bytes_of_the_whole_file() {
    for row in table(&fixtures().join("archs/expectations.csv"), 5) {
        let model = read(&fixtures().join("archs").join(&row[0])).unwrap();
        assert_eq!(model.data, Data::Absent, "{}", row[0]);
        let padding = row[2].parse::<u64>().unwrap() - model.bytes_expected;
        assert!(
            padding < 32,
            "{}: only the padding at the end may be missing",
            row[0]
        );
        assert_eq!(model.file_bytes, model.header_bytes);
        model.check().unwrap();
    }
}

#[test]
fn arrays_of_512_entries_count_as_far_as_there_are_layers() {
    let model = whole("falcon-h1-dense-Q8_0.header.gguf", 2_461_920);
    let heads = model
        .metadata()
        .per_layer_u64("attention.head_count")
        .unwrap();
    assert_eq!(heads.len(), model.layers.unwrap() as usize);
}

#[test]
fn the_json_has_the_names_that_scripts_rely_on() {
    let model = whole("qwen3moe-moe-Q8_0.header.gguf", 1_922_144);
    let json = serde_json::to_value(&model).unwrap();
    let names: Vec<&String> = json.as_object().unwrap().keys().collect();
    let mut expected = vec![
        "kind",
        "architecture",
        "name",
        "parameters",
        "active_parameters",
        "file_bytes",
        "header_bytes",
        "data",
        "bytes_expected",
        "bytes_found",
        "quantization",
        "bits_per_weight",
        "types",
        "layers",
        "context_length",
        "split",
        "warnings",
    ];
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(json["kind"], "generates");
    assert_eq!(json["data"], "complete");
    assert_eq!(
        json["name"], "qwen3moe-moe-Q8_0.header",
        "its general.name is n/a"
    );
    // By the tensor list: 16 matrices in Q8_0 (34 bytes per 32), the rest F32.
    assert_eq!(json["types"][0]["type"], "Q8_0");
    assert_eq!(json["types"][0]["parameters"], 1_769_472);
    assert_eq!(json["types"][0]["bytes"], 1_769_472 / 32 * 34);
    assert_eq!(json["split"], serde_json::Value::Null);
}
