//! A measured bar: mean, whisker, every sample; and the value above it.

use crate::axis::Linear;
use crate::measured::Measured;
use crate::number;
use crate::palette::Role;
use crate::scene::{Label, Layer, Rect, Scene, Shape, line};

/// Height of a bar in px.
pub const BAR: f64 = 24.0;
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

/// Where the marks of a bar are.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The bar itself.
    pub area: Rect,
    /// The samples below its end, the first on top.
    pub samples: Vec<Rect>,
    /// Whether it has a whisker that can be told from a line.
    pub whisker: bool,
    /// Right end of bar and whisker.
    pub extent: f64,
}

/// Draws what was measured as a bar from the axis' zero, its upper edge at `top`.
pub fn draw(scene: &mut Scene, axis: &Linear, role: Role, measured: &Measured, top: f64) -> Bar {
    let left = axis.origin + 0.5;
    let end = axis.at(measured.mean).max(left);
    let area = Rect::between(left, top, end, top + BAR);
    if area.w > 0.0 {
        scene.mark(Layer::Mark, Shape::Fill(area, role));
    }
    spread(scene, axis, role, measured, area)
}

/// Draws whisker and samples of a bar that is drawn already.
pub fn spread(
    scene: &mut Scene,
    axis: &Linear,
    role: Role,
    measured: &Measured,
    area: Rect,
) -> Bar {
    let mut bar = Bar {
        area,
        samples: Vec::new(),
        whisker: false,
        extent: area.right(),
    };
    bar.draw_whisker(scene, axis, measured);
    bar.draw_samples(scene, axis, role, measured);
    bar
}

impl Bar {
    fn draw_whisker(&mut self, scene: &mut Scene, axis: &Linear, measured: &Measured) {
        let Some(deviation) = measured.deviation.filter(|deviation| *deviation > 0.0) else {
            return;
        };
        let low = axis.at(measured.mean - deviation);
        let high = axis.at(measured.mean + deviation);
        let middle = self.area.y + BAR / 2.0;
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

    fn draw_samples(&mut self, scene: &mut Scene, axis: &Linear, role: Role, measured: &Measured) {
        let steps = (measured.samples.len().max(2) - 1) as f64;
        let step = SAMPLE_STEP.min(SAMPLE_HEIGHT / steps);
        for (i, sample) in measured.samples.iter().enumerate() {
            let at = (
                axis.at(*sample),
                self.area.bottom() + FIRST_SAMPLE + step * i as f64,
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
