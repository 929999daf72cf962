//! A column: one quantity of every row, on an axis from zero.

use crate::axis::{Linear, TICK_SIZE};
use crate::bar::{self, BAR, Bar, value_labels};
use crate::data;
use crate::measured::{Measured, in_words, reach};
use crate::number;
use crate::palette::Role;
use crate::rows::Geometry;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, crisp, line};
use crate::text::{self, Weight};

use super::{Divergence, Quality, perplexity};

/// Baseline of the value above the bar.
const VALUE: f64 = 11.0;
/// The axis' line stands out of the bar by so much.
const OUT: f64 = 5.0;

/// A column.
pub struct Column {
    /// Key in the data layer.
    pub id: &'static str,
    /// As a heading.
    pub heading: &'static str,
    /// Of its axis.
    pub title: &'static str,
    /// Of its values in read-outs.
    pub unit: &'static str,
    /// Colour of its bars.
    pub shape: Role,
    /// Colour of its text.
    pub ink: Role,
    /// One for each row; `None` = not measured.
    pub cells: Vec<Option<Cell>>,
}

/// A value with its bar and its words.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What the bar shows.
    pub bar: Measured,
    /// The value above it, where it is not the bar's own.
    value: Option<[String; 2]>,
    /// In read-outs.
    pub words: String,
}

impl Cell {
    /// A speed.
    pub fn speed(measured: Measured) -> Self {
        Self {
            words: in_words(&measured, "tok/s"),
            bar: measured,
            value: None,
        }
    }

    /// A perplexity, its bar as long as it is above the lowest, in percent.
    pub fn perplexity(quality: &Quality, above: f64) -> Self {
        let value = perplexity(quality.perplexity);
        let more = match above {
            0.0 => "the lowest".to_owned(),
            above => format!("+{}", number::percent(above)),
        };
        let error = quality
            .perplexity_error
            .map(|error| format!(" ± {}", number::deviation(error, quality.perplexity)))
            .unwrap_or_default();
        Self {
            words: format!("{value}{error}, {more}"),
            bar: Measured {
                mean: above * 100.0,
                ..Measured::default()
            },
            value: Some([value, more]),
        }
    }

    /// A divergence with its standard error; none of the base model from itself.
    pub fn divergence(divergence: Divergence) -> Self {
        match divergence {
            Divergence::Base => Self {
                bar: Measured::default(),
                value: Some(["base".to_owned(), String::new()]),
                words: "the others are compared with it".to_owned(),
            },
            Divergence::Nats { mean, error } => {
                let bar = Measured {
                    mean,
                    deviation: Some(error),
                    samples: Vec::new(),
                };
                Self {
                    words: in_words(&bar, "nats"),
                    bar,
                    value: None,
                }
            }
        }
    }
}

/// A column as it is drawn.
pub struct Drawn {
    axis: Linear,
    /// The cells.
    pub cells: Vec<DrawnCell>,
}

/// A cell as it is drawn.
pub struct DrawnCell {
    /// Bar, whisker, samples.
    pub bar: Option<Bar>,
    /// The words in its place.
    pub missing: Rect,
}

/// Room for text: a panel and most of the gap to the next one.
fn room(left: f64, panel: f64, figure: f64) -> f64 {
    (panel + 24.0).min(figure - left)
}

impl Column {
    /// Whether anything of it was measured.
    pub fn has_values(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }

    /// Draws the column into its panel.
    pub fn draw(&self, scene: &mut Scene, panel: usize, geometry: &Geometry) -> Drawn {
        let left = geometry.panels[panel];
        let largest = self
            .cells
            .iter()
            .flatten()
            .map(|cell| reach(&cell.bar))
            .fold(0.0, f64::max);
        let axis = self.axis(largest, left, geometry.panel_width);
        self.draw_frame(scene, &axis, left, geometry);
        let cells = self
            .cells
            .iter()
            .zip(&geometry.bars)
            .map(|(cell, top)| {
                self.draw_cell(
                    scene,
                    cell.as_ref(),
                    &axis,
                    *top,
                    left + room(left, geometry.panel_width, geometry.width),
                )
            })
            .collect();
        Drawn { axis, cells }
    }

    /// An axis whose last label does not leave the panel.
    fn axis(&self, largest: f64, left: f64, width: f64) -> Linear {
        let origin = left + 0.5;
        let axis = Linear::holding(largest, origin, width - 1.0);
        let last = axis.ticks().last().copied().unwrap_or(0.0);
        let label = number::tick(last, axis.step);
        let half = text::width(&label, TICK_SIZE, Weight::Regular) / 2.0;
        Linear::holding(largest, origin, (width - half).min(width - 1.0).floor())
    }

    fn draw_frame(&self, scene: &mut Scene, axis: &Linear, left: f64, geometry: &Geometry) {
        let heading = text::shorten(self.heading, geometry.panel_width, 14.0, Weight::SemiBold);
        scene.label(Label::new(heading, left, geometry.panel_names, 14.0, self.ink).bold());
        for value in axis.ticks() {
            let x = crisp(axis.at(value));
            if value > 0.0 {
                for group in &geometry.groups {
                    scene.grid_line((x, group.top), (x, group.bottom));
                }
            }
            scene.label(
                Label::new(
                    number::tick(value, axis.step),
                    x,
                    geometry.bottom() + 18.0,
                    TICK_SIZE,
                    Role::InkThird,
                )
                .anchored(Anchor::Middle),
            );
        }
        let room = room(left, geometry.panel_width, geometry.width);
        let title = text::shorten(self.title, room, TICK_SIZE, Weight::Regular);
        scene.label(Label::new(
            title,
            left,
            geometry.axis_titles(),
            TICK_SIZE,
            Role::InkThird,
        ));
    }

    fn draw_cell(
        &self,
        scene: &mut Scene,
        cell: Option<&Cell>,
        axis: &Linear,
        top: f64,
        right: f64,
    ) -> DrawnCell {
        let left = axis.origin - 0.5;
        let bar = cell.map(|cell| bar::draw(scene, axis, self.shape, &cell.bar, top));
        scene.mark(
            Layer::Overlay,
            line(
                (axis.origin, top - OUT),
                (axis.origin, top + BAR + OUT),
                1.0,
                Role::InkThird,
            ),
        );
        let mut labels = match cell.and_then(|cell| cell.value.as_ref()) {
            Some([value, more]) => {
                let value = Label::new(value.clone(), left, top - VALUE, 16.0, self.ink).bold();
                let after = value.bounds().right() + 6.0;
                vec![
                    value,
                    Label::new(more.clone(), after, top - VALUE, 13.0, Role::InkThird),
                ]
            }
            None => value_labels(cell.map(|cell| &cell.bar), left, top - VALUE, self.ink),
        };
        // A panel too narrow for what stands behind the value leaves it to the read-out.
        labels.retain(|label| label.x == left || label.bounds().right() <= right);
        let missing = labels
            .first()
            .map_or(Rect::between(left, top, left, top), Label::bounds);
        for label in labels {
            scene.label(label);
        }
        DrawnCell { bar, missing }
    }

    /// The column as values.
    pub fn data(&self, drawn: &Drawn) -> data::Panel {
        data::Panel {
            id: self.id.to_owned(),
            unit: self.unit.to_owned(),
            origin: drawn.axis.origin,
            scale: drawn.axis.scale(),
            end: drawn.axis.end,
            ticks: drawn.axis.ticks(),
            upward: false,
            logarithmic: false,
            across: None,
        }
    }
}
