//! The malformed files of `tests/data/gguf/hostile`, each as its expectations file says.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests

mod support;

use std::time::{Duration, Instant};

use support::{fixtures, is_one_sentence, table};
use twospeed_gguf::{Data, Error, Kind, TensorType, Writer, read, read_from};

#[test]
fn each_file_is_taken_or_refused_as_llama_cpp_does() {
    let folder = fixtures().join("hostile");
    let rows = table(&folder.join("expectations.csv"), 4);
    assert_eq!(rows.len(), 25);
    for row in rows {
        let [name, should_load, header_only, wrong] = &row[..] else {
            panic!("{row:?}")
        };
        let began = Instant::now();
        let result = read(&folder.join(name));
        let took = began.elapsed();

        // The header decides whether it is read at all, the data and its types whether it passes the
        // check.
        let is_read = header_only == "yes" || name == "TENSORS_BAD_TYPE.gguf";
        assert_eq!(result.is_ok(), is_read, "{name}: {wrong}");
        let whole = result.and_then(|model| model.check().map(|()| model));
        assert_eq!(whole.is_ok(), should_load == "yes", "{name}: {wrong}");
        match whole {
            Ok(model) => assert_eq!(model.kind, Kind::None, "{name} is sound and no model"),
            Err(error) => {
                let sentence = error.to_string();
                assert!(is_one_sentence(&sentence), "{sentence}");
                assert!(sentence.contains(name), "{sentence} names the file");
            }
        }
        assert!(took < Duration::from_millis(100), "{name} took {took:?}");
    }
}

#[test]
fn the_sentence_names_what_is_wrong() {
    let cases = [
        ("HEADER_BAD_MAGIC.gguf", "starts with \"FUGG\""),
        ("HEADER_BAD_VERSION_1.gguf", "GGUF version 1"),
        (
            "HEADER_BAD_VERSION_FUTURE.gguf",
            "GGUF version 4, newer than any known",
        ),
        (
            "HEADER_BAD_N_KV.gguf",
            "claims 18446744073709551615 keys, but only 8 bytes follow",
        ),
        (
            "KV_BAD_KEY_SIZE.gguf",
            "claims 18446744073709551615 bytes for the name of key number 0",
        ),
        (
            "KV_BAD_TYPE.gguf",
            "has value type 13, which does not exist",
        ),
        (
            "KV_DUPLICATE_KEY.gguf",
            "the key \"my_key_0\" is there twice",
        ),
        (
            "KV_BAD_ALIGN.gguf",
            "general.alignment is 13, and has to be a power of two",
        ),
        (
            "TENSORS_BAD_NAME_SIZE.gguf",
            "the name of tensor number 0 is 87 bytes long",
        ),
        (
            "TENSORS_BAD_SHAPE.gguf",
            "\"my_tensor_0\" has an impossible shape",
        ),
        ("TENSORS_NE_TOO_BIG.gguf", "has an impossible shape"),
        ("TENSORS_NBYTES_TOO_BIG.gguf", "impossible number of bytes"),
        ("TENSORS_BAD_TYPE.gguf", "has type 43, which is not known"),
        ("TENSORS_DUPLICATE_NAME.gguf", "is there twice"),
        (
            "TENSORS_INCONSISTENT_ALIGN.gguf",
            "but the one before ends at",
        ),
        ("DATA_BAD_ALIGN.gguf", "general.alignment is 13"),
    ];
    for (name, words) in cases {
        let found = read(&fixtures().join("hostile").join(name));
        let error = found.and_then(|model| model.check()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
}

/// Two matrices and a vector, of which the first and the last are said to be of that type.
fn with_types(id: u32) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.set("general.architecture", "llama");
    let tensors: [(&str, TensorType, &[u64]); 3] = [
        ("blk.0.ffn_up.weight", TensorType::Q4K, &[256, 64]),
        ("blk.0.ffn_norm.weight", TensorType::F32, &[256]),
        ("blk.0.ffn_down.weight", TensorType::Q4K, &[256, 32]),
    ];
    for (name, tensor_type, dimensions) in tensors {
        writer.tensor(name, tensor_type, dimensions).unwrap();
    }
    let mut bytes = writer.header();
    let known = TensorType::Q4K.id().to_le_bytes();
    for (name, _, dimensions) in [tensors[0], tensors[2]] {
        let at = bytes
            .windows(name.len())
            .position(|bytes| bytes == name.as_bytes())
            .unwrap();
        let at = at + name.len() + 4 + 8 * dimensions.len();
        assert_eq!(bytes[at..at + 4], known);
        bytes[at..at + 4].copy_from_slice(&id.to_le_bytes());
    }
    bytes
}

#[test]
fn a_type_from_the_future_is_as_large_as_the_offsets_say_and_resembles_a_known_one() {
    let bytes = with_types(99);
    let (data, last) = (64 * 144 + 1024 + 32 * 144, 32 * 144);
    for there in [data, 0] {
        let model = read_from(&bytes[..], "new.gguf", bytes.len() as u64 + there).unwrap();
        assert_eq!(model.tensors[0].bytes, 64 * 144);
        assert_eq!(model.tensors[2].bytes, last);
        assert_eq!(model.bytes_expected, bytes.len() as u64 + data);
        assert_eq!(model.tensors[2].new_type, Some(99));
        assert_eq!(model.tensors[2].tensor_type.bits_per_weight(), 4.5);
        assert_eq!(model.types[0].name(), "type 99");
        assert!(model.check_whole().is_ok());
        let error = model.check().unwrap_err().to_string();
        assert!(error.contains("has type 99, which is not known"), "{error}");
        assert!(model.check_loads().is_err());
    }
}

#[test]
fn a_file_cut_short_by_one_byte_says_how_much_is_there() {
    let model = read(&fixtures().join("hostile/DATA_NOT_ENOUGH_DATA.gguf")).unwrap();
    assert_eq!(model.data, Data::Truncated);
    assert_eq!(model.bytes_expected, 745_808);
    assert_eq!(model.bytes_found, 745_807);
    assert!(matches!(model.check(), Err(Error::Truncated { .. })));
}

#[test]
fn bytes_after_the_data_are_allowed_and_padding_is_not_needed() {
    let extra = read(&fixtures().join("hostile/DATA_SUCCESS_EXTRA_BYTES.gguf")).unwrap();
    assert_eq!((extra.data, extra.bytes_found), (Data::Complete, 745_861));
    let unpadded = read(&fixtures().join("hostile/DATA_CUSTOM_ALIGN.gguf")).unwrap();
    assert_eq!(
        unpadded.bytes_expected, unpadded.bytes_found,
        "it ends with its last tensor"
    );
}
