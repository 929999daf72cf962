//! The tensor types of ggml: how many bytes a row of weights takes.

/// Declares the live types with ggml's id and name, elements per block and bytes per block.
macro_rules! tensor_types {
    ($($variant:ident = $id:literal, $name:literal, $elements:literal, $bytes:literal;)*) => {
        /// A tensor type that today's ggml reads. Ids and layouts: llama.cpp `ggml.h`, `ggml-common.h`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TensorType {
            $(#[doc = $name] $variant = $id,)*
        }

        impl TensorType {
            /// Every live type, by id.
            pub const ALL: &[TensorType] = &[$(TensorType::$variant,)*];

            /// The type with ggml's `id`; `None` for ids never given out and for withdrawn types.
            #[must_use]
            pub fn from_id(id: u32) -> Option<TensorType> {
                match id {
                    $($id => Some(TensorType::$variant),)*
                    _ => None,
                }
            }

            /// ggml's name in capitals: `Q4_K`, `F32`, `IQ2_XXS`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(TensorType::$variant => $name,)*
                }
            }

            /// Elements of one block; the rows of a tensor are whole blocks.
            #[must_use]
            pub fn block_elements(self) -> u64 {
                match self {
                    $(TensorType::$variant => $elements,)*
                }
            }

            /// Bytes of one block.
            #[must_use]
            pub fn block_bytes(self) -> u64 {
                match self {
                    $(TensorType::$variant => $bytes,)*
                }
            }
        }
    };
}

tensor_types! {
    F32 = 0, "F32", 1, 4;
    F16 = 1, "F16", 1, 2;
    Q4_0 = 2, "Q4_0", 32, 18;
    Q4_1 = 3, "Q4_1", 32, 20;
    Q5_0 = 6, "Q5_0", 32, 22;
    Q5_1 = 7, "Q5_1", 32, 24;
    Q8_0 = 8, "Q8_0", 32, 34;
    Q8_1 = 9, "Q8_1", 32, 36;
    Q2K = 10, "Q2_K", 256, 84;
    Q3K = 11, "Q3_K", 256, 110;
    Q4K = 12, "Q4_K", 256, 144;
    Q5K = 13, "Q5_K", 256, 176;
    Q6K = 14, "Q6_K", 256, 210;
    Q8K = 15, "Q8_K", 256, 292;
    Iq2Xxs = 16, "IQ2_XXS", 256, 66;
    Iq2Xs = 17, "IQ2_XS", 256, 74;
    Iq3Xxs = 18, "IQ3_XXS", 256, 98;
    Iq1S = 19, "IQ1_S", 256, 50;
    Iq4Nl = 20, "IQ4_NL", 32, 18;
    Iq3S = 21, "IQ3_S", 256, 110;
    Iq2S = 22, "IQ2_S", 256, 82;
    Iq4Xs = 23, "IQ4_XS", 256, 136;
    I8 = 24, "I8", 1, 1;
    I16 = 25, "I16", 1, 2;
    I32 = 26, "I32", 1, 4;
    I64 = 27, "I64", 1, 8;
    F64 = 28, "F64", 1, 8;
    Iq1M = 29, "IQ1_M", 256, 56;
    Bf16 = 30, "BF16", 1, 2;
    Tq1_0 = 34, "TQ1_0", 256, 54;
    Tq2_0 = 35, "TQ2_0", 256, 66;
    Mxfp4 = 39, "MXFP4", 32, 17;
    Nvfp4 = 40, "NVFP4", 64, 36;
    Q1_0 = 41, "Q1_0", 128, 18;
    Q2_0 = 42, "Q2_0", 64, 18;
}

impl TensorType {
    /// ggml's id.
    #[must_use]
    pub fn id(self) -> u32 {
        self as u32
    }

    /// Bytes of `elements` elements; `None` when they are no whole number of blocks, or too many
    /// for 64 bits.
    #[must_use]
    pub fn bytes(self, elements: u64) -> Option<u64> {
        if !elements.is_multiple_of(self.block_elements()) {
            return None;
        }
        (elements / self.block_elements()).checked_mul(self.block_bytes())
    }

    /// 8 x bytes / elements of a block.
    #[must_use]
    pub fn bits_per_weight(self) -> f64 {
        8.0 * self.block_bytes() as f64 / self.block_elements() as f64
    }
}

/// What an id without a live type once was, for the sentence that refuses it.
pub(crate) fn withdrawn_type(id: u32) -> Option<&'static str> {
    match id {
        4 => Some("Q4_2"),
        5 => Some("Q4_3"),
        31 => Some("Q4_0_4_4"),
        32 => Some("Q4_0_4_8"),
        33 => Some("Q4_0_8_8"),
        36 => Some("IQ4_NL_4_4"),
        37 => Some("IQ4_NL_4_8"),
        38 => Some("IQ4_NL_8_8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table as llama.cpp build 11434 reports it (`ggml_type_size`, `ggml_blck_size`).
    const TABLE: &str = include_str!("../../../../tests/data/gguf/ggml_types.csv");

    #[test]
    fn every_live_type_has_the_block_that_ggml_gives_it() {
        let mut listed = 0;
        for line in TABLE.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let tensor_type = TensorType::from_id(cells[0].parse().unwrap())
                .unwrap_or_else(|| panic!("{line} is not in our table"));
            assert_eq!(tensor_type.name(), cells[1], "{line}");
            assert_eq!(tensor_type.block_elements().to_string(), cells[2], "{line}");
            assert_eq!(tensor_type.block_bytes().to_string(), cells[3], "{line}");
            assert_eq!(
                tensor_type.bits_per_weight(),
                cells[4].parse::<f64>().unwrap(),
                "{line}"
            );
            listed += 1;
        }
        assert_eq!(
            listed,
            TensorType::ALL.len(),
            "our table holds a type that ggml lacks"
        );
    }

    #[test]
    fn an_id_is_live_or_withdrawn_but_never_both() {
        for id in 0..64 {
            assert!(
                TensorType::from_id(id).is_none() || withdrawn_type(id).is_none(),
                "{id}"
            );
            if let Some(tensor_type) = TensorType::from_id(id) {
                assert_eq!(tensor_type.id(), id);
            }
        }
    }

    #[test]
    fn bytes_are_counted_by_whole_blocks() {
        assert_eq!(TensorType::Mxfp4.bytes(32), Some(17));
        assert_eq!(TensorType::Q4K.bytes(512), Some(288));
        assert_eq!(
            TensorType::Q4K.bytes(300),
            None,
            "300 is no multiple of 256"
        );
        assert_eq!(
            TensorType::F32.bytes(u64::MAX / 2),
            None,
            "more bytes than 64 bits count"
        );
    }
}
