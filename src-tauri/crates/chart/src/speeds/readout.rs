//! The data layer of the figure: marks in reading order, each with its words.

use crate::data::{Mark, MarkKind};
use crate::measured::{Expected, Measured, in_words};
use crate::number;
use crate::time::by_cause;

use super::ceiling::Ceilings;
use super::cell::Cell;
use super::panel::PanelView;
use super::{Form, Phase, Prepared, phase_name};

/// Every mark: row by row, prefill before decode; in a cell the bar, its ceiling, its band, the
/// parts of its strip, its samples.
pub fn marks(
    panels: &[PanelView; 2],
    rows: &[Prepared],
    cells: &[[Cell; 2]],
    ceilings: &[Ceilings; 2],
) -> Vec<Mark> {
    let several_groups = rows
        .iter()
        .any(|row| row.names.group != rows[0].names.group);
    let mut marks = Vec::new();
    for (r, (row, pair)) in rows.iter().zip(cells).enumerate() {
        for (p, (panel, cell)) in panels.iter().zip(pair).enumerate() {
            let phase = &row.phases[p];
            let name = match &row.names.group {
                Some(group) if several_groups => format!("{group} {}", row.names.label),
                _ => row.names.label.clone(),
            };
            let who = format!("{name}, {}", phase_name(p));
            marks.extend(headline(panel.form, phase, cell, (p, r), &who));
            if let (Some(value), Some(area)) = (phase.ceiling, ceilings[p].marks[r]) {
                let text = format!("{who}: ceiling {} tok/s", number::limit(value));
                marks.push(Mark {
                    value: Some(value),
                    beyond_axis: !panel.axis.holds(value),
                    ..Mark::at(MarkKind::Ceiling, p, r, area, text)
                });
            }
            if let (Some(expected), Some(area)) = (phase.expected, cell.band) {
                let text = format!("{who}: expected {}", expected_in_words(expected, " tok/s"));
                marks.push(Mark {
                    value: Some(expected.value),
                    low: Some(expected.low),
                    high: Some(expected.high),
                    beyond_axis: !panel.axis.holds(expected.high),
                    ..Mark::at(MarkKind::Band, p, r, area, text)
                });
            }
            marks.extend(parts(phase, cell, p, r, &who));
            marks.extend(samples(phase, cell, p, r, &who));
        }
    }
    marks
}

/// The bar in words, with what is predicted for it.
fn headline(
    form: Form,
    phase: &Phase,
    cell: &Cell,
    (panel, row): (usize, usize),
    who: &str,
) -> Option<Mark> {
    let predicted = predictions(phase);
    let Some(measured) = &phase.measured else {
        let text = format!("{who}: not measured{predicted}");
        return Some(Mark::at(MarkKind::Missing, panel, row, cell.missing?, text));
    };
    let mut text = format!("{who}: {}", in_words(measured, "tok/s"));
    text.push_str(&predicted);
    let kind = match form {
        Form::Bars => MarkKind::Bar,
        Form::Points => MarkKind::Point,
    };
    Some(Mark {
        value: Some(measured.mean),
        deviation: measured.deviation,
        samples: Some(measured.samples.len()),
        ..Mark::at(kind, panel, row, cell.bar?, text)
    })
}

fn predictions(phase: &Phase) -> String {
    let mut text = String::new();
    if let Some(ceiling) = phase.ceiling {
        text.push_str(&format!(", ceiling {}", number::limit(ceiling)));
    }
    if let Some(expected) = phase.expected {
        text.push_str(&format!(", expected {}", expected_in_words(expected, "")));
    }
    text
}

/// `118, 110–125 tok/s`.
fn expected_in_words(Expected { value, low, high }: Expected, unit: &str) -> String {
    let range = number::range(low, high);
    match number::speed(value) {
        value if value == range => format!("{value}{unit}"),
        value => format!("{value}{unit} ({range})"),
    }
}

/// The strip: each cause that is drawn, with all parts of it in words.
fn parts<'a>(
    phase: &'a Phase,
    cell: &'a Cell,
    panel: usize,
    row: usize,
    who: &'a str,
) -> impl Iterator<Item = Mark> + 'a {
    let shares = by_cause(&phase.parts);
    cell.strip.iter().filter_map(move |(cause, area)| {
        let (_, ms, share) = shares.iter().find(|(of, ..)| of == cause)?;
        let own = phase.parts.iter().filter(|part| part.cause == *cause);
        let named: Vec<String> = own
            .map(|part| format!("{} {}", part.name, number::duration(part.ms)))
            .collect();
        let text = format!(
            "{who}: {} {} of the expected time: {}",
            cause.words(),
            number::percent(*share),
            named.join(", ")
        );
        Some(Mark {
            value: Some(*ms),
            part: Some(cause.words().to_owned()),
            ..Mark::at(MarkKind::Part, panel, row, *area, text)
        })
    })
}

fn samples<'a>(
    phase: &'a Phase,
    cell: &'a Cell,
    panel: usize,
    row: usize,
    who: &'a str,
) -> impl Iterator<Item = Mark> + 'a {
    let values: &[f64] = match &phase.measured {
        Some(Measured { samples, .. }) => samples,
        None => &[],
    };
    let count = values.len();
    values
        .iter()
        .zip(&cell.samples)
        .enumerate()
        .map(move |(i, (value, area))| {
            let repetition = i + 1;
            let text = format!(
                "{who}: {} tok/s, sample {repetition} of {count}",
                number::speed(*value)
            );
            Mark {
                value: Some(*value),
                repetition: Some(repetition),
                ..Mark::at(MarkKind::Sample, panel, row, *area, text)
            }
        })
}
