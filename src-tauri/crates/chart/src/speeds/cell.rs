//! One cell: what was measured of one phase of one run, and the expected range behind it.

use crate::bar::{self, BAR, value_labels};
use crate::palette::Role;
use crate::scene::{Layer, Rect, Scene, Shape, crisp, line};

use super::Phase;
use super::panel::PanelView;

/// The band stands out of the bar by so much above and below.
pub const BAND_OUT: f64 = 5.0;
/// Baseline of the value above the bar.
pub const VALUE: f64 = 11.0;
/// Baseline of a note on the value's line: a little higher, since notes have descenders.
pub const NOTE_ABOVE: f64 = 13.0;
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
            let bar = bar::draw(scene, &panel.axis, panel.look().shape, measured, bar_top);
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

    /// Left and right end of the samples.
    pub fn samples_span(&self) -> Option<(f64, f64)> {
        self.samples.iter().fold(None, |span, dot| {
            let (left, right) = span.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
            Some((dot.x.min(left), dot.right().max(right)))
        })
    }
}
