//! Figures of rows: their names on the left, panels that share them beside each other.

use crate::bar::BAR;
use crate::data;
use crate::number;
use crate::palette::Role;
use crate::scene::{Label, Layer, Scene, Shape};
use crate::text::{self, Weight};

/// What a row is called, made fit to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Names {
    /// The model, where rows are grouped by one.
    pub group: Option<String>,
    /// Its name in full.
    pub label: String,
    /// What stands below the name: file size, settings.
    pub details: Vec<String>,
}

impl Names {
    /// Cleans names from outside; a row without any is `unnamed`.
    pub fn new(
        group: Option<&str>,
        label: &str,
        file_bytes: Option<u64>,
        detail: Option<&str>,
    ) -> Self {
        Self {
            group: group.and_then(text::filled),
            label: text::filled(label).unwrap_or_else(|| "unnamed".to_owned()),
            details: file_bytes
                .map(number::file_size)
                .into_iter()
                .chain(detail.and_then(text::filled))
                .collect(),
        }
    }

    /// The name in full, for read-outs.
    pub fn full(&self) -> String {
        match &self.group {
            Some(group) => format!("{group} {}", self.label),
            None => self.label.clone(),
        }
    }

    /// Writes label and details beside a bar whose upper edge is `bar_top`, into a column so wide.
    pub fn draw(&self, scene: &mut Scene, bar_top: f64, column: f64) {
        let most = column - 14.0;
        let first = if self.details.is_empty() { 17.0 } else { 11.0 };
        let label = text::shorten(&self.label, most, 15.0, Weight::SemiBold);
        scene.label(Label::new(label, 0.0, bar_top + first, 15.0, Role::Ink).bold());
        for (i, detail) in self.details.iter().enumerate() {
            let detail = text::shorten(detail, most, 12.0, Weight::Regular);
            let y = bar_top + 29.0 + 16.0 * i as f64;
            scene.label(Label::new(detail, 0.0, y, 12.0, Role::InkThird));
        }
    }

    /// The row as values.
    pub fn data(&self) -> data::Row {
        data::Row {
            group: self.group.clone(),
            label: self.label.clone(),
            details: self.details.clone(),
        }
    }
}

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
    pub panels: Vec<f64>,
    /// Width of each panel.
    pub panel_width: f64,
    /// Baseline of the panels' names.
    pub panel_names: f64,
    /// The groups from top to bottom.
    pub groups: Vec<Group>,
    /// Upper edge of each row's bar.
    pub bars: Vec<f64>,
}

impl Geometry {
    /// Lays the rows out for so many panels below `header`, the last baseline above. With a height,
    /// rows move closer or apart to fill it, given that `footer` px follow below the axis. A line
    /// through all rows has room for its name above the grid.
    pub fn new(
        rows: &[&Names],
        panels: usize,
        shared_line: bool,
        (width, height): (f64, Option<f64>),
        header: f64,
        footer: f64,
    ) -> Self {
        let label_column = label_column(rows, width);
        let gaps = PANEL_GAP * (panels as f64 - 1.0);
        let panel_width = ((width - label_column - gaps) / panels as f64).floor();
        let spans = spans(rows);
        let headings = spans.len() > 1;

        let panel_names = header + 44.0;
        let shared = shared_line && !headings;
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
            panels: (0..panels)
                .map(|i| label_column + (panel_width + PANEL_GAP) * i as f64)
                .collect(),
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

    /// The names of groups and rows, on the left.
    pub fn draw_names(&self, scene: &mut Scene, rows: &[&Names]) {
        for group in &self.groups {
            let Some(heading) = group.heading else {
                continue;
            };
            let name = rows[group.first].group.as_deref().unwrap_or("Other runs");
            let name = text::shorten(name, self.width, 14.0, Weight::SemiBold);
            scene.label(Label::new(name, 0.0, heading, 14.0, Role::Ink).bold());
            let line = (group.top - 0.5).round() + 0.5;
            scene.under(
                Layer::Grid,
                Shape::Line {
                    from: (0.0, line),
                    to: (self.width, line),
                    stroke: 1.0,
                    role: Role::Grid,
                    dash: None,
                },
            );
        }
        for (row, bar_top) in rows.iter().zip(&self.bars) {
            row.draw(scene, *bar_top, self.label_column);
        }
    }
}

/// The names' column: as wide as they need, within limits.
pub fn label_column(rows: &[&Names], width: f64) -> f64 {
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
fn spans(rows: &[&Names]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        match spans.last_mut() {
            Some((first, count)) if rows[*first].group == row.group => *count += 1,
            _ => spans.push((i, 1)),
        }
    }
    spans
}
