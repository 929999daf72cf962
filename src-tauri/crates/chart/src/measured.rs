//! Measured values, and when two of them differ.

use std::cmp::Ordering;

use crate::number;

/// A measured value: mean, spread and what it was made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// Mean of the samples.
    pub mean: f64,
    /// Standard deviation; unknown for one sample.
    pub deviation: Option<f64>,
    /// Each repetition in its order; empty where only the mean is known.
    pub samples: Vec<f64>,
}

/// An expected value and the range that it is expected in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The least difference that counts where both deviations are known, relative to the larger.
const LEAST: f64 = 0.02;
/// The same where one is not.
const LEAST_WITHOUT_DEVIATION: f64 = 0.10;
/// No machine is faster and no wait longer; a number above it is damaged.
const IMPOSSIBLE: f64 = 1e15;

/// A value that can be shown. An impossible one, a NaN or a negative one was not measured.
pub(crate) fn sound(value: f64) -> bool {
    (0.0..IMPOSSIBLE).contains(&value)
}

pub(crate) fn sound_measured(measured: &Measured) -> Option<Measured> {
    sound(measured.mean).then(|| Measured {
        mean: measured.mean,
        deviation: measured
            .deviation
            .filter(|deviation| sound(*deviation) && measured.samples.len() != 1),
        samples: measured
            .samples
            .iter()
            .copied()
            .filter(|sample| sound(*sample))
            .collect(),
    })
}

/// An expectation that can be shown; a value outside its range widens it.
pub(crate) fn sound_expected(expected: Expected) -> Option<Expected> {
    let Expected { value, low, high } = expected;
    let all = [value, low, high];
    all.into_iter().all(sound).then(|| Expected {
        value,
        low: all.into_iter().fold(f64::INFINITY, f64::min),
        high: all.into_iter().fold(0.0, f64::max),
    })
}

/// Whether `a` is clearly slower or faster than `b`: their whiskers do not touch, and the
/// difference is worth a word. `None` where there is no telling.
pub fn clearly(a: &Measured, b: &Measured) -> Option<Ordering> {
    let difference = (a.mean - b.mean).abs();
    let larger = a.mean.max(b.mean);
    let clear = match (a.deviation, b.deviation) {
        (Some(sa), Some(sb)) => difference > sa + sb && difference >= LEAST * larger,
        _ => difference >= LEAST_WITHOUT_DEVIATION * larger && larger > 0.0,
    };
    (clear && difference > 0.0).then(|| a.mean.total_cmp(&b.mean))
}

/// How much faster, and the word that leads to what: `12 times as fast` `as`, `9 % faster` `than`.
pub(crate) fn faster(fast: &Measured, slow: &Measured) -> (String, &'static str) {
    let ratio = fast.mean / slow.mean;
    if !ratio.is_finite() || ratio >= 1e6 {
        ("far faster".to_owned(), "than")
    } else if ratio >= 1.195 {
        (format!("{} as fast", number::times(ratio)), "as")
    } else {
        (
            format!("{:.0}\u{a0}% faster", (ratio - 1.0) * 100.0),
            "than",
        )
    }
}

/// The largest measured value with its deviation and samples.
pub(crate) fn reach(measured: &Measured) -> f64 {
    measured
        .samples
        .iter()
        .copied()
        .fold(measured.mean + measured.deviation.unwrap_or(0.0), f64::max)
}

/// A measured value in words: `268 ± 6 tok/s, 5 samples`.
pub(crate) fn in_words(measured: &Measured, unit: &str) -> String {
    let mut text = number::speed(measured.mean);
    if let Some(deviation) = measured.deviation {
        text.push_str(" ± ");
        text.push_str(&number::deviation(deviation, measured.mean));
    }
    text.push(' ');
    text.push_str(unit);
    match measured.samples.len() {
        0 => {}
        1 => text.push_str(", 1 sample"),
        n => text.push_str(&format!(", {n} samples")),
    }
    text
}
