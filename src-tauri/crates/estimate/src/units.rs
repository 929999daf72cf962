//! Quantities with their units. Numbers are carried exactly and formatted once, at the edge.
//!
//! GB and GB/s are powers of 10, KiB, MiB and GiB are powers of 2, and each is always written out.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A number of bytes.
///
/// Displayed in powers of 2 (`576 MiB`), as memory is; [`Bytes::decimal`] shows powers of 10
/// (`1.11 GB`), as files and bandwidths are.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// `count` of KiB, 2^10 bytes.
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// `count` of MiB, 2^20 bytes.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// `count` of GiB, 2^30 bytes.
    pub const fn gib(count: u64) -> Self {
        Self(count << 30)
    }

    /// Shown in powers of 10: `27.4 kB`, `98.2 MB`, `5.03 GB`.
    pub fn decimal(self) -> impl fmt::Display {
        Scaled {
            value: self.0 as f64,
            step: 1000.0,
            units: &["B", "kB", "MB", "GB", "TB", "PB", "EB"],
        }
    }

    /// Shown in powers of 2: `144 KiB`, `576 MiB`, `1.13 GiB`.
    pub fn binary(self) -> impl fmt::Display {
        Scaled {
            value: self.0 as f64,
            step: 1024.0,
            units: &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.binary().fmt(f)
    }
}

/// Saturates: a sum that does not fit 64 bits fits no machine either.
impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

/// How fast memory is read or written. Displayed in powers of 10: `102 GB/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(pub u64);

impl BytesPerSecond {
    /// From GB/s, 10^9 bytes per second. `None` unless it is a positive number.
    pub fn from_gb_s(gb_s: f64) -> Option<Self> {
        let bytes_s = (gb_s * 1e9).round();
        (bytes_s >= 1.0 && bytes_s <= u64::MAX as f64).then_some(Self(bytes_s as u64))
    }

    /// In GB/s.
    pub fn gb_s(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How often `bytes` can be read in a second; `None` where nothing is read.
    pub fn reads_of(self, bytes: Bytes) -> Option<TokensPerSecond> {
        (bytes.0 > 0).then(|| TokensPerSecond(self.0 as f64 / bytes.0 as f64))
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Scaled {
            value: self.0 as f64,
            step: 1000.0,
            units: &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"],
        }
        .fmt(f)
    }
}

/// Tokens per second, of prefill or of decode.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokensPerSecond(pub f64);

impl fmt::Display for TokensPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Scaled {
            value: self.0,
            step: f64::INFINITY,
            units: &["tok/s"],
        }
        .fmt(f)
    }
}

/// Floating-point operations; a multiply and an add count as two.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Flops(pub u64);

impl fmt::Display for Flops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Scaled {
            value: self.0 as f64,
            step: 1000.0,
            units: &["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"],
        }
        .fmt(f)
    }
}

/// A value in the largest unit it reaches, with three significant digits.
struct Scaled {
    value: f64,
    /// From one unit to the next.
    step: f64,
    units: &'static [&'static str],
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.value, 0);
        // Judged after rounding, so that 999.7 MB is shown as 1.00 GB and never as 1,000 MB.
        while unit + 1 < self.units.len() && rounded(value, decimals(value)) >= self.step {
            value /= self.step;
            unit += 1;
        }
        // The smallest unit of a count is whole.
        let decimals = if unit == 0 && self.units.len() > 1 {
            0
        } else {
            decimals(value)
        };
        let text = grouped(&format!("{:.decimals$}", rounded(value, decimals)));
        f.pad(&format!("{text} {}", self.units[unit]))
    }
}

/// Decimals that leave three significant digits, judged after rounding: 9.996 is 10.0, not 10.00.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    }
}

/// Halves go up: 68.25 is 68.3 (formatting alone would round a half to the even neighbour).
fn rounded(value: f64, decimals: usize) -> f64 {
    let scale = 10_f64.powi(decimals as i32);
    (value * scale).round() / scale
}

