//! Numbers as a figure writes them.

/// Decimals that show a value with three digits, none above 100.
fn decimals(value: f64) -> usize {
    match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        0.0 => 0,
        // 0.0123: as many zeros as it has, and three digits after them.
        v => (2 - v.log10().floor() as i32).clamp(3, 5) as usize,
    }
}

/// Numbers outside are written by their power of ten.
const PLAIN: std::ops::Range<f64> = 0.001..999_999.5;

fn fixed(value: f64, decimals: usize) -> String {
    if value >= PLAIN.end || (value > 0.0 && decimals > 5) {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text.as_str(), None),
    };
    let mut grouped = String::with_capacity(text.len() + 4);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// A speed with three digits, or whole with grouped thousands: `79.6`, `612`, `1,240`.
///
/// The value is finite and not negative.
pub fn speed(value: f64) -> String {
    if value > 0.0 && value < PLAIN.start {
        return format!("{value:.2e}");
    }
    fixed(value, decimals(value))
}

/// A limit: as [`speed`], without empty decimals: `67`, `91.9`. It is not measured to a tenth.
pub fn limit(value: f64) -> String {
    let text = speed(value);
    if text.contains('e') || !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A deviation to stand after its mean: the mean's decimals, or as many as show one digit of it.
///
/// A deviation that is not zero never reads as zero: `612 ± 0.3`.
pub fn deviation(deviation: f64, mean: f64) -> String {
    if deviation == 0.0 {
        return "0".to_owned();
    }
    let first_digit = (-deviation.log10().floor()).max(0.0) as usize;
    if first_digit > decimals(mean) + 2 {
        return format!("{deviation:.0e}");
    }
    fixed(deviation, decimals(mean).max(first_digit))
}

/// A range: `560–670`, or one number where both ends read alike.
pub fn range(low: f64, high: f64) -> String {
    let places = decimals(high);
    let end = |value: f64| {
        if high < PLAIN.start {
            speed(value)
        } else {
            fixed(value, places)
        }
    };
    let (low, high) = (end(low), end(high));
    if low == high {
        high
    } else {
        format!("{low}–{high}")
    }
}

/// A number on an axis whose ticks are `step` apart.
pub fn tick(value: f64, step: f64) -> String {
    let places = (-step.log10().floor()).max(0.0) as usize;
    if value == 0.0 {
        return "0".to_owned();
    }
    fixed(value, places)
}

/// A file's size in powers of ten: `92 MB`, `1.07 GB`. The space does not break.
pub fn file_size(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (value, unit) = match bytes {
        b if b < 999.5 => (b, "B"),
        b if b < 999.5e3 => (b / 1e3, "kB"),
        b if b < 999.5e6 => (b / 1e6, "MB"),
        b if b < 999.5e9 => (b / 1e9, "GB"),
        b => (b / 1e12, "TB"),
    };
    let places = match value {
        _ if matches!(unit, "B" | "kB") => 0,
        v if v >= 99.95 || (unit == "MB" && v >= 9.95) => 0,
        v if v >= 9.995 || unit == "MB" => 1,
        _ => 2,
    };
    format!("{value:.places$}\u{a0}{unit}")
}

/// A whole number with its thousands apart: `4,096`.
pub fn count(value: f64) -> String {
    fixed(value.round(), 0)
}

/// A share as a percentage with as many digits as say something: `38 %`, `4.1 %`, `0.3 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = if percent.abs() < 9.95 { 1 } else { 0 };
    let text = format!("{percent:.places$}");
    format!("{}\u{a0}%", text.strip_suffix(".0").unwrap_or(&text))
}

/// A time in the unit that reads best: `0.84 ms`, `9.3 ms`, `700 ms`, `1.24 s`, `83 s`.
pub fn duration(ms: f64) -> String {
    let (value, unit) = if ms < 999.5 {
        (ms, "ms")
    } else {
        (ms / 1e3, "s")
    };
    let places = match value {
        v if v >= 99.95 || (unit == "ms" && v >= 9.95) => 0,
        v if v >= 9.995 || (unit == "ms" && v >= 0.995) => 1,
        v if v >= 0.01 || v == 0.0 => 2,
        _ => 4,
    };
    format!("{}\u{a0}{unit}", fixed(value, places))
}

