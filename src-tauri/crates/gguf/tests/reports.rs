//! Faults that people met with readers like this one, built anew: what was reported, and that ours
//! does the right thing.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests

mod support;

use support::{file, is_one_sentence, llama, model, read_bytes, replace};
use twospeed_gguf::{Data, Field, Kind, TensorType, Warning, Writer, read};

/// The sentence that refuses these bytes.
fn refusal(bytes: &[u8]) -> String {
    let sentence = read_bytes(bytes).unwrap_err();
    assert!(is_one_sentence(&sentence), "{sentence}");
    sentence
}

/// A header's first 24 bytes with these counts.
fn opening(tensors: u64, keys: u64) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend_from_slice(&tensors.to_le_bytes());
    bytes.extend_from_slice(&keys.to_le_bytes());
    bytes
}

#[test]
fn counts_and_sizes_that_would_overflow_are_refused() {
    assert!(refusal(&opening(u64::MAX, 0)).contains("claims 18446744073709551615 tensors"));
    assert!(refusal(&opening(0, 1 << 60)).contains("keys, but only 0 bytes follow"));
    let mut bytes = opening(1 << 20, 0);
    bytes.resize(bytes.len() + (24 << 20), 0);
    assert!(refusal(&bytes).contains("1048576 tensors; no model has more than 16384"));
}

#[test]
fn more_than_four_dimensions_are_refused() {
    let mut bytes = file(&llama());
    let name = b"blk.0.attn_q.weight";
    replace(
        &mut bytes,
        &[&name[..], &[2, 0, 0, 0]].concat(),
        &[&name[..], &[5, 0, 0, 0]].concat(),
    );
    assert!(refusal(&bytes).contains("\"blk.0.attn_q.weight\" has 5 dimensions; 4 are allowed"));
}

#[test]
fn a_tensor_whose_size_wraps_around_is_never_a_small_model() {
    let mut bytes = file(&llama());
    let shape = [256u64.to_le_bytes(), 256u64.to_le_bytes()].concat();
    let wraps = [(1u64 << 32).to_le_bytes(), (1u64 << 32).to_le_bytes()].concat();
    replace(&mut bytes, &shape, &wraps);
    assert!(refusal(&bytes).contains("impossible shape"));

    let mut bytes = file(&llama());
    let huge = [(1u64 << 31).to_le_bytes(), (1u64 << 31).to_le_bytes()].concat();
    replace(&mut bytes, &shape, &huge);
    assert!(
        refusal(&bytes).contains("impossible number of bytes"),
        "2^62 elements are countable"
    );
}

#[test]
fn a_tensor_past_the_end_of_the_file_is_truncated_with_both_numbers() {
    let whole = file(&llama());
    let model = read_bytes(&whole[..whole.len() - 1000]).unwrap();
    assert_eq!(model.data, Data::Truncated);
    assert_eq!(model.bytes_found, model.bytes_expected - 1000);
    let sentence = model.check_decodes().unwrap_err().to_string();
    assert!(
        sentence.contains(&format!("{} bytes are expected", model.bytes_expected)),
        "{sentence}"
    );
    let found = Warning::Truncated {
        expected: model.bytes_expected,
        found: model.bytes_found,
    };
    assert_eq!(model.warnings, [found], "a folder's list shows it too");
}

#[test]
fn an_array_of_2_to_the_63_entries_in_43_bytes_is_refused() {
    let mut bytes = opening(0, 1);
    bytes.extend_from_slice(&3u64.to_le_bytes());
    bytes.extend_from_slice(b"abc");
    bytes.extend_from_slice(&9u32.to_le_bytes());
    bytes.extend_from_slice(&9u32.to_le_bytes()[..4]);
    bytes.extend_from_slice(&(1u64 << 63).to_le_bytes());
    assert!(refusal(&bytes).contains("9223372036854775808 elements for the array \"abc\""));
}

#[test]
fn arrays_in_arrays_are_walked_without_calling_ourselves() {
    let nested = |depth: usize| {
        let mut value = Vec::new();
        for _ in 0..depth {
            value.extend_from_slice(&9u32.to_le_bytes());
            value.extend_from_slice(&1u64.to_le_bytes());
        }
        value.extend_from_slice(&4u32.to_le_bytes());
        value.extend_from_slice(&1u64.to_le_bytes());
        value.extend_from_slice(&7u32.to_le_bytes());
        let mut writer = llama();
        writer
            .set("nested", Field::raw(9, value))
            .set("after", 1u32);
        file(&writer)
    };
    let model = read_bytes(&nested(3)).unwrap();
    assert_eq!(
        model.metadata().u64("after"),
        Some(1),
        "what follows is read"
    );
    let sentence = model.check_decodes().unwrap_err().to_string();
    assert!(
        sentence.contains("\"nested\" holds arrays inside an array"),
        "the engine refuses it"
    );
    assert!(refusal(&nested(100_000)).contains("nests arrays too deep"));
}

