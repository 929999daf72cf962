//! Words in the plot and below it.

use crate::look::{NOTE, PHASES};
use crate::measured::Measured;
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, line};
use crate::text::{self, Weight};

use super::draw::{DrawnStep, LimitLine, Plot};
use super::{Limit, Prepared, RooflineStep};

/// From the plot's end to the axis' title.
const AXIS_TITLE: f64 = 38.0;
const HEADING: f64 = 14.0;
const LINE: f64 = 16.0;
/// From the plot to the names, and the most of the width that they take.
const GAP: f64 = 14.0;
const MOST_SHARE: f64 = 0.3;
/// Between the names of two series.
const BETWEEN: f64 = 10.0;

/// Writes limits, ends, batch sizes and names.
pub fn draw(
    scene: &mut Scene,
    plot: &Plot,
    rows: &[Prepared],
    limits: &[LimitLine],
    drawn: &[Vec<DrawnStep>],
) {
    if let ([row], [steps]) = (rows, drawn) {
        name_ends(scene, plot, row, steps);
        if limits.len() == 2 {
            name_ridge(scene, plot, row);
        }
        for limit in limits {
            name_limit(scene, plot, limit);
        }
        count_tokens(scene, plot, row, steps);
        return;
    }
    name_series(scene, plot, rows, drawn);
    // All have the same steps: the lowest line has room for their numbers.
    let lowest = rows.iter().zip(drawn).max_by(|(_, a), (_, b)| {
        let last =
            |steps: &[DrawnStep]| steps.iter().rev().find(has_mark).map_or(0.0, |s| s.place.1);
        last(a).total_cmp(&last(b))
    });
    if let Some((row, steps)) = lowest {
        count_tokens(scene, plot, row, steps);
    }
}

fn has_mark(step: &&DrawnStep) -> bool {
    step.measured.is_some() || step.expected.is_some()
}

/// What stands at the end of a series: its name, and its limits below.
fn end_lines(row: &Prepared) -> Vec<String> {
    let reading = row
        .reading
        .map(|gb_s| format!("{} GB/s", number::limit(gb_s)));
    let roof = row
        .arithmetic
        .map(|roof| format!("{} GFLOP/s", number::limit(roof)));
    let mut lines = vec![row.end.clone()];
    lines.extend(reading);
    lines.extend(roof);
    lines
}

/// Width of the column of names, the gap to the plot included.
pub fn column(rows: &[Prepared], width: f64) -> f64 {
    if rows.len() < 2 {
        return 8.0;
    }
    let widest = rows
        .iter()
        .flat_map(|row| {
            end_lines(row).into_iter().enumerate().map(|(i, line)| {
                let weight = if i == 0 {
                    Weight::SemiBold
                } else {
                    Weight::Regular
                };
                text::width(&line, NOTE, weight)
            })
        })
        .fold(0.0, f64::max);
    (widest + GAP).min((width * MOST_SHARE).floor()).ceil()
}

/// Writes the first of these that has room.
fn place(
    scene: &mut Scene,
    inside: &Rect,
    candidates: impl IntoIterator<Item = Vec<Label>>,
) -> bool {
    let found = candidates
        .into_iter()
        .find(|labels| scene.has_room(labels, inside));
    let any = found.is_some();
    for label in found.unwrap_or_default() {
        scene.label(label);
    }
    any
}

fn note(text: impl Into<String>, x: f64, y: f64) -> Label {
    Label::new(text, x, y, NOTE, Role::InkSecond)
}

/// Room for words: the plot, and above it as far as the axis' title.
fn inside(plot: &Plot) -> Rect {
    let area = &plot.area;
    Rect::between(area.x + 2.0, area.y - 6.0, plot.width, area.bottom() - 3.0)
}

/// Tokens per second of a step at so many GFLOP/s.
pub fn tokens_per_second(step: &RooflineStep, gflops: f64) -> Option<f64> {
    (step.flops_per_token > 0.0).then(|| gflops * 1e9 / step.flops_per_token)
}

