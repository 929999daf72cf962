//! The label of a quantization: a name people use, not a tensor type.

use std::collections::BTreeMap;

use crate::metadata::Metadata;
use crate::model::{TensorInfo, TypeShare};

/// llama.cpp sets this bit on a file type that it guessed (`LLAMA_FTYPE_GUESSED`).
const GUESSED: i128 = 1024;

/// The name of a `general.file_type`. These numbers are llama.cpp's `llama_ftype`, another list
/// than the tensor types: 7 is `Q8_0` here, and `Q5_1` there.
fn file_type_name(file_type: i128) -> Option<&'static str> {
    Some(match file_type {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4_MOE",
        39 => "NVFP4",
        40 => "Q1_0",
        41 => "Q2_0",
        _ => return None,
    })
}

/// The label: what `general.file_type` names, `unknown (999)` for a number without a name, and
/// without the key the type that holds most bytes of the matrices. `None` without tensors.
pub(crate) fn label(metadata: &Metadata, tensors: &[TensorInfo]) -> Option<String> {
    if tensors.is_empty() {
        return None;
    }
    match metadata.integer("general.file_type") {
        Some(file_type) => {
            let named = if file_type > 0 {
                file_type & !GUESSED
            } else {
                file_type
            };
            Some(
                file_type_name(named)
                    .map_or_else(|| format!("unknown ({file_type})"), str::to_owned),
            )
        }
        None => dominant(tensors),
    }
}

fn dominant(tensors: &[TensorInfo]) -> Option<String> {
    let matrices = shares(tensors.iter().filter(|tensor| tensor.dimensions.len() > 1));
    let all = if matrices.is_empty() {
        shares(tensors.iter())
    } else {
        matrices
    };
    all.first().map(|share| share.name().into_owned())
}

/// Bytes and parameters by type, most bytes first.
pub(crate) fn shares<'a>(tensors: impl Iterator<Item = &'a TensorInfo>) -> Vec<TypeShare> {
    let mut by_type = BTreeMap::new();
    for tensor in tensors {
        let key = (tensor.tensor_type, tensor.new_type);
        let share = by_type.entry(key).or_insert(TypeShare {
            tensor_type: tensor.tensor_type,
            new_type: tensor.new_type,
            tensors: 0,
            bytes: 0,
            parameters: 0,
        });
        share.tensors += 1;
        share.bytes += tensor.bytes;
        share.parameters += tensor.elements;
    }
    let mut shares: Vec<TypeShare> = by_type.into_values().collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}

/// Whether the label promises blocks of 256 while most parameters lie in rows that are no multiple
/// of 256: the quantizer then falls back to larger types (`Q4_K` to `Q5_0`).
pub(crate) fn falls_back(label: &str, tensors: &[TensorInfo]) -> bool {
    let in_super_blocks = [
        "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ1", "IQ2", "IQ3", "IQ4_XS", "TQ",
    ];
    if !in_super_blocks.iter().any(|name| label.starts_with(name)) {
        return false;
    }
    let mut all = 0u64;
    let mut odd = 0u64;
    for tensor in tensors.iter().filter(|tensor| tensor.dimensions.len() > 1) {
        all += tensor.elements;
        if !tensor.dimensions.row().is_multiple_of(256) {
            odd += tensor.elements;
        }
    }
    odd > all / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_type::TensorType;
    use crate::testing::{read_back, two_layers, with};
    use crate::writer::Writer;

    fn labelled(file_type: u32) -> Option<String> {
        read_back(&with(two_layers("llama"), "general.file_type", file_type)).quantization
    }

    #[test]
    fn the_label_comes_from_the_list_of_file_types_not_of_tensor_types() {
        // Source: `enum llama_ftype` in llama.h. Tensor type 7 is Q5_1, tensor type 8 is Q8_0.
        assert_eq!(labelled(7).as_deref(), Some("Q8_0"));
        assert_eq!(labelled(8).as_deref(), Some("Q5_0"));
        assert_eq!(labelled(15).as_deref(), Some("Q4_K_M"));
        assert_eq!(labelled(38).as_deref(), Some("MXFP4_MOE"));
        assert_eq!(
            labelled(0).as_deref(),
            Some("F32"),
            "0 is a file type, not an absent one"
        );
    }

    #[test]
    fn a_number_without_a_name_is_shown_as_such() {
        assert_eq!(labelled(999).as_deref(), Some("unknown (999)"));
        assert_eq!(labelled(5).as_deref(), Some("unknown (5)"), "withdrawn");
        assert_eq!(
            labelled(1024 + 15).as_deref(),
            Some("Q4_K_M"),
            "llama.cpp's own guess"
        );
    }

    #[test]
    fn without_a_file_type_most_bytes_of_the_matrices_decide() {
        let mut writer = two_layers("llama");
        writer
            .tensor("rope_freqs.weight", TensorType::F32, &[1 << 20])
            .unwrap();
        assert_eq!(read_back(&writer).quantization.as_deref(), Some("Q8_0"));
        assert_eq!(
            read_back(&Writer::new()).quantization,
            None,
            "no tensors, no label"
        );
    }

    #[test]
    fn types_are_listed_by_bytes() {
        let mut writer = two_layers("llama");
        writer
            .tensor("output.weight", TensorType::Mxfp4, &[32])
            .unwrap();
        writer
            .tensor("other.weight", TensorType::Nvfp4, &[128])
            .unwrap();
        let model = read_back(&writer);
        let shares: Vec<_> = model
            .types
            .iter()
            .map(|s| (s.tensor_type.name(), s.tensors, s.bytes, s.parameters))
            .collect();
        // 2 x 65,536 weights of 34 bytes per 32; 17 bytes per 32; 36 bytes per 64.
        assert_eq!(
            shares,
            [
                ("Q8_0", 2, 139_264, 131_072),
                ("NVFP4", 1, 72, 128),
                ("MXFP4", 1, 17, 32)
            ]
        );
        assert_eq!(model.bits_per_weight, Some(8.0 * 139_353.0 / 131_232.0));
    }

    #[test]
    fn a_k_quant_of_rows_that_are_no_multiple_of_256_is_called_larger_than_its_label() {
        let narrow = |label: &str, row: u64| {
            let mut writer = Writer::new();
            writer.tensor("a", TensorType::Q8_0, &[row, 64]).unwrap();
            falls_back(label, &read_back(&writer).tensors)
        };
        assert!(narrow("Q4_K_M", 640), "Gemma 3 270M");
        assert!(!narrow("Q4_K_M", 768));
        assert!(!narrow("Q4_0", 640), "blocks of 32 fit");
    }
}