#[test]
fn a_key_of_no_length_is_refused_before_the_engine_sees_it() {
    let mut writer = Writer::new();
    writer.set("", 1u32);
    assert!(refusal(&file(&writer)).contains("key number 0 is empty"));
}

#[test]
fn an_alignment_of_zero_or_of_another_type_is_refused() {
    let aligned = |value: Field| {
        let mut writer = Writer::new();
        writer.set("general.alignment", value);
        refusal(&file(&writer))
    };
    assert!(aligned(0u32.into()).contains("general.alignment is 0"));
    assert!(aligned(48u32.into()).contains("general.alignment is 48"));
    assert!(aligned(64u64.into()).contains("general.alignment is no 32-bit number"));
    assert!(aligned("64".into()).contains("general.alignment is no 32-bit number"));
}

#[test]
fn a_key_may_be_a_scalar_or_an_array() {
    let per_layer = |value: Field| {
        let mut writer = llama();
        writer.set("llama.attention.head_count_kv", value);
        model(&writer)
            .metadata()
            .per_layer_u64("attention.head_count_kv")
    };
    assert_eq!(per_layer(8u32.into()), Some(vec![8, 8]));
    assert_eq!(per_layer((&[8u32, 4][..]).into()), Some(vec![8, 4]));
}

#[test]
fn the_four_bit_floating_point_types_have_their_sizes() {
    let mut writer = llama();
    writer.tensor("a", TensorType::Mxfp4, &[320]).unwrap();
    writer.tensor("b", TensorType::Nvfp4, &[640]).unwrap();
    let model = model(&writer);
    assert_eq!(
        model.tensor("a").unwrap().bytes,
        170,
        "17 bytes for 32 weights"
    );
    assert_eq!(
        model.tensor("b").unwrap().bytes,
        360,
        "36 bytes for 64 weights"
    );
}

#[test]
fn a_big_endian_file_is_called_that() {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend_from_slice(&3u32.to_be_bytes());
    bytes.extend_from_slice(&[0; 64]);
    assert!(refusal(&bytes).contains("big-endian file"));
}

#[test]
fn an_importance_matrix_is_no_model() {
    let mut writer = Writer::new();
    writer
        .set("general.type", "imatrix")
        .set("imatrix.chunk_count", 100u32);
    writer
        .tensor("blk.0.attn_q.weight.in_sum2", TensorType::F32, &[256])
        .unwrap();
    let model = model(&writer);
    assert_eq!(model.kind, Kind::Imatrix);
    assert!(
        model
            .check_loads()
            .unwrap_err()
            .to_string()
            .contains("importance matrix")
    );
}

#[test]
fn an_embedding_model_is_never_asked_for_a_decode_speed() {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "nomic-bert")
        .set("nomic-bert.block_count", 1u32);
    writer
        .tensor("blk.0.attn_qkv.weight", TensorType::F16, &[64, 64])
        .unwrap();
    let model = model(&writer);
    assert_eq!(model.kind, Kind::Embeds);
    assert!(
        model
            .check_decodes()
            .unwrap_err()
            .to_string()
            .contains("has no decode speed")
    );
}

#[test]
fn a_missing_or_mistyped_key_is_unknown_and_nothing_else() {
    let mut writer = llama();
    writer.set("llama.context_length", "long");
    writer.set("tokenizer.ggml.token_type", &[1u32, 1][..]);
    let model = model(&writer);
    assert_eq!(model.context_length, None);
    assert_eq!(model.kind, Kind::Generates);
}

#[test]
fn layers_without_tensors_are_listed_as_incomplete() {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "llama")
        .set("llama.block_count", 2u32);
    writer
        .tensor("token_embd.weight", TensorType::F16, &[64, 100])
        .unwrap();
    let warnings = model(&writer).warnings;
    assert_eq!(
        warnings,
        [Warning::Incomplete {
            declared: 2,
            without_tensors: 2
        }]
    );
    assert_eq!(
        warnings[0].to_string(),
        "Incomplete: it declares 2 layers, and 2 of them have no tensors."
    );
}

#[test]
fn layers_that_predict_ahead_may_be_left_out() {
    let mut writer = llama();
    writer
        .set("llama.block_count", 3u32)
        .set("llama.nextn_predict_layers", 1u32);
    assert_eq!(model(&writer).warnings, []);
}