/// With a comma between groups of three digits before the point.
fn grouped(number: &str) -> String {
    let digits = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + digits / 3);
    for (at, c) in number.char_indices() {
        let after_a_digit = text.ends_with(|c: char| c.is_ascii_digit());
        if at < digits && after_a_digit && (digits - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_units_change_at_powers_of_1024() {
        let shown = |n| Bytes(n).binary().to_string();
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(1), "1 B");
        assert_eq!(shown(1023), "1,023 B");
        assert_eq!(shown(1024), "1.00 KiB");
        assert_eq!(shown(147_456), "144 KiB");
        assert_eq!(shown((1 << 20) - 1024), "1,023 KiB");
        assert_eq!(shown((1 << 20) - 1), "1.00 MiB");
        assert_eq!(shown(1 << 20), "1.00 MiB");
        assert_eq!(shown(576 << 20), "576 MiB");
        assert_eq!(shown((1 << 30) - (1 << 20)), "1,023 MiB");
        assert_eq!(shown((1 << 30) - 1), "1.00 GiB");
        assert_eq!(shown(1 << 30), "1.00 GiB");
        assert_eq!(shown(1152 << 20), "1.13 GiB");
        assert_eq!(shown(1 << 40), "1.00 TiB");
        assert_eq!(shown(1 << 50), "1.00 PiB");
        assert_eq!(shown(1 << 60), "1.00 EiB");
        assert_eq!(shown(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn decimal_units_change_at_powers_of_1000() {
        let shown = |n| Bytes(n).decimal().to_string();
        assert_eq!(shown(999), "999 B");
        assert_eq!(shown(1_000), "1.00 kB");
        assert_eq!(shown(999_499), "999 kB");
        assert_eq!(shown(999_500), "1.00 MB");
        assert_eq!(shown(1_000_000), "1.00 MB");
        assert_eq!(shown(999_499_999), "999 MB");
        assert_eq!(shown(999_500_000), "1.00 GB");
        assert_eq!(shown(1_110_000_000), "1.11 GB");
        assert_eq!(shown(1_000_000_000_000), "1.00 TB");
        assert_eq!(shown(u64::MAX), "18.4 EB");
    }

    #[test]
    fn three_digits_are_shown_and_rounding_never_adds_a_fourth() {
        let shown = |v| TokensPerSecond(v).to_string();
        assert_eq!(shown(0.004), "0.00 tok/s");
        assert_eq!(shown(1.239), "1.24 tok/s");
        assert_eq!(shown(9.994), "9.99 tok/s");
        assert_eq!(shown(9.996), "10.0 tok/s");
        assert_eq!(shown(39.42), "39.4 tok/s");
        assert_eq!(shown(99.94), "99.9 tok/s");
        assert_eq!(shown(99.96), "100 tok/s");
        assert_eq!(shown(787.2), "787 tok/s");
        assert_eq!(shown(1408.0), "1,408 tok/s");
        assert_eq!(shown(1_234_567.0), "1,234,567 tok/s");
    }

    #[test]
    fn bandwidth_is_shown_in_powers_of_ten() {
        let shown = |gb_s| BytesPerSecond::from_gb_s(gb_s).unwrap().to_string();
        assert_eq!(shown(68.25), "68.3 GB/s");
        assert_eq!(shown(102.0), "102 GB/s");
        assert_eq!(shown(999.4), "999 GB/s");
        assert_eq!(shown(1008.0), "1.01 TB/s");
        assert_eq!(shown(0.5), "500 MB/s");
    }

    #[test]
    fn a_bandwidth_is_a_positive_number() {
        assert_eq!(
            BytesPerSecond::from_gb_s(68.25),
            Some(BytesPerSecond(68_250_000_000))
        );
        for gb_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(BytesPerSecond::from_gb_s(gb_s), None, "{gb_s}");
        }
    }

    #[test]
    fn nothing_is_read_any_number_of_times() {
        assert_eq!(BytesPerSecond(1).reads_of(Bytes::ZERO), None);
        assert_eq!(
            BytesPerSecond(100).reads_of(Bytes(8)),
            Some(TokensPerSecond(12.5))
        );
    }

    #[test]
    fn flops_are_counted_in_powers_of_ten() {
        assert_eq!(Flops(999).to_string(), "999 FLOP");
        assert_eq!(Flops(16_400_000_000).to_string(), "16.4 GFLOP");
    }

    #[test]
    fn quantities_are_plain_numbers_in_json() {
        assert_eq!(json(Bytes(147_456)), "147456");
        assert_eq!(json(BytesPerSecond(102_000_000_000)), "102000000000");
        assert_eq!(json(TokensPerSecond(39.42)), "39.42");
        assert_eq!(json(Flops(7)), "7");
        assert_eq!(
            serde_json::from_str::<Bytes>("147456").unwrap(),
            Bytes(147_456)
        );
    }

    fn json(quantity: impl Serialize) -> String {
        serde_json::to_string(&quantity).unwrap()
    }

    #[test]
    fn a_sum_too_large_for_any_machine_stays_too_large() {
        let sum: Bytes = [Bytes(u64::MAX), Bytes::gib(1)].into_iter().sum();
        assert_eq!(sum, Bytes(u64::MAX));
        assert_eq!(Bytes::kib(1) + Bytes::mib(1), Bytes(1_049_600));
    }

    #[test]
    fn a_width_pads_the_whole() {
        assert_eq!(format!("{:>9}|", Bytes::mib(1)), " 1.00 MiB|");
    }
}
