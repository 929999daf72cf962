//! Why a model is as fast as it is: statements with their numbers, each with a rule that decides
//! whether it applies.
//!
//! [`statements`] is a pure function of [`Facts`]. Each kind of statement has one rule, beside it
//! in the modules below; a rule that lacks a fact says nothing.

mod judged;
mod rates;
mod says;
mod shape;
mod time;

use twospeed_gguf::Model;

use crate::cache::ContextSettings;
use crate::calibration::Calibration;
use crate::estimate::Estimate;
use crate::expected::TermBasis;
use crate::units::Bytes;

pub use says::{
    ExpertUse, GapPart, Phase, Portion, RateSide, Reason, Rests, Says, Statement, TimePart, Verdict,
};

/// What statements are made of. What is not known is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The model as results keep it, whether or not its file is still here.
    pub model: ModelKnown<'a>,
    /// Its header.
    pub header: Option<&'a Model>,
    /// The context that its cache is told for.
    pub context: ContextSettings,
    /// What is expected under the settings of the result.
    pub estimate: Option<&'a Estimate>,
    /// The calibration that this rests on.
    pub calibration: Option<&'a Calibration>,
    /// What was measured.
    pub result: Measured<'a>,
    /// The last-level cache of the machine.
    pub last_level_cache: Option<Bytes>,
    /// Another quantization of the same model.
    pub beside: Option<Beside<'a>>,
}

/// What is known of a model without its file.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // as in `ModelFacts` and `Decode`
pub struct ModelKnown<'a> {
    pub quantization: Option<&'a str>,
    pub parameters: Option<u64>,
    pub active_parameters: Option<u64>,
    pub file_bytes: Option<Bytes>,
    pub weight_bytes_per_token: Option<Bytes>,
}

/// A measured result.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured<'a> {
    /// Tokens per second.
    pub prefill: Option<f64>,
    /// Tokens per second.
    pub decode: Option<f64>,
    /// Threads that ran.
    pub threads: Option<u32>,
    /// CPU variant that ran.
    pub variant: Option<&'a str>,
    /// Build of the engine.
    pub build: Option<u32>,
    /// Something took time from it that is not the model's: its warnings say what.
    pub disturbed: bool,
}

/// Another quantization of the same model on the same machine.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// Its label.
    pub quantization: &'a str,
    /// What is expected of it.
    pub estimate: &'a Estimate,
    /// Tokens per second.
    pub prefill: Option<f64>,
    /// Tokens per second.
    pub decode: Option<f64>,
}

/// The statements that apply, the one that says most first: speeds that are not as expected, where
/// the time goes, what is between decode and its ceiling, why two quantizations differ, then what
/// is peculiar to the model, and last what holds for every model of its kind.
pub fn statements(facts: &Facts<'_>) -> Vec<Statement> {
    let judged = judged::judged(facts);
    let mut found: Vec<Statement> = Vec::new();
    found.extend(judged::threads(facts, &judged));
    found.extend(judged);
    found.extend(time::token_time(facts));
    found.extend(time::gap(facts));
    found.extend(time::unpacking(facts));
    found.extend(rates::rates(facts));
    found.extend(shape::experts(facts));
    found.extend(shape::cache_resident(facts));
    found.extend(shape::fallen_back(facts));
    found.extend(shape::kv_growth(facts));
    found.extend(shape::sliding_window(facts));
    let deep = time::attention_share(facts) >= LARGE_ATTENTION;
    found.sort_by_key(|statement| rank(&statement.says, deep));
    found
}

/// From this share of a token's time on the cache is what a reader should hear about.
const LARGE_ATTENTION: f64 = 0.25;

/// The place of a statement; `deep`: the cache takes a good part of a token's time.
fn rank(says: &Says, deep: bool) -> u32 {
    match says {
        Says::Judged {
            verdict: Verdict::Faster | Verdict::Slower,
            phase,
            ..
        } => match phase {
            Phase::Decode => 0,
            Phase::Prefill => 1,
        },
        Says::TokenTime { .. } => 10,
        Says::KvGrowth { .. } if deep => 15,
        Says::Gap { .. } => 20,
        Says::Rates { .. } => 30,
        Says::Unpacking { .. } => 40,
        Says::Threads { .. } => 50,
        Says::Judged { phase, .. } => match phase {
            Phase::Decode => 60,
            Phase::Prefill => 61,
        },
        Says::Experts { .. } => 70,
        Says::CacheResident { .. } => 80,
        Says::FallenBack { .. } => 90,
        Says::KvGrowth { .. } => 100,
        Says::SlidingWindow { .. } => 110,
    }
}

/// What expected speeds rest on.
fn rests(estimate: &Estimate) -> Rests {
    let terms = || {
        estimate
            .decode
            .breakdown
            .iter()
            .chain(&estimate.prefill.breakdown)
    };
    let published = terms().any(|term| term.basis == TermBasis::Published);
    match estimate.basis.corrected_by_runs {
        0 if estimate.basis.calibration.is_none() || published => Rests::Published,
        0 => Rests::Calibrated,
        runs => Rests::Corrected { runs },
    }
}

/// A speed that can be computed with.
fn sound(speed: Option<f64>) -> Option<f64> {
    speed.filter(|speed| speed.is_finite() && *speed > 0.0)
}

#[cfg(test)]
mod tests;
