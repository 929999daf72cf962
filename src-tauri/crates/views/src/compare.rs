//! The view Compare.

mod statement;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use twospeed_measure::Warning;

use crate::measure::{PhaseName, TestEnd};
use crate::models::Speed;

pub use statement::{Statement, WaitPart, WaitPartName};

/// A figure of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FigureName {
    /// Both speeds of each result.
    Speeds,
    /// Both speeds at growing depth.
    Context,
    /// Users at once.
    Users,
    /// Parts of the wait for the first token.
    FirstToken,
    /// Both speeds of each quantization, and its quality.
    Quantization,
    /// Both speeds over time.
    Sustained,
    /// Speed of arithmetic against work done per byte, under the machine's two limits.
    Roofline,
    /// Where the time of a prompt and of a token goes.
    Breakdown,
    /// What theory allows, what is expected and what was measured.
    Estimate,
}

impl FigureName {
    /// Whether it is made of expectations, so that a machine has to be calibrated for it.
    pub fn is_expected(self) -> bool {
        matches!(self, Self::Roofline | Self::Breakdown | Self::Estimate)
    }
}

/// Results of a figure other than speeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct OtherResults {
    /// The figure.
    pub figure: FigureName,
    /// Base models, the most recently measured first; empty = nothing of this kind was measured.
    pub groups: Vec<ResultGroup>,
}

/// Results to choose from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ResultsView {
    /// Base models with their speeds, the most recently measured first.
    pub groups: Vec<ResultGroup>,
    /// The results of the other figures, each of them once, in the order they are offered.
    /// Roofline, breakdown and estimate have none of their own: they show those of speeds.
    pub others: Vec<OtherResults>,
    /// This machine is calibrated, so that figures can show what is expected.
    pub calibrated: bool,
    /// Runs without any result (failed, cancelled), newest first: their pages say why.
    pub runs: Vec<RunLine>,
}

/// Results of one base model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ResultGroup {
    /// Name of the base model.
    pub name: String,
    /// Its results, newest first.
    pub rows: Vec<ResultRow>,
}

/// One result: a model under one choice of settings in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ResultRow {
    /// Its id.
    pub id: String,
    /// The run it belongs to.
    pub run: String,
    /// Quantization label.
    pub quantization: String,
    /// What tells it from other results of this model: `d4096`, `4 threads`, ...; empty = nothing.
    pub differs: String,
    /// When it was measured.
    pub at: String,
    /// Machine it comes from, where it is not this one.
    pub elsewhere: Option<String>,
    /// Prefill.
    pub prefill: Option<Speed>,
    /// Decode.
    pub decode: Option<Speed>,
    /// What readers of it should know.
    pub warnings: Vec<Warning>,
    /// The run has a note.
    pub noted: bool,
}

/// A run as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RunLine {
    /// Its id.
    pub id: String,
    /// When it started.
    pub at: String,
    /// What it measured, to show: `SmolLM2 135M Instruct Q4_1, Q8_0`.
    pub models: String,
    /// Why it has no result, or how it ended: one sentence.
    pub sentence: String,
}

/// What to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct FigureRequest {
    /// Which figure.
    pub figure: FigureName,
    /// Results, in no order: the figure has its own.
    pub results: Vec<String>,
    /// The one that is explained; `None` = the first row.
    pub focus: Option<String>,
    /// Draw the ceiling.
    pub ceiling: bool,
    /// Draw what is expected.
    pub expected: bool,
    /// Draw what the expected time is made of.
    pub breakdown: bool,
    /// Width of the place, px.
    pub width: f64,
    /// Height of the place, px; `None` = as high as it comes.
    pub height: Option<f64>,
    /// Everything so many times larger: the text size.
    pub scale: f64,
}

/// A figure with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct FigureView {
    /// The drawing, colours as custom properties; trusted: made here, names escaped.
    pub svg: String,
    /// Width of the drawing on screen, px.
    pub width: f64,
    /// Height of it, px.
    pub height: f64,
    /// Values, places and words; boxes are in user units of the drawing (`data.width` wide).
    pub data: twospeed_chart::Data,
    /// The result of each row of the figure.
    pub row_results: Vec<String>,
    /// What explains the focused result, the one that says most first.
    pub statements: Vec<Statement>,
    /// Why nothing is expected of the focused result; `None` = something is, or the figure is not
    /// about single speeds.
    pub unexpected: Option<Unexpected>,
    /// What to beware of when comparing these.
    pub cautions: Vec<Caution>,
    /// The ceiling can be drawn: the read speed is known for at least one of these.
    pub has_ceiling: bool,
    /// Something is expected of at least one of these, which can be drawn.
    pub has_expected: bool,
    /// Where an export would go: whole path without the ending.
    pub save_as: String,
}

