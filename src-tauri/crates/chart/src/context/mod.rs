//! The `context` figure: both speeds against the tokens that are in the cache already.

mod finding;

use crate::Error;
use crate::curves::{self, At, Curves, Line, Marker, Name, Panel, Spread, at_ends, sound_points};
use crate::figure::{Figure, Frame};
use crate::look::PHASES;
use crate::number;
use crate::rows::Names;
use crate::text;

/// What the figure shows. Places are depths in tokens, values tokens per second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was measured: model, samples, threads.
    pub subtitle: String,
    /// The prefill test in words: `reading 512 tokens`.
    pub prefill_test: Option<String>,
    /// The decode test in words: `writing 128 tokens`.
    pub decode_test: Option<String>,
    /// A line each.
    pub series: Vec<ContextSeries>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// A model under one choice of settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContextSeries {
    /// What it is called.
    pub name: Name,
    /// Reading at each depth.
    pub prefill: Vec<At>,
    /// Writing at each depth.
    pub decode: Vec<At>,
}

/// A series made fit to draw.
struct Prepared {
    names: Names,
    phases: [Vec<At>; 2],
}

/// A depth in words.
fn in_words(depth: f64) -> String {
    if depth == 0.0 {
        return "with an empty cache".to_owned();
    }
    format!("at a depth of {} tokens", number::count(depth))
}

/// Draws the figure: prefill above decode, a line for each series.
///
/// Errors: [`Error::Empty`] where nothing was measured.
pub fn context(input: &Context, frame: &Frame) -> Result<Figure, Error> {
    let rows: Vec<Prepared> = input
        .series
        .iter()
        .map(|series| Prepared {
            names: series.name.names(),
            phases: [sound_points(&series.prefill), sound_points(&series.decode)],
        })
        .collect();
    let names: Vec<Names> = rows.iter().map(|row| row.names.clone()).collect();
    let ends = at_ends(&names);
    let tests = [&input.prefill_test, &input.decode_test];
    let panels = [0, 1].map(|phase| {
        let look = &PHASES[phase];
        let test = tests[phase].as_deref().and_then(text::filled);
        Panel {
            id: look.name,
            heading: look.heading,
            name: look.name,
            shape: look.shape,
            ink: look.ink,
            note: match test {
                Some(test) => format!("tokens per second, {test}"),
                None => "tokens per second".to_owned(),
            },
            unit: "tok/s",
            lines: rows
                .iter()
                .zip(&ends)
                .enumerate()
                .filter(|(_, (row, _))| !row.phases[phase].is_empty())
                .map(|(index, (row, end))| Line {
                    row: index,
                    part: None,
                    name: end.clone(),
                    marker: Marker::of(index),
                    points: row.phases[phase].clone(),
                })
                .collect(),
            is_course: false,
        }
    });
    let curves = Curves {
        kind: "context",
        title: finding::finding(&rows, &names, &text::clean(&input.subject)),
        subtitle: &input.subtitle,
        footer: &input.footer,
        names: &names,
        panels: panels.into(),
        spread: Spread::Doubling,
        axis_title: "depth: tokens in the cache already",
        across: "depth",
        in_words,
    };
    curves::draw(curves, frame)
}
