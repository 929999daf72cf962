//! How random bits become a valid block, type by type.

use half::f16;

use crate::random::Rng;

/// What to do to a block of random bits.
#[derive(Debug, Clone)]
pub(super) enum Recipe {
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
    /// The same, with two-bit codes of 0, 1 and 2 in the other bytes.
    Ternary {
        at: usize,
        scale: [u8; 2],
    },
    /// `TQ1_0`: five such codes in a byte, as a fraction of 243; then a scale.
    PackedTernary {
        scale: [u8; 2],
    },
    /// `Q8_0`: signed bytes without -128, which no quantizer writes.
    Q8_0 {
        scale: [u8; 2],
    },
    /// `Q8_1`: the scale times the sum of the codes stands beside the scale.
    Q8_1 {
        scale: f16,
    },
    /// `Q8_K`: the sums of sixteen codes each follow the codes.
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
    /// The first bytes are scales: one of two codes, the upper one so many times in 65,536.
    Codes {
        count: usize,
        codes: [u8; 2],
        upper: u64,
    },
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
    /// Fills `out`, a whole number of blocks of `block` bytes.
    pub(super) fn fill(&self, rng: &mut Rng, out: &mut [u8], block: usize) {
        rng.fill(out);
        match *self {
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
                // Half of the last kept bit rounds.
                *bytes = ((value.to_bits().wrapping_add(0x8000) >> 16) as u16).to_le_bytes();
            }),
            _ => {
                for bytes in out.chunks_exact_mut(block) {
                    self.set(bytes, rng);
                }
            }
        }
    }

    /// Makes a valid block of random bits.
    fn set(&self, bytes: &mut [u8], rng: &mut Rng) {
        match *self {
            // Their elements are blocks of one: see `fill`.
            Recipe::F32 { .. } | Recipe::F64 { .. } | Recipe::F16 { .. } | Recipe::Bf16 { .. } => {}
            Recipe::Scale { at, scale } => set_scale(bytes, at, scale),
            Recipe::Ternary { at, scale } => {
                for byte in bytes.iter_mut() {
                    // 3 becomes 1: the upper bit goes where both are set.
                    *byte &= !((*byte & *byte >> 1 & 0x55) << 1);
                }
                set_scale(bytes, at, scale);
            }
            Recipe::PackedTernary { scale } => set_packed_ternary(bytes, scale),
            Recipe::Q8_0 { scale } => {
                set_scale(bytes, 0, scale);
                without_lowest(&mut bytes[2..]);
            }
            Recipe::Q8_1 { scale } => {
                without_lowest(&mut bytes[4..]);
                let total = f16::from_f32(sum(&bytes[4..]) as f32 * scale.to_f32());
                bytes[..2].copy_from_slice(&scale.to_le_bytes());
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
                count,
                codes,
                upper,
            } => {
                let draws = rng.next_u64();
                for (index, byte) in bytes[..count].iter_mut().enumerate() {
                    let draw = (draws >> (16 * index)) & 0xffff;
                    *byte = codes[usize::from(draw < upper)];
                }
            }
        }
    }
}

/// Calls `change` on each group of `N` bytes.
fn each<const N: usize>(out: &mut [u8], mut change: impl FnMut(&mut [u8; N])) {
    for group in out.as_chunks_mut::<N>().0 {
        change(group);
    }
}

/// 48 bytes of five codes each, 4 of four codes each (the fifth is 0), and the scale.
fn set_packed_ternary(bytes: &mut [u8], scale: [u8; 2]) {
    let fraction = |value: u32| (value * 256).div_ceil(243) as u8;
    for byte in &mut bytes[..48] {
        *byte = fraction((u32::from(*byte) * 243) >> 8);
    }
    for byte in &mut bytes[48..52] {
        *byte = fraction(((u32::from(*byte) * 81) >> 8) * 3);
    }
    set_scale(bytes, 52, scale);
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
