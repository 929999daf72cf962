//! The plot: axes, limits, steps.

use crate::axis::TICK_SIZE;
use crate::data;
use crate::measured::{Measured, reach};
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, Shape, crisp, line};
use crate::text::{self, Weight};

use super::logarithmic::Logarithmic;
use super::{Limit, Prepared, RooflineStep};

/// From the header to the title of the axis upward.
const ABOVE: f64 = 44.0;
/// From there to the plot.
const TO_PLOT: f64 = 14.0;
/// Height of the plot where none is asked for, and the least and the most.
const HEIGHT: f64 = 380.0;
const HEIGHTS: (f64, f64) = (240.0, 560.0);
/// From the plot's end to the tick labels, and to the axis' title.
const TICKS: f64 = 18.0;
const AXIS_TITLE: f64 = 38.0;
/// Lines of explanations below, at most.
const NOTES: f64 = 60.0;
const TICK_GAP: f64 = 8.0;
/// The least gap between two tick labels beside each other.
const LEAST_GAP: f64 = 8.0;
/// What the axes hold beyond the outermost values: room for labels.
const BESIDE: (f64, f64) = (2.8, 1.6);
const ABOVE_ALL: f64 = 2.2;
const BELOW_ALL: f64 = 1.7;
const DASH: (f64, f64) = (4.0, 3.0);
/// A limit so many times above every speed does not stretch the axis.
const FAR: f64 = 30.0;
/// Half the width of an expected range.
const BAND: f64 = 5.0;
/// Half the side of a measured mark and of an expected one; each the ends and between.
const MEASURED: (f64, f64) = (5.5, 3.6);
const EXPECTED: f64 = 5.5;
const RING: f64 = 1.5;
const CAP: f64 = 4.0;

/// The place of everything.
#[derive(Debug)]
pub struct Plot {
    /// Operations per byte.
    pub across: Logarithmic,
    /// GFLOP/s.
    pub upward: Logarithmic,
    /// Left, top, right and bottom of the plot.
    pub area: Rect,
    /// Width of the figure.
    pub width: f64,
    /// Whether one series stands alone.
    pub alone: bool,
}

/// A limit of one or several series.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitLine {
    /// Which.
    pub limit: Limit,
    /// GB/s or GFLOP/s.
    pub value: f64,
    /// Indexes of the series that share it.
    pub of: Vec<usize>,
    /// Its ends from left to right.
    pub ends: ((f64, f64), (f64, f64)),
}

/// Where a step is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnStep {
    /// What was measured.
    pub measured: Option<Rect>,
    /// What is expected.
    pub expected: Option<Rect>,
    /// The expected range.
    pub band: Option<Rect>,
    /// Where words about it stand: its mark, or its place on the limit.
    pub place: (f64, f64),
    /// Upper and lower end of all its marks.
    pub ends: (f64, f64),
}

/// The form of a series' marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Dot,
    Square,
    Upright,
    Level,
}

impl Form {
    fn of(row: usize) -> Self {
        [Self::Dot, Self::Square, Self::Upright, Self::Level][row % 4]
    }

    /// The box of a mark with this half side.
    fn area(self, (x, y): (f64, f64), half: f64) -> Rect {
        let (w, h) = match self {
            Self::Dot | Self::Square => (half, half),
            Self::Upright => (half * 0.62, half * 1.25),
            Self::Level => (half * 1.25, half * 0.62),
        };
        Rect::between(x, y, x, y).grown(w, h)
    }

    fn draw(self, scene: &mut Scene, layer: Layer, at: (f64, f64), half: f64, role: Role) -> Rect {
        let area = self.area(at, half);
        scene.mark(
            layer,
            match self {
                Self::Dot => Shape::Dot {
                    at,
                    radius: half,
                    role,
                },
                _ => Shape::Fill(area, role),
            },
        );
        area
    }

