//! Random weights that are valid in their type: scales finite, codes that a quantizer could have
//! written, and a chosen standard deviation after dequantizing.
//!
//! Layouts: llama.cpp `ggml-common.h`; what a block's numbers mean: `dequantize_row_*` in
//! `ggml-quants.c`. Each type is filled with random bits, and then the scales are set so that
//! the mean square of what comes out is the square of the deviation asked for.

use half::f16;

use crate::random::Rng;
use crate::tensor_type::TensorType;

/// Fills tensors of one type with random weights.
#[derive(Debug, Clone)]
pub struct Blocks {
    tensor_type: TensorType,
    recipe: Recipe,
}

/// What to do to a block of random bits.
#[derive(Debug, Clone)]
enum Recipe {
    F32 {
        step: f32,
    },
    F64 {
        step: f64,
    },
    F16 {
        step: f32,
    },
    Bf16 {
        step: f32,
    },
    /// One half-precision scale with a random sign; the rest may be any bits.
    Scale {
        at: usize,
        scale: [u8; 2],
    },
    /// The same, with codes of three values in the other bytes.
    Ternary {
        scale: [u8; 2],
        packed: bool,
    },
    /// `Q8_0`: signed bytes without -128, which no quantizer writes.
    Q8_0 {
        scale: [u8; 2],
    },
    Q8_1 {
        scale: [u8; 2],
        value: f32,
    },
    Q8K {
        scale: f32,
    },
    /// A scale and an offset that centres the codes.
    ScaleAndOffset {
        scale: [u8; 2],
        offset: [u8; 2],
    },
    /// `Q2_K`: four-bit scales and minima beside each other.
    Q2K {
        scale: [u8; 2],
        minimum: [u8; 2],
    },
    /// `Q4_K` and `Q5_K`: six-bit scales and minima, packed.
    Q45K {
        scale: [u8; 2],
        minimum: [u8; 2],
    },
    /// `IQ1_M`: the scale's bits lie in the upper four of four words.
    Iq1M {
        scale: u16,
    },
    /// One byte picks the scale: of two codes, the upper one so many times in 65,536.
    Codes {
        at: usize,
        count: usize,
        codes: [u8; 2],
        upper: u64,
    },
}

/// Mean of the squares of the codes -2^(bits-1) .. 2^(bits-1)-1, all as likely.
fn signed(bits: i32) -> f64 {
    centred(bits) + 0.25
}

/// Mean of the squares of 2^bits equal steps around zero.
fn centred(bits: i32) -> f64 {
    (4f64.powi(bits) - 1.0) / 12.0
}

/// Mean square of `IQ2_XXS`, `IQ2_XS`, `IQ2_S`, `IQ3_XXS`, `IQ3_S`, `IQ1_S` grid entries and of
/// the `IQ4_NL` and FP4 tables, summed up from `ggml-common.h`.
const GRID_IQ2_XXS: f64 = 1_094_513.0 / 2048.0;
const GRID_IQ2_XS: f64 = 2_402_206.0 / 4096.0;
const GRID_IQ2_S: f64 = 4_889_327.0 / 8192.0;
const GRID_IQ3_XXS: f64 = 974_480.0 / 1024.0;
const GRID_IQ3_S: f64 = 118_112.0 / 2048.0;
const GRID_IQ1: f64 = 9735.0 / 16384.0;
const TABLE_IQ4_NL: f64 = 4548.0;
const TABLE_FP4: f64 = 34.25;

