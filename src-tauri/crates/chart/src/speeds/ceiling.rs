//! Ceilings: dashed lines with their values beside them.

use crate::bar::BAR;
use crate::look::{BESIDE, NOTE};
use crate::number;
use crate::palette::Role;
use crate::rows::Geometry;
use crate::scene::{Anchor, Label, Layer, Rect, Scene, Shape, crisp, line};

use super::Prepared;
use super::cell::{Cell, NOTE_ABOVE};
use super::panel::PanelView;

/// A ceiling's mark stands out of the bar by so much above and below.
const OUT: (f64, f64) = (6.0, 7.0);
const DASH: (f64, f64) = (4.0, 3.0);
const STROKE: f64 = 1.5;

/// The ceilings of a panel, drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceilings {
    /// The box of each row's mark.
    pub marks: Vec<Option<Rect>>,
    /// Dashed lines that no label says to be ceilings.
    pub unexplained: bool,
    /// Numbers at the edge that no label says to be ceilings beyond it.
    pub unexplained_beyond: bool,
}

/// Draws the ceilings of a panel.
///
/// One ceiling of all rows is one line. A ceiling far beyond the bars is named at the panel's
/// edge with a sign that points there.
pub fn draw(
    scene: &mut Scene,
    panel: &PanelView,
    rows: &[Prepared],
    geometry: &Geometry,
    cells: &[&Cell],
) -> Ceilings {
    if let Some(ceiling) = panel.shared_ceiling {
        let area = draw_shared(scene, panel, geometry, ceiling);
        return Ceilings {
            marks: vec![Some(area); rows.len()],
            unexplained: false,
            unexplained_beyond: false,
        };
    }
    let ceilings: Vec<Option<f64>> = rows
        .iter()
        .map(|row| row.phases[panel.index].ceiling)
        .collect();
    // All marks come first: no label may stand where another row's mark will.
    let marks: Vec<Option<Rect>> = ceilings
        .iter()
        .zip(cells)
        .map(|(ceiling, cell)| {
            let ceiling = (*ceiling)?;
            panel
                .axis
                .holds(ceiling)
                .then(|| draw_mark(scene, panel, ceiling, cell.bar_top))
        })
        .collect();
    let on_axis = marks.iter().any(Option::is_some);
    let beyond = ceilings
        .iter()
        .zip(&marks)
        .any(|(c, mark)| c.is_some() && mark.is_none());
    // Values under each other read alike: all whole, or all with the decimals of a speed.
    let whole = ceilings
        .iter()
        .flatten()
        .all(|ceiling| !number::limit(*ceiling).contains('.'));
    let write = if whole { number::limit } else { number::speed };
    let mut explained = (false, false);
    let marks = ceilings
        .iter()
        .zip(cells)
        .zip(marks)
        .map(|((ceiling, cell), mark)| {
            let value = write((*ceiling)?);
            Some(match mark {
                Some(mark) => {
                    label_beside(scene, panel, cell, &mark, &value, &mut explained.0);
                    mark
                }
                None => label_beyond(scene, panel, cell, &value, &mut explained.1),
            })
        })
        .collect();
    Ceilings {
        marks,
        unexplained: on_axis && !explained.0,
        unexplained_beyond: beyond && !explained.1,
    }
}

fn draw_shared(scene: &mut Scene, panel: &PanelView, geometry: &Geometry, ceiling: f64) -> Rect {
    let (top, bottom) = (geometry.groups[0].top, geometry.bottom());
    let value = number::limit(ceiling);
    let baseline = top - 8.0;
    if !panel.axis.holds(ceiling) {
        let label = Label::new(
            format!("ceiling {value}, beyond the axis"),
            panel.right - 8.0,
            baseline,
            NOTE,
            Role::InkSecond,
        )
        .anchored(Anchor::End);
        let area = label.bounds();
        scene.label(label);
        chevron(scene, panel.right, baseline - 4.0);
        return area;
    }
    let x = crisp(panel.axis.at(ceiling));
    scene.mark(Layer::Overlay, dashed((x, top), (x, bottom)));
    let mut label = Label::new(
        format!("ceiling {value}"),
        x,
        baseline,
        NOTE,
        Role::InkSecond,
    )
    .anchored(Anchor::Middle);
    let over = label.bounds().right() - panel.right;
    if over > 0.0 {
        label.x -= over;
    }
    scene.label(label);
    Rect::between(x, top, x, bottom).grown(STROKE / 2.0, 0.0)
}

