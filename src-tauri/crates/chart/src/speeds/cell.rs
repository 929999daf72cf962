//! One cell: what was measured of one phase of one run, and the expected range behind it.

use crate::bar::{self, BAR, value_labels};
use crate::measured::Measured;
use crate::number;
use crate::palette::Role;
use crate::scene::{Label, Layer, Rect, Scene, Shape, crisp, line};
use crate::time::{Cause, by_cause};

use super::panel::PanelView;
use super::{Form, Phase};

/// The band stands out of the bar by so much above and below.
pub const BAND_OUT: f64 = 5.0;
/// Baseline of the value above the bar.
pub const VALUE: f64 = 11.0;
/// Baseline of a note on the value's line: a little higher, since notes have descenders.
pub const NOTE_ABOVE: f64 = 13.0;
/// From the bar to the strip of what its time is made of, and the strip's height.
const STRIP: (f64, f64) = (1.5, 5.0);
/// The gap between two parts of the strip.
const STRIP_GAP: f64 = 1.0;
/// Radius of a measured mean where it is a point.
const POINT: f64 = 5.0;

/// Where the marks of a cell are.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Upper edge of the bar.
    pub bar_top: f64,
    /// The bar, where something was measured.
    pub bar: Option<Rect>,
    /// The words in its place, where nothing was.
    pub missing: Option<Rect>,
    /// The visible part of the expected range; without width where it lies beyond the axis.
    pub band: Option<Rect>,
    /// The parts of the strip.
    pub strip: Vec<(Cause, Rect)>,
    /// The samples.
    pub samples: Vec<Rect>,
    /// Whether it has a whisker that can be told from a line.
    pub whisker: bool,
    /// Right end of everything that stands at the height of the bar.
    pub extent: f64,
    /// Right end of the value above the bar.
    pub value_right: f64,
}

impl Cell {
    /// Draws the marks.
    pub fn draw(scene: &mut Scene, panel: &PanelView, phase: &Phase, bar_top: f64) -> Self {
        let mut cell = Self {
            bar_top,
            bar: None,
            missing: None,
            band: None,
            strip: Vec::new(),
            samples: Vec::new(),
            whisker: false,
            extent: panel.axis.origin + 0.5,
            value_right: panel.left,
        };
        cell.draw_band(scene, panel, phase);
        cell.draw_strip(scene, panel, phase);
        if let Some(measured) = &phase.measured {
            let role = panel.look().shape;
            let bar = match panel.form {
                Form::Bars => bar::draw(scene, &panel.axis, role, measured, bar_top),
                Form::Points => draw_point(scene, panel, measured, bar_top),
            };
            cell.extent = cell.extent.max(bar.extent);
            cell.whisker = bar.whisker;
            cell.samples = bar.samples;
            cell.bar = Some(bar.area);
        }
        scene.mark(
            Layer::Overlay,
            line(
                (panel.axis.origin, bar_top - BAND_OUT),
                (panel.axis.origin, bar_top + BAR + BAND_OUT),
                1.0,
                Role::InkThird,
            ),
        );
        let labels = labels(panel, phase, bar_top - VALUE);
        if let (None, Some(label)) = (&phase.measured, labels.first()) {
            cell.missing = Some(label.bounds());
        }
        for label in labels {
            cell.value_right = label.bounds().right();
            scene.label(label);
        }
        cell
    }

