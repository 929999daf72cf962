//! The `roofline` figure: speed of arithmetic against work done per byte, from one token per step to
//! many, under the two limits that a machine sets.

mod draw;
mod finding;
mod labels;
mod logarithmic;
mod readout;

use crate::Error;
use crate::curves::{Name, at_ends};
use crate::data::{self, Data};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::measured::{Expected, Measured, sound, sound_expected, sound_measured};
use crate::rows::Names;
use crate::scene::Scene;
use crate::text;
use draw::Plot;

/// Series that can be told apart by the form of their marks.
pub const MOST_SERIES: usize = 4;

/// What the figure shows. Speeds are GFLOP/s, work is operations per byte.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Roofline {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was estimated and measured.
    pub subtitle: String,
    /// Models, at most [`MOST_SERIES`]: of more the first are drawn, and the figure says so.
    pub series: Vec<RooflineSeries>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// A model under one choice of settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RooflineSeries {
    /// What it is called.
    pub name: Name,
    /// How fast the bytes of a step can be read, GB/s (10^9 bytes).
    pub reading: Option<f64>,
    /// How fast its matrices can be multiplied.
    pub arithmetic: Option<f64>,
    /// Tokens per step from which on arithmetic is the limit.
    pub ridge_tokens: Option<f64>,
    /// From few tokens per step to many.
    pub steps: Vec<RooflineStep>,
}

/// A number of tokens in one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RooflineStep {
    /// Tokens.
    pub tokens: u64,
    /// Operations per byte that is read.
    pub intensity: f64,
    /// Operations for one token, to tell tokens per second.
    pub flops_per_token: f64,
    /// What is expected.
    pub expected: Option<Expected>,
    /// What was measured.
    pub measured: Option<Measured>,
}

/// Which of the two holds a step back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Memory,
    Arithmetic,
}

/// A series made fit to draw.
#[derive(Debug, Clone)]
struct Prepared {
    names: Names,
    /// At the end of its line, where there are several.
    end: String,
    reading: Option<f64>,
    arithmetic: Option<f64>,
    ridge_tokens: Option<f64>,
    steps: Vec<RooflineStep>,
}

impl Prepared {
    /// What the limits allow at an intensity, and which of them that is; unknown without either.
    fn limit(&self, intensity: f64) -> Option<(f64, Limit)> {
        let slope = self.reading.map(|reading| reading * intensity);
        match (slope, self.arithmetic) {
            (Some(slope), Some(roof)) if slope < roof => Some((slope, Limit::Memory)),
            (_, Some(roof)) => Some((roof, Limit::Arithmetic)),
            (Some(slope), None) => Some((slope, Limit::Memory)),
            (None, None) => None,
        }
    }

    /// Which limit holds a step back; unknown where one of them is.
    fn held_by(&self, intensity: f64) -> Option<Limit> {
        self.arithmetic.and(self.reading)?;
        self.limit(intensity).map(|(_, limit)| limit)
    }

    /// The intensity at which the limits meet.
    fn ridge(&self) -> Option<f64> {
        Some(self.arithmetic? / self.reading?)
    }
}

/// Positive and possible: what a logarithm can show.
fn shows(value: f64) -> bool {
    sound(value) && value >= 1e-6
}

fn prepare(input: &Roofline) -> Vec<Prepared> {
    let drawn = &input.series[..input.series.len().min(MOST_SERIES)];
    let names: Vec<Names> = drawn.iter().map(|series| series.name.names()).collect();
    drawn
        .iter()
        .zip(at_ends(&names))
        .zip(&names)
        .map(|((series, end), names)| {
            let mut steps: Vec<RooflineStep> = series
                .steps
                .iter()
                .filter(|step| shows(step.intensity) && step.tokens > 0)
                .map(|step| RooflineStep {
                    expected: step
                        .expected
                        .and_then(sound_expected)
                        .filter(|expected| shows(expected.low)),
                    measured: step
                        .measured
                        .as_ref()
                        .and_then(sound_measured)
                        .filter(|measured| shows(measured.mean)),
                    ..step.clone()
                })
                .collect();
            steps.sort_by_key(|step| step.tokens);
            steps.dedup_by_key(|step| step.tokens);
            Prepared {
                names: names.clone(),
                end,
                reading: series.reading.filter(|reading| shows(*reading)),
                arithmetic: series.arithmetic.filter(|roof| shows(*roof)),
                ridge_tokens: series.ridge_tokens.filter(|tokens| shows(*tokens)),
                steps,
            }
        })
        .collect()
}

/// Draws the figure.
///
/// Both axes are logarithmic. Measured points are filled, in the colour of the limit that holds
/// them; expected ones are hollow and grey. Errors: [`Error::Empty`] where neither a limit nor a
/// speed is known.
pub fn roofline(input: &Roofline, frame: &Frame) -> Result<Figure, Error> {
    let rows = prepare(input);
    let has_limits = |row: &Prepared| row.reading.is_some() || row.arithmetic.is_some();
    let has_speed = |step: &RooflineStep| step.expected.is_some() || step.measured.is_some();
    let something = |row: &Prepared| {
        let speeds = row.steps.iter().any(has_speed);
        !row.steps.is_empty() && (has_limits(row) || speeds)
    };
    if !rows.iter().any(something) {
        return Err(Error::Empty);
    }
    let title = finding::finding(&rows, &text::clean(&input.subject));
    let subtitle = text::clean(&input.subtitle);
    let statements: Vec<String> = input.footer.iter().map(|line| text::clean(line)).collect();
    let width = frame.inner_width();
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &title, &subtitle, width);
    let below = layout::footer_height(&statements, width);
    let names = labels::column(&rows, width);
    let plot = Plot::new(&rows, (width, frame.inner_height()), names, header, below);
    plot.draw_frame(&mut scene);
    let limits = plot.draw_limits(&mut scene, &rows);
    let drawn = plot.draw_steps(&mut scene, &rows);
    labels::draw(&mut scene, &plot, &rows, &limits, &drawn);
    let more = input.series.len() - rows.len();
    let last = labels::explain(&mut scene, &plot, &rows, more);
    let height = layout::footer(&mut scene, &statements, last, width);
    let data = Data {
        kind: "roofline".to_owned(),
        width,
        height,
        title,
        subtitle,
        footer: statements,
        panels: vec![plot.data()],
        rows: rows.iter().map(|row| row.names.data()).collect(),
        marks: data::numbered(readout::marks(&plot, &rows, &drawn)),
    };
    Figure::draw(&scene, data, frame.scale())
}
