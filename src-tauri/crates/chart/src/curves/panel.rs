//! One panel of lines: its frame, its lines, its marks.

use crate::axis::{Linear, TICK_SIZE};
use crate::data;
use crate::look::NOTE;
use crate::measured::{Measured, reach};
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, Shape, crisp, line};
use crate::text::{self, Weight};

use super::{Across, Line, Panel};

/// From a panel's name to its plot.
pub const HEADING: f64 = 18.0;
/// Height of a plot where two or fewer stand above each other, and where more do.
const PLOT: (f64, f64) = (168.0, 124.0);
/// Room for a name at the end of a line.
pub const NAME_STEP: f64 = 16.0;
/// From the tick labels to the plot.
const TICK_GAP: f64 = 8.0;
/// Half the width of a whisker's caps.
const CAP: f64 = 4.0;
const MARK: f64 = 3.6;
const SMALL_MARK: f64 = 1.9;
const SAMPLE: f64 = 1.7;
/// From a mark to its first sample, and from one sample to the next where they are few.
const SAMPLES: (f64, f64) = (8.0, 3.6);
/// More lines than these are told apart by their names alone: samples and values would be a cloud.
pub const FEW_LINES: usize = 3;
/// Part of a course whose mean is shown, at each end.
const END_PART: usize = 5;

/// The form of a line's marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    Dot,
    /// A circle.
    Ring,
    /// A filled square.
    Square,
    /// A square.
    Frame,
}

impl Marker {
    /// One for each row, in turn.
    pub fn of(row: usize) -> Self {
        [Self::Dot, Self::Ring, Self::Square, Self::Frame][row % 4]
    }

    /// The same without its filling.
    pub fn hollow(self) -> Self {
        match self {
            Self::Dot | Self::Ring => Self::Ring,
            Self::Square | Self::Frame => Self::Frame,
        }
    }

    fn draw(self, scene: &mut Scene, at: (f64, f64), size: f64, role: Role) -> Rect {
        let area = Rect::between(at.0, at.1, at.0, at.1).grown(size, size);
        let inner = area.grown(-1.5, -1.5);
        let dot = |radius: f64, role| Shape::Dot { at, radius, role };
        let shapes = match self {
            Self::Dot => vec![dot(size, role)],
            Self::Ring => vec![dot(size, role), dot(size - 1.5, Role::Background)],
            Self::Square => vec![Shape::Fill(area, role)],
            Self::Frame => vec![
                Shape::Fill(area, role),
                Shape::Fill(inner, Role::Background),
            ],
        };
        for shape in shapes {
            scene.mark(Layer::Overlay, shape);
        }
        area
    }
}

/// A panel with its axes.
pub struct PanelView<'a> {
    /// What it shows.
    pub panel: &'a Panel,
    /// Places.
    pub across: &'a Across,
    /// Values, from 0 px on.
    axis: Linear,
    heading: f64,
    top: f64,
}

/// The marks of one line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineMarks {
    /// Each point: its mark, or where it is missing.
    pub points: Vec<PointMarks>,
}

/// The marks of one point.
#[derive(Debug, Clone, PartialEq)]
pub struct PointMarks {
    /// The mark; `None` = nothing was measured.
    pub mark: Option<Rect>,
    /// Where words about it would stand: its place on the base line where nothing was measured.
    pub place: (f64, f64),
    /// Its samples, in their order; empty where they are not drawn.
    pub samples: Vec<Rect>,
    /// Whether it has a whisker that its mark does not hide.
    pub whisker: bool,
    /// Right end of mark, whisker and samples.
    pub right: f64,
    /// Upper and lower end of mark and whisker.
    pub ends: (f64, f64),
}

/// Height of a plot where the frame asks for none.
pub fn natural_height(panel: &Panel, panels: usize) -> f64 {
    let plot = if panels > 2 { PLOT.1 } else { PLOT.0 };
    plot.max(panel.lines.len() as f64 * NAME_STEP)
}

