//! What a machine holds, in one sentence.

use crate::curves::{At, Line, Marker, ends, in_title};
use crate::look::PHASES;
use crate::number;
use crate::rows::Names;

use super::{Prepared, length};

/// A change below this is what speeds vary by anyway.
const LEAST: f64 = 0.02;

/// What the last fifth has of the first.
fn held(points: &[At]) -> Option<f64> {
    let line = Line {
        row: 0,
        part: None,
        name: String::new(),
        marker: Marker::Dot,
        points: points.to_vec(),
    };
    let [first, last] = ends(&line)?;
    (first.mean > 0.0).then(|| last.mean / first.mean)
}

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], names: &[Names], unit: f64, subject: &str) -> String {
    let after = rows
        .iter()
        .flat_map(|row| row.phases.iter().flatten())
        .map(|point| point.place)
        .fold(0.0, f64::max);
    let after = length(after, unit);
    let found = match rows {
        [row] => single(row, &after),
        rows => several(rows, names, &after),
    };
    found.unwrap_or_else(|| match subject.is_empty() {
        true => "Speed over time".to_owned(),
        false => format!("Speed of {subject} over time"),
    })
}

fn single(row: &Prepared, after: &str) -> Option<String> {
    let after = number::capital(&format!("after {after}"));
    let [prefill, decode] = [0, 1].map(|phase| held(&row.phases[phase]));
    let holds = |share: f64| share >= 1.0 - LEAST;
    Some(match (prefill, decode) {
        (Some(p), Some(d)) if holds(p) && holds(d) => {
            format!("{after} both speeds are what they were")
        }
        (Some(p), Some(d)) => format!(
            "{after} prefill holds {} and decode {} of its first speed",
            number::percent(p),
            number::percent(d)
        ),
        (Some(share), None) => alone(0, share, &after),
        (None, Some(share)) => alone(1, share, &after),
        (None, None) => return None,
    })
}

fn alone(phase: usize, share: f64, after: &str) -> String {
    let name = PHASES[phase].name;
    if share >= 1.0 - LEAST {
        format!("{after} {name} is what it was")
    } else {
        format!(
            "{after} {name} holds {} of its first speed",
            number::percent(share)
        )
    }
}

fn several(rows: &[Prepared], names: &[Names], after: &str) -> Option<String> {
    let phase = [1, 0]
        .into_iter()
        .find(|phase| rows.iter().all(|row| held(&row.phases[*phase]).is_some()))?;
    let mut shares = Vec::new();
    for (row, name) in rows.iter().zip(names) {
        shares.push((held(&row.phases[phase])?, in_title(name, names)));
    }
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((least, falls), (most, keeps)) = (shares.first()?, shares.last()?);
    Some(format!(
        "{} {} holds {} ({falls}) to {} ({keeps}) of its first speed",
        number::capital(&format!("after {after}")),
        PHASES[phase].name,
        number::percent(*least),
        number::percent(*most)
    ))
}
