//! How far a measurement may be from what is expected of it.

use super::{Term, TermBasis};
use crate::learn::Correction;

/// Half the band where every term was measured here, as a share of the speed: what the additive
/// model leaves out, and a machine's own noise.
const MEASURED: f64 = 0.15;
/// What a term adds that was taken over from one that resembles it, by its share of the time.
const RESEMBLING: f64 = 0.25;

/// The ends of the band as factors of the expected speed.
pub(super) fn around(terms: &[Term], correction: Option<Correction>) -> (f64, f64) {
    let all: f64 = terms.iter().map(|term| term.ns).sum();
    let resembling: f64 = terms
        .iter()
        .filter(|term| term.basis != TermBasis::Measured)
        .map(|term| term.ns)
        .sum();
    let calibrated = MEASURED + RESEMBLING * resembling / all;
    let half = correction.map_or(calibrated, |correction| correction.band(calibrated));
    (1.0 / (1.0 + half), 1.0 + half)
}
