//! The data layer: row by row, from one token per step to many.

use crate::data::{Mark, MarkKind};
use crate::measured::in_words;
use crate::number;
use crate::scene::Rect;

use super::draw::{DrawnStep, Plot};
use super::labels::{per_step, tokens_per_second};
use super::{Limit, Prepared, RooflineStep};

/// Half the side of the box that stands for a place on a limit.
const PLACE: f64 = 5.0;

/// Every mark with its words.
pub fn marks(plot: &Plot, rows: &[Prepared], drawn: &[Vec<DrawnStep>]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (index, (row, drawn)) in rows.iter().zip(drawn).enumerate() {
        for (step, drawn) in row.steps.iter().zip(drawn) {
            let mut who = per_step(step.tokens);
            if rows.len() > 1 {
                who = format!("{}, {who}", row.names.full());
            }
            let of = |mark: Mark| Mark {
                at: Some(step.intensity),
                part: Some(per_step(step.tokens)),
                ..mark
            };
            marks.extend(
                of_step(plot, (index, row), step, drawn, &who)
                    .into_iter()
                    .map(of),
            );
        }
    }
    marks
}

fn of_step(
    plot: &Plot,
    (index, row): (usize, &Prepared),
    step: &RooflineStep,
    drawn: &DrawnStep,
    who: &str,
) -> Vec<Mark> {
    let (x, y) = drawn.place;
    let spot = |x: f64, y: f64| Rect::between(x, y, x, y).grown(PLACE, PLACE);
    let mut told = Vec::new();
    if let Some(expected) = step.expected {
        told.push(format!(
            "expected {} ({})",
            number::speed(expected.value),
            number::range(expected.low, expected.high)
        ));
    }
    if let Some((value, limit)) = row.limit(step.intensity) {
        told.push(format!("{} {}", of_limit(limit), number::limit(value)));
    }
    told.push(format!("{} FLOP/byte", number::limit(step.intensity)));
    let told = told.join(", ");
    let mut marks = Vec::new();
    match (&step.measured, drawn.measured) {
        (Some(measured), Some(area)) => {
            let mut text = format!("{who}: {}", in_words(measured, "GFLOP/s"));
            if let Some(speed) = tokens_per_second(step, measured.mean) {
                text.push_str(&format!(", {} tok/s", number::speed(speed)));
            }
            marks.push(Mark {
                value: Some(measured.mean),
                deviation: measured.deviation,
                samples: Some(measured.samples.len()),
                ..Mark::at(MarkKind::Point, 0, index, area, format!("{text}, {told}"))
            });
        }
        _ => {
            let area = drawn.expected.unwrap_or_else(|| spot(x, y));
            let text = format!("{who}: not measured, {told}");
            marks.push(Mark::at(MarkKind::Missing, 0, index, area, text));
        }
    }
    if let Some((value, limit)) = row.limit(step.intensity) {
        let area = spot(x, plot.upward.at(value));
        let text = format!(
            "{who}: {} {} GFLOP/s",
            of_limit(limit),
            number::limit(value)
        );
        marks.push(Mark {
            value: Some(value),
            beyond_axis: !plot.upward.holds(value),
            ..Mark::at(MarkKind::Ceiling, 0, index, area, text)
        });
    }
    if let (Some(expected), Some(area)) = (step.expected, drawn.band) {
        let mut text = format!(
            "{who}: expected {} GFLOP/s ({})",
            number::speed(expected.value),
            number::range(expected.low, expected.high)
        );
        if let Some(speed) = tokens_per_second(step, expected.value) {
            text.push_str(&format!(", {} tok/s", number::speed(speed)));
        }
        marks.push(Mark {
            value: Some(expected.value),
            low: Some(expected.low),
            high: Some(expected.high),
            ..Mark::at(MarkKind::Band, 0, index, area, text)
        });
    }
    marks
}

fn of_limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "memory allows",
        Limit::Arithmetic => "arithmetic allows",
    }
}
