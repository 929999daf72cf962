//! A section of the figure: the times of one phase on one axis.

use crate::axis::{Linear, TICK_SIZE};
use crate::bar::{self, BAR, Bar};
use crate::look::{NOTE, PHASES, PhaseLook};
use crate::measured::{Expected, Measured, reach};
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, Shape, crisp, line};
use crate::text::{self, Weight};
use crate::time::{Cause, TimePart, total};

use super::{Prepared, Spent};

/// From the section's name to its grid.
const NAME_TO_GRID: f64 = 16.0;
/// From the top of the grid to the first bar: room for its values.
const ABOVE: f64 = 33.0;
/// From a bar to the first line that names its parts: below the samples, where there are some.
const PARTS: (f64, f64) = (26.0, 46.0);
/// From one line of parts to the next.
const PARTS_STEP: f64 = 18.0;
/// From the last line of parts to the next bar's room.
const BELOW: f64 = 12.0;
/// From the grid's end to the axis' title.
const AXIS: f64 = 37.0;
/// What stands out above and below a bar.
const OUT: f64 = 5.0;
/// Between the words of two parts.
const WORDS_GAP: f64 = 14.0;
/// The square before a part's words, and the gap after it.
const SWATCH: (f64, f64) = (8.0, 6.0);
/// The gap between two parts of a bar.
const GAP: f64 = 1.0;
/// Parts below this share are told together, where there are several.
const SMALL: f64 = 0.025;
/// Beyond this a section is drawn in seconds.
const IN_SECONDS: f64 = 10_000.0;

/// What is drawn as one part: a part of the time, or several small ones together.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Its name, `other` where it is several.
    pub name: String,
    /// Why it takes time.
    pub cause: Cause,
    /// How long, milliseconds.
    pub ms: f64,
    /// Of the sum of all.
    pub share: f64,
    /// What it is several of.
    pub of: Vec<TimePart>,
    /// Where it is.
    pub area: Rect,
}

/// Where a row's time is drawn.
pub struct Drawn {
    /// Index of its row.
    pub row: usize,
    /// The stacked bar.
    pub stack: Rect,
    /// Its parts.
    pub shown: Vec<Shown>,
    /// The expected range.
    pub band: Option<Rect>,
    /// Whisker and samples of what was measured.
    pub measured: Option<Bar>,
}

/// The times of one phase.
pub struct Section {
    /// 0 prefill, 1 decode.
    pub phase: usize,
    /// Milliseconds in one unit of the axis.
    pub unit: f64,
    /// Time, in the section's unit.
    pub axis: Linear,
    /// Its rows.
    pub rows: Vec<Drawn>,
    /// Last baseline of it.
    pub last: f64,
    right: f64,
}

/// Parts as they are shown: small ones together at the end, as soon as there are two.
fn shown(parts: &[TimePart]) -> Vec<Shown> {
    let sum = total(parts);
    let is_small = |part: &&TimePart| part.ms < SMALL * sum;
    let small: Vec<TimePart> = parts.iter().filter(is_small).cloned().collect();
    let one = |part: &TimePart| Shown {
        name: part.name.clone(),
        cause: part.cause,
        ms: part.ms,
        share: part.ms / sum,
        of: Vec::new(),
        area: Rect::between(0.0, 0.0, 0.0, 0.0),
    };
    if small.len() < 2 {
        return parts.iter().map(one).collect();
    }
    let mut all: Vec<Shown> = parts
        .iter()
        .filter(|part| !is_small(part))
        .map(one)
        .collect();
    let ms = total(&small);
    all.push(Shown {
        name: "other".to_owned(),
        cause: Cause::Fixed,
        ms,
        share: ms / sum,
        of: small,
        area: Rect::between(0.0, 0.0, 0.0, 0.0),
    });
    all
}

