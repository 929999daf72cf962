//! What own measurements teach: by how much expected speeds are to be corrected.
//!
//! A measurement is held against what the calibration alone expects of the same model and settings
//! ([`Residual`]). What several of them say together is a [`Correction`]: first those of the very
//! model that is asked about, and where there are none, what at least three others agree on.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use twospeed_gguf::Model;

use crate::cache::FlashAttention;
use crate::kv_type::KvType;
use crate::question::Question;

/// Models that have to be measured before others are corrected by them.
const FEWEST_MODELS: usize = 3;

/// Runs that have to agree before they narrow a band.
const FEWEST_RUNS: u64 = 3;

/// So many models' worth of doubt stands against what models say of another one: three that agree
/// are believed by 3 / (3 + 2).
const DOUBT: f64 = 2.0;

/// What a model did under other settings is believed by this part.
const OTHER_SETTINGS: f64 = 0.5;

/// Positions in the context whose tokens look back at most this many times as far are alike, counted
/// from [`NEAR`] on: below, attention hardly weighs.
const FAR: f64 = 2.0;
const NEAR: f64 = 512.0;

/// Runs never agree better than a machine repeats itself from day to day.
const LEAST_SPREAD: f64 = 0.02;

/// Own measurements beside what was expected of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Corrections {
    /// Of prefill.
    pub prefill: Option<Correction>,
    /// Of decode.
    pub decode: Option<Correction>,
}

/// A correction of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correction {
    /// Expected speeds are multiplied by it.
    pub factor: f64,
    /// Half the width of the band that the measurements leave, as a share: 0.1 is 10 %.
    pub spread: f64,
    /// Runs that it comes from.
    pub runs: u64,
    /// They were made with this very model.
    pub same_model: bool,
}

impl Correction {
    /// Half the width of the band once this correction is made, where the calibration alone leaves
    /// `calibrated`: at least three runs replace it, whether they agree or not; fewer only widen it.
    pub fn band(self, calibrated: f64) -> f64 {
        match self.runs >= FEWEST_RUNS {
            true => self.spread,
            false => self.spread.max(calibrated),
        }
    }
}

/// One of the two speeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reading the prompt.
    Prefill,
    /// Writing the answer.
    Decode,
}

/// What a model's speed comes from: the same for files of equal tensors, whatever their weights are.
///
/// Holds within this program alone: it is never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelKey(u64);

impl ModelKey {
    /// The key of a model, from its architecture and its tensors.
    pub fn of(model: &Model) -> Self {
        let mut hash = DefaultHasher::new();
        model.architecture.hash(&mut hash);
        for tensor in &model.tensors {
            tensor.name.hash(&mut hash);
            tensor.tensor_type.hash(&mut hash);
            tensor.dimensions[..].hash(&mut hash);
        }
        Self(hash.finish())
    }
}

/// What decides a speed beside the model and the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Tokens that a token of this phase looks back at, on the average.
    pub looks_back: u64,
    /// Micro-batch.
    pub ubatch: u64,
    /// Type of the keys.
    pub type_k: KvType,
    /// Type of the values.
    pub type_v: KvType,
    /// Whether flash attention is switched off.
    pub without_flash_attention: bool,
}

impl Conditions {
    /// Those that a question asks about.
    pub fn of(question: &Question, phase: Phase) -> Self {
        let context = &question.context;
        let own = match phase {
            Phase::Prefill => question.prompt,
            Phase::Decode => question.generate,
        };
        Self {
            looks_back: question.depth.saturating_add(own / 2),
            ubatch: context.ubatch,
            type_k: context.type_k,
            type_v: context.type_v,
            without_flash_attention: context.flash_attention == FlashAttention::Off,
        }
    }

    /// Whether what holds for one is to be expected of the other. A micro-batch means nothing to
    /// decode.
    fn are_like(&self, other: &Self, phase: Phase) -> bool {
        let from_near = |conditions: &Self| conditions.looks_back as f64 + NEAR;
        let apart = (from_near(self) / from_near(other)).ln().abs();
        apart <= FAR.ln()
            && (phase == Phase::Decode || self.ubatch == other.ubatch)
            && (self.type_k, self.type_v) == (other.type_k, other.type_v)
            && self.without_flash_attention == other.without_flash_attention
    }
}