    fn draw_hollow(self, scene: &mut Scene, at: (f64, f64), half: f64, role: Role) -> Rect {
        let area = self.draw(scene, Layer::Band, at, half, role);
        let inner = match self {
            Self::Dot => Shape::Dot {
                at,
                radius: half - RING,
                role: Role::Background,
            },
            _ => Shape::Fill(area.grown(-RING, -RING), Role::Background),
        };
        scene.mark(Layer::Band, inner);
        area
    }
}

/// Least and largest of values; `None` of nothing.
fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Least and largest of what a step shows.
fn shown(step: &RooflineStep) -> impl Iterator<Item = f64> + '_ {
    let expected = step.expected.iter().flat_map(|e| [e.low, e.high]);
    let measured = step.measured.iter().flat_map(|m| [m.mean, reach(m)]);
    expected.chain(measured).filter(|value| *value > 0.0)
}

impl Plot {
    /// The plot below `header`, the last baseline above, with `footer` px below it.
    pub fn new(
        rows: &[Prepared],
        (width, height): (f64, Option<f64>),
        names: f64,
        header: f64,
        footer: f64,
    ) -> Self {
        let steps = || rows.iter().flat_map(|row| &row.steps);
        let (least, most) = span(steps().map(|step| step.intensity)).unwrap_or((1.0, 10.0));
        let ridges = rows.iter().filter_map(Prepared::ridge);
        // A ridge not far beyond the last step is worth its room.
        let ridge = ridges
            .filter(|ridge| *ridge <= most * 30.0)
            .fold(0.0, f64::max);
        let (left, right) = (least / BESIDE.0, most.max(ridge) * BESIDE.1);
        let limits = rows.iter().flat_map(|row| {
            let at = |step: &RooflineStep| row.limit(step.intensity).map(|(value, _)| value);
            let ridge = row
                .arithmetic
                .filter(|_| row.ridge().is_some_and(|r| r <= right));
            row.steps
                .iter()
                .filter_map(at)
                .chain(ridge)
                .collect::<Vec<_>>()
        });
        let speeds = span(steps().flat_map(shown));
        // A slope that goes on without a roof leaves the figure at its top.
        let near = |value: &f64| speeds.is_none_or(|(_, most)| *value <= most * FAR);
        let (low, high) =
            span(steps().flat_map(shown).chain(limits.filter(near))).unwrap_or((1.0, 10.0));

        let top = header + ABOVE + TO_PLOT;
        let fixed = top + AXIS_TITLE + NOTES + footer;
        let plot_height = height.map_or(HEIGHT, |height| {
            (height - fixed).floor().clamp(HEIGHTS.0, HEIGHTS.1)
        });
        let bottom = top + plot_height;
        let upward = Logarithmic::between(low / BELOW_ALL, high * ABOVE_ALL, bottom, top);
        let gutter = upward
            .ticks()
            .into_iter()
            .map(|tick| text::width(&tick_text(tick), TICK_SIZE, Weight::Regular))
            .fold(0.0, f64::max);
        let area = Rect::between((gutter + TICK_GAP).ceil(), top, width - names, bottom);
        Self {
            across: Logarithmic::between(left, right, area.x, area.right()),
            upward,
            area,
            width,
            alone: rows.len() == 1,
        }
    }

    /// Draws grid, ticks and the axes' titles.
    pub fn draw_frame(&self, scene: &mut Scene) {
        let area = &self.area;
        scene.label(Label::new(
            "GFLOP/s",
            0.0,
            area.y - TO_PLOT,
            TICK_SIZE,
            Role::InkThird,
        ));
        for value in self.upward.ticks() {
            let y = crisp(self.upward.at(value));
            scene.grid_line((area.x, y), (area.right(), y));
            scene.label(
                Label::new(
                    tick_text(value),
                    area.x - TICK_GAP,
                    y + 4.0,
                    TICK_SIZE,
                    Role::InkThird,
                )
                .anchored(Anchor::End),
            );
        }
        let bottom = crisp(area.bottom());
        let mut free = 0.0;
        for value in self.across.ticks() {
            let x = crisp(self.across.at(value));
            scene.grid_line((x, area.y), (x, bottom));
            let label = Label::new(
                tick_text(value),
                x,
                bottom + TICKS,
                TICK_SIZE,
                Role::InkThird,
            )
            .anchored(Anchor::Middle);
            let bounds = label.bounds();
            if bounds.x >= free && bounds.right() <= self.width {
                free = bounds.right() + LEAST_GAP;
                scene.label(label);
            }
        }
        scene.mark(
            Layer::Overlay,
            line(
                (area.x, bottom),
                (area.right(), bottom),
                1.0,
                Role::InkThird,
            ),
        );
        scene.label(Label::new(
            "operations per byte read (FLOP/byte)",
            area.x,
            area.bottom() + AXIS_TITLE,
            TICK_SIZE,
            Role::InkThird,
        ));
    }