/// `1 token per step`.
pub fn per_step(tokens: u64) -> String {
    match tokens {
        1 => "1 token per step".to_owned(),
        n => format!("{} tokens per step", number::count(n as f64)),
    }
}

/// Says at both measured ends which speed it is, and how far below its limit.
fn name_ends(scene: &mut Scene, plot: &Plot, row: &Prepared, drawn: &[DrawnStep]) {
    let measured: Vec<(&RooflineStep, &DrawnStep, &Measured)> = row
        .steps
        .iter()
        .zip(drawn)
        .filter_map(|(step, drawn)| Some((step, drawn, step.measured.as_ref()?)))
        .collect();
    let first = measured.first().filter(|(step, ..)| step.tokens == 1);
    let last = measured.last().filter(|(step, ..)| step.tokens > 1);
    for (phase, (step, drawn, measured)) in [(1, first), (0, last)]
        .into_iter()
        .filter_map(|(i, end)| Some((i, end?)))
    {
        let look = &PHASES[phase];
        let mut words = vec![per_step(step.tokens)];
        if let Some(speed) = tokens_per_second(step, measured.mean) {
            words[0].push_str(&format!(", {} tok/s", number::speed(speed)));
        }
        if let Some((limit, _)) = row.limit(step.intensity) {
            let share = number::percent(measured.mean / limit);
            words.push(format!("{share} of the limit above it"));
        }
        let block = |x: f64, y: f64, anchor: Anchor| -> Vec<Label> {
            let heading = Label::new(look.heading, x, y, HEADING, look.ink).bold();
            let lines = words.iter().enumerate();
            std::iter::once(heading)
                .chain(lines.map(|(i, text)| note(text.clone(), x, y + 18.0 + LINE * i as f64)))
                .map(|label| label.anchored(anchor))
                .collect()
        };
        let (x, _) = drawn.place;
        let (top, bottom) = drawn.ends;
        let middle = f64::midpoint(top, bottom);
        let right = plot.area.right();
        let beside = [(x + 16.0, middle + 4.0), (x + 16.0, bottom + 24.0)];
        let below = (0..6).map(|i| bottom + 34.0 + 22.0 * f64::from(i));
        let candidates = match phase {
            1 => beside
                .map(|(x, y)| block(x, y, Anchor::Start))
                .into_iter()
                .chain(below.map(|y| block(x + 8.0, y, Anchor::Start)))
                .collect::<Vec<_>>(),
            _ => below.map(|y| block(right, y, Anchor::End)).collect(),
        };
        let inside = inside(plot);
        let chosen = candidates
            .into_iter()
            .find(|labels| scene.has_room(labels, &inside));
        let Some(labels) = chosen else { continue };
        let heading = labels[0].bounds();
        for label in labels {
            scene.label(label);
        }
        // A name that stands apart is led to.
        let lead = Rect::between(x, bottom + 3.0, x, heading.y - 4.0).grown(1.0, 0.0);
        if heading.y > bottom + 14.0 && x > heading.x - 40.0 && scene.is_free(&lead) {
            let (from, to) = ((x, lead.y), (x, lead.bottom()));
            scene.mark(Layer::Grid, line(from, to, 1.0, Role::InkThird));
        }
    }
}