#[test]
fn too_many_layers_are_listed_and_never_loaded() {
    let mut writer = llama();
    writer.set("llama.block_count", 4_000_000_000u32);
    let model = model(&writer);
    assert_eq!(model.layers, Some(4_000_000_000));
    let sentence = model.check_decodes().unwrap_err().to_string();
    assert!(sentence.contains("declares 4000000000 layers, and the engine takes at most 512"));
}

#[test]
fn names_that_are_no_unicode_are_told_apart() {
    let mut bytes = file(&llama());
    replace(
        &mut bytes,
        b"blk.0.attn_q.weight",
        b"blk.0.attn_q.w\xff\xff\xff\xff\xff",
    );
    replace(
        &mut bytes,
        b"blk.1.attn_q.weight",
        b"blk.0.attn_q.w\xff\xff\xff\xff\xfe",
    );
    assert_eq!(read_bytes(&bytes).unwrap().tensors.len(), 2);
    replace(&mut bytes, b"\xff\xff\xff\xff\xfe", b"\xff\xff\xff\xff\xff");
    assert!(refusal(&bytes).contains("is there twice"));
}

#[test]
fn withdrawn_types_are_called_by_their_name() {
    let mut bytes = file(&llama());
    let before = [256u64.to_le_bytes().as_slice(), &8u32.to_le_bytes()].concat();
    let after = [256u64.to_le_bytes().as_slice(), &31u32.to_le_bytes()].concat();
    replace(&mut bytes, &before, &after);
    assert!(refusal(&bytes).contains("has type Q4_0_4_4, which llama.cpp withdrew"));
}

#[test]
fn a_header_that_ends_early_is_a_broken_download() {
    let header = llama().header();
    for length in [5, 20, 30, 100, header.len() - 40] {
        let sentence = refusal(&header[..length]);
        assert!(
            sentence.contains("download it again"),
            "{length} bytes: {sentence}"
        );
    }
}

#[test]
fn a_download_that_ends_in_its_first_tensor_is_told_from_a_header_file() {
    let whole = file(&llama());
    let model = read_bytes(&whole[..llama().header().len() + 100]).unwrap();
    assert_eq!(model.data, Data::Absent);
    assert!(matches!(
        model.warnings[..],
        [Warning::EndsInFirstTensor { .. }]
    ));
    assert_eq!(read_bytes(&llama().header()).unwrap().warnings, []);
}

#[test]
fn version_2_is_read_like_version_3() {
    let mut bytes = file(&llama());
    bytes[4] = 2;
    assert_eq!(read_bytes(&bytes).unwrap().parameters, 131_072);
}

#[test]
fn what_is_no_model_file_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let sentence = |path: &std::path::Path| {
        let sentence = read(path).unwrap_err().to_string();
        assert!(is_one_sentence(&sentence), "{sentence}");
        assert!(sentence.contains(&path.display().to_string()), "{sentence}");
        sentence
    };
    assert!(sentence(&path).contains("does not exist"));
    assert!(sentence(folder.path()).contains("is a folder"));
    std::fs::write(&path, "").unwrap();
    assert!(sentence(&path).contains("is empty (0 bytes)"));
    assert!(sentence(&path.join("below")).contains("does not exist"));
    for (bytes, words) in [
        (
            &b"<!doctype html><html>"[..],
            "is a web page saved under this name, not a GGUF model",
        ),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "is a Git LFS pointer",
        ),
        (b"PK\x03\x04\x14\0", "is a zip archive"),
        (b"GGU", "starts with \"GGU\""),
    ] {
        std::fs::write(&path, bytes).unwrap();
        assert!(sentence(&path).contains(words), "{}", sentence(&path));
    }
}

#[cfg(unix)]
#[test]
fn a_device_is_refused_without_reading_it() {
    let sentence = read("/dev/zero".as_ref()).unwrap_err().to_string();
    assert!(sentence.contains("is not a regular file"), "{sentence}");
}

#[test]
fn the_beginning_of_a_remote_file_may_be_too_short_for_its_header() {
    let whole = file(&llama());
    let header = llama().header().len();
    let read =
        |have: usize| twospeed_gguf::read_from(&whole[..have], "remote.gguf", whole.len() as u64);
    assert_eq!(
        read(header).unwrap().data,
        Data::Complete,
        "the data need not be at hand"
    );
    for have in [2, 24, 100, header - 60] {
        let sentence = read(have).unwrap_err().to_string();
        assert!(
            sentence.contains("read more of the file"),
            "{have}: {sentence}"
        );
    }
}
