//! A section of the figure: waits that begin alike, on one axis, and their prompts beside them.

use crate::axis::{Linear, TICK_SIZE};
use crate::bar::{self, BAR, Bar};
use crate::look::NOTE;
use crate::measured::{Measured, reach};
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, Shape, crisp, line};
use crate::text::{self, Weight};

use super::{Part, Prepared};

/// From the section's name to its grid.
const NAME_TO_GRID: f64 = 16.0;
/// From the top of the grid to the first bar: room for its value.
const ABOVE: f64 = 33.0;
/// From a bar to the first line that names its parts: below the samples.
const PARTS: f64 = 46.0;
/// From one line of parts to the next.
const PARTS_STEP: f64 = 16.0;
/// From the last line of parts to the next bar's room.
const BELOW: f64 = 12.0;
/// From the grid's end to the axis' title.
const AXIS: f64 = 37.0;
/// Width of the prompts' column, the gap to the waits included.
const PROMPTS: f64 = 152.0;
const PROMPTS_GAP: f64 = 30.0;
/// Between two hatching lines.
const HATCH: f64 = 5.0;
/// Beyond this a section is drawn in seconds.
const IN_SECONDS: f64 = 10_000.0;
/// Between the words of two parts.
const WORDS_GAP: f64 = 12.0;

/// Where a wait is drawn.
pub struct Drawn {
    /// The bar up to the first token, with whisker and samples; `None` = not measured.
    pub bar: Option<Bar>,
    /// The words in its place.
    pub missing: Option<Rect>,
    /// The parts that have a width.
    pub parts: Vec<(Part, f64, Rect)>,
    /// Computed and reused tokens of the prompt.
    pub prompt: Option<[Rect; 2]>,
}

/// Waits that begin alike.
pub struct Section {
    /// Index of its first row.
    pub first: usize,
    /// Whether models are loaded.
    pub loads: bool,
    /// Milliseconds in one unit of the axis.
    pub unit: f64,
    /// Time, in the section's unit.
    pub axis: Linear,
    /// Tokens of prompts, where some were reused.
    pub tokens: Option<Linear>,
    /// Its waits.
    pub waits: Vec<Drawn>,
    right: f64,
    last: f64,
}

/// The words of the parts in lines from the axis' zero on, none beyond `right`.
fn flow(parts: &[(Part, f64)], axis: &Linear, right: f64) -> Vec<Vec<Label>> {
    let mut lines: Vec<Vec<Label>> = vec![Vec::new()];
    let mut free = axis.origin;
    for (part, ms) in parts {
        let words = format!("{} {}", part.words(), number::duration(*ms));
        let mut label = Label::new(words, free, 0.0, NOTE, part.roles().1);
        if label.bounds().right() > right && free > axis.origin {
            lines.push(Vec::new());
            label.x = axis.origin;
        }
        free = label.bounds().right() + WORDS_GAP;
        if let Some(line) = lines.last_mut() {
            line.push(label);
        }
    }
    lines
}

impl Section {
    /// Last baseline of it.
    pub fn last(&self) -> f64 {
        self.last
    }

    /// Draws the section whose name has its baseline at `top`, beside a column of names that ends
    /// at `left`.
    pub fn draw(
        scene: &mut Scene,
        rows: &[Prepared],
        first: usize,
        top: f64,
        (left, width): (f64, f64),
    ) -> Self {
        let loads = rows.iter().any(|row| row.request.loads());
        let has_prompts = rows.iter().any(|row| row.reused > 0) || !loads;
        let right = width - if has_prompts { PROMPTS } else { 0.0 };
        let largest = rows.iter().map(longest).fold(0.0, f64::max);
        let unit = if largest >= IN_SECONDS { 1e3 } else { 1.0 };
        let axis = Linear::holding(largest / unit, left + 0.5, right - left - 22.0);
        let tokens = has_prompts.then(|| {
            let most = rows.iter().map(|row| row.prompt).max().unwrap_or(0) as f64;
            Linear::holding(
                most,
                right + PROMPTS_GAP + 0.5,
                width - right - PROMPTS_GAP - 14.0,
            )
        });
        let mut section = Self {
            first,
            loads,
            unit,
            axis,
            tokens,
            waits: Vec::new(),
            right,
            last: 0.0,
        };
        let grid = top + NAME_TO_GRID;
        let mut bars = Vec::new();
        let mut next = grid;
        for row in rows {
            let lines = flow(&row.parts, &section.axis, right);
            let bar_top = next + ABOVE;
            next = bar_top + BAR + PARTS + PARTS_STEP * (lines.len() - 1) as f64 + BELOW;
            bars.push((bar_top, lines));
        }
        section.draw_frame(scene, top, (grid, next));
        for (index, (row, (bar_top, lines))) in rows.iter().zip(bars).enumerate() {
            row.names.draw(scene, bar_top, left);
            let drawn = section.draw_wait(scene, row, bar_top, index == 0);
            for (i, labels) in lines.into_iter().enumerate() {
                let y = bar_top + BAR + PARTS + PARTS_STEP * i as f64;
                for mut label in labels {
                    label.y = y;
                    scene.label(label);
                }
            }
            section.waits.push(drawn);
        }
        section.last = next + AXIS;
        section
    }

