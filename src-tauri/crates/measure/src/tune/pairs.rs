//! Is one choice faster than another? Alternating pairs and a bound that assumes nothing of noise.

use serde::{Deserialize, Serialize};

use crate::stats::median;

/// Fewest pairs that give a bound at all: 2^-5 is above 2.5 %, 2^-6 is not.
pub const FEWEST_PAIRS: u32 = 6;

/// Chance that the bound lies above the true median.
const CHANCE: f64 = 0.025;

/// Rank (from 1) of the ordered ratio that bounds their median from below; 0 = too few for a bound.
///
/// The largest k for which P(Binomial(n, 1/2) < k) <= 0.025 (distribution-free confidence limits of
/// a median: NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.4 gives the binomial; Conover,
/// Practical Nonparametric Statistics, 3.2). 9 pairs give the 2nd smallest, 30 the 10th.
pub fn lower_rank(pairs: u32) -> u32 {
    let n = f64::from(pairs);
    let mut probability = 0.5_f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for k in 0..=pairs {
        if below + probability > CHANCE {
            return k;
        }
        below += probability;
        probability *= (n - f64::from(k)) / (f64::from(k) + 1.0);
    }
    pairs
}

/// What pairs say of a choice against the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Pairs that were measured.
    pub pairs: u32,
    /// Median of time of the defaults / time of the choice: above 1 the choice is faster.
    pub median: f64,
    /// Lower 95 % bound of that median; `None` where there are too few pairs for one.
    pub lower: Option<f64>,
}

impl Verdict {
    /// Judges ratios, one a pair; `None` of nothing.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let median = median(ratios)?;
        let pairs = u32::try_from(ratios.len()).ok()?;
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = lower_rank(pairs) as usize;
        Some(Self {
            pairs,
            median,
            lower: rank
                .checked_sub(1)
                .and_then(|index| sorted.get(index).copied()),
        })
    }

    /// Whether the choice is faster beyond doubt: its median is above 1, and so is the bound or
    /// equal. Less is not enough to leave the defaults.
    pub fn is_faster(&self) -> bool {
        self.median > 1.0 && self.lower.is_some_and(|lower| lower >= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_binomial() {
        // By hand from the rows of Pascal's triangle: 5: 1/32 = 0.031; 6: 1/64 = 0.016, 7/64;
        // 8: 1/256, 9/256 = 0.035; 9: 10/512 = 0.020, 46/512; 12: 79/4096 = 0.019, 299/4096;
        // 15: 576/32768 = 0.018, 1941/32768 = 0.059. 30 and 60: tables of the sign test.
        for (pairs, rank) in [
            (0, 0),
            (5, 0),
            (6, 1),
            (8, 1),
            (9, 2),
            (12, 3),
            (15, 4),
            (30, 10),
            (60, 22),
        ] {
            assert_eq!(lower_rank(pairs), rank, "{pairs} pairs");
        }
        assert_eq!(lower_rank(FEWEST_PAIRS - 1), 0);
        assert_eq!(lower_rank(FEWEST_PAIRS), 1);
    }

    #[test]
    fn the_bound_is_an_ordered_ratio() {
        let ratios = [1.05, 0.98, 1.03, 1.01, 1.10, 1.04, 1.02, 1.06, 1.07];
        let verdict = Verdict::of(&ratios).unwrap();
        assert_eq!(verdict.median, 1.04);
        assert_eq!(verdict.lower, Some(1.01), "the second smallest of nine");
        assert!(verdict.is_faster());
    }

    #[test]
    fn doubt_is_for_the_defaults() {
        let two_below = [1.05, 0.98, 1.03, 0.99, 1.10, 1.04, 1.02, 1.06, 1.07];
        assert!(!Verdict::of(&two_below).unwrap().is_faster());
        let too_few = [1.5; 5];
        let verdict = Verdict::of(&too_few).unwrap();
        assert_eq!(verdict.lower, None);
        assert!(!verdict.is_faster());
        let all_the_same = [1.0; 9];
        assert!(!Verdict::of(&all_the_same).unwrap().is_faster());
        assert_eq!(Verdict::of(&[]), None);
    }
}