/// The largest value of a panel with its whisker and samples.
fn largest(panel: &Panel) -> f64 {
    panel
        .lines
        .iter()
        .flat_map(|line| &line.points)
        .filter_map(|point| point.value.as_ref())
        .map(reach)
        .fold(0.0, f64::max)
}

/// Room on the left for the tick labels of all panels.
pub fn gutter(panels: &[Panel], heights: &[f64]) -> f64 {
    let widest = panels
        .iter()
        .zip(heights)
        .map(|(panel, height)| {
            let axis = Linear::upward(largest(panel), *height);
            axis.ticks()
                .into_iter()
                .map(|tick| number::tick(tick, axis.step))
                .map(|label| text::width(&label, TICK_SIZE, Weight::Regular))
                .fold(0.0, f64::max)
        })
        .fold(0.0, f64::max);
    (widest + TICK_GAP).ceil()
}

impl<'a> PanelView<'a> {
    /// A panel whose name has its baseline at `heading`.
    pub fn new(panel: &'a Panel, across: &'a Across, heading: f64, height: f64) -> Self {
        Self {
            panel,
            across,
            axis: Linear::upward(largest(panel), height),
            heading,
            top: heading + HEADING,
        }
    }

    /// End of the plot.
    pub fn bottom(&self) -> f64 {
        self.top + self.axis.length
    }

    /// The plot, with room above it as far as the heading allows.
    pub fn inside(&self) -> Rect {
        let (left, right) = self.across.ends();
        Rect::between(left + 2.0, self.heading + 4.0, right, self.bottom() - 2.0)
    }

    /// Position of a value in px.
    pub fn y(&self, value: f64) -> f64 {
        self.bottom() - self.axis.at(value)
    }

    /// Draws name, grid and axes.
    pub fn draw_frame(&self, scene: &mut Scene, width: f64) {
        let (left, right) = self.across.ends();
        let name = Label::new(self.panel.heading, 0.0, self.heading, 14.0, self.panel.ink).bold();
        let after = name.bounds().right() + 8.0;
        scene.label(name);
        let note = text::shorten(&self.panel.note, width - after, NOTE, Weight::Regular);
        scene.label(Label::new(note, after, self.heading, NOTE, Role::InkSecond));
        for value in self.axis.ticks() {
            let y = crisp(self.y(value));
            if value > 0.0 {
                scene.grid_line((left, y), (right, y));
            }
            scene.label(
                Label::new(
                    number::tick(value, self.axis.step),
                    left - TICK_GAP,
                    y + 4.0,
                    TICK_SIZE,
                    Role::InkThird,
                )
                .anchored(Anchor::End),
            );
        }
        self.across.draw(scene, crisp(self.bottom()));
    }

    /// Draws every line with its marks.
    pub fn draw_lines(&self, scene: &mut Scene) -> Vec<LineMarks> {
        self.panel
            .lines
            .iter()
            .map(|line| self.draw_line(scene, line))
            .collect()
    }

    fn draw_line(&self, scene: &mut Scene, of: &Line) -> LineMarks {
        let shape = self.panel.shape;
        let at = |point: &super::At| {
            let value = point.value.as_ref()?;
            Some((self.across.at(point.place), self.y(value.mean)))
        };
        let stroke = if self.panel.is_course { 1.0 } else { 2.0 };
        for pair in of.points.windows(2) {
            if let (Some(from), Some(to)) = (at(&pair[0]), at(&pair[1])) {
                scene.mark(Layer::Mark, line(from, to, stroke, shape));
            }
        }
        let points = of
            .points
            .iter()
            .map(|point| {
                let x = self.across.at(point.place);
                let missing = PointMarks {
                    mark: None,
                    place: (x, self.bottom()),
                    samples: Vec::new(),
                    whisker: false,
                    right: x,
                    ends: (self.bottom(), self.bottom()),
                };
                match &point.value {
                    None => missing,
                    Some(value) => self.draw_point(scene, of.marker, x, value),
                }
            })
            .collect();
        if self.panel.is_course {
            self.draw_ends(scene, of);
        }
        LineMarks { points }
    }