    fn draw_frame(&self, scene: &mut Scene, top: f64, (grid, bottom): (f64, f64)) {
        let name = if self.loads {
            "From asking for the model"
        } else {
            "From sending the prompt"
        };
        scene.label(Label::new(name, 0.0, top, 14.0, Role::Ink).bold());
        let unit = if self.unit > 1.0 {
            "seconds"
        } else {
            "milliseconds"
        };
        let mut axes = vec![(&self.axis, unit)];
        if let Some(tokens) = &self.tokens {
            let heading = Label::new("Prompt", tokens.origin, top, 14.0, Role::PrefillInk).bold();
            scene.label(heading);
            axes.push((tokens, "tokens"));
        }
        for (axis, title) in axes {
            for value in axis.ticks() {
                let x = crisp(axis.at(value));
                if value > 0.0 {
                    scene.grid_line((x, grid), (x, bottom));
                }
                scene.label(
                    Label::new(
                        number::tick(value, axis.step),
                        x,
                        bottom + 18.0,
                        TICK_SIZE,
                        Role::InkThird,
                    )
                    .anchored(Anchor::Middle),
                );
            }
            scene.label(Label::new(
                title,
                axis.origin,
                bottom + AXIS,
                TICK_SIZE,
                Role::InkThird,
            ));
        }
    }

    fn draw_wait(&self, scene: &mut Scene, row: &Prepared, top: f64, explained: bool) -> Drawn {
        let axis = &self.axis;
        let mut drawn = Drawn {
            bar: None,
            missing: None,
            parts: Vec::new(),
            prompt: None,
        };
        let mut begins = 0.0;
        for (part, ms) in &row.parts {
            let (from, to) = (
                axis.at(begins / self.unit),
                axis.at((begins + ms) / self.unit),
            );
            begins += ms;
            let area = Rect::between(from, top, to, top + BAR);
            if area.w > 0.0 {
                scene.mark(Layer::Mark, Shape::Fill(area, part.roles().0));
            }
            drawn.parts.push((*part, *ms, area));
        }
        zero_line(scene, axis, top);
        let Some(total) = &row.total else {
            let label = Label::new(
                "not measured",
                axis.origin,
                top - 11.0,
                13.0,
                Role::InkThird,
            );
            drawn.missing = Some(label.bounds());
            scene.label(label);
            return drawn;
        };
        let scaled = scaled(total, 1.0 / self.unit);
        let end = axis.at(scaled.mean);
        let area = Rect::between(axis.origin, top, end, top + BAR);
        scene.mark(
            Layer::Overlay,
            line((end, top - 6.0), (end, top + BAR + 6.0), 1.5, Role::Ink),
        );
        drawn.bar = Some(bar::spread(scene, axis, Role::Ink, &scaled, area));
        self.draw_value(scene, total, top, explained);
        if let Some(tokens) = &self.tokens {
            drawn.prompt = Some(draw_prompt(scene, tokens, row, top));
            zero_line(scene, tokens, top);
        }
        drawn
    }

    /// The wait above its bar, with its deviation; in the first row what it is.
    fn draw_value(&self, scene: &mut Scene, total: &Measured, top: f64, explained: bool) {
        let (x, y) = (self.axis.origin, top - 11.0);
        let value = Label::new(number::duration(total.mean), x, y, 16.0, Role::Ink).bold();
        let mut after = value.bounds().right() + 6.0;
        scene.label(value);
        if let Some(deviation) = total.deviation {
            let unit = if total.mean >= 999.5 { 1e3 } else { 1.0 };
            let text = number::deviation(deviation / unit, total.mean / unit);
            let label = Label::new(format!("± {text}"), after, y, 13.0, Role::InkThird);
            after = label.bounds().right() + 8.0;
            scene.label(label);
        }
        let words = Label::new("to the first token", after, y, NOTE, Role::InkSecond);
        let inside = Rect::between(x, y - 20.0, self.right, y + 10.0);
        if explained && scene.has_room(std::slice::from_ref(&words), &inside) {
            scene.label(words);
        }
    }
}