impl Blocks {
    /// Weights of `tensor_type` with the standard deviation `deviation` around zero. `None` for the
    /// integer types, which hold no weights.
    #[must_use]
    pub fn new(tensor_type: TensorType, deviation: f32) -> Option<Blocks> {
        use TensorType as T;
        let deviation = f64::from(deviation.abs());
        // The scale at which weights whose mean square is `unit` at scale 1 get the deviation.
        let scale_value = |unit: f64| (deviation / unit.sqrt()) as f32;
        let scale = |unit: f64| f16::from_f32(scale_value(unit)).to_le_bytes();
        let times =
            |unit: f64, factor: f64| f16::from_f64(deviation / unit.sqrt() * factor).to_le_bytes();
        // Equal steps around zero reach this far: a uniform distribution has variance reach^2 / 3.
        let reach = deviation * 3f64.sqrt();
        // Half steps 0.5, 1.5 ... 15.5 of a four-bit scale.
        let half_steps = centred(4) + 64.0;

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

            T::Q1_0 => Recipe::Scale {
                at: 0,
                scale: scale(1.0),
            },
            T::Q2_0 => Recipe::Ternary {
                scale: scale(0.5),
                packed: false,
            },
            T::Q4_0 => Recipe::Scale {
                at: 0,
                scale: scale(signed(4)),
            },
            T::Q5_0 => Recipe::Scale {
                at: 0,
                scale: scale(signed(5)),
            },
            T::Q8_0 => Recipe::Q8_0 {
                scale: scale(SIGNED_BYTE),
            },
            T::Q8_1 => Recipe::Q8_1 {
                scale: scale(SIGNED_BYTE),
                value: f16::from_f32(scale_value(SIGNED_BYTE)).to_f32(),
            },
            T::Q8K => Recipe::Q8K {
                scale: scale_value(SIGNED_BYTE),
            },
            T::Q4_1 => Recipe::ScaleAndOffset {
                scale: scale(centred(4)),
                offset: times(centred(4), -7.5),
            },
            T::Q5_1 => Recipe::ScaleAndOffset {
                scale: scale(centred(5)),
                offset: times(centred(5), -15.5),
            },

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
            T::Q3K => Recipe::Scale {
                at: 108,
                scale: scale(signed(6) * signed(3)),
            },
            T::Q6K => Recipe::Scale {
                at: 208,
                scale: scale(signed(8) * signed(6)),
            },

            T::Iq2Xxs => Recipe::Scale {
                at: 0,
                scale: scale(half_steps / 16.0 * GRID_IQ2_XXS),
            },
            T::Iq2Xs => Recipe::Scale {
                at: 0,
                scale: scale(half_steps / 16.0 * GRID_IQ2_XS),
            },
            T::Iq2S => Recipe::Scale {
                at: 0,
                scale: scale(half_steps / 16.0 * GRID_IQ2_S),
            },
            T::Iq3Xxs => Recipe::Scale {
                at: 0,
                scale: scale(half_steps / 4.0 * GRID_IQ3_XXS),
            },
            T::Iq3S => Recipe::Scale {
                at: 0,
                scale: scale(half_steps * 4.0 * GRID_IQ3_S),
            },
            // Scales 1, 3 ... 15; an eighth is added to each entry, or taken from it.
            T::Iq1S => Recipe::Scale {
                at: 0,
                scale: scale(85.0 * (GRID_IQ1 + 1.0 / 64.0)),
            },
            T::Iq1M => Recipe::Iq1M {
                scale: u16::from_le_bytes(scale(85.0 * (GRID_IQ1 + 1.0 / 64.0))),
            },
            T::Iq4Nl => Recipe::Scale {
                at: 0,
                scale: scale(TABLE_IQ4_NL),
            },
            T::Iq4Xs => Recipe::Scale {
                at: 0,
                scale: scale(signed(6) * TABLE_IQ4_NL),
            },

            T::Tq1_0 => Recipe::Ternary {
                scale: scale(2.0 / 3.0),
                packed: true,
            },
            T::Tq2_0 => Recipe::Ternary {
                scale: scale(0.5),
                packed: false,
            },
            T::Mxfp4 => codes(0, 1, 254, deviation / TABLE_FP4.sqrt(), |code| {
                2f64.powi(i32::from(code) - 128)
            }),
            T::Nvfp4 => codes(0, 4, 126, deviation / TABLE_FP4.sqrt(), nvfp4_scale),
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
        let out = &mut out[..whole];
        rng.fill(out);
        match &self.recipe {
            Recipe::F32 { step } => each(out, |bytes: &mut [u8; 4]| {
                *bytes = (i32::from_le_bytes(*bytes) as f32 * step).to_le_bytes();
            }),
            Recipe::F64 { step } => each(out, |bytes: &mut [u8; 8]| {
                *bytes = (i64::from_le_bytes(*bytes) as f64 * step).to_le_bytes();
            }),
            Recipe::F16 { step } => each(out, |bytes: &mut [u8; 2]| {
                *bytes = f16::from_f32(f32::from(i16::from_le_bytes(*bytes)) * step).to_le_bytes();
            }),
            Recipe::Bf16 { step } => each(out, |bytes: &mut [u8; 2]| {
                let value = f32::from(i16::from_le_bytes(*bytes)) * step;
                *bytes = ((value.to_bits() >> 16) as u16).to_le_bytes();
            }),
            recipe => {
                for bytes in out.chunks_exact_mut(block) {
                    recipe.set(bytes, self.tensor_type, rng);
                }
            }
        }
    }
}

/// Mean square of signed bytes where -127 stands in for -128.
const SIGNED_BYTE: f64 = (127.0 * 128.0 * 255.0 / 3.0 + 127.0 * 127.0) / 256.0;

