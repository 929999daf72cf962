//! One panel: its axis, its grid, its name.

use crate::axis::{Linear, TICK_SIZE};
use crate::data;
use crate::look::{BESIDE, NOTE, PHASES, PhaseLook};
use crate::measured::reach;
use crate::number;
use crate::palette::Role;
use crate::rows::Geometry;
use crate::scene::{Anchor, Label, Scene, crisp};
use crate::text::{self, Weight};

use super::cell::labels;
use super::{Form, Phase, Prepared};

/// Room for the sign that a value lies beyond the axis.
pub const CHEVRON: f64 = 12.0;
/// A prediction this many times larger than all measurements lies beyond the axis, so that the
/// bars stay readable.
const FAR: f64 = 2.5;

/// A panel with its axis.
#[derive(Debug, Clone)]
pub struct PanelView {
    /// 0 prefill, 1 decode.
    pub index: usize,
    /// How what was measured is drawn.
    pub form: Form,
    /// From values to px.
    pub axis: Linear,
    /// Left edge.
    pub left: f64,
    /// Right edge.
    pub right: f64,
    /// The one ceiling of all rows, where they share it: a line through all of them.
    pub shared_ceiling: Option<f64>,
}

impl PanelView {
    /// The panel of prefill (0) or decode (1), with an axis on which its marks and the labels
    /// beside them have room.
    pub fn new(index: usize, form: Form, rows: &[Prepared], geometry: &Geometry) -> Self {
        let left = geometry.panels[index];
        let width = geometry.panel_width;
        let phases: Vec<&Phase> = rows.iter().map(|row| &row.phases[index]).collect();
        let largest = largest(&phases);
        let shared = shared_ceiling(rows, index).filter(|_| geometry.groups.len() == 1);

        let mut length = width;
        let mut axis = Linear::holding(largest, left + 0.5, length);
        // The room that labels need depends on the axis, and the axis on the room.
        for _ in 0..3 {
            length = room(&phases, &axis, width, shared.is_some()).max(width * 0.4);
            axis = Linear::holding(largest, left + 0.5, length);
        }
        let mut panel = Self {
            index,
            form,
            shared_ceiling: None,
            axis,
            left,
            right: left + width,
        };
        panel.shared_ceiling = shared.filter(|ceiling| {
            !panel.axis.holds(*ceiling) || panel.stands_clear(panel.axis.at(*ceiling), &phases)
        });
        panel
    }

    /// Whether a line through all rows would pass the values above the bars.
    fn stands_clear(&self, x: f64, phases: &[&Phase]) -> bool {
        phases.iter().all(|phase| {
            labels(self, phase, 0.0)
                .last()
                .is_none_or(|label| label.bounds().right() + 6.0 < x)
        })
    }

    /// How this phase looks.
    pub fn look(&self) -> &'static PhaseLook {
        &PHASES[self.index]
    }

    /// Draws name, grid, ticks and the axis' title.
    pub fn draw_frame(&self, scene: &mut Scene, geometry: &Geometry, test: Option<&str>) {
        let name = Label::new(
            self.look().heading,
            self.left,
            geometry.panel_names,
            14.0,
            self.look().ink,
        )
        .bold();
        let note_left = name.bounds().right() + 8.0;
        scene.label(name);
        if let Some(test) = test {
            let test = text::clean(test);
            let test = text::shorten(&test, self.right - note_left, NOTE, Weight::Regular);
            scene.label(Label::new(
                test,
                note_left,
                geometry.panel_names,
                NOTE,
                Role::InkSecond,
            ));
        }
        for value in self.axis.ticks() {
            let x = crisp(self.axis.at(value));
            if value > 0.0 {
                for group in &geometry.groups {
                    scene.grid_line((x, group.top), (x, group.bottom));
                }
            }
            scene.label(
                Label::new(
                    number::tick(value, self.axis.step),
                    x,
                    geometry.bottom() + 18.0,
                    TICK_SIZE,
                    Role::InkThird,
                )
                .anchored(Anchor::Middle),
            );
        }
        scene.label(Label::new(
            "tokens per second",
            self.left,
            geometry.axis_titles(),
            TICK_SIZE,
            Role::InkThird,
        ));
    }

    /// The panel as values.
    pub fn data(&self) -> data::Panel {
        data::Panel {
            id: self.look().name.to_owned(),
            unit: "tok/s".to_owned(),
            origin: self.axis.origin,
            scale: self.axis.scale(),
            end: self.axis.end,
            ticks: self.axis.ticks(),
            upward: false,
            logarithmic: false,
            across: None,
        }
    }
}

/// The largest value that the axis holds.
fn largest(phases: &[&Phase]) -> f64 {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let measured = most(&mut phases.iter().filter_map(|p| p.measured.as_ref()).map(reach));
    let expected = || phases.iter().filter_map(|p| p.expected).map(|e| e.high);
    let ceilings = || phases.iter().filter_map(|p| p.ceiling);
    if measured > 0.0 {
        let near = |value: &f64| *value <= measured * FAR;
        most(&mut expected().chain(ceilings()).filter(near).chain([measured]))
    } else if expected().next().is_some() {
        let expected = most(&mut expected());
        most(
            &mut ceilings()
                .filter(|c| *c <= expected * FAR)
                .chain([expected]),
        )
    } else {
        most(&mut ceilings())
    }
}

/// The ceiling of all rows, where there are several and it is the same.
pub fn shared_ceiling(rows: &[Prepared], phase: usize) -> Option<f64> {
    let first = rows.first()?.phases[phase].ceiling?;
    let same = |row: &Prepared| {
        row.phases[phase]
            .ceiling
            .is_some_and(|ceiling| (ceiling - first).abs() <= first * 1e-6)
    };
    (rows.len() > 1 && rows.iter().all(same)).then_some(first)
}

/// The length of the axis that leaves room for the labels to the right of its marks.
fn room(phases: &[&Phase], axis: &Linear, width: f64, shared: bool) -> f64 {
    let last_tick = axis.ticks().last().copied().unwrap_or(0.0);
    let half_tick = text::width(
        &number::tick(last_tick, axis.step),
        TICK_SIZE,
        Weight::Regular,
    ) / 2.0;
    let mut length = ((width - half_tick) * axis.end / last_tick).min(width - 1.0);
    for phase in phases {
        let Some(ceiling) = phase.ceiling else {
            continue;
        };
        if shared {
            continue;
        }
        let marks = phase
            .measured
            .as_ref()
            .map_or(0.0, reach)
            .max(phase.expected.map_or(0.0, |e| e.high))
            .min(axis.end);
        let value = number::speed(ceiling);
        if !axis.holds(ceiling) {
            let label = text::width(&value, NOTE, Weight::Regular);
            length = length.min((width - label - CHEVRON - BESIDE) * axis.end / marks.max(1e-300));
        } else if ceiling > marks {
            let label = text::width(&value, NOTE, Weight::Regular);
            length = length.min((width - label - BESIDE - 1.0) * axis.end / ceiling);
        } else {
            let label = text::width(&format!("ceiling {value}"), NOTE, Weight::Regular);
            length = length.min((width - label - BESIDE - 4.0) * axis.end / marks.max(1e-300));
        }
    }
    length.floor()
}