/// Why nothing is expected of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "unexpected", rename_all = "snake_case")]
pub enum Unexpected {
    /// This machine was not calibrated.
    NotCalibrated,
    /// It was, for something else: a sentence.
    OtherCalibration {
        /// What it was calibrated for, and what ran.
        sentence: String,
    },
    /// The result comes from another machine, of which there is no calibration here.
    OtherMachine {
        /// Its name, where it has one.
        name: Option<String>,
    },
    /// Other devices computed than were calibrated.
    OtherBackend {
        /// What computed: `CUDA`.
        ran: String,
    },
    /// The model's file is not here any more, so its layers are not known.
    FileGone {
        /// Where it lay, to show.
        path: String,
    },
    /// The result does not say which file it was measured with.
    FileUnknown,
    /// The file is here, and its header does not say all that an expectation takes.
    NotEstimated {
        /// Why, sentences.
        why: Vec<String>,
    },
}

/// Why two results may not be comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "caution", rename_all = "snake_case")]
pub enum Caution {
    /// The machine itself changed between two of them by more than they differ.
    Drift {
        /// One result, to show.
        one: String,
        /// The other, to show.
        other: String,
        /// Change of the fixed kernel, slower / faster - 1.
        relative: f64,
    },
    /// They come from different machines.
    Machines,
    /// Settings differ beyond what the rows say.
    Settings {
        /// The settings that differ, to show.
        names: Vec<String>,
    },
    /// A result was not measured to its end or carries warnings: see its run.
    Warned {
        /// The result, to show.
        result: String,
        /// What it carries.
        warnings: Vec<Warning>,
    },
}

/// A run with everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RunPage {
    /// Its id.
    pub id: String,
    /// Measured here, or where it comes from.
    pub origin: String,
    /// Preset, to show.
    pub preset: String,
    /// When it started.
    pub started_at: String,
    /// When it ended; `None` = not, or not known.
    pub ended_at: Option<String>,
    /// How it stands: `running`, `complete`, `stopped`, `interrupted`.
    pub status: String,
    /// What the person wrote about it.
    pub note: String,
    /// Version of Twospeed.
    pub app_version: String,
    /// The machine, name and value pairs to show.
    pub machine: Vec<Pair>,
    /// Its tests in the order they ran.
    pub tests: Vec<TestPage>,
}

/// A name and a value to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Pair {
    /// Name.
    pub name: String,
    /// Value; `None` = unknown.
    pub value: Option<String>,
}

/// A test with everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TestPage {
    /// Its id.
    pub id: String,
    /// Model and quantization.
    pub model: String,
    /// Which speed; `None` for a prompt and an answer timed as one.
    pub phase: Option<PhaseName>,
    /// llama-bench's name: `pp512`, `tg128 @ d4096`.
    pub name: String,
    /// How it ended; `None` = it runs.
    pub end: Option<TestEnd>,
    /// It was cut off when its program ended.
    pub interrupted: bool,
    /// Mean, tokens per second.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub deviation: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Samples.
    pub samples: Vec<SampleLine>,
    /// What was found beside one speed, means over the samples: parts of a wait, users, quality.
    pub readings: Vec<Pair>,
    /// Mean energy of a token in joules; `None` = not readable, or not one speed.
    pub joules_per_token: Option<f64>,
    /// Why it cannot be right, one sentence; it stays out of figures until it is allowed.
    pub suspect: Option<String>,
    /// The person allowed it all the same.
    pub allowed: bool,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
    /// Settings in llama-bench's names.
    pub settings: Vec<Pair>,
    /// Engine, variant, load time, page cache, memory: to show.
    pub environment: Vec<Pair>,
    /// What lay where: buffer and size.
    pub placement: Vec<Pair>,
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SampleLine {
    /// From 1.
    pub number: u32,
    /// Tokens per second.
    pub tokens_per_second: Option<f64>,
    /// Duration, milliseconds.
    pub ms: f64,
    /// Times another program took the CPU.
    pub involuntary_switches: Option<u64>,
    /// Reads from disk.
    pub major_faults: Option<u64>,
    /// Clock right after, Hz.
    pub clock_hz: Option<f64>,
    /// Temperature right after, degrees Celsius.
    pub temperature_c: Option<f64>,
}

/// Forms that what is shown can be saved in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// The figure as vector graphics.
    Svg,
    /// The figure as a picture.
    Png,
    /// The figure as a page.
    Pdf,
    /// The numbers in llama-bench's CSV.
    Csv,
    /// The numbers as a Markdown table.
    Markdown,
    /// The numbers with samples and environment (`twospeed.results/1`).
    Json,
}

/// What to save, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ExportRequest {
    /// Which figure.
    pub figure: FigureName,
    /// What is shown.
    pub results: Vec<String>,
    /// Draw the ceiling.
    pub ceiling: bool,
    /// Draw what is expected.
    pub expected: bool,
    /// Draw what the expected time is made of.
    pub breakdown: bool,
    /// Form.
    pub form: Form,
    /// Dark colours.
    pub dark: bool,
    /// Width of the figure, px.
    pub width: f64,
    /// Everything so many times larger: 1.5 for a projector.
    pub scale: f64,
    /// Pixels of a PNG for each px.
    pub pixels: f64,
    /// Whole path; the ending is added where it is missing. `~` is the home folder.
    pub path: String,
    /// Replace what is there; else `file_exists`.
    pub replace: bool,
}

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Exported {
    /// Whole path, to show.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// What goes to the clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CopyWhat {
    /// The figure as a picture.
    Picture,
    /// The numbers as a Markdown table.
    Table,
}
