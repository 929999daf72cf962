//! What the waits show, in one sentence.

use crate::measured::{Measured, clearly};
use crate::number;

use super::{Part, Prepared, Request};

/// A part that is at least this much of the wait decides it.
const DECIDES: f64 = 0.5;

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], subject: &str) -> String {
    reuse(rows)
        .or_else(|| starts(rows))
        .or_else(|| parts(rows))
        .unwrap_or_else(|| match subject.is_empty() {
            true => "Time to first token".to_owned(),
            false => format!("Time to first token of {subject}"),
        })
}

fn of(rows: &[Prepared], request: Request) -> Vec<(&Prepared, &Measured)> {
    rows.iter()
        .filter(|row| row.request == request)
        .filter_map(|row| Some((row, row.total.as_ref()?)))
        .collect()
}

/// `21 ms`, or `21 ms to 40 ms` of several.
fn span(waits: &[(&Prepared, &Measured)]) -> String {
    let means = || waits.iter().map(|(_, total)| total.mean);
    let (low, high) = (
        means().fold(f64::INFINITY, f64::min),
        means().fold(0.0, f64::max),
    );
    let (low, high) = (number::duration(low), number::duration(high));
    if low == high {
        high
    } else {
        format!("{low} to {high}")
    }
}

/// What a repeated prompt gains.
fn reuse(rows: &[Prepared]) -> Option<String> {
    let (new, again) = (of(rows, Request::New), of(rows, Request::Repeated));
    if new.is_empty() || new.len() != again.len() {
        return None;
    }
    if again.iter().all(|(row, _)| row.reused == 0) {
        return Some("A repeated prompt is read anew: nothing of it was reused".to_owned());
    }
    let faster = new
        .iter()
        .zip(&again)
        .all(|((_, new), (_, again))| again.mean < new.mean && clearly(new, again).is_some());
    faster.then(|| {
        format!(
            "A repeated prompt answers in {} instead of {}",
            span(&again),
            span(&new)
        )
    })
}

/// What a cold start costs.
fn starts(rows: &[Prepared]) -> Option<String> {
    let (cold, warm) = (of(rows, Request::Cold), of(rows, Request::Warm));
    if cold.is_empty() || cold.len() != warm.len() {
        return None;
    }
    let slower = cold
        .iter()
        .zip(&warm)
        .all(|((_, cold), (_, warm))| cold.mean > warm.mean && clearly(cold, warm).is_some());
    slower.then(|| {
        format!(
            "A cold start takes {} to the first token, a warm one {}",
            span(&cold),
            span(&warm)
        )
    })
}

/// What most of the only wait consists of.
fn parts(rows: &[Prepared]) -> Option<String> {
    let [row] = rows else {
        return None;
    };
    let total = row.total.as_ref()?;
    let (part, ms) = row
        .parts
        .iter()
        .filter(|(part, _)| *part != Part::FirstDecode)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = ms / total.mean;
    (total.mean > 0.0 && (DECIDES..=1.0).contains(&share)).then(|| {
        let what = match part {
            Part::Load => "Loading the model",
            Part::Context => "Making the context",
            Part::Tokenize => "Tokenizing",
            Part::Prefill => "Prefill",
            Part::FirstSample | Part::FirstDecode => "Sampling",
        };
        format!(
            "{what} is {} of the wait for the first token",
            number::percent(share)
        )
    })
}
