//! The explanations: band, whisker and samples, once each, where there is room.

use crate::bar::BAR;
use crate::look::NOTE;
use crate::measured::Expected;
use crate::number;
use crate::palette::Role;
use crate::rows::Geometry;
use crate::scene::{Anchor, Label, Rect, Scene};
use crate::text::{self, Weight};
use crate::time::by_cause;

use super::ceiling::{Ceilings, chevron};
use super::cell::{Cell, NOTE_ABOVE};
use super::panel::PanelView;
use super::{Form, Phase, Prepared};

const WHISKER: &str = "line: ± 1 s.d.";
const SAMPLES: &str = "dots: samples";
const BAND: &str = "Grey: expected range.";
const STRIP: &str = "Strip: what the expected time is made of; weights in full colour, \
                     attention and cache in half tone, fixed work in grey.";
const BEYOND: &str = "Some expected ranges lie beyond the axis.";

/// Writes the explanations and returns the last baseline of the figure's body.
///
/// What finds no room beside a mark is written below the axes.
pub fn explain(
    scene: &mut Scene,
    panels: &[PanelView; 2],
    rows: &[Prepared],
    cells: &[[Cell; 2]],
    ceilings: &[Ceilings; 2],
    geometry: &Geometry,
) -> f64 {
    let mut left_over = Vec::new();
    if ceilings.iter().any(|panel| panel.unexplained) {
        left_over.push("Dashed: ceiling.");
    }
    if ceilings.iter().any(|panel| panel.unexplained_beyond) {
        left_over.push("Arrow: ceiling beyond the axis.");
    }
    let places = || {
        rows.iter()
            .zip(cells)
            .flat_map(|(row, pair)| (0..2).map(move |i| (&row.phases[i], &pair[i], i)))
    };

    for (phase, cell, i) in places() {
        if let Some(expected) = phase.expected
            && !panels[i].axis.holds(expected.low)
            && !name_beyond(scene, &panels[i], cell, expected)
            && !left_over.contains(&BEYOND)
        {
            left_over.push(BEYOND);
        }
    }

    for panel in panels {
        let mut bands = places()
            .filter(|(_, cell, i)| *i == panel.index && cell.band.is_some_and(|b| b.w > 0.0))
            .peekable();
        if bands.peek().is_none() {
            continue;
        }
        let named = bands.any(|(phase, cell, _)| {
            phase
                .expected
                .is_some_and(|expected| name_band(scene, panel, cell, expected))
        });
        if !named && !left_over.contains(&BAND) {
            left_over.push(BAND);
        }
    }

    let strips = || places().filter(|(_, cell, _)| !cell.strip.is_empty());
    for (phase, cell, i) in strips() {
        name_strip(scene, &panels[i], phase, cell);
    }
    if strips().next().is_some() {
        left_over.push(STRIP);
    }

    let whiskers = || places().filter(|(_, cell, _)| cell.whisker);
    let dotted = || places().filter(|(_, cell, _)| !cell.samples.is_empty());
    let both = whiskers()
        .filter(|(_, cell, _)| !cell.samples.is_empty())
        .any(|(_, cell, i)| {
            let at = beside_samples(cell).max(cell.extent + 8.0);
            place(
                scene,
                &panels[i],
                cell,
                vec![
                    note(WHISKER, at, beside(cell)),
                    note(SAMPLES, at, below(cell)),
                ],
            )
        });
    if !both {
        let whisker = whiskers().any(|(_, cell, i)| {
            let label = note(WHISKER, cell.extent + 8.0, beside(cell));
            place(scene, &panels[i], cell, vec![label])
        });
        if !whisker && whiskers().next().is_some() {
            left_over.push("Line: ± 1 s.d.");
        }
        let samples = dotted().any(|(_, cell, i)| {
            let right = note(SAMPLES, beside_samples(cell), below(cell));
            let left = cell.samples_span().map_or(0.0, |(left, _)| left) - 8.0;
            let left = note(SAMPLES, left, below(cell)).anchored(Anchor::End);
            place(scene, &panels[i], cell, vec![right])
                || place(scene, &panels[i], cell, vec![left])
        });
        if !samples && dotted().next().is_some() {
            left_over.push("Dots: samples.");
        }
    }

    let mut last = geometry.axis_titles();
    if !left_over.is_empty() {
        let words = left_over.join(" ");
        let room = geometry.width - geometry.panels[0];
        for line in text::wrap(&words, room, NOTE, Weight::Regular, 3) {
            last += 18.0;
            scene.label(note(&line, geometry.panels[0], last));
        }
    }
    last
}

