//! What most of the time goes to, in one sentence.

use crate::number;
use crate::time::{Cause, by_cause};

use super::Prepared;

/// What the times of a phase are of.
const OF: [&str; 2] = ["a prompt’s", "a token’s"];

/// The cause that takes most in every row of a phase, its least and its most share.
fn largest(rows: &[Prepared], phase: usize) -> Option<(Cause, f64, f64)> {
    let mut found: Option<(Cause, f64, f64)> = None;
    for row in rows
        .iter()
        .filter(|row| !row.phases[phase].parts.is_empty())
    {
        let causes = by_cause(&row.phases[phase].parts);
        let (cause, _, share) = causes.into_iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
        found = Some(match found {
            None => (cause, share, share),
            Some((same, low, high)) if same == cause => (cause, low.min(share), high.max(share)),
            Some(_) => return None,
        });
    }
    found
}

fn span(low: f64, high: f64) -> String {
    let (low, high) = (number::percent(low), number::percent(high));
    if low == high {
        high
    } else {
        format!("{} to {high}", low.trim_end_matches("\u{a0}%"))
    }
}

fn subject_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Weights => "Weights take",
        Cause::Cache => "Attention and cache take",
        Cause::Fixed => "Fixed work takes",
    }
}

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], subject: &str) -> String {
    let one = |(cause, low, high): (Cause, f64, f64), phase: usize| {
        format!(
            "{} {} of {} expected time",
            subject_of(cause),
            span(low, high),
            OF[phase]
        )
    };
    match (largest(rows, 0), largest(rows, 1)) {
        (Some(prefill), Some(decode)) if prefill.0 == decode.0 => format!(
            "{} {} of a prompt’s expected time and {} of a token’s",
            subject_of(decode.0),
            span(prefill.1, prefill.2),
            span(decode.1, decode.2)
        ),
        (_, Some(decode)) => one(decode, 1),
        (Some(prefill), None) => one(prefill, 0),
        (None, None) if subject.is_empty() => "Where the expected time goes".to_owned(),
        (None, None) => format!("Where the expected time of {subject} goes"),
    }
}
