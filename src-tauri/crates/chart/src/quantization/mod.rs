//! The `quantization` figure: both speeds of each quantization, and what they cost in quality.

mod column;
mod finding;
mod readout;

use crate::Error;
use crate::data::{self, Data};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::look::{NOTE, PHASES};
use crate::measured::{Measured, sound, sound_measured};
use crate::number;
use crate::palette::Role;
use crate::rows::{Geometry, Names};
use crate::scene::{Label, Scene};
use crate::text::{self, Weight};
use column::{Cell, Column};

/// What the figure shows. Speeds are tokens per second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Quantizations {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was measured: model, tests, samples, threads, text.
    pub subtitle: String,
    /// The quantizations from top to bottom, smallest file first.
    pub rows: Vec<QuantizationRow>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// One quantization.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuantizationRow {
    /// The model. Where there is more than one, each gets a heading.
    pub group: Option<String>,
    /// The quantization.
    pub label: String,
    /// Size of its file.
    pub file_bytes: Option<u64>,
    /// What else differs.
    pub detail: Option<String>,
    /// Reading the prompt.
    pub prefill: Option<Measured>,
    /// Writing the answer.
    pub decode: Option<Measured>,
    /// How well it predicts a text.
    pub quality: Option<Quality>,
}

/// How well a text is predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// exp of the mean negative log-likelihood; lower is better.
    pub perplexity: f64,
    /// Its standard error.
    pub perplexity_error: Option<f64>,
    /// How far its predictions are from the base model's; `None` = not measured.
    pub divergence: Option<Divergence>,
}

/// How far predictions are from those of the base model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Divergence {
    /// It is the base model.
    Base,
    /// Mean Kullback-Leibler divergence in nats, and its standard error.
    Nats {
        /// Mean.
        mean: f64,
        /// Standard error.
        error: f64,
    },
}

impl Divergence {
    fn is_sound(&self) -> bool {
        match self {
            Self::Base => true,
            Self::Nats { mean, error } => sound(*mean) && sound(*error),
        }
    }
}

/// A row made fit to draw.
#[derive(Debug, Clone)]
struct Prepared {
    names: Names,
    file_bytes: Option<u64>,
    speeds: [Option<Measured>; 2],
    quality: Option<Quality>,
}

fn prepare(row: &QuantizationRow) -> Prepared {
    let quality = row
        .quality
        .as_ref()
        .filter(|quality| sound(quality.perplexity) && quality.perplexity > 0.0);
    Prepared {
        names: Names::new(
            row.group.as_deref(),
            &row.label,
            row.file_bytes,
            row.detail.as_deref(),
        ),
        file_bytes: row.file_bytes,
        speeds: [&row.prefill, &row.decode].map(|speed| speed.as_ref().and_then(sound_measured)),
        quality: quality.map(|quality| Quality {
            perplexity: quality.perplexity,
            perplexity_error: quality.perplexity_error.filter(|error| sound(*error)),
            divergence: quality.divergence.filter(Divergence::is_sound),
        }),
    }
}

/// A perplexity: `24.13`, `8.214`, `412.6`.
fn perplexity(value: f64) -> String {
    let places = match value {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => return number::speed(value),
    };
    format!("{value:.places$}")
}

/// How much higher a perplexity is than the lowest of its model, as a share.
fn above_lowest(rows: &[Prepared], index: usize) -> Option<f64> {
    let lowest = rows
        .iter()
        .filter(|row| row.names.group == rows[index].names.group)
        .filter_map(|row| Some(row.quality.as_ref()?.perplexity))
        .fold(f64::INFINITY, f64::min);
    Some(rows[index].quality.as_ref()?.perplexity / lowest - 1.0)
}

