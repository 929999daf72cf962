//! The data layer: each wait in words, then its parts, its samples, and what was reused.

use crate::axis::Linear;
use crate::data::{self, Mark, MarkKind};
use crate::measured::Measured;
use crate::number;

use super::draw::{Drawn, Section};
use super::{Part, Prepared};

/// The panels (waits, and prompts beside them) and every mark.
pub fn data(rows: &[Prepared], sections: &[Section]) -> (Vec<data::Panel>, Vec<Mark>) {
    let (mut panels, mut marks) = (Vec::new(), Vec::new());
    for section in sections {
        let id = if section.loads { "start" } else { "prompt" };
        let unit = if section.unit > 1.0 { "s" } else { "ms" };
        let index = panels.len();
        panels.push(panel(id, unit, &section.axis));
        if let Some(tokens) = &section.tokens {
            panels.push(panel("tokens", "tokens", tokens));
        }
        for (i, drawn) in section.waits.iter().enumerate() {
            let row = section.first + i;
            marks.extend(of_wait(&rows[row], drawn, index, row, section.unit));
        }
    }
    (panels, marks)
}

fn panel(id: &str, unit: &str, axis: &Linear) -> data::Panel {
    data::Panel {
        id: id.to_owned(),
        unit: unit.to_owned(),
        origin: axis.origin,
        scale: axis.scale(),
        end: axis.end,
        ticks: axis.ticks(),
        upward: false,
        logarithmic: false,
        across: None,
    }
}

fn who(row: &Prepared) -> String {
    let mut who = row.names.label.clone();
    for detail in &row.names.details {
        who.push_str(", ");
        who.push_str(detail);
    }
    who
}

fn of_wait(row: &Prepared, drawn: &Drawn, panel: usize, index: usize, unit: f64) -> Vec<Mark> {
    let who = who(row);
    let (Some(total), Some(bar)) = (&row.total, &drawn.bar) else {
        let area = drawn.missing;
        let text = format!("{who}: not measured");
        return area
            .map(|area| Mark::at(MarkKind::Missing, panel, index, area, text))
            .into_iter()
            .collect();
    };
    let mut marks = vec![Mark {
        value: Some(total.mean / unit),
        deviation: total.deviation.map(|deviation| deviation / unit),
        samples: Some(total.samples.len()),
        ..Mark::at(
            MarkKind::Bar,
            panel,
            index,
            bar.area,
            headline(row, total, &who),
        )
    }];
    marks.extend(drawn.parts.iter().map(|(part, ms, area)| {
        let text = format!("{who}, {}: {}", part.words(), number::duration(*ms));
        Mark {
            value: Some(ms / unit),
            part: Some(part.words().to_owned()),
            ..Mark::at(MarkKind::Part, panel, index, *area, text)
        }
    }));
    let count = total.samples.len();
    marks.extend(
        total
            .samples
            .iter()
            .zip(&bar.samples)
            .enumerate()
            .map(|(i, (ms, area))| {
                let text = format!(
                    "{who}: {}, sample {} of {count}",
                    number::duration(*ms),
                    i + 1
                );
                Mark {
                    value: Some(ms / unit),
                    repetition: Some(i + 1),
                    ..Mark::at(MarkKind::Sample, panel, index, *area, text)
                }
            }),
    );
    if let Some([_, area]) = drawn.prompt.filter(|_| row.reused > 0) {
        let text = format!("{who}: {}", reused(row));
        marks.push(Mark {
            value: Some(row.reused as f64),
            ..Mark::at(MarkKind::Reused, panel + 1, index, area, text)
        });
    }
    marks
}

fn reused(row: &Prepared) -> String {
    format!(
        "{} of {} prompt tokens reused from the cache",
        number::count(row.reused as f64),
        number::count(row.prompt as f64)
    )
}

fn headline(row: &Prepared, total: &Measured, who: &str) -> String {
    let mut text = format!("{who}: first token after {}", number::duration(total.mean));
    match total.samples.len() {
        0 => {}
        1 => text.push_str(", 1 sample"),
        n => text.push_str(&format!(", {n} samples")),
    }
    let parts: Vec<String> = row
        .parts
        .iter()
        .filter(|(part, _)| *part != Part::FirstDecode)
        .map(|(part, ms)| format!("{} {}", part.words(), number::duration(*ms)))
        .collect();
    if !parts.is_empty() {
        text.push_str(&format!(": {}", parts.join(", ")));
    }
    if row.reused > 0 {
        text.push_str(&format!("; {}", reused(row)));
    }
    text
}