    fn draw_band(&mut self, scene: &mut Scene, panel: &PanelView, phase: &Phase) {
        let Some(expected) = phase.expected else {
            return;
        };
        let axis = &panel.axis;
        let (top, bottom) = (self.bar_top - BAND_OUT, self.bar_top + BAR + BAND_OUT);
        let (left, right) = (crisp(axis.at(expected.low)), crisp(axis.at(expected.high)));
        if !axis.holds(expected.low) {
            let end = axis.at(axis.end);
            self.band = Some(Rect::between(end, top, end, bottom));
            return;
        }
        // A range narrower than its edges stays a tick that can be seen.
        let right = right.max(left + 2.0);
        let area = Rect::between(left, top, right, bottom);
        scene.mark(Layer::Band, Shape::Fill(area, Role::Band));
        scene.mark(
            Layer::Band,
            line((left, top), (left, bottom), 1.0, Role::BandEdge),
        );
        if axis.holds(expected.high) {
            scene.mark(
                Layer::Band,
                line((right, top), (right, bottom), 1.0, Role::BandEdge),
            );
        }
        // The value itself, where the bar does not cover it; the bar is never read as reaching it.
        let value = crisp(axis.at(expected.value));
        if right - left > 4.0 && axis.holds(expected.value) {
            scene.mark(
                Layer::Band,
                line((value, top), (value, bottom), 1.5, Role::Ceiling),
            );
        }
        self.extent = self.extent.max(right + 0.5);
        self.band = Some(area);
    }

    /// What the expected time is made of, as long as the expected speed is.
    fn draw_strip(&mut self, scene: &mut Scene, panel: &PanelView, phase: &Phase) {
        let Some(expected) = phase.expected.filter(|_| !phase.parts.is_empty()) else {
            return;
        };
        let (left, top) = (panel.axis.origin + 0.5, self.bar_top + BAR + STRIP.0);
        let end = panel.axis.at(expected.value);
        let mut from = left;
        for (cause, _, share) in by_cause(&phase.parts) {
            let to = (from + share * (end - left)).min(end);
            // The gap is taken from parts that stay visible without it.
            let gap = if to < end && to - from > 2.0 * STRIP_GAP {
                STRIP_GAP
            } else {
                0.0
            };
            let area = Rect::between(from, top, to - gap, top + STRIP.1);
            if area.w > 0.0 {
                scene.mark(Layer::Mark, Shape::Fill(area, cause.role(panel.look())));
            }
            self.strip.push((cause, area));
            from = to;
        }
    }

    /// Left and right end of the samples.
    pub fn samples_span(&self) -> Option<(f64, f64)> {
        self.samples.iter().fold(None, |span, dot| {
            let (left, right) = span.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
            Some((dot.x.min(left), dot.right().max(right)))
        })
    }
}

/// What stands above the bar: the measured value with its deviation; of points also what is expected.
/// What finds no room in the panel is left to the read-out, never the first.
pub fn labels(panel: &PanelView, phase: &Phase, y: f64) -> Vec<Label> {
    let mut labels = value_labels(phase.measured.as_ref(), panel.left, y, panel.look().ink);
    if let (Form::Points, Some(expected)) = (panel.form, phase.expected) {
        let text = format!("expected {}", number::speed(expected.value));
        let expected = Label::new(text, panel.left, y, 13.0, Role::InkSecond);
        match phase.measured {
            Some(_) => labels.push(expected),
            None => labels.insert(0, expected),
        }
        let mut free = panel.left;
        for label in &mut labels {
            label.x = free;
            // A deviation stands close to its mean.
            let gap = if label.size > 13.0 { 6.0 } else { 12.0 };
            free = label.bounds().right() + gap;
        }
    }
    let mut first = true;
    labels.retain(|label| std::mem::take(&mut first) || label.bounds().right() <= panel.right);
    labels
}

/// A measured mean as a dot, with its whisker and samples.
fn draw_point(scene: &mut Scene, panel: &PanelView, measured: &Measured, top: f64) -> bar::Bar {
    let at = (panel.axis.at(measured.mean), top + BAR / 2.0);
    let row = Rect::between(panel.axis.origin + 0.5, top, at.0, top + BAR);
    let mut bar = bar::spread(scene, &panel.axis, panel.look().shape, measured, row);
    scene.mark(
        Layer::Mark,
        Shape::Dot {
            at,
            radius: POINT,
            role: panel.look().shape,
        },
    );
    bar.area = Rect::between(at.0, at.1, at.0, at.1).grown(POINT, POINT);
    bar.extent = bar.extent.max(bar.area.right());
    bar
}