/// Draws the figure: prefill, decode, and perplexity and divergence where they were measured.
///
/// Errors: [`Error::Empty`] without anything measured.
pub fn quantization(input: &Quantizations, frame: &Frame) -> Result<Figure, Error> {
    let rows: Vec<Prepared> = input.rows.iter().map(prepare).collect();
    if rows.is_empty() {
        return Err(Error::Empty);
    }
    let title = finding::finding(&rows, &text::clean(&input.subject));
    let subtitle = text::clean(&input.subtitle);
    let statements: Vec<String> = input.footer.iter().map(|line| text::clean(line)).collect();
    let (columns, without): (Vec<Column>, Vec<Column>) =
        columns(&rows).into_iter().partition(Column::has_values);
    if columns.is_empty() {
        return Err(Error::Empty);
    }

    let width = frame.inner_width().max(least_width(columns.len()));
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &title, &subtitle, width);
    let below = layout::footer_height(&statements, width);
    let names: Vec<&Names> = rows.iter().map(|row| &row.names).collect();
    let geometry = Geometry::new(
        &names,
        columns.len(),
        false,
        (width, frame.inner_height()),
        header,
        below,
    );
    geometry.draw_names(&mut scene, &names);
    let drawn: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| column.draw(&mut scene, index, &geometry))
        .collect();
    let last = explain(&mut scene, &drawn, &without, &geometry);
    let height = layout::footer(&mut scene, &statements, last, width);
    let data = Data {
        kind: "quantization".to_owned(),
        width,
        height,
        title,
        subtitle,
        footer: statements,
        panels: columns
            .iter()
            .zip(&drawn)
            .map(|(column, drawn)| column.data(drawn))
            .collect(),
        rows: names.iter().map(|names| names.data()).collect(),
        marks: data::numbered(readout::marks(&names, &columns, &drawn)),
    };
    Figure::draw(&scene, data, frame.scale())
}

/// The speeds, and what was found about quality.
fn columns(rows: &[Prepared]) -> Vec<Column> {
    let mut columns: Vec<Column> = [0, 1]
        .map(|phase| {
            let look = &PHASES[phase];
            Column {
                id: look.name,
                heading: look.heading,
                title: "tok/s",
                unit: "tok/s",
                shape: look.shape,
                ink: look.ink,
                cells: rows
                    .iter()
                    .map(|row| row.speeds[phase].clone().map(Cell::speed))
                    .collect(),
            }
        })
        .into();
    let quality = |id, heading, title, unit, cells| Column {
        id,
        heading,
        title,
        unit,
        shape: Role::InkThird,
        ink: Role::Ink,
        cells,
    };
    if rows.iter().any(|row| row.quality.is_some()) {
        let cells = rows
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let quality = row.quality.as_ref()?;
                Some(Cell::perplexity(quality, above_lowest(rows, index)?))
            })
            .collect();
        columns.push(quality(
            "perplexity",
            "Perplexity",
            "% above lowest",
            "%",
            cells,
        ));
    }
    let divergence = |row: &Prepared| row.quality.as_ref()?.divergence;
    if rows.iter().any(|row| divergence(row).is_some()) {
        let cells = rows
            .iter()
            .map(|row| divergence(row).map(Cell::divergence))
            .collect();
        columns.push(quality(
            "divergence",
            "Divergence",
            "nats, KL",
            "nats",
            cells,
        ));
    }
    columns
}

/// The width at which a value and its deviation still fit above a bar, for so many columns.
fn least_width(columns: usize) -> f64 {
    let columns = columns as f64;
    100.0 + columns * 92.0 + (columns - 1.0) * 32.0
}

/// Says below the axes what whiskers and dots are, and which speed has no column; returns the last
/// baseline.
fn explain(
    scene: &mut Scene,
    drawn: &[column::Drawn],
    without: &[Column],
    geometry: &Geometry,
) -> f64 {
    let bars = || {
        drawn
            .iter()
            .flat_map(|column| &column.cells)
            .filter_map(|cell| cell.bar.as_ref())
    };
    let mut words: Vec<String> = Vec::new();
    if bars().any(|bar| bar.whisker) {
        words.push("Line: ± 1 s.d., of quality the standard error.".to_owned());
    }
    if bars().any(|bar| !bar.samples.is_empty()) {
        words.push("Dots: samples.".to_owned());
    }
    words.extend(
        without
            .iter()
            .map(|column| format!("{} was not measured.", column.heading)),
    );
    let mut last = geometry.axis_titles();
    if !words.is_empty() {
        for line in text::wrap(&words.join(" "), geometry.width, NOTE, Weight::Regular, 2) {
            last += 20.0;
            scene.label(Label::new(line, 0.0, last, NOTE, Role::InkSecond));
        }
    }
    last
}
