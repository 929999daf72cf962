//! What stands beside lines: names at their ends, values at their marks, explanations once.

use crate::look::NOTE;
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Layer, Scene, line};
use crate::text::{self, Weight};

use super::panel::{FEW_LINES, LineMarks, NAME_STEP, PanelView, PointMarks, ends};
use super::{Line, Panel};

/// From the plot to the names.
const GAP: f64 = 12.0;
/// The least and the most of the width that names take.
const LEAST: f64 = 8.0;
const MOST_SHARE: f64 = 0.3;
const VALUE: f64 = 13.0;
const WHISKER: &str = "line: ± 1 s.d.";
const SAMPLES: &str = "dots: samples";

/// A name with the value that its line ends at.
fn end_labels(text: &str, value: Option<f64>, (x, y): (f64, f64), ink: Role) -> [Label; 2] {
    let value = value.map(number::speed).unwrap_or_default();
    let value = Label::new(value, x, y, VALUE, ink).bold();
    let after = if value.text.is_empty() {
        x
    } else {
        value.bounds().right() + 6.0
    };
    [value, Label::new(text, after, y, NOTE, ink)]
}

/// The last value of a line.
fn last(of: &Line) -> Option<f64> {
    of.points
        .iter()
        .rev()
        .find_map(|point| Some(point.value.as_ref()?.mean))
}

fn is_named(panel: &Panel) -> bool {
    panel.lines.iter().any(|line| !line.name.is_empty())
}

/// Width of the column of names, the gap to the plot included.
pub fn column(panels: &[Panel], width: f64) -> f64 {
    let widest = panels
        .iter()
        .flat_map(|panel| &panel.lines)
        .filter(|line| !line.name.is_empty())
        .map(|line| {
            let [_, name] = end_labels(&line.name, last(line), (0.0, 0.0), Role::Ink);
            name.bounds().right()
        })
        .fold(0.0, f64::max);
    if widest == 0.0 {
        return LEAST;
    }
    (widest + GAP).min((width * MOST_SHARE).floor()).ceil()
}

/// Writes the names at the ends of the lines, apart from each other; a line leads to a name that
/// does not stand beside its mark.
pub fn names(scene: &mut Scene, view: &PanelView<'_>, drawn: &[LineMarks], width: f64) {
    if !is_named(view.panel) {
        return;
    }
    let (_, right) = view.across.ends();
    let mut wanted: Vec<(usize, (f64, f64))> = drawn
        .iter()
        .enumerate()
        .filter_map(|(i, line)| {
            let last = line
                .points
                .iter()
                .rev()
                .find(|point| point.mark.is_some())?;
            Some((i, last.place))
        })
        .collect();
    wanted.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let (top, bottom) = (view.inside().y + 12.0, view.bottom() - 4.0);
    let middles = apart(
        &wanted.iter().map(|(_, at)| at.1).collect::<Vec<_>>(),
        top,
        bottom,
    );
    let x = right + GAP;
    for ((i, at), middle) in wanted.iter().zip(middles) {
        let text = &view.panel.lines[*i].name;
        if text.is_empty() {
            continue;
        }
        let from = drawn[*i]
            .points
            .iter()
            .filter(|point| point.mark.is_some())
            .map(|point| point.right)
            .fold(at.0, f64::max);
        scene.mark(
            Layer::Grid,
            line((from + 4.0, at.1), (x - 4.0, middle), 1.0, Role::BandEdge),
        );
        let value = last(&view.panel.lines[*i]);
        let [value, mut name] = end_labels(text, value, (x, middle + 4.0), view.panel.ink);
        name.text = text::shorten(text, width - name.x, NOTE, Weight::Regular);
        scene.label(value);
        scene.label(name);
    }
}

/// The positions nearest to `wanted` (in rising order) that keep names apart, between two ends.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let step = NAME_STEP.min((bottom - top) / (wanted.len().max(2) - 1) as f64);
    let mut at: Vec<f64> = wanted.iter().map(|y| y.clamp(top, bottom)).collect();
    for i in 1..at.len() {
        at[i] = at[i].max(at[i - 1] + step);
    }
    let mut most = bottom;
    for y in at.iter_mut().rev() {
        *y = y.min(most);
        most = *y - step;
    }
    at
}

