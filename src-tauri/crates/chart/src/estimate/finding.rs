//! How well expected and measured agree, in one sentence.

use crate::number;
use crate::speeds::Prepared;
use crate::text::{self, Weight};

/// A measured speed beside what was expected of it.
struct Pair {
    /// Measured / expected - 1.
    off: f64,
    within: bool,
}

/// The finding, or the subject where nothing was both measured and expected.
pub fn finding(rows: &[Prepared], subject: &str) -> String {
    let pairs: Vec<Pair> = rows
        .iter()
        .flat_map(|row| &row.phases)
        .filter_map(|phase| {
            let (measured, expected) = (phase.measured.as_ref()?, phase.expected?);
            (expected.value > 0.0).then(|| Pair {
                off: measured.mean / expected.value - 1.0,
                within: (expected.low..=expected.high).contains(&measured.mean),
            })
        })
        .collect();
    let Some(furthest) = pairs
        .iter()
        .max_by(|a, b| a.off.abs().total_cmp(&b.off.abs()))
    else {
        return plain(rows, subject);
    };
    let off = number::percent(furthest.off.abs());
    let within = pairs.iter().filter(|pair| pair.within).count();
    if within == pairs.len() {
        return match within {
            1 => format!("The measured speed is within {off} of what was expected"),
            2 => format!("Both measured speeds are within {off} of what was expected"),
            n => format!("All {n} measured speeds are within {off} of what was expected"),
        };
    }
    let side = if furthest.off < 0.0 {
        "slower"
    } else {
        "faster"
    };
    match (within, pairs.len()) {
        (0, 1) => format!("Measured {off} {side} than expected"),
        (some, of) => {
            format!("{some} of {of} measured speeds are as expected; the furthest is {off} {side}")
        }
    }
}

fn plain(rows: &[Prepared], subject: &str) -> String {
    let expected = rows
        .iter()
        .flat_map(|row| &row.phases)
        .any(|phase| phase.expected.is_some());
    let what = if expected {
        "Expected speed"
    } else {
        "What theory allows"
    };
    let subject = match rows {
        _ if !subject.is_empty() => subject.to_owned(),
        [row] => row.names.full(),
        rows => format!("{} models", rows.len()),
    };
    let subject = text::shorten(&subject, 440.0, 20.0, Weight::SemiBold);
    match expected {
        true => format!("{what} of {subject}"),
        false => format!("{what}: {subject}"),
    }
}