    fn draw_point(
        &self,
        scene: &mut Scene,
        marker: Marker,
        x: f64,
        value: &Measured,
    ) -> PointMarks {
        let shape = self.panel.shape;
        let y = self.y(value.mean);
        let mut point = PointMarks {
            mark: None,
            place: (x, y),
            samples: Vec::new(),
            whisker: false,
            right: x + CAP,
            ends: (y - MARK, y + MARK),
        };
        if let Some(deviation) = value.deviation {
            let (high, low) = (
                self.y(value.mean + deviation),
                self.y(value.mean - deviation),
            );
            // One that the mark hides is left to the read-out.
            if low - high > 2.0 * (MARK + 1.0) {
                for (from, to) in [
                    ((x, high), (x, low)),
                    ((x - CAP, high), (x + CAP, high)),
                    ((x - CAP, low), (x + CAP, low)),
                ] {
                    scene.mark(Layer::Mark, line(from, to, 1.5, Role::Ink));
                }
                point.whisker = true;
                point.ends = (high, low);
            }
        }
        let count = value.samples.len();
        if count > 1 && self.panel.lines.len() <= FEW_LINES {
            let room = (self.across.spacing() * 0.6 - SAMPLES.0).clamp(0.0, 24.0);
            let step = SAMPLES.1.min(room / (count - 1) as f64);
            for (i, sample) in value.samples.iter().enumerate() {
                let at = (x + SAMPLES.0 + step * i as f64, self.y(*sample));
                scene.mark(
                    Layer::Mark,
                    Shape::Dot {
                        at,
                        radius: SAMPLE,
                        role: shape,
                    },
                );
                let dot = Rect::between(at.0, at.1, at.0, at.1).grown(SAMPLE, SAMPLE);
                point.right = point.right.max(dot.right());
                point.samples.push(dot);
            }
        }
        let size = if self.panel.is_course {
            SMALL_MARK
        } else {
            MARK
        };
        point.mark = Some(marker.draw(scene, (x, y), size, shape));
        point
    }

    /// The mean of the first and of the last part of a course, as lines in ink.
    fn draw_ends(&self, scene: &mut Scene, of: &Line) {
        for end in ends(of).into_iter().flatten() {
            let y = self.y(end.mean);
            let (from, to) = (self.across.at(end.from), self.across.at(end.to));
            scene.mark(Layer::Overlay, line((from, y), (to, y), 2.0, Role::Ink));
        }
    }

    /// The panel as values.
    pub fn data(&self, across: &str) -> data::Panel {
        data::Panel {
            id: self.panel.id.to_owned(),
            unit: self.panel.unit.to_owned(),
            origin: self.bottom(),
            scale: self.axis.scale(),
            end: self.axis.end,
            ticks: self.axis.ticks(),
            upward: true,
            logarithmic: false,
            across: Some(across.to_owned()),
        }
    }
}

/// One end of a course: its mean, and between which places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct End {
    /// Mean of its samples.
    pub mean: f64,
    /// First place.
    pub from: f64,
    /// Last place.
    pub to: f64,
}

/// The first and the last fifth of a course; `None` below two samples in each.
pub fn ends(of: &Line) -> Option<[End; 2]> {
    let (places, values): (Vec<f64>, Vec<f64>) = of
        .points
        .iter()
        .filter_map(|point| Some((point.place, point.value.as_ref()?.mean)))
        .unzip();
    let [first, last] = ends_of(&values)?;
    let part = values.len() / END_PART;
    let end = |mean: f64, places: &[f64]| End {
        mean,
        from: places[0],
        to: places[places.len() - 1],
    };
    Some([
        end(first, &places[..part]),
        end(last, &places[places.len() - part..]),
    ])
}

/// Mean of the first and of the last fifth of values in their order; `None` where a fifth is not
/// two of them.
pub fn ends_of(values: &[f64]) -> Option<[f64; 2]> {
    let part = values.len() / END_PART;
    if part < 2 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Some([mean(&values[..part]), mean(&values[values.len() - part..])])
}
