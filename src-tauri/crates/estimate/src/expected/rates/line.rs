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
