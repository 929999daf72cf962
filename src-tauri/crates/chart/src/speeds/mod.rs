//! The `speeds` figure: prefill on the left, decode on the right, one bar for each run.

mod ceiling;
mod cell;
mod finding;
mod notes;
mod panel;
mod readout;

use crate::Error;
use crate::data::{Data, numbered};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::look::PHASES;
use crate::measured::{Expected, Measured, sound, sound_expected, sound_measured};
use crate::rows::{Geometry, Names};
use crate::scene::Scene;
use crate::text;
use crate::time::{TimePart, sound_parts};

use panel::PanelView;

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
    /// Expected values with their ranges.
    pub expected: bool,
    /// What the expected time is made of, as a strip under each bar.
    pub breakdown: bool,
}

impl Default for Overlays {
    fn default() -> Self {
        Self {
            ceiling: true,
            expected: true,
            breakdown: false,
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
    pub expected: Option<Expected>,
    /// What the expected time of a token, or of a prompt, is made of; empty where none is expected.
    pub parts: Vec<TimePart>,
    /// What the machine allows at most.
    pub ceiling: Option<f64>,
}

/// A row made fit to draw: names clean, numbers finite and not negative.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) names: Names,
    file_bytes: Option<u64>,
    pub(crate) phases: [Phase; 2],
}

impl Prepared {
    fn new(row: &Row, overlays: Overlays) -> Self {
        let phase = |phase: &Phase| Phase {
            measured: phase.measured.as_ref().and_then(sound_measured),
            expected: phase
                .expected
                .filter(|_| overlays.expected)
                .and_then(sound_expected),
            parts: match overlays.breakdown {
                true => sound_parts(&phase.parts),
                false => Vec::new(),
            },
            ceiling: phase
                .ceiling
                .filter(|ceiling| overlays.ceiling && sound(*ceiling)),
        };
        Self {
            names: Names::new(
                row.group.as_deref(),
                &row.label,
                row.file_bytes,
                row.detail.as_deref(),
            ),
            file_bytes: row.file_bytes,
            phases: [phase(&row.prefill), phase(&row.decode)],
        }
    }
}

/// The rows made fit to draw.
pub(crate) fn prepare(input: &Speeds) -> Vec<Prepared> {
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

/// How what was measured is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As bars from zero.
    Bars,
    /// As points beside what was expected.
    Points,
}

/// Draws the figure.
///
/// Its width is the frame's; its height follows the rows (664 px for four) and fills the frame's
/// height as far as rows can move closer or apart. Numbers that are negative, not finite or
/// impossibly large (10^15 tokens per second) count as not measured. Errors: [`Error::Empty`] without rows.
pub fn speeds(input: &Speeds, frame: &Frame) -> Result<Figure, Error> {
    let rows = prepare(input);
    draw(input, &rows, ("speeds", finding(input), Form::Bars), frame)
}

/// Draws rows as the figure of this kind, with this title.
pub(crate) fn draw(
    input: &Speeds,
    rows: &[Prepared],
    (kind, title, form): (&str, String, Form),
    frame: &Frame,
) -> Result<Figure, Error> {
    if rows.is_empty() {
        return Err(Error::Empty);
    }
    let subtitle = text::clean(&input.subtitle);
    let statements: Vec<String> = input.footer.iter().map(|line| text::clean(line)).collect();

    let width = frame.inner_width();
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &title, &subtitle, width);
    let below = layout::footer_height(&statements, width);
    let names: Vec<&Names> = rows.iter().map(|row| &row.names).collect();
    let shared = [0, 1]
        .into_iter()
        .any(|i| panel::shared_ceiling(rows, i).is_some());
    let geometry = Geometry::new(
        &names,
        2,
        shared,
        (width, frame.inner_height()),
        header,
        below,
    );
    let panels: [PanelView; 2] = [0, 1].map(|i| PanelView::new(i, form, rows, &geometry));

    geometry.draw_names(&mut scene, &names);
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
        ceiling::draw(&mut scene, &panels[i], rows, &geometry, &column)
    });
    let last = notes::explain(&mut scene, &panels, rows, &cells, &ceilings, &geometry);
    let height = layout::footer(&mut scene, &statements, last, width);

    let data = Data {
        kind: kind.to_owned(),
        width,
        height,
        title,
        subtitle,
        footer: statements,
        panels: panels.iter().map(PanelView::data).collect(),
        rows: names.iter().map(|names| names.data()).collect(),
        marks: numbered(readout::marks(&panels, rows, &cells, &ceilings)),
    };
    Figure::draw(&scene, data, frame.scale())
}

/// The name of a phase as the figure writes it in running text.
fn phase_name(panel: usize) -> &'static str {
    PHASES[panel].name
}
