//! The `breakdown` figure: where the time of a prompt and of a token goes.

mod draw;
mod finding;
mod readout;

use crate::Error;
use crate::curves::{Name, spoken};
use crate::data::{self, Data};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::look::PHASES;
use crate::measured::{Expected, Measured, sound_expected, sound_measured};
use crate::rows::{Names, label_column};
use crate::scene::Scene;
use crate::text;
use crate::time::{TimePart, sound_parts, total};
use draw::Section;

/// What the figure shows. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Breakdown {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was estimated, and what was measured beside it.
    pub subtitle: String,
    /// What prefill's times are of: `one prompt of 512 tokens`.
    pub prefill_of: String,
    /// What decode's times are of: `one token`.
    pub decode_of: String,
    /// Models from top to bottom.
    pub rows: Vec<BreakdownRow>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// A model under one choice of settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BreakdownRow {
    /// What it is called.
    pub name: Name,
    /// Reading a prompt.
    pub prefill: Spent,
    /// Writing a token.
    pub decode: Spent,
}

/// Time that is expected to be spent, and that was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spent {
    /// What the expected time is made of; empty where none is expected.
    pub parts: Vec<TimePart>,
    /// The expected time with its range. Where it is not the parts' sum, since own runs corrected
    /// it, the parts are scaled to it.
    pub expected: Option<Expected>,
    /// What was measured.
    pub measured: Option<Measured>,
}

/// A row made fit to draw.
#[derive(Debug, Clone)]
struct Prepared {
    names: Names,
    /// The name in one, for read-outs.
    spoken: String,
    phases: [Spent; 2],
}

fn prepare(input: &Breakdown) -> Vec<Prepared> {
    let all: Vec<Names> = input.rows.iter().map(|row| row.name.names()).collect();
    input
        .rows
        .iter()
        .zip(&all)
        .map(|(row, names)| Prepared {
            names: Names {
                group: None,
                label: match all.iter().any(|other| other.group != names.group) {
                    true => spoken(names, &all),
                    false => names.label.clone(),
                },
                details: names.details.clone(),
            },
            spoken: names.full(),
            phases: [&row.prefill, &row.decode].map(spent),
        })
        .collect()
}

fn spent(spent: &Spent) -> Spent {
    let mut parts = sound_parts(&spent.parts);
    let sum = total(&parts);
    let expected = spent.expected.and_then(sound_expected);
    if let Some(expected) = expected.filter(|_| sum > 0.0) {
        for part in &mut parts {
            part.ms *= expected.value / sum;
        }
        parts.retain(|part| part.ms > 0.0);
    }
    Spent {
        expected: expected.or((sum > 0.0).then_some(Expected {
            value: sum,
            low: sum,
            high: sum,
        })),
        parts,
        measured: spent.measured.as_ref().and_then(sound_measured),
    }
}

/// Draws the figure: prefill above decode, a stacked bar of expected time for each row, and where
/// the measured time lies.
///
/// Rows of a section are those with a time in it. Errors: [`Error::Empty`] where no time is
/// expected.
pub fn breakdown(input: &Breakdown, frame: &Frame) -> Result<Figure, Error> {
    let rows = prepare(input);
    let has_parts = |phase: usize| rows.iter().any(|row| !row.phases[phase].parts.is_empty());
    if !has_parts(0) && !has_parts(1) {
        return Err(Error::Empty);
    }
    let title = finding::finding(&rows, &text::clean(&input.subject));
    let subtitle = text::clean(&input.subtitle);
    let statements: Vec<String> = input.footer.iter().map(|line| text::clean(line)).collect();
    let width = frame.inner_width();
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &title, &subtitle, width);

    let names: Vec<&Names> = rows.iter().map(|row| &row.names).collect();
    let left = label_column(&names, width);
    let of = [&input.prefill_of, &input.decode_of];
    let mut top = header + 44.0;
    let mut sections = Vec::new();
    for (phase, of) in of.into_iter().enumerate().filter(|(i, _)| has_parts(*i)) {
        let section = Section::draw(
            &mut scene,
            &rows,
            phase,
            &text::clean(of),
            (top, left, width),
        );
        top = section.last + 38.0;
        sections.push(section);
    }
    let last = sections.last().map_or(header, |section| section.last);
    let without: Vec<String> = [0, 1]
        .into_iter()
        .filter(|phase| !has_parts(*phase))
        .map(|phase| format!("Of {} no time is expected.", PHASES[phase].name))
        .collect();
    let last = draw::explain(&mut scene, &rows, &sections, without, (last, width));
    let height = layout::footer(&mut scene, &statements, last, width);
    let (panels, marks) = readout::data(&rows, &sections);
    let data = Data {
        kind: "breakdown".to_owned(),
        width,
        height,
        title,
        subtitle,
        footer: statements,
        panels,
        rows: names.iter().map(|names| names.data()).collect(),
        marks: data::numbered(marks),
    };
    Figure::draw(&scene, data, frame.scale())
}