fn note(text: &str, x: f64, y: f64) -> Label {
    Label::new(text, x, y, NOTE, Role::InkSecond)
}

/// Baseline at the height of the bar.
fn beside(cell: &Cell) -> f64 {
    cell.bar_top + 16.0
}

/// Baseline at the height of the samples.
fn below(cell: &Cell) -> f64 {
    cell.bar_top + BAR + 19.0
}

fn beside_samples(cell: &Cell) -> f64 {
    cell.samples_span().map_or(0.0, |(_, right)| right) + 8.0
}

/// Writes the labels if all of them have room.
fn place(scene: &mut Scene, panel: &PanelView, cell: &Cell, labels: Vec<Label>) -> bool {
    let inside = Rect::between(
        panel.left,
        cell.bar_top - 40.0,
        panel.right,
        cell.bar_top + BAR + 40.0,
    );
    let room = scene.has_room(&labels, &inside);
    if room {
        for label in labels {
            scene.label(label);
        }
    }
    room
}

/// Says below a strip how large its parts are, as far as there is room.
fn name_strip(scene: &mut Scene, panel: &PanelView, phase: &Phase, cell: &Cell) {
    let shares: Vec<String> = by_cause(&phase.parts)
        .into_iter()
        .map(|(cause, _, share)| format!("{} {}", cause.words(), number::percent(share)))
        .collect();
    for count in (1..=shares.len()).rev() {
        let label = note(&shares[..count].join(", "), panel.left, below(cell));
        if place(scene, panel, cell, vec![label]) {
            return;
        }
    }
}

/// Names a band that can be seen, with its numbers where they have room.
fn name_band(scene: &mut Scene, panel: &PanelView, cell: &Cell, expected: Expected) -> bool {
    let Some(band) = cell.band else {
        return false;
    };
    let range = number::range(expected.low, expected.high);
    // Above a point it is said what is expected.
    let word = match panel.form {
        Form::Bars => "expected",
        Form::Points => "range",
    };
    let numbers = format!("{word} {range}");
    for text in [numbers.as_str(), word] {
        let mut candidates = Vec::new();
        match cell.samples_span() {
            Some((left, right)) => {
                candidates.push(note(text, left - 8.0, below(cell)).anchored(Anchor::End));
                candidates.push(note(text, right + 8.0, below(cell)));
            }
            None => candidates
                .push(note(text, band.x + band.w / 2.0, below(cell)).anchored(Anchor::Middle)),
        }
        candidates.push(note(text, cell.extent + 8.0, beside(cell)));
        if candidates
            .into_iter()
            .any(|label| place(scene, panel, cell, vec![label]))
        {
            return true;
        }
    }
    false
}

/// Names a band beyond the axis, at the panel's edge.
fn name_beyond(scene: &mut Scene, panel: &PanelView, cell: &Cell, expected: Expected) -> bool {
    let numbers = format!("expected {}", number::range(expected.low, expected.high));
    let at_edge = |y: f64| note(&numbers, panel.right - 9.0, y).anchored(Anchor::End);
    for y in [below(cell), cell.bar_top - NOTE_ABOVE, beside(cell)] {
        if place(scene, panel, cell, vec![at_edge(y)]) {
            chevron(scene, panel.right, y - 4.0);
            return true;
        }
    }
    false
}
