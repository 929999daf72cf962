//! The `speeds` figure: prefill on the left, decode on the right, one bar for each run.

mod ceiling;
mod cell;
mod finding;
mod geometry;
mod notes;
mod panel;
mod readout;

use crate::Error;
use crate::data::{self, Data};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::number;
use crate::palette::Role;
use crate::scene::{Label, Layer, Scene, Shape};
use crate::text::{self, Weight};

pub use finding::clearly;
use geometry::Geometry;
use panel::{PHASES, PanelView};

/// What the figure shows. Speeds are tokens per second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Speeds {
    /// What is compared, for a title without a finding: `SmolLM2 135M Instruct`. May be empty.
    pub subject: String,
    /// What was measured: model, test, samples, threads.
    pub subtitle: String,
    /// The prefill test in words, without numbers of its own: `reading a 512-token prompt`.
    pub prefill_test: Option<String>,
    /// The decode test in words: `writing 128 tokens`.
    pub decode_test: Option<String>,
    /// The runs from top to bottom. Rows of one group stand together.
    pub rows: Vec<Row>,
    /// Provenance, a statement each: model files and engine; machine, date and version.
    pub footer: Vec<String>,
    /// Which predictions are shown.
    pub overlays: Overlays,
}

/// Which predictions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlays {
    /// Ceilings.
    pub ceiling: bool,
    /// Expected ranges.
    pub expected: bool,
}

impl Default for Overlays {
    fn default() -> Self {
        Self {
            ceiling: true,
            expected: true,
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// The model. Where there is more than one, each gets a heading.
    pub group: Option<String>,
    /// What tells it from the others: the quantization.
    pub label: String,
    /// Size of the model file, shown below the label and used to tell trends.
    pub file_bytes: Option<u64>,
    /// What else differs: `depth 4,096`.
    pub detail: Option<String>,
    /// Reading the prompt.
    pub prefill: Phase,
    /// Writing the answer.
    pub decode: Phase,
}

impl Row {
    /// A row with nothing but its label.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }
}

/// One of the two speeds of a run: measured, expected, possible. Each may be unknown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Phase {
    /// What was measured.
    pub measured: Option<Measured>,
    /// What the estimator expects.
    pub expected: Option<Range>,
    /// What the machine allows at most.
    pub ceiling: Option<f64>,
}

/// A measured speed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// Mean of the samples.
    pub mean: f64,
    /// Standard deviation; unknown for one sample.
    pub deviation: Option<f64>,
    /// Each repetition in its order; empty where only the mean is known.
    pub samples: Vec<f64>,
}

/// A range of speeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A row made fit to draw: names clean, numbers finite and not negative.
#[derive(Debug, Clone)]
struct Prepared {
    group: Option<String>,
    label: String,
    details: Vec<String>,
    file_bytes: Option<u64>,
    phases: [Phase; 2],
}

impl Prepared {
    fn new(row: &Row, overlays: Overlays) -> Self {
        let phase = |phase: &Phase| Phase {
            measured: phase.measured.as_ref().and_then(sound_measured),
            expected: phase
                .expected
                .filter(|_| overlays.expected)
                .and_then(sound_range),
            ceiling: phase
                .ceiling
                .filter(|ceiling| overlays.ceiling && sound(*ceiling)),
        };
        let filled = |text: &str| Some(text::clean(text)).filter(|text| !text.is_empty());
        Self {
            group: row.group.as_deref().and_then(filled),
            label: filled(&row.label).unwrap_or_else(|| "unnamed".to_owned()),
            details: row
                .file_bytes
                .map(number::file_size)
                .into_iter()
                .chain(row.detail.as_deref().and_then(filled))
                .collect(),
            file_bytes: row.file_bytes,
            phases: [phase(&row.prefill), phase(&row.decode)],
        }
    }
}

/// No machine is faster; a number above it is damaged.
const IMPOSSIBLE: f64 = 1e15;

/// A speed that can be shown. An impossible one, a NaN or a negative one was not measured.
fn sound(value: f64) -> bool {
    (0.0..IMPOSSIBLE).contains(&value)
}

fn sound_measured(measured: &Measured) -> Option<Measured> {
    sound(measured.mean).then(|| Measured {
        mean: measured.mean,
        deviation: measured
            .deviation
            .filter(|deviation| sound(*deviation) && measured.samples.len() != 1),
        samples: measured
            .samples
            .iter()
            .copied()
            .filter(|sample| sound(*sample))
            .collect(),
    })
}

fn sound_range(range: Range) -> Option<Range> {
    (sound(range.low) && sound(range.high)).then_some(Range {
        low: range.low.min(range.high),
        high: range.low.max(range.high),
    })
}

