//! Random weights that are valid in their type: scales finite, codes that a quantizer could have
//! written, and a chosen standard deviation after dequantizing.
//!
//! Layouts: llama.cpp `ggml-common.h`; what a block's numbers mean: `dequantize_row_*` in
//! `ggml-quants.c`. Each type is filled with random bits, and then the scales are set so that
//! the mean square of what comes out is the square of the deviation asked for.

mod recipe;

use half::f16;

use self::recipe::Recipe;
use crate::random::Rng;
use crate::tensor_type::TensorType;

/// Fills tensors of one type with random weights.
#[derive(Debug, Clone)]
pub struct Blocks {
    tensor_type: TensorType,
    recipe: Recipe,
}

/// Mean of the squares of the codes -2^(bits-1) .. 2^(bits-1)-1, all as likely.
fn signed(bits: i32) -> f64 {
    centred(bits) + 0.25
}

/// Mean of the squares of 2^bits equal steps around zero.
fn centred(bits: i32) -> f64 {
    (4f64.powi(bits) - 1.0) / 12.0
}

/// Mean square of signed bytes where -127 stands in for -128.
const SIGNED_BYTE: f64 = (127.0 * 128.0 * 255.0 / 3.0 + 127.0 * 127.0) / 256.0;

/// Mean square of `IQ2_XXS`, `IQ2_XS`, `IQ2_S`, `IQ3_XXS`, `IQ3_S`, `IQ1_S` grid entries and of
/// the `IQ4_NL` and FP4 tables, summed up from `ggml-common.h`.
const GRID_IQ2_XXS: f64 = 1_094_513.0 / 2048.0;
const GRID_IQ2_XS: f64 = 2_402_206.0 / 4096.0;
const GRID_IQ2_S: f64 = 4_889_327.0 / 8192.0;
const GRID_IQ3_XXS: f64 = 974_480.0 / 1024.0;
const GRID_IQ3_S: f64 = 118_112.0 / 2048.0;
/// With the eighth that is added to each entry or taken from it.
const GRID_IQ1: f64 = 9735.0 / 16384.0 + 1.0 / 64.0;
const TABLE_IQ4_NL: f64 = 4548.0;
const TABLE_FP4: f64 = 34.25;

