//! What a figure consists of, in px, before plotters draws it; and where there is still room.

use crate::palette::Role;
use crate::text::{self, Weight};

/// A rectangle in px: left, top, width, height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

impl Rect {
    /// From its edges, in any order.
    pub fn between(x0: f64, y0: f64, x1: f64, y1: f64) -> Self {
        Self {
            x: x0.min(x1),
            y: y0.min(y1),
            w: (x1 - x0).abs(),
            h: (y1 - y0).abs(),
        }
    }

    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.w
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.h
    }

    /// As large again on each side by so much.
    pub fn grown(&self, dx: f64, dy: f64) -> Self {
        Self {
            x: self.x - dx,
            y: self.y - dy,
            w: self.w + 2.0 * dx,
            h: self.h + 2.0 * dy,
        }
    }

    /// Whether the two share any area.
    pub fn meets(&self, other: &Self) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.bottom()
            && other.y < self.bottom()
    }

    /// Whether `inner` lies in it.
    pub fn contains(&self, inner: &Self) -> bool {
        self.x <= inner.x
            && self.y <= inner.y
            && inner.right() <= self.right()
            && inner.bottom() <= self.bottom()
    }
}

/// Where a text's `x` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// At its middle.
    Middle,
    /// At its right end.
    End,
}

/// One line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// What it says.
    pub text: String,
    /// Position of its anchor.
    pub x: f64,
    /// Its baseline.
    pub y: f64,
    /// Which part of it `x` is.
    pub anchor: Anchor,
    /// Font size in px.
    pub size: f64,
    /// Weight.
    pub weight: Weight,
    /// Colour.
    pub role: Role,
}

impl Label {
    /// A regular text that starts at `x`.
    pub fn new(text: impl Into<String>, x: f64, y: f64, size: f64, role: Role) -> Self {
        Self {
            text: text.into(),
            x,
            y,
            anchor: Anchor::Start,
            size,
            weight: Weight::Regular,
            role,
        }
    }

    /// The same in semibold.
    pub fn bold(mut self) -> Self {
        self.weight = Weight::SemiBold;
        self
    }

    /// The same with another anchor.
    pub fn anchored(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    /// Width in px.
    pub fn width(&self) -> f64 {
        text::width(&self.text, self.size, self.weight)
    }

    /// The box of its letters: ascenders to descenders of Inter.
    pub fn bounds(&self) -> Rect {
        let w = self.width();
        let x = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - w / 2.0,
            Anchor::End => self.x - w,
        };
        Rect {
            x,
            y: self.y - 0.77 * self.size,
            w,
            h: 0.98 * self.size,
        }
    }
}

/// The drawing order: what comes later lies above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Grid lines.
    Grid,
    /// Ground behind text that crosses the grid.
    Ground,
    /// Predictions.
    Band,
    /// Measurements.
    Mark,
    /// Whiskers and ceilings.
    Overlay,
    /// Text.
    Text,
}

/// Something to draw.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A filled rectangle without an outline.
    Fill(Rect, Role),
    /// A straight line with its width.
    Line {
        /// From (x, y).
        from: (f64, f64),
        /// To (x, y).
        to: (f64, f64),
        /// Stroke width.
        stroke: f64,
        /// Colour.
        role: Role,
        /// Lengths of dash and gap; solid without.
        dash: Option<(f64, f64)>,
    },
    /// A filled circle.
    Dot {
        /// Centre (x, y).
        at: (f64, f64),
        /// Radius.
        radius: f64,
        /// Colour.
        role: Role,
    },
    /// A text.
    Text(Label),
}

/// Everything a figure shows, and the room it takes.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    shapes: Vec<(Layer, Shape)>,
    taken: Vec<Rect>,
    grid: Vec<Rect>,
}

/// The least distance of a label to marks and other labels.
const CLEAR: (f64, f64) = (3.0, 3.0);

impl Scene {
    /// Adds a shape that labels may cross (grid, ground).
    pub fn under(&mut self, layer: Layer, shape: Shape) {
        self.shapes.push((layer, shape));
    }

    /// Adds a grid line, upright or level; labels that cross it get a ground of their own.
    pub fn grid_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let line = line(from, to, 1.0, Role::Grid);
        self.grid.push(bounds(&line));
        self.under(Layer::Grid, line);
    }

    /// Adds a mark; its room is taken.
    pub fn mark(&mut self, layer: Layer, shape: Shape) {
        match shape {
            // Beside a slope there is room that the box around it would not show.
            Shape::Line {
                from, to, stroke, ..
            } if from.0 != to.0 && from.1 != to.1 => {
                self.taken.extend(along(from, to, stroke));
            }
            _ => self.taken.push(bounds(&shape)),
        }
        self.shapes.push((layer, shape));
    }

    /// Adds a label; its room is taken.
    pub fn label(&mut self, label: Label) {
        if label.text.is_empty() {
            return;
        }
        let area = label.bounds();
        let ground = area.grown(CLEAR.0, 1.0);
        if self.grid.iter().any(|line| line.meets(&ground)) {
            self.under(Layer::Ground, Shape::Fill(ground, Role::Background));
        }
        self.taken.push(area);
        self.shapes.push((Layer::Text, Shape::Text(label)));
    }

    /// Whether all these labels would stand clear of everything there is, and inside `inside`.
    pub fn has_room(&self, labels: &[Label], inside: &Rect) -> bool {
        labels.iter().all(|label| {
            let area = label.bounds();
            let clear = area.grown(CLEAR.0, CLEAR.1);
            inside.contains(&area) && !self.taken.iter().any(|taken| taken.meets(&clear))
        })
    }

    /// Whether nothing is there: marks and labels alike.
    pub fn is_free(&self, area: &Rect) -> bool {
        !self.taken.iter().any(|taken| taken.meets(area))
    }

    /// The shapes from the lowest to the highest.
    pub fn shapes(&self) -> Vec<&Shape> {
        let mut sorted: Vec<_> = self.shapes.iter().collect();
        sorted.sort_by_key(|(layer, _)| *layer);
        sorted.into_iter().map(|(_, shape)| shape).collect()
    }
}

/// Length of the pieces that a slope is cut into, in px.
const PIECE: f64 = 4.0;

/// The room a sloping line takes, piece by piece.
fn along(from: (f64, f64), to: (f64, f64), stroke: f64) -> impl Iterator<Item = Rect> {
    let pieces = ((to.0 - from.0).hypot(to.1 - from.1) / PIECE)
        .ceil()
        .max(1.0);
    let at = move |i: f64| {
        let t = i / pieces;
        (from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t)
    };
    (0..pieces as u32).map(move |i| {
        let (a, b) = (at(f64::from(i)), at(f64::from(i) + 1.0));
        Rect::between(a.0, a.1, b.0, b.1).grown(stroke / 2.0, stroke / 2.0)
    })
}

/// The room a shape takes.
fn bounds(shape: &Shape) -> Rect {
    match shape {
        Shape::Fill(rect, _) => *rect,
        Shape::Line {
            from, to, stroke, ..
        } => Rect::between(from.0, from.1, to.0, to.1).grown(stroke / 2.0, stroke / 2.0),
        Shape::Dot { at, radius, .. } => {
            Rect::between(at.0, at.1, at.0, at.1).grown(*radius, *radius)
        }
        Shape::Text(label) => label.bounds(),
    }
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

/// The middle of a pixel, where a line of 1 px is sharp.
pub fn crisp(x: f64) -> f64 {
    x.floor() + 0.5
}
