//! The data layer: row by row, column by column; a bar, then its samples.

use crate::data::{Mark, MarkKind};
use crate::number;
use crate::rows::Names;

use super::column::{Column, Drawn};

/// Every mark with its words.
pub fn marks(names: &[&Names], columns: &[Column], drawn: &[Drawn]) -> Vec<Mark> {
    let several = names.iter().any(|name| name.group != names[0].group);
    let mut marks = Vec::new();
    for (row, name) in names.iter().enumerate() {
        for (panel, (column, drawn)) in columns.iter().zip(drawn).enumerate() {
            let name = if several {
                name.full()
            } else {
                name.label.clone()
            };
            let who = format!("{name}, {}", column.heading.to_lowercase());
            let place = &drawn.cells[row];
            let (Some(cell), Some(bar)) = (&column.cells[row], &place.bar) else {
                let text = format!("{who}: not measured");
                marks.push(Mark::at(MarkKind::Missing, panel, row, place.missing, text));
                continue;
            };
            marks.push(Mark {
                value: Some(cell.bar.mean),
                deviation: cell.bar.deviation,
                samples: Some(cell.bar.samples.len()),
                ..Mark::at(
                    MarkKind::Bar,
                    panel,
                    row,
                    bar.area,
                    format!("{who}: {}", cell.words),
                )
            });
            let count = cell.bar.samples.len();
            let samples = cell.bar.samples.iter().zip(&bar.samples).enumerate();
            marks.extend(samples.map(|(i, (value, area))| {
                let text = format!(
                    "{who}: {} {}, sample {} of {count}",
                    number::speed(*value),
                    column.unit,
                    i + 1
                );
                Mark {
                    value: Some(*value),
                    repetition: Some(i + 1),
                    ..Mark::at(MarkKind::Sample, panel, row, *area, text)
                }
            }));
        }
    }
    marks
}