    /// Draws the limits; those that series share are one line.
    pub fn draw_limits(&self, scene: &mut Scene, rows: &[Prepared]) -> Vec<LimitLine> {
        let mut lines: Vec<LimitLine> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            for (limit, value) in [
                (Limit::Memory, row.reading),
                (Limit::Arithmetic, row.arithmetic),
            ] {
                let Some(value) = value else { continue };
                let Some(ends) = self.ends_of(limit, value, row) else {
                    continue;
                };
                let same = |other: &&mut LimitLine| {
                    other.limit == limit && (other.value / value - 1.0).abs() < 0.005
                };
                match lines.iter_mut().find(same) {
                    Some(shared) => {
                        shared.of.push(index);
                        shared.ends = longer(limit, shared.ends, ends);
                    }
                    None => lines.push(LimitLine {
                        limit,
                        value,
                        of: vec![index],
                        ends,
                    }),
                }
            }
        }
        for limit in &lines {
            scene.mark(
                Layer::Overlay,
                Shape::Line {
                    from: limit.ends.0,
                    to: limit.ends.1,
                    stroke: 1.5,
                    role: Role::Ceiling,
                    dash: Some(DASH),
                },
            );
        }
        lines
    }

    /// The visible part of a limit: the slope up to the ridge, the roof from there on.
    fn ends_of(
        &self,
        limit: Limit,
        value: f64,
        row: &Prepared,
    ) -> Option<((f64, f64), (f64, f64))> {
        let (least, most) = self.across.ends();
        let (low, high) = self.upward.ends();
        let ridge = row.ridge();
        let point = |intensity: f64, speed: f64| (self.across.at(intensity), self.upward.at(speed));
        match limit {
            Limit::Memory => {
                let from = least.max(low / value);
                let to = most.min(high / value).min(ridge.unwrap_or(f64::INFINITY));
                (from < to).then(|| (point(from, from * value), point(to, to * value)))
            }
            Limit::Arithmetic => {
                let from = ridge.unwrap_or(least).max(least);
                let y = crisp(self.upward.at(value));
                (from < most && self.upward.holds(value))
                    .then(|| ((self.across.at(from), y), (self.across.at(most), y)))
            }
        }
    }

    /// Draws every step: the expected path and its ranges behind, what was measured before.
    pub fn draw_steps(&self, scene: &mut Scene, rows: &[Prepared]) -> Vec<Vec<DrawnStep>> {
        for row in rows {
            let path: Vec<(f64, f64)> = row
                .steps
                .iter()
                .filter_map(|step| {
                    let expected = step.expected?;
                    Some((
                        self.across.at(step.intensity),
                        self.upward.at(expected.value),
                    ))
                })
                .collect();
            for pair in path.windows(2) {
                scene.mark(Layer::Band, line(pair[0], pair[1], 1.5, Role::BandEdge));
            }
        }
        rows.iter()
            .enumerate()
            .map(|(index, row)| {
                let last = row.steps.iter().rposition(|step| step.measured.is_some());
                let first = row.steps.iter().position(|step| step.measured.is_some());
                row.steps
                    .iter()
                    .enumerate()
                    .map(|(i, step)| {
                        let is_end = self.alone && (Some(i) == first || Some(i) == last);
                        self.draw_step(scene, (index, row), step, is_end)
                    })
                    .collect()
            })
            .collect()
    }

    fn draw_step(
        &self,
        scene: &mut Scene,
        (index, row): (usize, &Prepared),
        step: &RooflineStep,
        is_end: bool,
    ) -> DrawnStep {
        let x = self.across.at(step.intensity);
        let limit = row.limit(step.intensity);
        let on_limit = limit.map_or(self.area.bottom(), |(value, _)| self.upward.at(value));
        let mut drawn = DrawnStep {
            measured: None,
            expected: None,
            band: None,
            place: (x, on_limit),
            ends: (on_limit, on_limit),
        };
        let form = Form::of(index);
        let mut marks: Vec<Rect> = Vec::new();
        if let Some(expected) = step.expected {
            let y = |value: f64| self.upward.at(value);
            let band = Rect::between(x - BAND, y(expected.high), x + BAND, y(expected.low));
            if band.h > 2.0 {
                scene.mark(Layer::Band, Shape::Fill(band, Role::Band));
                for edge in [band.y, band.bottom()] {
                    scene.mark(
                        Layer::Band,
                        line((band.x, edge), (band.right(), edge), 1.0, Role::BandEdge),
                    );
                }
            }
            let at = (x, y(expected.value));
            let ring = form.draw_hollow(scene, at, EXPECTED, Role::Ceiling);
            drawn.place = at;
            drawn.expected = Some(ring);
            drawn.band = Some(band);
            marks.extend([ring, band]);
        }
        if let Some(measured) = &step.measured {
            let role = match row.held_by(step.intensity) {
                Some(Limit::Memory) => Role::Decode,
                Some(Limit::Arithmetic) => Role::Prefill,
                None => Role::Ink,
            };
            let half = if is_end { MEASURED.0 } else { MEASURED.1 };
            let at = (x, self.upward.at(measured.mean));
            marks.extend(self.draw_whisker(scene, measured, at, half));
            let mark = form.draw(scene, Layer::Overlay, at, half, role);
            drawn.place = at;
            drawn.measured = Some(mark);
            marks.push(mark);
        }
        if let Some((top, _)) = span(marks.iter().map(|mark| mark.y)) {
            let bottom = marks.iter().map(Rect::bottom).fold(top, f64::max);
            drawn.ends = (top, bottom);
        }
        drawn
    }

    /// A whisker of one deviation where the mark does not hide it.
    fn draw_whisker(
        &self,
        scene: &mut Scene,
        measured: &Measured,
        (x, y): (f64, f64),
        half: f64,
    ) -> Option<Rect> {
        let deviation = measured.deviation?;
        let (least, _) = self.upward.ends();
        let high = self.upward.at(measured.mean + deviation);
        let low = self.upward.at((measured.mean - deviation).max(least));
        if y - high <= half + 1.0 {
            return None;
        }
        for (from, to) in [
            ((x, high), (x, low)),
            ((x - CAP, high), (x + CAP, high)),
            ((x - CAP, low), (x + CAP, low)),
        ] {
            scene.mark(Layer::Mark, line(from, to, 1.5, Role::Ink));
        }
        Some(Rect::between(x - CAP, high, x + CAP, low))
    }

    /// The panel as values.
    pub fn data(&self) -> data::Panel {
        data::Panel {
            id: "roofline".to_owned(),
            unit: "GFLOP/s".to_owned(),
            origin: self.upward.origin(),
            scale: -self.upward.scale(),
            end: self.upward.ends().1,
            ticks: self.upward.ticks(),
            upward: true,
            logarithmic: true,
            across: Some("intensity".to_owned()),
        }
    }
}

/// The longer of two parts of one limit.
fn longer(
    limit: Limit,
    one: ((f64, f64), (f64, f64)),
    other: ((f64, f64), (f64, f64)),
) -> ((f64, f64), (f64, f64)) {
    match limit {
        Limit::Memory if other.1.0 > one.1.0 => (one.0, other.1),
        Limit::Arithmetic if other.0.0 < one.0.0 => (other.0, one.1),
        _ => one,
    }
}

/// A tick as it is written.
fn tick_text(value: f64) -> String {
    number::limit(value)
}