/// A time with three digits, two decimals at most: `0.25 ms`, `8.40 ms`, `12.6 ms`, `1.17 s`.
pub fn time(ms: f64) -> String {
    let (value, unit) = time_parts(ms);
    let places = match value {
        v if v >= 0.01 || v == 0.0 => decimals(v).min(2),
        _ => decimals(value),
    };
    format!("{}\u{a0}{unit}", fixed(value, places))
}

/// A range of times, the unit once where both ends have one: `764 to 924 ms`.
pub fn time_range(low: f64, high: f64) -> String {
    let (from, to) = (time(low), time(high));
    if from == to {
        return to;
    }
    match time_parts(low).1 == time_parts(high).1 {
        true => format!(
            "{} to {to}",
            from.split('\u{a0}').next().unwrap_or_default()
        ),
        false => format!("{from} to {to}"),
    }
}

fn time_parts(ms: f64) -> (f64, &'static str) {
    if ms < 999.5 {
        (ms, "ms")
    } else {
        (ms / 1e3, "s")
    }
}

/// A whole number in words up to twelve: `four`.
pub fn in_words(value: f64) -> String {
    const WORDS: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let index = value.round() as usize;
    match WORDS.get(index.wrapping_sub(1)) {
        Some(word) => (*word).to_owned(),
        None => count(value),
    }
}

