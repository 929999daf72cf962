//! The mixtures against llama.cpp's own quantizer.
//!
//! `data/llama-quantize-150m.csv` lists the tensors of four files that `llama-quantize` of build
//! 11434 made of the F16 model of the built-in model's shape, in the order in which it wrote them.

#![allow(clippy::unwrap_used, clippy::panic)]

use twospeed_library::{FileType, as_quantized, builtin};

const TABLE: &str = include_str!("data/llama-quantize-150m.csv");

#[test]
fn every_tensor_has_the_type_that_llama_quantize_gives_it() {
    let mut lines = TABLE
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    for (column, mixture) in [
        (2, FileType::Q4_K_M),
        (3, FileType::Q5_K_M),
        (4, FileType::Q6_K),
        (5, FileType::Q8_0),
    ] {
        assert_eq!(heads[column], mixture.name());
        let tensors = builtin::SHAPE.tensors(mixture);
        assert_eq!(tensors.len(), rows.len());
        for (tensor, row) in tensors.iter().zip(&rows) {
            let dimensions: Vec<String> = tensor.dimensions.iter().map(u64::to_string).collect();
            assert_eq!(tensor.name, row[0]);
            assert_eq!(dimensions.join("x"), row[1], "{}", row[0]);
            assert_eq!(
                tensor.tensor_type.name(),
                row[column],
                "{} of {}",
                row[0],
                heads[column]
            );
        }
    }
}

#[test]
fn of_four_bits_the_important_layers_have_six() {
    // Of 16 layers the first two and the last two, and every third between them.
    let more = [0, 1, 4, 7, 10, 13, 14, 15];
    for tensor in builtin::SHAPE.tensors(FileType::Q4_K_M) {
        let Some(layer) = tensor.name.strip_prefix("blk.") else {
            continue;
        };
        let (layer, part) = layer.split_once('.').unwrap();
        let important = more.contains(&layer.parse::<u32>().unwrap())
            && ["attn_v.weight", "ffn_down.weight"].contains(&part);
        assert_eq!(
            tensor.tensor_type.name() == "Q6_K",
            important,
            "{}",
            tensor.name
        );
    }
}

#[test]
fn the_header_of_a_quantization_that_is_not_made_yet_is_the_one_it_will_have() {
    let folder = tempfile::tempdir().unwrap();
    let header = |file_type: FileType| {
        let path = folder.path().join(format!("{}.gguf", file_type.name()));
        let model = builtin::SHAPE.model("Built-in", file_type, 1);
        std::fs::write(&path, model.header().unwrap()).unwrap();
        twospeed_gguf::read(&path).unwrap()
    };
    let full = header(FileType::F16);
    for file_type in [FileType::Q4_K_M, FileType::Q5_K_M, FileType::Q8_0] {
        let made = as_quantized(&full, file_type).unwrap();
        // Written as such a file by the same rules that the test above holds against llama.cpp's.
        let real = header(file_type);
        let listed = |model: &twospeed_gguf::Model| -> Vec<(String, String, u64)> {
            let tensors = model.tensors.iter();
            let facts = |t: &twospeed_gguf::TensorInfo| {
                (t.name.clone(), t.tensor_type.name().to_owned(), t.bytes)
            };
            tensors.map(facts).collect()
        };
        assert_eq!(listed(&made), listed(&real));
        assert_eq!(
            (&made.types, &made.quantization),
            (&real.types, &real.quantization)
        );
        assert_eq!(made.bits_per_weight, real.bits_per_weight);
        assert_eq!(made.data, twospeed_gguf::Data::Absent);
    }
}