fn name_limit(scene: &mut Scene, plot: &Plot, limit: &LimitLine) {
    let inside = inside(plot);
    let (from, to) = limit.ends;
    match limit.limit {
        Limit::Arithmetic => {
            let full = format!("arithmetic {} GFLOP/s", number::limit(limit.value));
            let right = plot.area.right();
            // Above the roof, as close to it and to its end as there is room.
            let candidates = [8.0, 22.0, 36.0, 50.0].into_iter().flat_map(|up| {
                let full = &full;
                (0..8).map(move |i| {
                    let x = right - 30.0 * f64::from(i);
                    vec![note(full.clone(), x, to.1 - up).anchored(Anchor::End)]
                })
            });
            place(scene, &inside, candidates.collect::<Vec<_>>());
        }
        Limit::Memory => {
            let rate = format!("{} GB/s", number::limit(limit.value));
            let at = |t: f64| (from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t);
            let steps = || (0..14).map(|i| 0.3 + 0.05 * f64::from(i));
            // Left of the slope on two lines, right of it on one; what has room first.
            let left = steps().map(|t| {
                let (x, y) = at(t);
                vec![
                    note("reading", x - 10.0, y - 6.0).anchored(Anchor::End),
                    note(rate.clone(), x - 10.0, y + 9.0).anchored(Anchor::End),
                ]
            });
            let right = steps().map(|t| {
                let (x, y) = at(t);
                vec![note(format!("reading {rate}"), x + 12.0, y + 14.0)]
            });
            let candidates: Vec<_> = left.chain(right).collect();
            place(scene, &inside, candidates);
        }
    }
}

/// Names where the limits meet, above it.
fn name_ridge(scene: &mut Scene, plot: &Plot, row: &Prepared) {
    let (Some(ridge), Some(roof)) = (row.ridge(), row.arithmetic) else {
        return;
    };
    if !plot.across.holds(ridge) || !plot.upward.holds(roof) {
        return;
    }
    let (x, y) = (plot.across.at(ridge), plot.upward.at(roof));
    let meet = format!("limits meet at {} FLOP/byte", number::limit(ridge));
    let texts = match row.ridge_tokens {
        Some(tokens) => vec![
            format!("{meet}, {} tokens per step", number::limit(tokens)),
            meet,
        ],
        None => vec![meet],
    };
    let inside = inside(plot);
    for text in texts {
        for up in [34.0, 26.0, 44.0] {
            let right = note(text.clone(), x + 8.0, y - up + 4.0);
            let left = note(text.clone(), x - 8.0, y - up + 4.0).anchored(Anchor::End);
            for label in [right, left] {
                let lead = Rect::between(x - 1.0, y - 4.0, x + 1.0, y - up - 4.0);
                if scene.is_free(&lead) && scene.has_room(std::slice::from_ref(&label), &inside) {
                    scene.label(label);
                    scene.mark(
                        Layer::Grid,
                        line((x, y - 4.0), (x, y - up - 4.0), 1.0, Role::InkThird),
                    );
                    return;
                }
            }
        }
    }
}

/// Names the series on the right, each at the height of its last mark as far as they leave room for
/// each other; a line leads there.
fn name_series(scene: &mut Scene, plot: &Plot, rows: &[Prepared], drawn: &[Vec<DrawnStep>]) {
    struct End {
        lines: Vec<String>,
        from: (f64, f64),
        top: f64,
        height: f64,
    }
    let mut ends: Vec<End> = rows
        .iter()
        .zip(drawn)
        .filter_map(|(row, steps)| {
            let last = steps.iter().rev().find(has_mark)?;
            let lines = end_lines(row);
            let height = LINE * lines.len() as f64;
            Some(End {
                from: last.place,
                top: last.place.1 - LINE / 2.0,
                height,
                lines,
            })
        })
        .collect();
    ends.sort_by(|a, b| a.from.1.total_cmp(&b.from.1));
    let mut free = plot.area.y - 10.0;
    for end in &mut ends {
        end.top = end.top.max(free);
        free = end.top + end.height + BETWEEN;
    }
    let mut most = plot.area.bottom() + 2.0;
    for end in ends.iter_mut().rev() {
        end.top = end.top.min(most - end.height);
        most = end.top - BETWEEN;
    }
    let x = plot.area.right() + GAP;
    for end in &ends {
        let middle = end.top + LINE / 2.0;
        scene.mark(
            Layer::Grid,
            line(
                (end.from.0 + 9.0, end.from.1),
                (x - 4.0, middle),
                1.0,
                Role::BandEdge,
            ),
        );
        for (i, text) in end.lines.iter().enumerate() {
            let y = middle + 4.0 + LINE * i as f64;
            let (weight, role) = match i {
                0 => (Weight::SemiBold, Role::Ink),
                _ => (Weight::Regular, Role::InkSecond),
            };
            let text = text::shorten(text, plot.width - x, NOTE, weight);
            let label = Label::new(text, x, y, NOTE, role);
            scene.label(match i {
                0 => label.bold(),
                _ => label,
            });
        }
    }
}

