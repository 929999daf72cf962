//! The axis across: depths and users by doubling, time evenly.

use crate::axis::{Linear, TICK_SIZE};
use crate::number;
use crate::palette::Role;
use crate::scene::{Anchor, Label, Scene, line};
use crate::text::{self, Weight};

/// From the frame of a panel to its outermost marks.
const INSET: (f64, f64) = (16.0, 28.0);
/// The least gap between two tick labels, in px.
const LEAST_GAP: f64 = 12.0;
/// Length of a tick in px.
const TICK: f64 = 4.0;

/// How places are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each doubling takes the same room; zero, which has no logarithm, stands beside.
    Doubling,
    /// Evenly, from zero.
    Even,
}

/// The axis across, shared by all panels of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Across {
    spread: Spread,
    places: Vec<f64>,
    left: f64,
    right: f64,
}

impl Across {
    /// An axis from `left` to `right` on which all places lie, ordered and each once.
    pub fn new(spread: Spread, places: impl Iterator<Item = f64>, left: f64, right: f64) -> Self {
        let mut places: Vec<f64> = places
            .filter(|place| place.is_finite() && *place >= 0.0)
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        Self {
            spread,
            places,
            left,
            right,
        }
    }

    /// Left and right end of the panels.
    pub fn ends(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// The smallest place that has a logarithm.
    fn least(&self) -> f64 {
        self.places
            .iter()
            .copied()
            .find(|place| *place > 0.0)
            .unwrap_or(1.0)
    }

    /// How far a place lies from the first, in doublings or as it is.
    fn distance(&self, place: f64) -> f64 {
        match self.spread {
            Spread::Even => place,
            Spread::Doubling => {
                let beside = if self.places.first() == Some(&0.0) {
                    1.0
                } else {
                    0.0
                };
                if place > 0.0 {
                    (place / self.least()).log2().max(0.0) + beside
                } else {
                    0.0
                }
            }
        }
    }

    /// Position of a place in px; of a single one the middle.
    pub fn at(&self, place: f64) -> f64 {
        let (left, right) = (self.left + INSET.0, self.right - INSET.1);
        let all = self.places.last().map_or(0.0, |last| self.distance(*last));
        if all > 0.0 {
            left + self.distance(place) / all * (right - left)
        } else {
            (left + right) / 2.0
        }
    }

    /// The least distance of two neighbouring places, in px.
    pub fn spacing(&self) -> f64 {
        self.places
            .windows(2)
            .map(|pair| self.at(pair[1]) - self.at(pair[0]))
            .fold(f64::INFINITY, f64::min)
    }

    /// Whether zero stands beside a logarithmic axis.
    pub fn has_zero_beside(&self) -> bool {
        self.spread == Spread::Doubling && self.places.len() > 1 && self.places[0] == 0.0
    }

    /// Places with labels: those that were measured as far as their labels have room, the last
    /// always; on an even axis round numbers.
    fn ticks(&self) -> Vec<(f64, String)> {
        if self.spread == Spread::Even {
            let last = self.places.last().copied().unwrap_or(0.0);
            let axis = Linear::holding(last, 0.0, self.at(last) - self.at(0.0));
            return axis
                .ticks()
                .into_iter()
                .filter(|tick| *tick <= last * (1.0 + 1e-9))
                .map(|tick| (tick, number::tick(tick, axis.step)))
                .collect();
        }
        let label = |place: f64| (place, number::count(place));
        let half = |text: &str| text::width(text, TICK_SIZE, Weight::Regular) / 2.0;
        let Some((last, rest)) = self.places.split_last() else {
            return Vec::new();
        };
        let last = label(*last);
        let end = self.at(last.0) - half(&last.1) - LEAST_GAP;
        let mut taken = f64::NEG_INFINITY;
        let mut ticks = Vec::new();
        for place in rest {
            let tick = label(*place);
            let (x, half) = (self.at(*place), half(&tick.1));
            if x - half >= taken && x + half <= end {
                taken = x + half + LEAST_GAP;
                ticks.push(tick);
            }
        }
        ticks.push(last);
        ticks
    }

    /// Draws base line, ticks and their labels below a panel that ends at `bottom`.
    pub fn draw(&self, scene: &mut Scene, bottom: f64) {
        let base = |scene: &mut Scene, from: f64, to: f64| {
            scene.mark(
                crate::scene::Layer::Overlay,
                line((from, bottom), (to, bottom), 1.0, Role::InkThird),
            );
        };
        if self.has_zero_beside() {
            // The line is broken where the logarithm would never reach zero.
            let gap = (self.at(self.places[0]) + self.at(self.places[1])) / 2.0;
            base(scene, self.left, gap - 4.0);
            base(scene, gap + 4.0, self.right);
            for x in [gap - 4.0, gap + 4.0] {
                scene.mark(
                    crate::scene::Layer::Overlay,
                    line(
                        (x - 2.0, bottom + 4.0),
                        (x + 2.0, bottom - 4.0),
                        1.0,
                        Role::InkThird,
                    ),
                );
            }
        } else {
            base(scene, self.left, self.right);
        }
        for (place, text) in self.ticks() {
            let x = crate::scene::crisp(self.at(place));
            scene.mark(
                crate::scene::Layer::Overlay,
                line((x, bottom), (x, bottom + TICK), 1.0, Role::InkThird),
            );
            scene.label(
                Label::new(text, x, bottom + 18.0, TICK_SIZE, Role::InkThird)
                    .anchored(Anchor::Middle),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depths(places: &[f64]) -> Across {
        Across::new(Spread::Doubling, places.iter().copied(), 0.0, 544.0)
    }

    #[test]
    fn each_doubling_takes_the_same_room_and_zero_stands_beside() {
        let across = depths(&[2048.0, 0.0, 512.0, 1024.0, 4096.0]);
        // From 16 to 516 px: one step for zero and three doublings, 125 px each.
        let at: Vec<f64> = [0.0, 512.0, 1024.0, 2048.0, 4096.0]
            .map(|d| across.at(d))
            .into();
        assert_eq!(at, [16.0, 141.0, 266.0, 391.0, 516.0]);
        assert!(across.has_zero_beside());
        assert_eq!(across.spacing(), 125.0);
    }

    #[test]
    fn one_place_stands_in_the_middle_also_where_it_is_zero() {
        for place in [0.0, 1.0, 4096.0] {
            assert_eq!(depths(&[place]).at(place), 266.0);
        }
        assert_eq!(depths(&[f64::NAN, f64::INFINITY, -1.0]).places, []);
    }

    #[test]
    fn ticks_leave_room_for_each_other_and_name_the_last_place() {
        let across = depths(&(0..60).map(|i| f64::from(i) * 512.0).collect::<Vec<_>>());
        let ticks = across.ticks();
        assert!(ticks.len() < 12, "{ticks:?}");
        assert_eq!(ticks.last().map(|(_, text)| text.as_str()), Some("30,208"));
    }
}
