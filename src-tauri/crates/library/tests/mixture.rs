//! The mixtures against llama.cpp's own quantizer.
//!
//! `data/llama-quantize-150m.csv` lists the tensors of four files that `llama-quantize` of build
//! 11434 made of the F16 model of the built-in model's shape, in the order in which it wrote them.

#![allow(clippy::unwrap_used, clippy::panic)]

use twospeed_library::{FileType, builtin};

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
