//! What expected time is made of.

use crate::look::PhaseLook;
use crate::measured::sound;
use crate::palette::Role;
use crate::text;

/// Why time passes, as figures tell it by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Weights: read in decode, multiplied with in prefill.
    Weights,
    /// Attention over the cache, and recurrent state.
    Cache,
    /// What does not grow with either: small operations of the layers, starting a step.
    Fixed,
}

impl Cause {
    /// Every cause, in the order in which they stand.
    pub const ALL: [Self; 3] = [Self::Weights, Self::Cache, Self::Fixed];

    /// In running text.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::Cache => "cache",
            Self::Fixed => "fixed work",
        }
    }

    /// Colour of its shapes in a phase.
    pub(crate) fn role(self, phase: &PhaseLook) -> Role {
        match self {
            Self::Weights => phase.shape,
            Self::Cache => phase.half,
            Self::Fixed => Role::BandEdge,
        }
    }
}

/// A part of an expected time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimePart {
    /// What takes it: `weights Q4_K`, `attention`.
    pub name: String,
    /// Why.
    pub cause: Cause,
    /// How much.
    pub ms: f64,
}

/// The parts that can be shown: names clean, times sound and not zero, causes together.
pub(crate) fn sound_parts(parts: &[TimePart]) -> Vec<TimePart> {
    let mut kept: Vec<TimePart> = parts
        .iter()
        .filter(|part| sound(part.ms) && part.ms > 0.0)
        .map(|part| TimePart {
            name: text::filled(&part.name).unwrap_or_else(|| part.cause.words().to_owned()),
            ..part.clone()
        })
        .collect();
    kept.sort_by_key(|part| part.cause);
    kept
}

/// Their sum.
pub(crate) fn total(parts: &[TimePart]) -> f64 {
    parts.iter().map(|part| part.ms).sum()
}

/// Time and share of each cause that has a part.
pub(crate) fn by_cause(parts: &[TimePart]) -> Vec<(Cause, f64, f64)> {
    let all = total(parts);
    Cause::ALL
        .into_iter()
        .filter_map(|cause| {
            let of = parts.iter().filter(|part| part.cause == cause);
            let ms: f64 = of.map(|part| part.ms).sum();
            (ms > 0.0).then(|| (cause, ms, ms / all))
        })
        .collect()
}