impl Blocks {
    /// Weights of `tensor_type` with the standard deviation `deviation` around zero, as far as the
    /// type's scales reach (trained weights have about 0.02). `None` for the integer types, which
    /// hold no weights, and for a deviation that is no number.
    #[must_use]
    pub fn new(tensor_type: TensorType, deviation: f32) -> Option<Blocks> {
        use TensorType as T;
        if !deviation.is_finite() {
            return None;
        }
        let deviation = f64::from(deviation.abs());
        let half = |value: f64| f16::from_f64(value.clamp(f16::MIN.into(), f16::MAX.into()));
        // The scale at which weights whose mean square is `unit` at scale 1 get the deviation.
        let scale = |unit: f64| half(deviation / unit.sqrt()).to_le_bytes();
        let times = |unit: f64, factor| half(deviation / unit.sqrt() * factor).to_le_bytes();
        // Equal steps around zero reach this far: a uniform distribution has variance reach^2 / 3.
        let reach = deviation * 3f64.sqrt();
        // Half steps 0.5, 1.5 ... 15.5 of a four-bit scale.
        let half_steps = centred(4) + 64.0;
        // Scales 1, 3 ... 15.
        let odd_scales = 4.0 * (centred(3) + 16.0);
        let at = |at, unit| Recipe::Scale {
            at,
            scale: scale(unit),
        };
        let offset = |unit, factor| Recipe::ScaleAndOffset {
            scale: scale(unit),
            offset: times(unit, factor),
        };

        let recipe = match tensor_type {
            T::F32 => Recipe::F32 {
                step: (reach / 2f64.powi(31)) as f32,
            },
            T::F64 => Recipe::F64 {
                step: reach / 2f64.powi(63),
            },
            T::F16 => Recipe::F16 {
                step: (reach / 2f64.powi(15)) as f32,
            },
            T::Bf16 => Recipe::Bf16 {
                step: (reach / 2f64.powi(15)) as f32,
            },
            T::I8 | T::I16 | T::I32 | T::I64 => return None,

            T::Q1_0 => at(0, 1.0),
            T::Q2_0 => Recipe::Ternary {
                at: 0,
                scale: scale(0.5),
            },
            T::Q4_0 => at(0, signed(4)),
            T::Q5_0 => at(0, signed(5)),
            T::Q8_0 => Recipe::Q8_0 {
                scale: scale(SIGNED_BYTE),
            },
            T::Q8_1 => Recipe::Q8_1 {
                scale: half(deviation / SIGNED_BYTE.sqrt()),
            },
            T::Q8K => Recipe::Q8K {
                scale: (deviation / SIGNED_BYTE.sqrt()) as f32,
            },
            T::Q4_1 => offset(centred(4), -7.5),
            T::Q5_1 => offset(centred(5), -15.5),

            // Scales 8 to 15, and 32 to 63: the upper half, as a quantizer's largest scale is.
            T::Q2K => {
                let unit = (11.5 * 11.5 + centred(3)) * centred(2);
                Recipe::Q2K {
                    scale: scale(unit),
                    minimum: times(unit, 1.5),
                }
            }
            T::Q4K => {
                let unit = (47.5 * 47.5 + centred(5)) * centred(4);
                Recipe::Q45K {
                    scale: scale(unit),
                    minimum: times(unit, 7.5),
                }
            }
            T::Q5K => {
                let unit = (47.5 * 47.5 + centred(5)) * centred(5);
                Recipe::Q45K {
                    scale: scale(unit),
                    minimum: times(unit, 15.5),
                }
            }
            T::Q3K => at(108, signed(6) * signed(3)),
            T::Q6K => at(208, signed(8) * signed(6)),

            T::Iq2Xxs => at(0, half_steps / 16.0 * GRID_IQ2_XXS),
            T::Iq2Xs => at(0, half_steps / 16.0 * GRID_IQ2_XS),
            T::Iq2S => at(0, half_steps / 16.0 * GRID_IQ2_S),
            T::Iq3Xxs => at(0, half_steps / 4.0 * GRID_IQ3_XXS),
            T::Iq3S => at(0, half_steps * 4.0 * GRID_IQ3_S),
            T::Iq1S => at(0, odd_scales * GRID_IQ1),
            T::Iq1M => Recipe::Iq1M {
                scale: u16::from_le_bytes(scale(odd_scales * GRID_IQ1)),
            },
            T::Iq4Nl => at(0, TABLE_IQ4_NL),
            T::Iq4Xs => at(0, signed(6) * TABLE_IQ4_NL),

            T::Tq1_0 => Recipe::PackedTernary {
                scale: scale(2.0 / 3.0),
            },
            T::Tq2_0 => Recipe::Ternary {
                at: 64,
                scale: scale(0.5),
            },
            T::Mxfp4 => codes(1, 254, deviation / TABLE_FP4.sqrt(), mxfp4_scale),
            T::Nvfp4 => codes(4, 126, deviation / TABLE_FP4.sqrt(), nvfp4_scale),
        };
        Some(Blocks {
            tensor_type,
            recipe,
        })
    }

    /// The type of the weights.
    #[must_use]
    pub fn tensor_type(&self) -> TensorType {
        self.tensor_type
    }

    /// Fills `out`, which should be a whole number of blocks (a rest stays as it was). The same
    /// generator state and length give the same bytes.
    pub fn fill(&self, rng: &mut Rng, out: &mut [u8]) {
        let block = self.tensor_type.block_bytes() as usize;
        let whole = out.len() - out.len() % block;
        self.recipe.fill(rng, &mut out[..whole], block);
    }
}

/// NVFP4's scales: unsigned, 4 bits exponent, 3 bits mantissa, halved to match the FP4 table.
fn nvfp4_scale(code: u8) -> f64 {
    let mantissa = f64::from(code & 7) / 8.0;
    match i32::from(code >> 3) {
        0 => mantissa * 2f64.powi(-7),
        exponent => (1.0 + mantissa) * 2f64.powi(exponent - 8),
    }
}

/// MXFP4's scales: powers of two, halved to match the FP4 table.
fn mxfp4_scale(code: u8) -> f64 {
    2f64.powi(i32::from(code) - 128)
}