/// The same with a capital, to begin a sentence.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// How many times `ratio` is: `12 times`, `2 times`, `1.4 times`.
pub fn times(ratio: f64) -> String {
    if ratio >= 9.95 {
        return format!("{} times", fixed(ratio, 0));
    }
    let text = format!("{ratio:.1}");
    format!("{} times", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_shows_three_digits_at_every_boundary() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_123_4, "1.23e-4"),
            (0.001, "0.00100"),
            (0.0123, "0.0123"),
            (0.5, "0.500"),
            (1.0, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (48.94, "48.9"),
            (99.94, "99.9"),
            (99.96, "100"),
            (612.4, "612"),
            (999.6, "1,000"),
            (1_240.0, "1,240"),
            (999_999.0, "999,999"),
            (1_000_000.0, "1.00e6"),
            (1e300, "1.00e300"),
        ] {
            assert_eq!(speed(value), text, "{value}");
        }
    }

    #[test]
    fn a_limit_has_no_empty_decimals() {
        assert_eq!(limit(67.0), "67");
        assert_eq!(limit(91.93), "91.9");
        assert_eq!(limit(1.5), "1.5");
        assert_eq!(limit(1_240.0), "1,240");
        assert_eq!(limit(1e10), "1.00e10");
        assert_eq!(limit(0.0), "0");
    }

    #[test]
    fn a_deviation_takes_the_means_decimals() {
        assert_eq!(deviation(22.4, 612.0), "22");
        assert_eq!(deviation(2.61, 79.6), "2.6");
        assert_eq!(deviation(0.0, 79.6), "0");
    }

    #[test]
    fn a_small_deviation_never_reads_as_none() {
        assert_eq!(deviation(0.31, 612.0), "0.3");
        assert_eq!(deviation(0.004, 79.6), "0.004");
        assert_eq!(deviation(0.000_04, 79.6), "4e-5");
        assert_eq!(deviation(1e-9, 1e-6), "1e-9");
        assert_eq!(deviation(0.0009, 0.0412), "0.0009");
    }

    #[test]
    fn a_range_without_width_is_one_number() {
        assert_eq!(range(560.2, 670.4), "560–670");
        assert_eq!(range(48.2, 51.0), "48.2–51.0");
        assert_eq!(range(560.2, 560.3), "560");
        assert_eq!(range(1e-5, 2e-5), "1.00e-5–2.00e-5");
        assert_eq!(range(0.0, 8e5), "0–800,000");
    }

    #[test]
    fn ticks_carry_the_decimals_of_their_step() {
        assert_eq!(tick(200.0, 50.0), "200");
        assert_eq!(tick(0.2, 0.1), "0.2");
        assert_eq!(tick(0.15, 0.05), "0.15");
        assert_eq!(tick(0.0, 0.05), "0");
        assert_eq!(tick(12_000.0, 2_000.0), "12,000");
        assert_eq!(tick(2e-7, 1e-7), "2.00e-7");
    }

    #[test]
    fn file_sizes_are_powers_of_ten_at_every_boundary() {
        for (bytes, text) in [
            (0, "0\u{a0}B"),
            (999, "999\u{a0}B"),
            (1_000, "1\u{a0}kB"),
            (999_499, "999\u{a0}kB"),
            (999_500, "1.0\u{a0}MB"),
            (9_940_000, "9.9\u{a0}MB"),
            (91_700_000, "92\u{a0}MB"),
            (999_499_999, "999\u{a0}MB"),
            (1_070_000_000, "1.07\u{a0}GB"),
            (18_556_686_912, "18.6\u{a0}GB"),
            (671_000_000_000, "671\u{a0}GB"),
            (1_340_000_000_000, "1.34\u{a0}TB"),
        ] {
            assert_eq!(file_size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn a_time_is_in_the_unit_that_reads_best() {
        for (ms, text) in [
            (0.0, "0.00\u{a0}ms"),
            (0.843, "0.84\u{a0}ms"),
            (0.996, "1.0\u{a0}ms"),
            (9.32, "9.3\u{a0}ms"),
            (21.4, "21\u{a0}ms"),
            (999.4, "999\u{a0}ms"),
            (999.6, "1.00\u{a0}s"),
            (12_340.0, "12.3\u{a0}s"),
            (83_000.0, "83.0\u{a0}s"),
            (312_000.0, "312\u{a0}s"),
        ] {
            assert_eq!(duration(ms), text, "{ms}");
        }
    }

    #[test]
    fn a_precise_time_has_three_digits() {
        for (ms, text) in [
            (0.0, "0\u{a0}ms"),
            (0.0042, "0.00420\u{a0}ms"),
            (0.25, "0.25\u{a0}ms"),
            (8.4, "8.40\u{a0}ms"),
            (12.6, "12.6\u{a0}ms"),
            (836.4, "836\u{a0}ms"),
            (999.4, "999\u{a0}ms"),
            (999.6, "1.00\u{a0}s"),
            (14_200.0, "14.2\u{a0}s"),
            (312_000.0, "312\u{a0}s"),
        ] {
            assert_eq!(time(ms), text, "{ms}");
        }
        assert_eq!(time_range(764.0, 924.0), "764 to 924\u{a0}ms");
        assert_eq!(time_range(0.98e3, 1.2e3), "980\u{a0}ms to 1.20\u{a0}s");
        assert_eq!(time_range(8.0, 8.0), "8.00\u{a0}ms");
    }

    #[test]
    fn a_percentage_has_the_digits_that_say_something() {
        for (share, text) in [
            (0.38, "38"),
            (0.041, "4.1"),
            (0.0996, "10"),
            (0.012, "1.2"),
            (0.0, "0"),
        ] {
            assert_eq!(percent(share), format!("{text}\u{a0}%"), "{share}");
        }
    }

    #[test]
    fn whole_numbers_are_words_up_to_twelve() {
        assert_eq!(in_words(1.0), "one");
        assert_eq!(capital(&in_words(12.0)), "Twelve");
        assert_eq!(in_words(13.0), "13");
        assert_eq!(in_words(0.0), "0");
        assert_eq!(count(4_096.0), "4,096");
    }

    #[test]
    fn times_drop_an_empty_decimal() {
        assert_eq!(times(11.6), "12 times");
        assert_eq!(times(2.04), "2 times");
        assert_eq!(times(1.42), "1.4 times");
        assert_eq!(times(9.96), "10 times");
        assert_eq!(times(1_234.0), "1,234 times");
    }
}