/// Writes the means at their marks where they have room, the ends of each line first. A line with
/// a name has its last value there.
pub fn values(scene: &mut Scene, view: &PanelView<'_>, drawn: &[LineMarks]) {
    if view.panel.is_course {
        end_values(scene, view);
        return;
    }
    if view.panel.lines.len() > FEW_LINES {
        return;
    }
    let inside = view.inside();
    let mut write = |point: &PointMarks, value: f64| {
        let (x, y) = point.place;
        let text = number::speed(value);
        let label = |x: f64, y: f64, anchor: Anchor| {
            Label::new(text.clone(), x, y, VALUE, view.panel.ink)
                .bold()
                .anchored(anchor)
        };
        let (high, low) = point.ends;
        let near = [
            label(x, high - 6.0, Anchor::Middle),
            label(x, low + 15.0, Anchor::Middle),
            label(x + 6.0, high - 6.0, Anchor::Start),
            label(x - 7.0, high - 5.0, Anchor::End),
        ];
        // Further away it would be read as another line's.
        let far = [
            label(x, high - 13.0, Anchor::Middle),
            label(x, low + 23.0, Anchor::Middle),
            label(point.right + 5.0, y - 4.0, Anchor::Start),
        ];
        let candidates = near
            .into_iter()
            .chain(far.into_iter().filter(|_| view.panel.lines.len() == 1));
        let room = candidates
            .into_iter()
            .find(|label| scene.has_room(std::slice::from_ref(label), &inside));
        if let Some(label) = room {
            scene.label(label);
        }
    };
    let mut inner = Vec::new();
    for (line, marks) in view.panel.lines.iter().zip(drawn) {
        let mut measured: Vec<(&PointMarks, f64)> = line
            .points
            .iter()
            .zip(&marks.points)
            .filter_map(|(point, marks)| Some((marks, point.value.as_ref()?.mean)))
            .collect();
        let last = measured.pop().filter(|_| line.name.is_empty());
        let first = (!measured.is_empty()).then(|| measured.remove(0));
        for (point, value) in [last, first].into_iter().flatten() {
            write(point, value);
        }
        inner.extend(measured);
    }
    for (point, value) in inner {
        write(point, value);
    }
}

/// The means of both ends of each course, above or below their lines.
fn end_values(scene: &mut Scene, view: &PanelView<'_>) {
    let inside = view.inside();
    for of in &view.panel.lines {
        for end in ends(of).into_iter().flatten() {
            let middle = (view.across.at(end.from) + view.across.at(end.to)) / 2.0;
            let text = number::speed(end.mean);
            let y = view.y(end.mean);
            let found = (1..=8)
                .flat_map(|i| {
                    let away = f64::from(i) * 7.0;
                    [y - away - 1.0, y + away + 10.0]
                })
                .map(|y| {
                    Label::new(text.clone(), middle, y, VALUE, view.panel.ink)
                        .bold()
                        .anchored(Anchor::Middle)
                })
                .find(|label| scene.has_room(std::slice::from_ref(label), &inside));
            if let Some(label) = found {
                scene.label(label);
            }
        }
    }
}

/// Says once what whiskers, samples and gaps are; returns what found no room.
pub fn explain(
    scene: &mut Scene,
    views: &[PanelView<'_>],
    drawn: &[Vec<LineMarks>],
) -> Vec<String> {
    let places = || {
        views.iter().zip(drawn).flat_map(|(view, lines)| {
            lines
                .iter()
                .flat_map(|line| &line.points)
                .map(move |point| (view, point))
        })
    };
    let mut left_over = Vec::new();
    let mut say = |words: &'static str, has: fn(&PointMarks) -> bool, sentence: &str| {
        if !places().any(|(_, point)| has(point)) {
            return;
        }
        let found = places()
            .filter(|(_, point)| has(point))
            .find_map(|(view, point)| {
                let (x, y) = point.place;
                [
                    (point.right + 8.0, y + 20.0, Anchor::Start),
                    (point.right + 8.0, y - 12.0, Anchor::Start),
                    (point.right + 8.0, y + 32.0, Anchor::Start),
                    (x - 10.0, y + 24.0, Anchor::End),
                ]
                .into_iter()
                .map(|(x, y, anchor)| {
                    Label::new(words, x, y, NOTE, Role::InkSecond).anchored(anchor)
                })
                .find(|label| scene.has_room(std::slice::from_ref(label), &view.inside()))
            });
        match found {
            Some(label) => scene.label(label),
            None => left_over.push(sentence.to_owned()),
        }
    };
    say(
        WHISKER,
        |point| point.whisker,
        "Upright line: ± 1 s.d., where it is longer than the mark.",
    );
    say(
        SAMPLES,
        |point| !point.samples.is_empty(),
        "Small dots: samples.",
    );
    if views
        .iter()
        .any(|view| view.panel.is_course && view.panel.lines.iter().any(|of| ends(of).is_some()))
    {
        left_over.push(
            "Each dot is a sample; black lines: mean of the first and of the last fifth."
                .to_owned(),
        );
    }
    if places().any(|(_, point)| point.mark.is_none()) {
        left_over.push("Where a line is broken, nothing was measured.".to_owned());
    }
    left_over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_near_to_where_they_belong() {
        assert_eq!(apart(&[20.0, 60.0], 10.0, 100.0), [20.0, 60.0]);
        assert_eq!(apart(&[20.0, 22.0, 24.0], 10.0, 100.0), [20.0, 36.0, 52.0]);
        // No room below: pushed up from the end.
        assert_eq!(
            apart(&[98.0, 99.0, 100.0], 10.0, 100.0),
            [68.0, 84.0, 100.0]
        );
        // More names than room: closer together, never outside.
        let crowded = apart(&[50.0; 11], 0.0, 100.0);
        assert!(
            crowded
                .windows(2)
                .all(|pair| (pair[1] - pair[0] - 10.0).abs() < 1e-9),
            "{crowded:?}"
        );
        assert_eq!(apart(&[], 0.0, 100.0), [0.0; 0]);
    }
}