/// Calls `change` on each group of `N` bytes.
fn each<const N: usize>(out: &mut [u8], mut change: impl FnMut(&mut [u8; N])) {
    for group in out.as_chunks_mut::<N>().0 {
        change(group);
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

/// Two neighbouring codes (1 to `last`) and how often to take the upper one, so that the mean
/// square of their values is that of `wanted`.
fn codes(at: usize, count: usize, last: u8, wanted: f64, value: impl Fn(u8) -> f64) -> Recipe {
    let lower = (1..last)
        .rev()
        .find(|code| value(*code) <= wanted)
        .unwrap_or(1);
    let square = |code: u8| value(code).powi(2);
    let share = (wanted.powi(2) - square(lower)) / (square(lower + 1) - square(lower));
    Recipe::Codes {
        at,
        count,
        codes: [lower, lower + 1],
        upper: (share.clamp(0.0, 1.0) * 65_536.0) as u64,
    }
}

/// Writes a half-precision scale and leaves its sign to the random bits.
fn set_scale(bytes: &mut [u8], at: usize, scale: [u8; 2]) {
    bytes[at] = scale[0];
    bytes[at + 1] = scale[1] & 0x7f | bytes[at + 1] & 0x80;
}

/// Replaces -128.
fn without_lowest(bytes: &mut [u8]) {
    for byte in bytes {
        *byte |= u8::from(*byte == 0x80);
    }
}

/// The sum of signed bytes.
fn sum(bytes: &[u8]) -> i32 {
    bytes.iter().map(|byte| i32::from(*byte as i8)).sum()
}

impl Recipe {
    /// Makes a valid block of random bits.
    fn set(&self, bytes: &mut [u8], tensor_type: TensorType, rng: &mut Rng) {
        match *self {
            Recipe::F32 { .. } | Recipe::F64 { .. } | Recipe::F16 { .. } | Recipe::Bf16 { .. } => {}
            Recipe::Scale { at, scale } => set_scale(bytes, at, scale),
            Recipe::Ternary { scale, packed } => set_ternary(bytes, tensor_type, scale, packed),
            Recipe::Q8_0 { scale } => {
                set_scale(bytes, 0, scale);
                without_lowest(&mut bytes[2..]);
            }
            Recipe::Q8_1 { scale, value } => {
                without_lowest(&mut bytes[4..]);
                let total = f16::from_f32(sum(&bytes[4..]) as f32 * value);
                bytes[..2].copy_from_slice(&scale);
                bytes[2..4].copy_from_slice(&total.to_le_bytes());
            }
            Recipe::Q8K { scale } => {
                bytes[..4].copy_from_slice(&scale.to_le_bytes());
                let (codes, sums) = bytes[4..].split_at_mut(256);
                without_lowest(codes);
                for (group, slot) in codes.chunks_exact(16).zip(sums.chunks_exact_mut(2)) {
                    slot.copy_from_slice(&(sum(group) as i16).to_le_bytes());
                }
            }
            Recipe::ScaleAndOffset { scale, offset } => {
                bytes[..2].copy_from_slice(&scale);
                bytes[2..4].copy_from_slice(&offset);
            }
            Recipe::Q2K { scale, minimum } => {
                for byte in &mut bytes[..16] {
                    *byte = (*byte & 7 | 8) * 0x11;
                }
                bytes[80..82].copy_from_slice(&scale);
                bytes[82..84].copy_from_slice(&minimum);
            }
            Recipe::Q45K { scale, minimum } => {
                bytes[..2].copy_from_slice(&scale);
                bytes[2..4].copy_from_slice(&minimum);
                set_six_bit_scales(&mut bytes[4..16]);
            }
            Recipe::Iq1M { scale } => {
                let sign = u16::from(bytes[55] & 0x80) << 8;
                let scale = scale & 0x7fff | sign;
                for (word, slot) in bytes[48..56].chunks_exact_mut(2).enumerate() {
                    slot[1] = slot[1] & 0x0f | ((scale >> (4 * word)) as u8) << 4;
                }
            }
            Recipe::Codes {
                at,
                count,
                codes,
                upper,
            } => {
                let draws = rng.next_u64();
                for (index, byte) in bytes[at..at + count].iter_mut().enumerate() {
                    let draw = (draws >> (16 * index)) & 0xffff;
                    *byte = codes[usize::from(draw < upper)];
                }
            }
        }
    }
}

/// Codes of three values. Unpacked, two bits hold 0, 1 or 2; packed, a byte holds five, as a
/// fraction of 243.
fn set_ternary(bytes: &mut [u8], tensor_type: TensorType, scale: [u8; 2], packed: bool) {
    // Q2_0 starts with its scale, the other two end with it.
    let (codes, at) = match tensor_type {
        TensorType::Q2_0 => (2..bytes.len(), 0),
        _ => (0..bytes.len() - 2, bytes.len() - 2),
    };
    if packed {
        let (five, four) = bytes[codes].split_at_mut(48);
        let fraction = |value: u32| (value * 256).div_ceil(243) as u8;
        for byte in five {
            *byte = fraction((u32::from(*byte) * 243) >> 8);
        }
        for byte in four {
            *byte = fraction(((u32::from(*byte) * 81) >> 8) * 3);
        }
    } else {
        for byte in &mut bytes[codes] {
            // 3 becomes 1: the upper bit goes where both are set.
            *byte &= !((*byte & *byte >> 1 & 0x55) << 1);
        }
    }
    set_scale(bytes, at, scale);
}

/// Eight scales of 32 to 63 and eight equal minima in twelve bytes: the first four of each whole
/// in the low six bits, of the others the low nibbles in the last four bytes and the upper two
/// bits on top of the first eight.
fn set_six_bit_scales(packed: &mut [u8]) {
    let mut scales = [0u8; 8];
    for (scale, byte) in scales.iter_mut().zip(packed.iter()) {
        *scale = 32 | byte & 31;
    }
    for index in 0..4 {
        let (first, second) = (scales[index], scales[index + 4]);
        let whole = first | (second >> 4) << 6;
        packed[index] = whole;
        packed[index + 4] = whole;
        packed[index + 8] = (second & 15) * 0x11;
    }
}