/// Two neighbouring codes (1 to `last`) and how often to take the upper one, so that the mean
/// square of their values is that of `wanted`.
fn codes(count: usize, last: u8, wanted: f64, value: impl Fn(u8) -> f64) -> Recipe {
    let lower = (1..last)
        .rev()
        .find(|code| value(*code) <= wanted)
        .unwrap_or(1);
    let square = |code: u8| value(code).powi(2);
    let share = (wanted.powi(2) - square(lower)) / (square(lower + 1) - square(lower));
    let upper = (share.clamp(0.0, 1.0) * 65_536.0) as u64;
    Recipe::Codes {
        count,
        codes: [lower, lower + 1],
        upper,
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// What llama.cpp made of these blocks: see the README beside the file.
    const MEASURED: &str = include_str!("../../../../tests/data/gguf/random_blocks.csv");

    /// 1,048,576 weights, from seed 1.
    fn blocks(tensor_type: TensorType) -> Vec<u8> {
        let mut out = vec![0; tensor_type.bytes(1 << 20).unwrap() as usize];
        Blocks::new(tensor_type, 0.02)
            .unwrap()
            .fill(&mut Rng::new(1), &mut out);
        out
    }

    fn hexadecimal(bytes: &[u8]) -> String {
        Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    #[test]
    fn the_bytes_are_those_that_llama_cpp_found_valid_and_of_the_right_deviation() {
        let mut measured = 0;
        for line in MEASURED.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let tensor_type = TensorType::ALL
                .iter()
                .find(|t| t.name() == cells[0])
                .unwrap();
            let mean: f64 = cells[3].parse().unwrap();
            let deviation: f64 = cells[4].parse().unwrap();
            assert!(mean.abs() < 0.0002, "{line}: a hundredth of the deviation");
            assert!(
                (deviation / 0.02 - 1.0).abs() < 0.005,
                "{line}: half a percent"
            );
            assert_eq!(hexadecimal(&blocks(*tensor_type)), cells[2], "{line}");
            measured += 1;
        }
        // All but the four integer types, and Q8_1 and Q8_K, which llama.cpp only multiplies with.
        assert_eq!(measured, TensorType::ALL.len() - 6);
    }

    #[test]
    fn the_sums_beside_the_codes_of_q8_1_and_q8_k_are_theirs() {
        let q8_1 = blocks(TensorType::Q8_1);
        for block in q8_1.chunks_exact(36).take(100) {
            let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
            let codes: i32 = block[4..].iter().map(|code| i32::from(*code as i8)).sum();
            let error = half(2) - half(0) * codes as f32;
            assert!(
                error.abs() <= half(2).abs() / 1024.0,
                "{error}: half precision is 11 bits"
            );
        }
        let q8_k = blocks(TensorType::Q8K);
        for block in q8_k.chunks_exact(292).take(100) {
            let scale = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
            assert!(scale > 0.0 && scale < 0.02);
            for group in 0..16 {
                let codes = &block[4 + 16 * group..][..16];
                let sum: i16 = codes.iter().map(|code| i16::from(*code as i8)).sum();
                let at = 260 + 2 * group;
                assert_eq!(i16::from_le_bytes([block[at], block[at + 1]]), sum);
            }
        }
    }

    #[test]
    fn integers_hold_no_weights_and_a_deviation_is_a_number() {
        for tensor_type in [
            TensorType::I8,
            TensorType::I16,
            TensorType::I32,
            TensorType::I64,
        ] {
            assert!(Blocks::new(tensor_type, 0.02).is_none());
        }
        assert!(Blocks::new(TensorType::Q4K, f32::NAN).is_none());
    }

    #[test]
    fn scales_stay_finite_however_large_the_deviation() {
        let mut out = [0; 18];
        Blocks::new(TensorType::Q4_0, f32::MAX)
            .unwrap()
            .fill(&mut Rng::new(1), &mut out);
        assert!(f16::from_le_bytes([out[0], out[1]]).is_finite());
    }

    #[test]
    fn the_rest_of_less_than_a_block_is_left_alone() {
        let mut out = [7; 20];
        Blocks::new(TensorType::Q4_0, 0.02)
            .unwrap()
            .fill(&mut Rng::new(1), &mut out);
        assert_eq!(out[18..], [7, 7]);
    }
}
