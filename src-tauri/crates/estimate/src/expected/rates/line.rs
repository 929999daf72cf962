//! What lies between two readings.

/// A straight line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) at_zero: f64,
    pub(super) slope: f64,
}

impl Line {
    /// Through the mean of points and their slope; one point alone goes through the origin, and
    /// neither end goes below zero.
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
        let through_origin = Self {
            at_zero: 0.0,
            slope: y / x,
        };
        if points.is_empty() || x <= 0.0 {
            return None;
        }
        if spread <= 0.0 {
            return Some(through_origin);
        }
        let together: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        let slope = together / spread;
        let at_zero = y - slope * x;
        Some(if at_zero < 0.0 {
            through_origin
        } else if slope < 0.0 {
            Self {
                at_zero: y,
                slope: 0.0,
            }
        } else {
            Self { at_zero, slope }
        })
    }

    pub(super) fn at(self, x: f64) -> f64 {
        self.at_zero + self.slope * x
    }
}

/// Straight lines from point to point, and on beyond the last two.
#[derive(Debug, Clone)]
pub(super) struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Through these points; several at one place count as their mean. `None` without any beyond
    /// zero.
    pub(super) fn through(mut points: Vec<(f64, f64)>) -> Option<Self> {
        points.retain(|(x, y)| *x > 0.0 && *y > 0.0);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let means = points.chunk_by(|a, b| a.0 == b.0).map(|same| {
            let sum: f64 = same.iter().map(|point| point.1).sum();
            (same[0].0, sum / same.len() as f64)
        });
        let points: Vec<_> = means.collect();
        (!points.is_empty()).then_some(Self(points))
    }

    /// Before the first point no more than there and no less than its share; beyond the last never
    /// less than there.
    pub(super) fn at(&self, x: f64) -> f64 {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        let line = |a: (f64, f64), b: (f64, f64)| a.1 + (x - a.0) * (b.1 - a.1) / (b.0 - a.0);
        let [.., before, _] = self.0[..] else {
            return first.1 * x / first.0;
        };
        if x >= last.0 {
            return line(before, last).max(last.1);
        }
        if x <= first.0 {
            let share = first.1 * x / first.0;
            return line(first, self.0[1]).clamp(share, first.1);
        }
        self.0
            .windows(2)
            .find(|pair| x <= pair[1].0)
            .map_or(last.1, |pair| line(pair[0], pair[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_point_to_point() {
        let curve = Curve::through(vec![(4.0, 10.0), (1.0, 2.0), (4.0, 6.0), (2.0, 4.0)]).unwrap();
        assert_eq!((curve.at(1.0), curve.at(2.0)), (2.0, 4.0));
        assert_eq!(curve.at(3.0), 6.0, "between 4 and the mean of 6 and 10");
        assert_eq!(curve.at(8.0), 16.0, "as it went on before");
        assert_eq!(curve.at(0.5), 1.0);
    }

    #[test]
    fn a_curve_never_falls_beyond_its_ends() {
        let curve = Curve::through(vec![(1.0, 4.0), (2.0, 3.0)]).unwrap();
        assert_eq!(curve.at(4.0), 3.0);
        assert_eq!(curve.at(0.5), 4.0);
        // Less than nothing at the beginning would be its share.
        let steep = Curve::through(vec![(2.0, 2.0), (4.0, 8.0)]).unwrap();
        assert_eq!(steep.at(1.0), 1.0);
        let one = Curve::through(vec![(2.0, 2.0)]).unwrap();
        assert_eq!(one.at(6.0), 6.0);
        assert!(Curve::through(vec![(0.0, 1.0)]).is_none());
    }
}