/// The words of the parts in lines, each with a square of its colour before it.
fn flow(shown: &[Shown], look: &PhaseLook, left: f64, right: f64) -> Vec<Vec<(Role, Label)>> {
    let mut lines: Vec<Vec<(Role, Label)>> = vec![Vec::new()];
    let mut free = left;
    for part in shown {
        let words = |name: &str| {
            format!(
                "{name} {}, {}",
                number::percent(part.share),
                number::time(part.ms)
            )
        };
        let text = SWATCH.0 + SWATCH.1;
        let room = right - left - text;
        let overhead = text::width(&words(""), NOTE, Weight::Regular);
        let name = text::shorten(&part.name, room - overhead, NOTE, Weight::Regular);
        let mut label = Label::new(words(&name), free + text, 0.0, NOTE, Role::InkSecond);
        if label.bounds().right() > right && free > left {
            lines.push(Vec::new());
            label.x = left + text;
        }
        free = label.bounds().right() + WORDS_GAP;
        if let Some(line) = lines.last_mut() {
            line.push((part.cause.role(look), label));
        }
    }
    lines
}

/// The largest time of a row.
fn longest(spent: &Spent) -> f64 {
    let measured = spent.measured.as_ref().map_or(0.0, reach);
    let expected = spent.expected.map_or(0.0, |expected| expected.high);
    measured.max(expected).max(total(&spent.parts))
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

impl Section {
    /// Draws the section whose name has its baseline at `top`, beside a column of names that ends
    /// at `left`.
    pub fn draw(
        scene: &mut Scene,
        rows: &[Prepared],
        phase: usize,
        of: &str,
        (top, left, width): (f64, f64, f64),
    ) -> Self {
        let here: Vec<(usize, &Spent)> = rows
            .iter()
            .map(|row| &row.phases[phase])
            .enumerate()
            .filter(|(_, spent)| !spent.parts.is_empty() || spent.measured.is_some())
            .collect();
        let largest = here
            .iter()
            .map(|(_, spent)| longest(spent))
            .fold(0.0, f64::max);
        let unit = if largest >= IN_SECONDS { 1e3 } else { 1.0 };
        let mut section = Self {
            phase,
            unit,
            axis: Linear::holding(largest / unit, left + 0.5, width - left - 22.0),
            rows: Vec::new(),
            last: 0.0,
            right: width,
        };
        let look = section.look();
        let grid = top + NAME_TO_GRID;
        let mut places = Vec::new();
        let mut next = grid;
        for (row, spent) in here {
            let shown = shown(&spent.parts);
            let lines = flow(&shown, look, left, width);
            let bar_top = next + ABOVE;
            let has_samples = spent
                .measured
                .as_ref()
                .is_some_and(|m| !m.samples.is_empty());
            let words = bar_top + BAR + if has_samples { PARTS.1 } else { PARTS.0 };
            next = words + PARTS_STEP * (lines.len() - 1) as f64 + BELOW;
            places.push((row, spent, shown, lines, bar_top, words));
        }
        section.draw_frame(scene, of, (top, left), (grid, next));
        for (row, spent, shown, lines, bar_top, words) in places {
            rows[row].names.draw(scene, bar_top, left);
            let drawn = section.draw_row(scene, (row, spent), shown, bar_top);
            section.rows.push(drawn);
            for (i, line) in lines.into_iter().enumerate() {
                let y = words + PARTS_STEP * i as f64;
                for (role, mut label) in line {
                    label.y = y;
                    let x = label.x - SWATCH.0 - SWATCH.1;
                    let square = Rect::between(x, y - SWATCH.0, x + SWATCH.0, y);
                    scene.mark(Layer::Mark, Shape::Fill(square, role));
                    scene.label(label);
                }
            }
        }
        section.last = next + AXIS;
        section
    }

    /// How this phase looks.
    pub fn look(&self) -> &'static PhaseLook {
        &PHASES[self.phase]
    }

    fn draw_frame(
        &self,
        scene: &mut Scene,
        of: &str,
        (top, left): (f64, f64),
        (grid, bottom): (f64, f64),
    ) {
        let look = self.look();
        let name = Label::new(look.heading, left, top, 14.0, look.ink).bold();
        let after = name.bounds().right() + 8.0;
        scene.label(name);
        let note = text::shorten(of, self.right - after, NOTE, Weight::Regular);
        scene.label(Label::new(note, after, top, NOTE, Role::InkSecond));
        for value in self.axis.ticks() {
            let x = crisp(self.axis.at(value));
            if value > 0.0 {
                scene.grid_line((x, grid), (x, bottom));
            }
            let tick = number::tick(value, self.axis.step);
            scene.label(
                Label::new(tick, x, bottom + 18.0, TICK_SIZE, Role::InkThird)
                    .anchored(Anchor::Middle),
            );
        }
        let unit = if self.unit > 1.0 {
            "seconds"
        } else {
            "milliseconds"
        };
        scene.label(Label::new(
            unit,
            left,
            bottom + AXIS,
            TICK_SIZE,
            Role::InkThird,
        ));
    }

    fn draw_row(
        &self,
        scene: &mut Scene,
        (row, spent): (usize, &Spent),
        mut shown: Vec<Shown>,
        top: f64,
    ) -> Drawn {
        let axis = &self.axis;
        let band = spent
            .expected
            .filter(|_| !spent.parts.is_empty())
            .map(|expected| self.draw_band(scene, expected, top));
        // As long as what is expected: own runs may have corrected the parts' sum.
        let sum = total(&spent.parts);
        let whole = spent.expected.map_or(sum, |expected| expected.value);
        let mut begins = 0.0;
        let last = shown.len();
        for (i, part) in shown.iter_mut().enumerate() {
            let ends = begins + part.share * whole;
            let (from, to) = (axis.at(begins / self.unit), axis.at(ends / self.unit));
            begins = ends;
            let gap = if i + 1 < last && to - from > 2.0 * GAP {
                GAP
            } else {
                0.0
            };
            part.area = Rect::between(from, top, to - gap, top + BAR);
            if part.area.w > 0.0 {
                scene.mark(
                    Layer::Mark,
                    Shape::Fill(part.area, part.cause.role(self.look())),
                );
            }
        }
        let end = if shown.is_empty() { 0.0 } else { whole };
        let stack = Rect::between(axis.origin, top, axis.at(end / self.unit), top + BAR);
        let x = axis.origin;
        scene.mark(
            Layer::Overlay,
            line((x, top - OUT), (x, top + BAR + OUT), 1.0, Role::InkThird),
        );
        let measured = spent
            .measured
            .as_ref()
            .map(|measured| self.draw_measured(scene, measured, top));
        self.draw_values(scene, spent, top);
        Drawn {
            row,
            stack,
            shown,
            band,
            measured,
        }
    }

    fn draw_band(&self, scene: &mut Scene, expected: Expected, top: f64) -> Rect {
        let at = |ms: f64| crisp(self.axis.at(ms / self.unit));
        let (left, right) = (
            at(expected.low),
            at(expected.high).max(at(expected.low) + 2.0),
        );
        let area = Rect::between(left, top - OUT, right, top + BAR + OUT);
        scene.mark(Layer::Band, Shape::Fill(area, Role::Band));
        for x in [left, right] {
            scene.mark(
                Layer::Band,
                line((x, area.y), (x, area.bottom()), 1.0, Role::BandEdge),
            );
        }
        area
    }

    /// A line through bar and band where the measured mean lies, its whisker and its samples.
    fn draw_measured(&self, scene: &mut Scene, measured: &Measured, top: f64) -> Bar {
        let scaled = scaled(measured, 1.0 / self.unit);
        let end = self.axis.at(scaled.mean);
        let area = Rect::between(self.axis.origin, top, end, top + BAR);
        scene.mark(
            Layer::Overlay,
            line(
                (end, top - OUT - 3.0),
                (end, top + BAR + OUT + 3.0),
                2.0,
                Role::Ink,
            ),
        );
        bar::spread(scene, &self.axis, self.look().shape, &scaled, area)
    }

    /// The values above the bar: measured, then expected with its range.
    fn draw_values(&self, scene: &mut Scene, spent: &Spent, top: f64) {
        let (x, y) = (self.axis.origin, top - 12.0);
        let mut labels = Vec::new();
        let after = |labels: &Vec<Label>, gap: f64| {
            labels
                .last()
                .map_or(x, |last: &Label| last.bounds().right() + gap)
        };
        match &spent.measured {
            Some(measured) => {
                let text = number::time(measured.mean);
                labels.push(Label::new(text, x, y, 16.0, self.look().ink).bold());
                if let Some(deviation) = measured.deviation {
                    let unit = if measured.mean >= 999.5 { 1e3 } else { 1.0 };
                    let text = number::deviation(deviation / unit, measured.mean / unit);
                    let x = after(&labels, 6.0);
                    labels.push(Label::new(format!("± {text}"), x, y, 13.0, Role::InkThird));
                }
            }
            None => labels.push(Label::new("not measured", x, y, 13.0, Role::InkThird)),
        }
        if !spent.parts.is_empty() {
            for expected in spent.expected.iter().flat_map(in_words) {
                let label = Label::new(expected, after(&labels, 12.0), y, 13.0, Role::InkSecond);
                if label.bounds().right() <= self.right {
                    labels.push(label);
                    break;
                }
            }
        }
        for label in labels {
            scene.label(label);
        }
    }
}

