//! The data layer of lines: row by row, panel by panel, from the first place to the last.

use crate::data::{Mark, MarkKind};
use crate::measured::{Measured, in_words};
use crate::number;
use crate::rows::Names;
use crate::scene::Rect;

use super::panel::{LineMarks, PanelView, PointMarks};
use super::{At, Line};

/// Half the side of the box that stands for a place without a measurement.
const MISSING: f64 = 5.0;

/// Every mark with its words.
pub fn marks(
    names: &[Names],
    views: &[PanelView<'_>],
    drawn: &[Vec<LineMarks>],
    place: fn(f64) -> String,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (row, name) in names.iter().enumerate() {
        for (index, (view, lines)) in views.iter().zip(drawn).enumerate() {
            for (line, drawn) in view.panel.lines.iter().zip(lines) {
                if line.row != row {
                    continue;
                }
                for (point, drawn) in line.points.iter().zip(&drawn.points) {
                    let who = who(name, names.len(), view, line);
                    let who = format!("{who} {}", place(point.place));
                    marks.extend(of_point(view, (index, row), line, point, drawn, &who));
                }
            }
        }
    }
    marks
}

/// `Q4_1, decode`, `decode of each user`.
fn who(name: &Names, rows: usize, view: &PanelView<'_>, line: &Line) -> String {
    let what = match line.part {
        Some(part) => format!("{}, {part},", view.panel.name),
        None => view.panel.name.to_owned(),
    };
    if rows > 1 {
        format!("{}, {what}", name.full())
    } else {
        what
    }
}

fn of_point(
    view: &PanelView<'_>,
    (panel, row): (usize, usize),
    line: &Line,
    point: &At,
    drawn: &PointMarks,
    who: &str,
) -> Vec<Mark> {
    let of = |mark: Mark| Mark {
        at: Some(point.place),
        part: line.part.map(str::to_owned),
        ..mark
    };
    let (Some(value), Some(area)) = (&point.value, drawn.mark) else {
        let (x, y) = drawn.place;
        let area = Rect::between(x, y, x, y).grown(MISSING, MISSING);
        let text = format!("{who}: not measured");
        return vec![of(Mark::at(MarkKind::Missing, panel, row, area, text))];
    };
    let unit = view.panel.unit;
    let text = format!("{who}: {}", in_words(value, unit));
    let mut marks = vec![of(Mark {
        value: Some(value.mean),
        deviation: value.deviation,
        samples: Some(value.samples.len()),
        ..Mark::at(MarkKind::Point, panel, row, area, text)
    })];
    marks.extend(samples(value, &drawn.samples).map(|(i, sample, area)| {
        let repetition = i + 1;
        let text = format!(
            "{who}: {} {unit}, sample {repetition} of {}",
            number::speed(sample),
            value.samples.len()
        );
        of(Mark {
            value: Some(sample),
            repetition: Some(repetition),
            ..Mark::at(MarkKind::Sample, panel, row, area, text)
        })
    }));
    marks
}

/// The samples that are drawn, with their numbers from 0.
fn samples<'a>(
    value: &'a Measured,
    areas: &'a [Rect],
) -> impl Iterator<Item = (usize, f64, Rect)> + 'a {
    value
        .samples
        .iter()
        .zip(areas)
        .enumerate()
        .map(|(i, (sample, area))| (i, *sample, *area))
}