fn prepare(input: &Speeds) -> Vec<Prepared> {
    input
        .rows
        .iter()
        .map(|row| Prepared::new(row, input.overlays))
        .collect()
}

/// The finding of a figure in one sentence, its title.
///
/// A difference counts only where the whiskers of both do not touch and it is at least 2 %;
/// without deviations it must be 10 %. Trends need known, different file sizes. Where nothing is
/// clear, the subject is named. It never depends on the overlays.
pub fn finding(input: &Speeds) -> String {
    finding::finding(&prepare(input), &text::clean(&input.subject))
}

/// Draws the figure.
///
/// Its width is the frame's; its height follows the rows (664 px for four) and fills the frame's
/// height as far as rows can move closer or apart. Numbers that are negative, not finite or
/// impossibly large (10^15 tokens per second) count as not measured. Errors: [`Error::Empty`] without rows.
pub fn speeds(input: &Speeds, frame: &Frame) -> Result<Figure, Error> {
    let rows = prepare(input);
    if rows.is_empty() {
        return Err(Error::Empty);
    }
    let title = finding(input);
    let subtitle = text::clean(&input.subtitle);
    let statements: Vec<String> = input.footer.iter().map(|line| text::clean(line)).collect();

    let width = frame.inner_width();
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &title, &subtitle, width);
    let below = layout::footer_height(&statements, width);
    let geometry = Geometry::new(&rows, width, header, below, frame.inner_height());
    let panels: [PanelView; 2] = [0, 1].map(|i| PanelView::new(i, &rows, &geometry));

    draw_names(&mut scene, &rows, &geometry);
    for (panel, test) in panels.iter().zip([&input.prefill_test, &input.decode_test]) {
        panel.draw_frame(&mut scene, &geometry, test.as_deref());
    }
    let cells: Vec<[cell::Cell; 2]> = rows
        .iter()
        .zip(&geometry.bars)
        .map(|(row, bar_top)| {
            [0, 1].map(|i| cell::Cell::draw(&mut scene, &panels[i], &row.phases[i], *bar_top))
        })
        .collect();
    let ceilings = [0, 1].map(|i| {
        let column: Vec<_> = cells.iter().map(|pair| &pair[i]).collect();
        ceiling::draw(&mut scene, &panels[i], &rows, &geometry, &column)
    });
    let last = notes::explain(&mut scene, &panels, &rows, &cells, &ceilings, &geometry);
    let height = layout::footer(&mut scene, &statements, last, width);

    let data = Data {
        kind: "speeds".to_owned(),
        width,
        height,
        title,
        subtitle,
        footer: statements,
        panels: panels.iter().map(PanelView::data).collect(),
        rows: rows
            .iter()
            .map(|row| data::Row {
                group: row.group.clone(),
                label: row.label.clone(),
                details: row.details.clone(),
            })
            .collect(),
        marks: readout::marks(&panels, &rows, &cells, &ceilings),
    };
    Figure::draw(&scene, data, frame.scale())
}

/// The names of groups and rows, on the left.
fn draw_names(scene: &mut Scene, rows: &[Prepared], geometry: &Geometry) {
    for group in &geometry.groups {
        let Some(heading) = group.heading else {
            continue;
        };
        let name = rows[group.first].group.as_deref().unwrap_or("Other runs");
        let name = text::shorten(name, geometry.width, 14.0, Weight::SemiBold);
        scene.label(Label::new(name, 0.0, heading, 14.0, Role::Ink).bold());
        let line = (group.top - 0.5).round() + 0.5;
        scene.under(
            Layer::Grid,
            Shape::Line {
                from: (0.0, line),
                to: (geometry.width, line),
                stroke: 1.0,
                role: Role::Grid,
                dash: None,
            },
        );
    }
    for (row, bar_top) in rows.iter().zip(&geometry.bars) {
        let most = geometry.label_column - 14.0;
        let first = if row.details.is_empty() { 17.0 } else { 11.0 };
        let label = text::shorten(&row.label, most, 15.0, Weight::SemiBold);
        scene.label(Label::new(label, 0.0, bar_top + first, 15.0, Role::Ink).bold());
        for (i, detail) in row.details.iter().enumerate() {
            let detail = text::shorten(detail, most, 12.0, Weight::Regular);
            let y = bar_top + 29.0 + 16.0 * i as f64;
            scene.label(Label::new(detail, 0.0, y, 12.0, Role::InkThird));
        }
    }
}

/// The name of a phase as the figure writes it in running text.
fn phase_name(panel: usize) -> &'static str {
    PHASES[panel].name
}
