//! One cell: what was measured of one phase of one run, and the expected range behind it.

use crate::number;
use crate::palette::Role;
use crate::scene::{Label, Layer, Rect, Scene, Shape};

use super::geometry::BAR;
use super::panel::{PanelView, crisp};
use super::{Measured, Phase};

/// The band stands out of the bar by so much above and below.
pub const BAND_OUT: f64 = 5.0;
/// Baseline of the value above the bar.
pub const VALUE: f64 = 11.0;
/// Baseline of a note on the value's line: a little higher, since notes have descenders.
pub const NOTE_ABOVE: f64 = 13.0;
/// From the bar to the first sample.
const FIRST_SAMPLE: f64 = 10.5;
/// From one sample to the next, for up to five; more share the same height.
const SAMPLE_STEP: f64 = 4.3;
/// Height that the samples share.
const SAMPLE_HEIGHT: f64 = 4.0 * SAMPLE_STEP;
/// The least width of a whisker with two ends.
const LEAST_SEEN: f64 = 4.0;
/// Radius of a sample.
const SAMPLE_RADIUS: f64 = 2.1;

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
            samples: Vec::new(),
            whisker: false,
            extent: panel.axis.origin + 0.5,
            value_right: panel.left,
        };
        cell.draw_band(scene, panel, phase);
        if let Some(measured) = &phase.measured {
            cell.draw_measured(scene, panel, measured);
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
        let labels = value_labels(
            phase.measured.as_ref(),
            panel.left,
            bar_top - VALUE,
            panel.look().ink,
        );
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
        self.extent = self.extent.max(right + 0.5);
        self.band = Some(area);
    }

    fn draw_measured(&mut self, scene: &mut Scene, panel: &PanelView, measured: &Measured) {
        let axis = &panel.axis;
        let role = panel.look().shape;
        let left = axis.origin + 0.5;
        let end = axis.at(measured.mean).max(left);
        let bar = Rect::between(left, self.bar_top, end, self.bar_top + BAR);
        if bar.w > 0.0 {
            scene.mark(Layer::Mark, Shape::Fill(bar, role));
        }
        self.extent = self.extent.max(end);
        self.bar = Some(bar);

        if let Some(deviation) = measured.deviation.filter(|deviation| *deviation > 0.0) {
            let low = axis.at(measured.mean - deviation);
            let high = axis.at(measured.mean + deviation);
            let middle = self.bar_top + BAR / 2.0;
            for (from, to) in [
                ((low, middle), (high, middle)),
                ((low, middle - 5.0), (low, middle + 5.0)),
                ((high, middle - 5.0), (high, middle + 5.0)),
            ] {
                scene.mark(Layer::Overlay, line(from, to, 1.5, Role::Ink));
            }
            self.extent = self.extent.max(high + 0.75);
            self.whisker = high - low >= LEAST_SEEN;
        }

        let steps = (measured.samples.len().max(2) - 1) as f64;
        let step = SAMPLE_STEP.min(SAMPLE_HEIGHT / steps);
        for (i, sample) in measured.samples.iter().enumerate() {
            let at = (
                axis.at(*sample),
                self.bar_top + BAR + FIRST_SAMPLE + step * i as f64,
            );
            let dot = Shape::Dot {
                at,
                radius: SAMPLE_RADIUS,
                role,
            };
            scene.mark(Layer::Mark, dot);
            self.samples
                .push(Rect::between(at.0, at.1, at.0, at.1).grown(SAMPLE_RADIUS, SAMPLE_RADIUS));
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

/// What stands above the bar: the value and its deviation, or that there is none.
pub fn value_labels(measured: Option<&Measured>, x: f64, y: f64, ink: Role) -> Vec<Label> {
    let Some(measured) = measured else {
        return vec![Label::new("not measured", x, y, 13.0, Role::InkThird)];
    };
    let value = Label::new(number::speed(measured.mean), x, y, 16.0, ink).bold();
    let after = value.bounds().right() + 6.0;
    let mut labels = vec![value];
    if let Some(deviation) = measured.deviation {
        let text = format!("± {}", number::deviation(deviation, measured.mean));
        labels.push(Label::new(text, after, y, 13.0, Role::InkThird));
    }
    labels
}

/// A solid line.
pub fn line(from: (f64, f64), to: (f64, f64), stroke: f64, role: Role) -> Shape {
    Shape::Line {
        from,
        to,
        stroke,
        role,
        dash: None,
    }
}
