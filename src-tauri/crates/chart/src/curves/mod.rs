//! Lines in panels above each other: a value against depth, users or time.
//!
//! What is shared by the figures that are made of them: places across, values upward from zero,
//! a mark for each mean with its whisker and its samples, a name at the end of each line.

mod across;
mod labels;
mod panel;
mod readout;
mod series;

use crate::Error;
use crate::data::{self, Data};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::look::NOTE;
use crate::measured::Measured;
use crate::palette::Role;
use crate::rows::Names;
use crate::scene::{Label, Scene};
use crate::text::{self, Weight};

pub use across::{Across, Spread};
pub use panel::Marker;
use panel::{PanelView, natural_height};
pub use panel::{ends, ends_of};
pub use series::{Name, at_ends, in_title, sound_points, spoken};

/// From one panel's ticks to the next panel's name.
const BETWEEN: f64 = 34.0;
/// From the header's last baseline to the first panel's name.
const ABOVE: f64 = 40.0;
/// From the end of a panel to the baseline of its ticks.
const TICKS: f64 = 18.0;
/// From there to the axis' title.
const AXIS_TITLE: f64 = 19.0;

/// A measured value at a place; without one there is a gap.
#[derive(Debug, Clone, PartialEq)]
pub struct At {
    /// Depth, users, seconds.
    pub place: f64,
    /// What was measured there.
    pub value: Option<Measured>,
}

impl At {
    /// One sample alone.
    pub fn one(place: f64, value: f64) -> Self {
        Self {
            place,
            value: Some(Measured {
                mean: value,
                deviation: None,
                samples: vec![value],
            }),
        }
    }
}

/// A line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Index into the figure's rows.
    pub row: usize,
    /// What it is of its row, where a panel has several lines of one: `worst`.
    pub part: Option<&'static str>,
    /// What stands at its end; empty where nothing tells it from others.
    pub name: String,
    /// The form of its marks.
    pub marker: Marker,
    /// From the first place to the last.
    pub points: Vec<At>,
}

/// A panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// In the data layer: `prefill`, `decode`, ...
    pub id: &'static str,
    /// As a heading.
    pub heading: &'static str,
    /// In read-outs: `prefill`.
    pub name: &'static str,
    /// Colour of its shapes.
    pub shape: Role,
    /// Colour of its text.
    pub ink: Role,
    /// After the heading: the unit in words, and what was measured.
    pub note: String,
    /// Unit of its values.
    pub unit: &'static str,
    /// The lines.
    pub lines: Vec<Line>,
    /// Many samples in their order: small marks, and the mean of the first and the last part.
    pub is_course: bool,
}

impl Panel {
    fn has_values(&self) -> bool {
        self.lines
            .iter()
            .flat_map(|line| &line.points)
            .any(|point| point.value.is_some())
    }
}

/// What a figure of lines consists of.
pub struct Curves<'a> {
    /// Key of the figure.
    pub kind: &'static str,
    /// The finding.
    pub title: String,
    /// What was measured.
    pub subtitle: &'a str,
    /// Provenance.
    pub footer: &'a [String],
    /// The rows.
    pub names: &'a [Names],
    /// From top to bottom; those without a value are left out and named.
    pub panels: Vec<Panel>,
    /// How places are spread.
    pub spread: Spread,
    /// Title of the axis across.
    pub axis_title: &'static str,
    /// Key of the axis across.
    pub across: &'static str,
    /// A place in words, for read-outs: `at a depth of 4,096 tokens`.
    pub in_words: fn(f64) -> String,
}

/// Draws lines.
///
/// Errors: [`Error::Empty`] where no panel has a value.
pub fn draw(curves: Curves<'_>, frame: &Frame) -> Result<Figure, Error> {
    let (panels, without): (Vec<_>, Vec<_>) =
        curves.panels.into_iter().partition(Panel::has_values);
    if panels.is_empty() {
        return Err(Error::Empty);
    }
    let subtitle = text::clean(curves.subtitle);
    let statements: Vec<String> = curves.footer.iter().map(|line| text::clean(line)).collect();
    let width = frame.inner_width();
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &curves.title, &subtitle, width);

    let heights = heights(&panels, frame, header, &statements, width);
    let names_width = labels::column(&panels, width);
    let (left, right) = (panel::gutter(&panels, &heights), width - names_width);
    let places = panels
        .iter()
        .flat_map(|panel| &panel.lines)
        .flat_map(|line| &line.points)
        .map(|point| point.place);
    let across = Across::new(curves.spread, places, left, right);

    let mut top = header + ABOVE;
    let mut views = Vec::new();
    for (panel, height) in panels.iter().zip(&heights) {
        let view = PanelView::new(panel, &across, top, *height);
        view.draw_frame(&mut scene, width);
        top = view.bottom() + TICKS + BETWEEN;
        views.push(view);
    }
    let drawn: Vec<_> = views
        .iter()
        .map(|view| view.draw_lines(&mut scene))
        .collect();
    for (view, marks) in views.iter().zip(&drawn) {
        labels::names(&mut scene, view, marks, width);
        labels::values(&mut scene, view, marks);
    }
    let mut left_over = labels::explain(&mut scene, &views, &drawn);
    left_over.extend(
        without
            .iter()
            .map(|panel| format!("{} was not measured.", panel.heading)),
    );
    let bottom = views.last().map_or(header, PanelView::bottom) + TICKS;
    let last = foot(
        &mut scene,
        curves.axis_title,
        &left_over,
        (left, bottom),
        width,
    );
    let height = layout::footer(&mut scene, &statements, last, width);

    let data = Data {
        kind: curves.kind.to_owned(),
        width,
        height,
        title: curves.title,
        subtitle,
        footer: statements,
        panels: views.iter().map(|view| view.data(curves.across)).collect(),
        rows: curves.names.iter().map(Names::data).collect(),
        marks: data::numbered(readout::marks(
            curves.names,
            &views,
            &drawn,
            curves.in_words,
        )),
    };
    Figure::draw(&scene, data, frame.scale())
}

/// Height of each panel: its natural one, or an equal share of what the frame has.
fn heights(
    panels: &[Panel],
    frame: &Frame,
    header: f64,
    statements: &[String],
    width: f64,
) -> Vec<f64> {
    let count = panels.len() as f64;
    let fixed = header
        + ABOVE
        + count * (panel::HEADING + TICKS)
        + (count - 1.0) * BETWEEN
        + AXIS_TITLE
        + layout::footer_height(statements, width);
    let share = frame
        .inner_height()
        .map(|height| ((height - fixed) / count).floor());
    panels
        .iter()
        .map(|panel| {
            let natural = natural_height(panel, panels.len());
            share
                .map_or(natural, |share| share.clamp(natural * 0.8, natural * 1.6))
                .round()
        })
        .collect()
}

/// The axis' title, and below it what found no room beside a mark; returns the last baseline.
fn foot(
    scene: &mut Scene,
    title: &str,
    left_over: &[String],
    (left, bottom): (f64, f64),
    width: f64,
) -> f64 {
    let mut last = bottom + AXIS_TITLE;
    scene.label(Label::new(title, left, last, NOTE, Role::InkThird));
    if !left_over.is_empty() {
        let words = left_over.join(" ");
        for line in text::wrap(&words, width - left, NOTE, Weight::Regular, 3) {
            last += 18.0;
            scene.label(Label::new(line, left, last, NOTE, Role::InkSecond));
        }
    }
    last
}
