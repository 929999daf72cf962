//! Where the limit changes, in one sentence.

use crate::curves::in_title;
use crate::number;
use crate::rows::Names;
use crate::text::{self, Weight};

use super::Prepared;

/// Names that take more px than this together are left to the plot.
const NAMES: f64 = 260.0;

/// Where arithmetic becomes the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    /// At so many tokens, a whole number.
    At(f64),
    /// From the first token on.
    Always,
    /// Not up to so many tokens.
    Never(u64),
}

fn change(row: &Prepared) -> Option<Change> {
    let (ridge, last) = (row.ridge()?, row.steps.last()?);
    let first = row.steps.first()?;
    if ridge <= first.intensity && first.tokens == 1 {
        return Some(Change::Always);
    }
    if ridge > last.intensity {
        return Some(Change::Never(last.tokens));
    }
    row.ridge_tokens.map(|tokens| Change::At(tokens.ceil()))
}

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], subject: &str) -> String {
    let found = match rows {
        [row] => change(row).map(single),
        rows => several(rows),
    };
    found.unwrap_or_else(|| match subject.is_empty() {
        true => "Speed of arithmetic and work per byte".to_owned(),
        false => format!("Speed of arithmetic and work per byte of {subject}"),
    })
}

fn single(change: Change) -> String {
    match change {
        Change::At(tokens) if tokens <= 1.0 => single(Change::Always),
        Change::At(tokens) => format!(
            "{} tokens per step are enough to move the limit from memory to arithmetic",
            number::capital(&number::in_words(tokens))
        ),
        Change::Always => "Arithmetic is the limit from the first token on".to_owned(),
        Change::Never(tokens) => format!(
            "Reading memory is the limit up to {} tokens per step",
            number::count(tokens as f64)
        ),
    }
}

/// The series at which the limit changes first and last.
fn several(rows: &[Prepared]) -> Option<String> {
    let names: Vec<Names> = rows.iter().map(|row| row.names.clone()).collect();
    let mut at = Vec::new();
    for (row, name) in rows.iter().zip(&names) {
        match change(row)? {
            Change::At(tokens) => at.push((tokens, in_title(name, &names))),
            Change::Always => at.push((1.0, in_title(name, &names))),
            Change::Never(_) => return None,
        }
    }
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((least, first), (most, last)) = (at.first()?, at.last()?);
    let (least, most) = (number::count(*least), number::count(*most));
    if least == most {
        return Some(format!(
            "The limit moves from memory to arithmetic at {most} tokens per step in each"
        ));
    }
    let names = text::width(&format!("{first}{last}"), 20.0, Weight::SemiBold);
    if names > NAMES {
        return Some(format!(
            "The limit moves from memory to arithmetic at {least} to {most} tokens per step"
        ));
    }
    Some(format!(
        "The limit moves from memory to arithmetic at {least} ({first}) to {most} ({last}) tokens \
         per step"
    ))
}