/// One own measurement beside what the calibration alone expects of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// The run that it belongs to: what is measured in one sitting counts once.
    pub run: u128,
    /// Its model.
    pub model: ModelKey,
    /// What was measured.
    pub phase: Phase,
    /// Under which conditions.
    pub conditions: Conditions,
    /// Measured speed / expected speed.
    pub ratio: f64,
}

/// What measurements say about a question.
///
/// Where this model was measured under like conditions, the factor is the median of its runs'
/// ratios. Where it was measured under others only, half of that (on a logarithmic scale) is
/// believed. Otherwise each model has one vote, the median of its runs; of three votes or more the
/// geometric mean counts, drawn towards 1 the more, the fewer there are.
///
/// The spread is what two standard deviations of the logarithms leave for one more run, and what was
/// not believed.
pub fn corrections(residuals: &[Residual], model: ModelKey, question: &Question) -> Corrections {
    let of = |phase| {
        let asked = Conditions::of(question, phase);
        let of_phase = residuals
            .iter()
            .filter(|residual| residual.phase == phase)
            .filter(|residual| residual.ratio.is_finite() && residual.ratio > 0.0);
        correction(of_phase.copied().collect(), model, &asked, phase)
    };
    Corrections {
        prefill: of(Phase::Prefill),
        decode: of(Phase::Decode),
    }
}

fn correction(
    residuals: Vec<Residual>,
    model: ModelKey,
    asked: &Conditions,
    phase: Phase,
) -> Option<Correction> {
    let own: Vec<_> = residuals
        .iter()
        .filter(|residual| residual.model == model)
        .collect();
    let like: Vec<_> = own
        .iter()
        .filter(|residual| residual.conditions.are_like(asked, phase))
        .copied()
        .collect();
    if !like.is_empty() {
        return of_one_model(&like, 1.0);
    }
    if !own.is_empty() {
        return of_one_model(&own, OTHER_SETTINGS);
    }
    of_other_models(&residuals)
}

/// The runs of one model, believed by a part.
fn of_one_model(residuals: &[&Residual], believed: f64) -> Option<Correction> {
    let runs: Vec<f64> = by_run(residuals).into_values().collect();
    let middle = median(&runs)?;
    Some(Correction {
        factor: (believed * middle).exp(),
        spread: spread(&runs, middle, believed),
        runs: runs.len() as u64,
        same_model: true,
    })
}

/// One vote for each model.
fn of_other_models(residuals: &[Residual]) -> Option<Correction> {
    let mut models = BTreeMap::<ModelKey, Vec<&Residual>>::new();
    for residual in residuals {
        models.entry(residual.model).or_default().push(residual);
    }
    if models.len() < FEWEST_MODELS {
        return None;
    }
    let mut runs = std::collections::BTreeSet::new();
    let mut votes = Vec::with_capacity(models.len());
    for of_model in models.values() {
        let by_run = by_run(of_model);
        votes.push(median(&by_run.values().copied().collect::<Vec<_>>())?);
        runs.extend(by_run.into_keys());
    }
    let count = votes.len() as f64;
    let mean = votes.iter().sum::<f64>() / count;
    let believed = count / (count + DOUBT);
    Some(Correction {
        factor: (believed * mean).exp(),
        spread: spread(&votes, mean, believed),
        runs: runs.len() as u64,
        same_model: false,
    })
}

/// The logarithm of each run's ratio: of several tests their median.
fn by_run(residuals: &[&Residual]) -> BTreeMap<u128, f64> {
    let mut runs = BTreeMap::<u128, Vec<f64>>::new();
    for residual in residuals {
        runs.entry(residual.run)
            .or_default()
            .push(residual.ratio.ln());
    }
    runs.into_iter()
        .filter_map(|(run, ratios)| Some((run, median(&ratios)?)))
        .collect()
}

