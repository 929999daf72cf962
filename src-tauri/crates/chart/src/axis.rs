//! Axes: from values to positions.

use crate::number;
use crate::text::{self, Weight};

/// The least distance between two ticks, in px.
const LEAST_SPACING: f64 = 44.0;
/// The same upward.
const LEAST_RISE: f64 = 28.0;
/// The least gap between two tick labels, in px.
const LEAST_GAP: f64 = 14.0;
/// More ticks than any axis has room for.
const MOST_TICKS: f64 = 100.0;
/// The size of tick labels, in px.
pub const TICK_SIZE: f64 = 12.0;

/// A linear axis that starts at zero, as every bar does.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// Position of zero in px.
    pub origin: f64,
    /// Length in px.
    pub length: f64,
    /// Value at the end.
    pub end: f64,
    /// Distance between ticks, a round number.
    pub step: f64,
}

impl Linear {
    /// An axis of `length` px that holds `largest`, with round ticks that leave room for their labels.
    ///
    /// It ends at a tick where that costs little, else just past the largest value. Where there
    /// is nothing to hold (zero, not finite) it holds 1.
    pub fn holding(largest: f64, origin: f64, length: f64) -> Self {
        let extent = |label: &str| text::width(label, TICK_SIZE, Weight::Regular) + LEAST_GAP;
        Self::fitting(largest, origin, length, LEAST_SPACING, extent)
    }

    /// The same for values that grow upward, where labels stand above each other.
    pub fn upward(largest: f64, length: f64) -> Self {
        Self::fitting(largest, 0.0, length, LEAST_RISE, |_| LEAST_RISE)
    }

    /// `extent` is the room that a label and the gap to the next one take along the axis.
    fn fitting(
        largest: f64,
        origin: f64,
        length: f64,
        spacing: f64,
        extent: impl Fn(&str) -> f64,
    ) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 {
            largest.clamp(1e-9, 1e307)
        } else {
            1.0
        };
        let mut step = round_step(largest * spacing / length);
        loop {
            let px_per_tick = step / largest * length;
            let ticks = (largest / step).min(MOST_TICKS) as u32 + 1;
            let widest = (0..=ticks)
                .map(|i| number::tick(f64::from(i) * step, step))
                .map(|label| extent(&label))
                .fold(0.0, f64::max);
            if px_per_tick >= widest || step > largest {
                break;
            }
            step = round_step(step * 1.5);
        }
        let next_tick = (largest / step - 1e-9).ceil() * step;
        let end = if next_tick <= largest * 1.15 {
            next_tick
        } else {
            largest * 1.04
        };
        Self {
            origin,
            length,
            end,
            step,
        }
    }

    /// Px per unit.
    pub fn scale(&self) -> f64 {
        self.length / self.end
    }

    /// Position of a value in px; values past the end stop there.
    pub fn at(&self, value: f64) -> f64 {
        self.origin + value.clamp(0.0, self.end) * self.scale()
    }

    /// Whether a value lies on it.
    pub fn holds(&self, value: f64) -> bool {
        value <= self.end * (1.0 + 1e-9)
    }

    /// The ticks from zero on.
    pub fn ticks(&self) -> Vec<f64> {
        let last = (self.end / self.step + 1e-6).floor() as u32;
        (0..=last).map(|i| f64::from(i) * self.step).collect()
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_the_axis_ends_at_one_where_that_costs_little() {
        let axis = Linear::holding(730.0, 84.5, 218.0);
        assert_eq!(axis.ticks(), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(axis.end, 800.0);
        // By hand: 612 of 800 on 218 px from 84.5 on.
        assert!((axis.at(612.0) - (84.5 + 612.0 / 800.0 * 218.0)).abs() < 1e-9);
    }

    #[test]
    fn the_axis_ends_past_the_largest_value_where_the_next_tick_is_far() {
        let axis = Linear::holding(410.0, 0.0, 200.0);
        assert_eq!(axis.ticks(), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert!((axis.end - 426.4).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_hold_still_makes_an_axis() {
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let axis = Linear::holding(nothing, 0.0, 200.0);
            assert_eq!(axis.end, 1.0, "{nothing}");
            assert!(axis.ticks().len() >= 2);
        }
    }

    #[test]
    fn ticks_stay_few_and_apart_over_all_magnitudes() {
        for exponent in -9..=300 {
            for mantissa in [1.0, 1.3, 2.2, 4.9, 7.7, 9.99] {
                let largest = mantissa * 10f64.powi(exponent);
                let axis = Linear::holding(largest, 0.0, 200.0);
                let ticks = axis.ticks();
                assert!((2..=6).contains(&ticks.len()), "{largest}: {ticks:?}");
                assert!(axis.holds(largest), "{largest}");
            }
        }
    }

    #[test]
    fn a_value_past_the_end_stops_at_the_end() {
        let axis = Linear::holding(100.0, 10.0, 200.0);
        assert_eq!(axis.at(1e9), 210.0);
        assert!(!axis.holds(101.0));
    }
}