/// The line that a bar begins at.
fn zero_line(scene: &mut Scene, axis: &Linear, top: f64) {
    let x = axis.origin;
    scene.mark(
        Layer::Overlay,
        line((x, top - 5.0), (x, top + BAR + 5.0), 1.0, Role::InkThird),
    );
}

/// The end of everything that is drawn of a wait, in milliseconds.
fn longest(row: &Prepared) -> f64 {
    let parts: f64 = row.parts.iter().map(|(_, ms)| ms).sum();
    row.total.as_ref().map_or(0.0, reach).max(parts)
}

/// The same in another unit.
fn scaled(measured: &Measured, factor: f64) -> Measured {
    Measured {
        mean: measured.mean * factor,
        deviation: measured.deviation.map(|deviation| deviation * factor),
        samples: measured
            .samples
            .iter()
            .map(|sample| sample * factor)
            .collect(),
    }
}

/// What of a prompt was computed, and hatched what was reused.
fn draw_prompt(scene: &mut Scene, axis: &Linear, row: &Prepared, top: f64) -> [Rect; 2] {
    let computed = (row.prompt - row.reused) as f64;
    let (middle, end) = (axis.at(computed), axis.at(row.prompt as f64));
    let solid = Rect::between(axis.origin + 0.5, top, middle, top + BAR);
    let hatched = Rect::between(middle, top, end, top + BAR);
    if solid.w > 0.0 {
        scene.mark(Layer::Mark, Shape::Fill(solid, Role::Prefill));
    }
    if row.reused > 0 {
        hatch(scene, hatched, Role::Prefill);
    }
    let words = match row.reused {
        0 => format!("{} computed", number::count(computed)),
        reused => format!(
            "{} of {} reused",
            number::count(reused as f64),
            number::count(row.prompt as f64)
        ),
    };
    let words = text::shorten(&words, axis.length + 14.0, NOTE, Weight::Regular);
    scene.label(Label::new(
        words,
        axis.origin,
        top - 12.0,
        NOTE,
        Role::PrefillInk,
    ));
    [solid, hatched]
}

/// An outline with slanted lines in it, as plotters draw hatching.
fn hatch(scene: &mut Scene, area: Rect, role: Role) {
    let (left, top, right, bottom) = (area.x, area.y, area.right(), area.bottom());
    let mut edge = |from, to| scene.mark(Layer::Mark, line(from, to, 1.0, role));
    edge((left, top + 0.5), (right, top + 0.5));
    edge((left, bottom - 0.5), (right, bottom - 0.5));
    edge((left + 0.5, top), (left + 0.5, bottom));
    edge((right - 0.5, top), (right - 0.5, bottom));
    let count = ((area.w + area.h) / HATCH).ceil() as u32;
    for i in 1..count {
        // From the lower or left edge up to the upper or right one.
        let along = f64::from(i) * HATCH;
        let from = if along <= area.h {
            (left, top + along)
        } else {
            (left + along - area.h, bottom)
        };
        let to = if along <= area.w {
            (left + along, top)
        } else {
            (right, top + along - area.w)
        };
        edge(from, to);
    }
}

/// Says below the axes what is not said beside a mark; returns the last baseline.
pub fn explain(scene: &mut Scene, sections: &[Section], last: f64, width: f64) -> f64 {
    let drawn = || sections.iter().flat_map(|section| &section.waits);
    let bars = || drawn().filter_map(|wait| wait.bar.as_ref());
    let mut words = Vec::new();
    if bars().any(|bar| bar.whisker) {
        words.push("Line: ± 1 s.d.");
    }
    if bars().any(|bar| !bar.samples.is_empty()) {
        words.push("Dots: samples.");
    }
    if drawn().any(|wait| wait.prompt.is_some_and(|[_, reused]| reused.w > 0.0)) {
        words.push("Hatched: reused from the cache, no prefill.");
    }
    let mut last = last;
    if !words.is_empty() {
        for line in text::wrap(&words.join(" "), width, NOTE, Weight::Regular, 2) {
            last += 20.0;
            scene.label(Label::new(line, 0.0, last, NOTE, Role::InkSecond));
        }
    }
    last
}
