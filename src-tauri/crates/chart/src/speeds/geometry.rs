//! Where rows and panels are.

use crate::text::{self, Weight};

use super::Prepared;
use super::panel::shared_ceiling;

/// Height of a bar in px.
pub const BAR: f64 = 24.0;
/// From the top of the grid to the first bar: room for its value.
const ABOVE_FIRST: f64 = 33.0;
/// From the last bar to the end of the grid: room for its samples.
const BELOW_LAST: f64 = 39.0;
/// From one bar to the next, where no height is asked for.
const PITCH: f64 = 102.0;
/// The same where there are more than [`FEW`] rows.
const PITCH_OF_MANY: f64 = 90.0;
const FEW: usize = 6;
/// The least and the most it may be.
const PITCHES: (f64, f64) = (86.0, 130.0);
/// A group's heading with the line below it.
const HEADING: f64 = 28.0;
/// Between two groups.
const GROUP_GAP: f64 = 14.0;
/// From the panels' names to the grid.
const NAMES_TO_GRID: f64 = 16.0;
/// The name of a ceiling that all rows share, above the grid.
const SHARED_CEILING: f64 = 20.0;
/// From the end of the grid to the last baseline below it.
const AXIS: f64 = 37.0;
/// Between the two panels.
const PANEL_GAP: f64 = 32.0;

/// Rows of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Index of its first row.
    pub first: usize,
    /// Baseline of its heading, where it has one.
    pub heading: Option<f64>,
    /// Where its grid begins.
    pub top: f64,
    /// Where its grid ends.
    pub bottom: f64,
}

/// Where rows and panels are, in px.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    /// Width of the figure.
    pub width: f64,
    /// Width of the names' column.
    pub label_column: f64,
    /// Left edge of each panel.
    pub panels: [f64; 2],
    /// Width of a panel.
    pub panel_width: f64,
    /// Baseline of the panels' names.
    pub panel_names: f64,
    /// The groups from top to bottom.
    pub groups: Vec<Group>,
    /// Upper edge of each row's bar.
    pub bars: Vec<f64>,
}

impl Geometry {
    /// Lays the rows out below `header`, the last baseline above. With a `height`, rows move
    /// closer or apart to fill it, given that `footer` px follow below the axis.
    pub fn new(
        rows: &[Prepared],
        width: f64,
        header: f64,
        footer: f64,
        height: Option<f64>,
    ) -> Self {
        let label_column = label_column(rows, width);
        let panel_width = ((width - label_column - PANEL_GAP) / 2.0).floor();
        let spans = spans(rows);
        let headings = spans.len() > 1;

        let panel_names = header + 44.0;
        let shared = !headings
            && [0, 1]
                .into_iter()
                .any(|i| shared_ceiling(rows, i).is_some());
        let first_top = panel_names + NAMES_TO_GRID + if shared { SHARED_CEILING } else { 0.0 };
        let heading = if headings { HEADING } else { 0.0 };

        let groups = spans.len() as f64;
        let fixed = first_top
            + groups * (heading + ABOVE_FIRST + BAR + BELOW_LAST)
            + (groups - 1.0) * GROUP_GAP
            + AXIS
            + footer;
        let steps = rows.len() as f64 - groups;
        let pitch = match height {
            Some(height) if steps > 0.0 => ((height - fixed) / steps)
                .floor()
                .clamp(PITCHES.0, PITCHES.1),
            _ if rows.len() > FEW => PITCH_OF_MANY,
            _ => PITCH,
        };

        let mut top = first_top;
        let mut bars = Vec::with_capacity(rows.len());
        let groups = spans
            .into_iter()
            .map(|(first, count)| {
                let grid = top + heading;
                let last = grid + ABOVE_FIRST + (count - 1) as f64 * pitch;
                bars.extend((0..count).map(|i| grid + ABOVE_FIRST + i as f64 * pitch));
                let bottom = last + BAR + BELOW_LAST;
                let group = Group {
                    first,
                    heading: headings.then_some(top + 18.0),
                    top: grid,
                    bottom,
                };
                top = bottom + GROUP_GAP;
                group
            })
            .collect();
        Self {
            width,
            label_column,
            panels: [label_column, label_column + panel_width + PANEL_GAP],
            panel_width,
            panel_names,
            groups,
            bars,
        }
    }

    /// The end of the grid of the last row.
    pub fn bottom(&self) -> f64 {
        self.groups.last().map_or(0.0, |group| group.bottom)
    }

    /// Baseline of the axis titles.
    pub fn axis_titles(&self) -> f64 {
        self.bottom() + AXIS
    }
}

/// The names' column: as wide as they need, within limits.
fn label_column(rows: &[Prepared], width: f64) -> f64 {
    let widest = rows
        .iter()
        .map(|row| {
            row.details
                .iter()
                .map(|detail| text::width(detail, 12.0, Weight::Regular))
                .fold(text::width(&row.label, 15.0, Weight::SemiBold), f64::max)
        })
        .fold(0.0, f64::max);
    (widest + 16.0)
        .ceil()
        .clamp(84.0, (width * 0.26).floor().max(84.0))
}

/// First row and length of each group of neighbouring rows.
fn spans(rows: &[Prepared]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        match spans.last_mut() {
            Some((first, count)) if rows[*first].group == row.group => *count += 1,
            _ => spans.push((i, 1)),
        }
    }
    spans
}
