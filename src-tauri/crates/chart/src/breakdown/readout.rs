//! The data layer: each time in words, then its parts, its range, its samples.

use crate::data::{self, Mark, MarkKind};
use crate::number;
use crate::scene::Rect;

use super::draw::{Drawn, Section, Shown, in_words};
use super::{Prepared, Spent};

/// The panels and every mark.
pub fn data(rows: &[Prepared], sections: &[Section]) -> (Vec<data::Panel>, Vec<Mark>) {
    let (mut panels, mut marks) = (Vec::new(), Vec::new());
    for (index, section) in sections.iter().enumerate() {
        panels.push(data::Panel {
            id: section.look().name.to_owned(),
            unit: if section.unit > 1.0 { "s" } else { "ms" }.to_owned(),
            origin: section.axis.origin,
            scale: section.axis.scale(),
            end: section.axis.end,
            ticks: section.axis.ticks(),
            upward: false,
            logarithmic: false,
            across: None,
        });
        for drawn in &section.rows {
            marks.extend(of_row(&rows[drawn.row], drawn, section, index));
        }
    }
    (panels, marks)
}

fn of_row(row: &Prepared, drawn: &Drawn, section: &Section, panel: usize) -> Vec<Mark> {
    let spent = &row.phases[section.phase];
    let who = format!("{}, {}", row.spoken, section.look().name);
    let mark =
        |kind: MarkKind, area: Rect, text: String| Mark::at(kind, panel, drawn.row, area, text);
    let unit = section.unit;
    let mut marks = vec![headline(spent, drawn, &who, unit, mark)];
    marks.extend(drawn.shown.iter().map(|part| Mark {
        value: Some(part.ms / unit),
        part: Some(part.name.clone()),
        ..mark(
            MarkKind::Part,
            part.area,
            format!("{who}: {}", part_in_words(part)),
        )
    }));
    if let (Some(expected), Some(area)) = (spent.expected, drawn.band) {
        let [text, _] = in_words(&expected);
        marks.push(Mark {
            value: Some(expected.value / unit),
            low: Some(expected.low / unit),
            high: Some(expected.high / unit),
            ..mark(MarkKind::Band, area, format!("{who}: {text}"))
        });
    }
    if let (Some(measured), Some(bar)) = (&spent.measured, &drawn.measured) {
        let count = measured.samples.len();
        let samples = measured.samples.iter().zip(&bar.samples).enumerate();
        marks.extend(samples.map(|(i, (ms, area))| {
            let time = number::time(*ms);
            Mark {
                value: Some(ms / unit),
                repetition: Some(i + 1),
                ..mark(
                    MarkKind::Sample,
                    *area,
                    format!("{who}: {time}, sample {} of {count}", i + 1),
                )
            }
        }));
    }
    marks
}

/// The time in words with all that it is made of.
fn headline(
    spent: &Spent,
    drawn: &Drawn,
    who: &str,
    unit: f64,
    mark: impl Fn(MarkKind, Rect, String) -> Mark,
) -> Mark {
    let mut text = match &spent.measured {
        Some(measured) => format!("{who}: {}", number::time(measured.mean)),
        None => format!("{who}: not measured"),
    };
    match spent.measured.as_ref().map_or(0, |m| m.samples.len()) {
        0 => {}
        1 => text.push_str(", 1 sample"),
        n => text.push_str(&format!(", {n} samples")),
    }
    if let (Some(expected), false) = (&spent.expected, spent.parts.is_empty()) {
        let [full, _] = in_words(expected);
        let parts: Vec<String> = drawn.shown.iter().map(part_in_words).collect();
        text.push_str(&format!(", {full}: {}", parts.join("; ")));
    }
    match (&spent.measured, &drawn.measured) {
        (Some(measured), Some(bar)) => Mark {
            value: Some(measured.mean / unit),
            deviation: measured.deviation.map(|deviation| deviation / unit),
            samples: Some(measured.samples.len()),
            ..mark(MarkKind::Bar, bar.area, text)
        },
        _ => mark(MarkKind::Missing, drawn.stack, text),
    }
}

/// `weights Q4_K 71 %, 6.6 ms`; of several small parts each.
fn part_in_words(part: &Shown) -> String {
    let mut text = format!(
        "{} {}, {}",
        part.name,
        number::percent(part.share),
        number::time(part.ms)
    );
    if !part.of.is_empty() {
        let each: Vec<String> = part
            .of
            .iter()
            .map(|part| format!("{} {}", part.name, number::time(part.ms)))
            .collect();
        text.push_str(&format!(" ({})", each.join(", ")));
    }
    text
}
