//! Loops that a processor runs as fast as it can, chosen for it at run time.

/// Values that [`multiply_add`] works on: eight registers of the kind every x86 has since 2013.
pub const VALUES: usize = 64;

/// Adds up all words of `data`, wrapping: reads each cache line once, with the widest loads there
/// are and several sums at a time, so that one core can ask for as much as its share of memory
/// gives.
pub fn sum(data: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F.
            return unsafe { x86::sum_avx512(data) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { x86::sum_avx2(data) };
        }
    }
    sum_lanes::<32>(data)
}

/// `rounds` fused multiplications and additions on each value, `a = a * factor + term`.
pub fn multiply_add(values: &mut [f32; VALUES], rounds: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F.
            return unsafe { x86::multiply_add_avx512(values, rounds) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { x86::multiply_add_avx2(values, rounds) };
        }
    }
    multiply_add_lanes(values, rounds, plain);
}

/// As many independent sums as fill the widest registers the compiler may assume; it makes vectors
/// of them.
#[inline(always)]
fn sum_lanes<const LANES: usize>(data: &[u64]) -> u64 {
    let mut sums = [0_u64; LANES];
    let (blocks, rest) = data.as_chunks::<LANES>();
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter()
        .chain(rest)
        .fold(0, |sum, word| sum.wrapping_add(*word))
}

// Near 1 and near 0, so that the values stay finite and never become subnormal.
const FACTOR: f32 = 0.999_9;
const TERM: f32 = 0.000_1;

#[inline(always)]
fn multiply_add_lanes(values: &mut [f32; VALUES], rounds: u32, step: impl Fn(f32) -> f32) {
    // A copy of its own stays in registers.
    let mut a = *values;
    for _ in 0..rounds {
        for value in &mut a {
            *value = step(*value);
        }
    }
    *values = a;
}

/// Fused only where the processor does it: in software it takes a hundred times as long.
#[inline(always)]
fn plain(value: f32) -> f32 {
    if cfg!(target_arch = "aarch64") {
        value.mul_add(FACTOR, TERM)
    } else {
        value * FACTOR + TERM
    }
}

/// The same loops compiled for newer processors.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{FACTOR, TERM, VALUES};

    #[target_feature(enable = "avx512f")]
    pub fn sum_avx512(data: &[u64]) -> u64 {
        super::sum_lanes::<64>(data)
    }

    #[target_feature(enable = "avx2")]
    pub fn sum_avx2(data: &[u64]) -> u64 {
        super::sum_lanes::<32>(data)
    }

    #[target_feature(enable = "avx512f,fma")]
    pub fn multiply_add_avx512(values: &mut [f32; VALUES], rounds: u32) {
        super::multiply_add_lanes(values, rounds, |value| value.mul_add(FACTOR, TERM));
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn multiply_add_avx2(values: &mut [f32; VALUES], rounds: u32) {
        super::multiply_add_lanes(values, rounds, |value| value.mul_add(FACTOR, TERM));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_added_once() {
        for length in [0, 1, 63, 64, 65, 1_000] {
            let data: Vec<u64> = (0..length)
                .map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            let expected = data.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
            assert_eq!(sum(&data), expected);
            assert_eq!(sum_lanes::<32>(&data), expected);
        }
    }

    #[test]
    fn multiplying_and_adding_comes_to_the_same_on_every_path() {
        let mut fast = [2.0_f32; VALUES];
        let mut slow = fast;
        multiply_add(&mut fast, 1_000);
        multiply_add_lanes(&mut slow, 1_000, plain);
        // Fusing saves one rounding a round.
        assert!(
            (fast[0] - slow[0]).abs() < 1e-3,
            "{} and {}",
            fast[0],
            slow[0]
        );
        // a_n = 1 + (a_0 - 1) * 0.9999^n, and 0.9999^1000 = 0.904833.
        assert!((fast[0] - 1.904_83).abs() < 1e-3, "{}", fast[0]);
    }
}
