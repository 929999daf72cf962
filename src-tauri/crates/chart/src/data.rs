//! The data layer: what a figure shows, as values, for hover, keyboard and screen readers.
//!
//! It is made with the picture and from the same numbers, so that a face never measures or draws
//! a second time. It serializes to plain JSON objects, numbers and strings; unknown is `null`.

use serde::{Deserialize, Serialize};

use crate::scene::Rect;

/// A figure as values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "FigureData"))]
pub struct Data {
    /// Which figure it is: `speeds`, ...
    pub kind: String,
    /// Width of the frame that the boxes lie in, in px.
    pub width: f64,
    /// Height of it.
    pub height: f64,
    /// The title on one line.
    pub title: String,
    /// The subtitle on one line.
    pub subtitle: String,
    /// Provenance.
    pub footer: Vec<String>,
    /// The panels from left to right, or from top to bottom.
    pub panels: Vec<Panel>,
    /// The rows from top to bottom, with the names that the picture may have shortened.
    pub rows: Vec<Row>,
    /// Every mark, in the order in which a keyboard walks through them.
    pub marks: Vec<Mark>,
}

/// One panel with its axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "FigurePanel"))]
pub struct Panel {
    /// `prefill`, `decode`, `first_token`, ...
    pub id: String,
    /// Unit of its values: `tok/s`.
    pub unit: String,
    /// Position of zero, in px from the left, or from the top where values grow upward.
    pub origin: f64,
    /// Px per unit: a value lies at `origin + value * scale`.
    pub scale: f64,
    /// Value at the axis' end; marks beyond it stop there.
    pub end: f64,
    /// Values of the ticks.
    pub ticks: Vec<f64>,
    /// Values grow upward: one lies at `origin - value * scale`.
    pub upward: bool,
    /// Each power of ten takes the same room: a value lies `log10(value) * scale` from the origin,
    /// which is the place of 1.
    pub logarithmic: bool,
    /// What marks stand at beside their value: `depth`, `users`, `seconds`,
    /// `intensity`.
    pub across: Option<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "FigureRow"))]
pub struct Row {
    /// The model, where rows are grouped by one.
    pub group: Option<String>,
    /// Its name in full.
    pub label: String,
    /// What stands below the name: file size, settings.
    pub details: Vec<String>,
}

/// What a mark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A measured mean.
    Bar,
    /// A measured mean at a place across: a depth, users, seconds.
    Point,
    /// A part of a bar: what a wait consists of.
    Part,
    /// Tokens that were taken from the cache: no part of any time.
    Reused,
    /// A place where nothing was measured.
    Missing,
    /// The highest speed that the machine allows.
    Ceiling,
    /// The expected range.
    Band,
    /// One repetition.
    Sample,
}

impl MarkKind {
    /// Whether its words say the whole cell: what a screen reader reads, one stop for a keyboard.
    pub fn is_headline(self) -> bool {
        matches!(self, Self::Bar | Self::Point | Self::Missing)
    }
}

/// A mark: its value, its place, its words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Mark {
    /// What it is.
    pub kind: MarkKind,
    /// Index into the panels.
    pub panel: usize,
    /// Index into the rows.
    pub row: usize,
    /// Counts the headlines from 0; what belongs to one has its number.
    pub cell: usize,
    /// Where it stands across: depth, users, seconds.
    pub at: Option<f64>,
    /// What it is of where a panel has several lines or parts for a row: `each user`, `prefill`.
    pub part: Option<String>,
    /// Its value: the mean of a bar, the middle of a band. Not measured is `None`.
    pub value: Option<f64>,
    /// Lower end of a band.
    pub low: Option<f64>,
    /// Upper end of a band.
    pub high: Option<f64>,
    /// Standard deviation of a bar.
    pub deviation: Option<f64>,
    /// Samples of a bar, 0 where only their mean is known.
    pub samples: Option<usize>,
    /// Number of a sample, from 1.
    pub repetition: Option<usize>,
    /// Lies past the end of the axis; its box is where the picture says so.
    pub beyond_axis: bool,
    /// Left edge in px.
    pub x: f64,
    /// Upper edge in px.
    pub y: f64,
    /// Width in px.
    pub w: f64,
    /// Height in px.
    pub h: f64,
    /// The read-out, one line.
    pub text: String,
}

impl Mark {
    /// A mark without values at a place.
    pub(crate) fn at(kind: MarkKind, panel: usize, row: usize, area: Rect, text: String) -> Self {
        Self {
            kind,
            panel,
            row,
            cell: 0,
            at: None,
            part: None,
            value: None,
            low: None,
            high: None,
            deviation: None,
            samples: None,
            repetition: None,
            beyond_axis: false,
            x: area.x,
            y: area.y,
            w: area.w,
            h: area.h,
            text,
        }
    }
}

/// Numbers the cells: a headline begins one, what follows it belongs to it.
pub(crate) fn numbered(mut marks: Vec<Mark>) -> Vec<Mark> {
    let mut headlines = 0usize;
    for mark in &mut marks {
        headlines += usize::from(mark.kind.is_headline());
        mark.cell = headlines.saturating_sub(1);
    }
    marks
}