/// Half the width of the band around `middle`, as a share.
fn spread(logarithms: &[f64], middle: f64, believed: f64) -> f64 {
    let count = logarithms.len() as f64;
    let squares: f64 = logarithms
        .iter()
        .map(|logarithm| (logarithm - middle).powi(2))
        .sum();
    let deviation = match logarithms.len() {
        0 | 1 => 0.0,
        _ => (squares / (count - 1.0)).sqrt(),
    };
    let one_more = 2.0 * deviation * (1.0 + 1.0 / count).sqrt();
    let not_believed = (1.0 - believed) * middle.abs();
    ((one_more + not_believed).exp() - 1.0).max(LEAST_SPREAD)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(match sorted.len().is_multiple_of(2) {
        true => (sorted[sorted.len() / 2 - 1] + upper) / 2.0,
        false => upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: ModelKey = ModelKey(1);

    fn residual(run: u128, model: u64, ratio: f64) -> Residual {
        Residual {
            run,
            model: ModelKey(model),
            phase: Phase::Decode,
            conditions: Conditions::of(&Question::default(), Phase::Decode),
            ratio,
        }
    }

    fn decode(residuals: &[Residual]) -> Option<Correction> {
        corrections(residuals, ASKED, &Question::default()).decode
    }

    fn near(found: f64, by_hand: f64) {
        assert!((found - by_hand).abs() < 1e-3, "{found} and not {by_hand}");
    }

    #[test]
    fn nothing_measured_corrects_nothing() {
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn a_model_is_corrected_by_the_median_of_its_own_runs() {
        let own = [
            residual(1, 1, 0.8),
            residual(2, 1, 0.9),
            residual(3, 1, 0.85),
        ];
        let found = decode(&own).unwrap();
        near(found.factor, 0.85);
        assert_eq!((found.runs, found.same_model), (3, true));
        // Around ln 0.85: ln(0.8/0.85) = -0.0606, ln(0.9/0.85) = 0.0572; the deviation is
        // sqrt((0.00368 + 0.00327) / 2) = 0.0589; 2 x 0.0589 x sqrt(4/3) = 0.1361; e^0.1361 - 1.
        near(found.spread, 0.1458);
    }

    #[test]
    fn one_run_corrects_and_narrows_nothing() {
        let found = decode(&[residual(1, 1, 0.8)]).unwrap();
        near(found.factor, 0.8);
        assert_eq!(found.runs, 1);
        assert_eq!(found.band(0.15), 0.15);
    }

    #[test]
    fn three_runs_that_agree_narrow_the_band_and_such_that_do_not_widen_it() {
        let agree = [1.0, 1.01, 0.99].map(|ratio| residual((ratio * 100.0) as u128, 1, ratio));
        let found = decode(&agree).unwrap();
        assert!(found.band(0.15) < 0.03, "{found:?}");
        let differ = [1.0, 1.0, 1.5];
        let differ: Vec<_> = (0..).zip(differ).map(|(n, r)| residual(n, 1, r)).collect();
        // One of three is half as fast again: e^(2 x 0.2867 x 1.1547) - 1.
        near(decode(&differ).unwrap().band(0.15), 0.939);
    }

    #[test]
    fn two_runs_widen_but_never_narrow() {
        let pair = |ratio| decode(&[residual(1, 1, 1.0), residual(2, 1, ratio)]).unwrap();
        assert_eq!(pair(1.0).band(0.15), 0.15);
        assert!(pair(1.4).band(0.15) > 0.5);
    }

    #[test]
    fn what_one_run_measures_twice_counts_once() {
        let found = decode(&[
            residual(1, 1, 0.5),
            residual(1, 1, 0.7),
            residual(1, 1, 0.9),
            residual(2, 1, 1.0),
        ])
        .unwrap();
        // The first run stands for 0.7; between 0.7 and 1.0 lies their geometric mean.
        near(found.factor, 0.7_f64.sqrt());
        assert_eq!(found.runs, 2);
    }

    #[test]
    fn three_other_models_are_believed_in_part_and_two_not_at_all() {
        let others = [
            residual(1, 2, 1.2),
            residual(2, 3, 1.2),
            residual(3, 4, 1.2),
        ];
        assert_eq!(decode(&others[..2]), None);
        let found = decode(&others).unwrap();
        // 1.2^(3/5), and the 2/5 that are not believed stay in the band.
        near(found.factor, 1.1156);
        near(found.spread, 0.0757);
        assert_eq!((found.runs, found.same_model), (3, false));
    }

    #[test]
    fn a_model_that_was_measured_often_has_one_vote_like_any_other() {
        let mut others: Vec<_> = (0..20).map(|run| residual(run, 2, 2.0)).collect();
        others.extend([residual(30, 3, 1.0), residual(31, 4, 1.0)]);
        let found = decode(&others).unwrap();
        // 2^(1/3 x 3/5)
        near(found.factor, 1.1487);
        assert_eq!(found.runs, 22);
        assert!(found.spread > 1.0, "they disagree: {found:?}");
    }

    #[test]
    fn other_models_count_only_where_this_one_was_never_measured() {
        let mut all: Vec<_> = (2..9).map(|model| residual(9, model, 0.5)).collect();
        all.push(residual(1, 1, 1.1));
        near(decode(&all).unwrap().factor, 1.1);
    }

    #[test]
    fn of_other_settings_half_is_believed() {
        let mut far = residual(1, 1, 0.64);
        far.conditions.looks_back = 16_384;
        let found = decode(&[far]).unwrap();
        near(found.factor, 0.8);
        near(found.spread, 0.25);
        // A run under the settings that were asked about stands alone.
        let found = decode(&[far, residual(2, 1, 1.0)]).unwrap();
        assert_eq!((found.factor, found.runs), (1.0, 1));
    }

    #[test]
    fn what_is_alike_and_what_is_not() {
        let usual = Conditions::of(&Question::default(), Phase::Decode);
        assert_eq!(usual.looks_back, 64);
        let with = |change: fn(&mut Conditions)| {
            let mut other = usual;
            change(&mut other);
            other
        };
        let like = |other: Conditions, phase| usual.are_like(&other, phase);
        // 64 + 512 = 576; twice that less 512 is 640.
        assert!(like(with(|c| c.looks_back = 640), Phase::Decode));
        assert!(!like(with(|c| c.looks_back = 641), Phase::Decode));
        assert!(like(with(|c| c.ubatch = 128), Phase::Decode));
        assert!(!like(with(|c| c.ubatch = 128), Phase::Prefill));
        assert!(!like(with(|c| c.type_v = KvType::Q8_0), Phase::Decode));
        assert!(!like(
            with(|c| c.without_flash_attention = true),
            Phase::Prefill
        ));
    }

    #[test]
    fn each_phase_learns_from_its_own() {
        let mut prefill = residual(1, 1, 0.7);
        prefill.phase = Phase::Prefill;
        prefill.conditions = Conditions::of(&Question::default(), Phase::Prefill);
        let found = corrections(&[prefill, residual(1, 1, 0.9)], ASKED, &Question::default());
        near(found.prefill.unwrap().factor, 0.7);
        near(found.decode.unwrap().factor, 0.9);
    }

    #[test]
    fn a_ratio_that_is_none_is_passed_over() {
        let broken = [0.0, f64::NAN, f64::INFINITY, -1.0];
        let broken: Vec<_> = broken.iter().map(|r| residual(1, 1, *r)).collect();
        assert_eq!(decode(&broken), None);
    }

    #[test]
    fn models_of_the_same_tensors_are_one_whatever_their_name() {
        let model = |width: u64, name: &str| {
            let mut writer = twospeed_gguf::Writer::new();
            writer.set("general.architecture", "llama");
            writer.set("general.name", name);
            writer
                .tensor(
                    "blk.0.attn_q.weight",
                    twospeed_gguf::TensorType::Q8_0,
                    &[width, 64],
                )
                .unwrap();
            let header = writer.header();
            twospeed_gguf::read_from(&header[..], "a.gguf", header.len() as u64).unwrap()
        };
        let key = ModelKey::of(&model(64, "one"));
        assert_eq!(key, ModelKey::of(&model(64, "two")));
        assert_ne!(key, ModelKey::of(&model(128, "one")));
    }
}