/// An expected time in words, with and without its range.
pub fn in_words(expected: &Expected) -> [String; 2] {
    let value = number::time(expected.value);
    let range = number::time_range(expected.low, expected.high);
    let short = format!("expected {value}");
    let full = if range == value {
        short.clone()
    } else {
        format!("{short} ({range})")
    };
    [full, short]
}

/// Says below the axes what colours, lines and dots are; returns the last baseline.
pub fn explain(
    scene: &mut Scene,
    rows: &[Prepared],
    sections: &[Section],
    without: Vec<String>,
    (last, width): (f64, f64),
) -> f64 {
    let drawn = || sections.iter().flat_map(|section| &section.rows);
    let bars = || drawn().filter_map(|row| row.measured.as_ref());
    let mut words = vec!["Bars: expected time.".to_owned()];
    let banded = drawn().filter_map(|row| row.band).any(|band| band.w > 2.0);
    if banded {
        words.push("Grey behind a bar’s end: its range.".to_owned());
    }
    if bars().next().is_some() {
        let whisker = bars().any(|bar| bar.whisker);
        words.push(match whisker {
            true => "Upright line: measured, with ± 1 s.d.".to_owned(),
            false => "Upright line: measured.".to_owned(),
        });
    }
    if bars().any(|bar| !bar.samples.is_empty()) {
        words.push("Dots: samples.".to_owned());
    }
    let folded = drawn()
        .flat_map(|row| &row.shown)
        .any(|part| !part.of.is_empty());
    if folded {
        words.push(format!(
            "Other: parts under {} each.",
            number::percent(SMALL)
        ));
    }
    let lacks = |section: &Section| {
        let of = section
            .rows
            .iter()
            .map(|drawn| &rows[drawn.row].phases[section.phase]);
        of.filter(|spent| spent.parts.is_empty()).count() > 0
    };
    if sections.iter().any(lacks) {
        words.push("Without a bar: no time is expected.".to_owned());
    }
    words.extend(without);
    let mut last = last + 4.0;
    for line in text::wrap(&words.join(" "), width, NOTE, Weight::Regular, 3) {
        last += 20.0;
        scene.label(Label::new(line, 0.0, last, NOTE, Role::InkSecond));
    }
    last
}