fn draw_mark(scene: &mut Scene, panel: &PanelView, ceiling: f64, bar_top: f64) -> Rect {
    let x = crisp(panel.axis.at(ceiling));
    let (top, bottom) = (bar_top - OUT.0, bar_top + BAR + OUT.1);
    scene.mark(Layer::Overlay, dashed((x, top), (x, bottom)));
    Rect::between(x, top, x, bottom).grown(STROKE / 2.0, 0.0)
}

/// The value to the right of its mark; the first says what it is.
fn label_beside(
    scene: &mut Scene,
    panel: &PanelView,
    cell: &Cell,
    mark: &Rect,
    value: &str,
    explained: &mut bool,
) {
    let x = mark.x + mark.w / 2.0;
    let inside = Rect::between(
        panel.left + 2.0,
        cell.bar_top - 40.0,
        panel.right,
        cell.bar_top + BAR + 40.0,
    );
    let beside = cell.bar_top + 16.0;
    let note = |text: &str, x: f64, y: f64| Label::new(text, x, y, NOTE, Role::InkSecond);
    let named = format!("ceiling {value}");

    let word = note("ceiling", x, cell.bar_top - 15.0).anchored(Anchor::Middle);
    let right = note(value, x + BESIDE, beside);
    let after_all = cell.extent.max(x) + BESIDE;
    let above = (cell.value_right + 10.0, cell.bar_top - NOTE_ABOVE);
    let named_first = vec![
        vec![right.clone(), word],
        vec![note(&named, x + BESIDE, beside)],
    ];
    let candidates = vec![
        vec![right],
        vec![note(&named, after_all, beside)],
        vec![note(&named, above.0, above.1)],
        vec![note(value, after_all, beside)],
    ];
    let chosen = named_first
        .into_iter()
        .filter(|_| !*explained)
        // Once it can be said, it is said; a row without room for the word leaves it to the next.
        .chain(candidates)
        .find(|labels| scene.has_room(labels, &inside));
    for label in chosen.unwrap_or_default() {
        *explained |= label.text.starts_with("ceiling");
        scene.label(label);
    }
}

/// The value at the panel's edge; the first says that it lies beyond.
fn label_beyond(
    scene: &mut Scene,
    panel: &PanelView,
    cell: &Cell,
    value: &str,
    explained: &mut bool,
) -> Rect {
    let middle = cell.bar_top + BAR / 2.0;
    let label = Label::new(
        value,
        panel.right - 9.0,
        middle + 4.0,
        NOTE,
        Role::InkSecond,
    )
    .anchored(Anchor::End);
    let area = label.bounds();
    scene.label(label);
    chevron(scene, panel.right, middle);
    if !*explained {
        let inside = Rect::between(
            panel.left,
            cell.bar_top - 40.0,
            panel.right,
            cell.bar_top + BAR,
        );
        for words in ["ceiling, beyond the axis", "ceiling beyond", "ceiling"] {
            let word = Label::new(
                words,
                panel.right,
                cell.bar_top - NOTE_ABOVE,
                NOTE,
                Role::InkSecond,
            )
            .anchored(Anchor::End);
            if scene.has_room(std::slice::from_ref(&word), &inside) {
                scene.label(word);
                *explained = true;
                break;
            }
        }
    }
    area
}

/// A sign at the panel's edge: what it stands beside lies further on.
pub fn chevron(scene: &mut Scene, right: f64, middle: f64) {
    let tip = (right - 0.5, middle);
    for dy in [-3.5, 3.5] {
        scene.mark(
            Layer::Overlay,
            line((tip.0 - 3.5, middle + dy), tip, STROKE, Role::Ceiling),
        );
    }
}

fn dashed(from: (f64, f64), to: (f64, f64)) -> Shape {
    Shape::Line {
        from,
        to,
        stroke: STROKE,
        role: Role::Ceiling,
        dash: Some(DASH),
    }
}