/// Writes tokens per step at the marks that have room.
fn count_tokens(scene: &mut Scene, plot: &Plot, row: &Prepared, drawn: &[DrawnStep]) {
    let inside = inside(plot);
    let named = |step: &RooflineStep| {
        // The ends of a single series say it in words.
        let first = row.steps.iter().find(|s| s.measured.is_some());
        let last = row.steps.iter().rfind(|s| s.measured.is_some());
        plot.alone
            && step.measured.is_some()
            && ((Some(step) == first && step.tokens == 1)
                || (Some(step) == last && step.tokens > 1))
    };
    for (step, drawn) in row.steps.iter().zip(drawn) {
        if named(step) || (drawn.measured.is_none() && drawn.expected.is_none()) {
            continue;
        }
        let (x, _) = drawn.place;
        let (top, bottom) = drawn.ends;
        let text = number::count(step.tokens as f64);
        let label = |x: f64, y: f64, anchor: Anchor| {
            vec![Label::new(text.clone(), x, y, NOTE, Role::InkThird).anchored(anchor)]
        };
        let candidates = [
            label(x, bottom + 15.0, Anchor::Middle),
            label(x + 8.0, bottom + 12.0, Anchor::Start),
            label(x, top - 6.0, Anchor::Middle),
            label(x - 9.0, top - 2.0, Anchor::End),
        ];
        place(scene, &inside, candidates);
    }
}

/// Says below the axes what the marks are; returns the last baseline.
pub fn explain(scene: &mut Scene, plot: &Plot, rows: &[Prepared], more: usize) -> f64 {
    let steps = || {
        rows.iter()
            .flat_map(|row| row.steps.iter().map(move |step| (row, step)))
    };
    let measured = || steps().filter(|(_, step)| step.measured.is_some());
    let held = |by: Limit| measured().any(|(row, step)| row.held_by(step.intensity) == Some(by));
    let mut words = vec!["Numbers: tokens per step.".to_owned()];
    match (held(Limit::Memory), held(Limit::Arithmetic)) {
        (true, true) => words.push(
            "Filled: measured, orange where reading memory is the limit, blue where arithmetic is."
                .to_owned(),
        ),
        (true, false) => {
            words.push("Filled: measured; reading memory is the limit.".to_owned());
        }
        (false, true) => words.push("Filled: measured; arithmetic is the limit.".to_owned()),
        (false, false) if measured().next().is_some() => {
            words.push("Filled: measured.".to_owned());
        }
        _ => words.push("Nothing was measured.".to_owned()),
    }
    if steps().any(|(_, step)| step.expected.is_some()) {
        words.push("Hollow: expected, with its range.".to_owned());
    }
    if rows
        .iter()
        .any(|row| row.reading.is_some() || row.arithmetic.is_some())
    {
        words.push("Dashed: what reading and arithmetic allow.".to_owned());
    }
    for (name, missing) in [
        ("Read speed", rows.iter().all(|row| row.reading.is_none())),
        (
            "Speed of arithmetic",
            rows.iter().all(|row| row.arithmetic.is_none()),
        ),
    ] {
        if missing {
            words.push(format!("{name} is not known."));
        }
    }
    match more {
        0 => {}
        1 => words.push("One more result is not drawn.".to_owned()),
        n => words.push(format!("{n} more results are not drawn.")),
    }
    let mut last = plot.area.bottom() + AXIS_TITLE + 4.0;
    let room = plot.width - plot.area.x;
    for text in text::wrap(&words.join(" "), room, NOTE, Weight::Regular, 4) {
        last += 18.0;
        scene.label(note(text, plot.area.x, last));
    }
    last
}
