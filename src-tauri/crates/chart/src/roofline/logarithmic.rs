//! An axis on which each power of ten takes the same room.

/// The least distance between two ticks, in px.
const LEAST_SPACING: f64 = 34.0;

/// A logarithmic axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Logarithmic {
    /// Value and position of its beginning.
    from: (f64, f64),
    /// Value and position of its end, which may be the smaller position.
    to: (f64, f64),
}

impl Logarithmic {
    /// An axis between two values at two positions. Where they are no range, one of a tenth to ten
    /// times the first.
    pub fn between(least: f64, most: f64, start: f64, end: f64) -> Self {
        let (least, most) = if least > 0.0 && most > least * 1.001 && most.is_finite() {
            (least, most)
        } else {
            let middle = if least > 0.0 && least.is_finite() {
                least
            } else {
                1.0
            };
            (middle / 10.0, middle * 10.0)
        };
        Self {
            from: (least, start),
            to: (most, end),
        }
    }

    /// Px per power of ten; negative upward.
    pub fn scale(&self) -> f64 {
        (self.to.1 - self.from.1) / (self.to.0 / self.from.0).log10()
    }

    /// Position of 1.
    pub fn origin(&self) -> f64 {
        self.from.1 - self.from.0.log10() * self.scale()
    }

    /// Position of a value; one outside stops at the end.
    pub fn at(&self, value: f64) -> f64 {
        self.origin() + value.clamp(self.from.0, self.to.0).log10() * self.scale()
    }

    /// Whether a value lies on it.
    pub fn holds(&self, value: f64) -> bool {
        (self.from.0..=self.to.0 * (1.0 + 1e-9)).contains(&value)
    }

    /// Least and largest value.
    pub fn ends(&self) -> (f64, f64) {
        (self.from.0, self.to.0)
    }

    /// Round numbers: 1, 2 and 5 of each power of ten as far as they have room, else 1 and 3, else
    /// powers of ten, else some of those.
    pub fn ticks(&self) -> Vec<f64> {
        let (first, last) = (self.from.0.log10().floor(), self.to.0.log10().ceil());
        let all = |of: &[f64], step: f64| -> Vec<f64> {
            let count = ((last - first) / step).ceil() as i32;
            (0..=count)
                .map(|i| first + step * f64::from(i))
                .flat_map(|power| of.iter().map(move |m| m * 10f64.powf(power)))
                .filter(|tick| self.holds(*tick))
                .collect()
        };
        let fits = |ticks: &[f64]| {
            ticks
                .windows(2)
                .all(|pair| (self.at(pair[1]) - self.at(pair[0])).abs() >= LEAST_SPACING)
        };
        [
            (&[1.0, 2.0, 5.0][..], 1.0),
            (&[1.0, 3.0][..], 1.0),
            (&[1.0][..], 1.0),
            (&[1.0][..], 2.0),
            (&[1.0][..], 4.0),
        ]
        .into_iter()
        .map(|(of, step)| all(of, step))
        .find(|ticks| fits(ticks))
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_ten_takes_the_same_room() {
        let axis = Logarithmic::between(1.0, 1000.0, 50.0, 350.0);
        // Three decades on 300 px.
        for (value, at) in [(1.0, 50.0), (10.0, 150.0), (100.0, 250.0), (1000.0, 350.0)] {
            assert!((axis.at(value) - at).abs() < 1e-9, "{value}");
        }
        assert!((axis.scale() - 100.0).abs() < 1e-9);
        assert!((axis.origin() - 50.0).abs() < 1e-9);
        let up = Logarithmic::between(10.0, 1000.0, 400.0, 200.0);
        assert!((up.at(100.0) - 300.0).abs() < 1e-9);
        // 1 lies a decade below the beginning.
        assert!((up.origin() - 500.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_as_many_as_have_room() {
        let ticks = |length| Logarithmic::between(1.0, 100.0, 0.0, length).ticks();
        // 1, 2, 5: the least step is a factor of 2, 0.301 of a decade.
        assert_eq!(ticks(300.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(200.0), [1.0, 3.0, 10.0, 30.0, 100.0]);
        assert_eq!(ticks(80.0), [1.0, 10.0, 100.0]);
    }

    #[test]
    fn no_range_still_makes_an_axis() {
        for (least, most) in [
            (5.0, 5.0),
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (3.0, f64::INFINITY),
        ] {
            let axis = Logarithmic::between(least, most, 0.0, 100.0);
            assert!(axis.at(least.max(1.0)).is_finite());
            assert!(!axis.ticks().is_empty());
        }
    }
}
