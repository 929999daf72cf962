//! A scripted machine whose speeds are known.

use std::time::Duration;

use twospeed_engine::fake::{Asked, FakeEngine, Script};
use twospeed_engine::protocol::{Event, Measure, Phase, Placement, Request, Sample};
use twospeed_engine::{FlashAttention, Settings, TestSpec};

/// The scripted machine: how many times as fast as the defaults something is.
pub type Factor = fn(&str, &Settings, TestSpec) -> f64;

/// Tokens per second of the defaults.
const PREFILL: f64 = 400.0;
const DECODE: f64 = 100.0;

/// Four cores with two threads each; the best variant by score is not the fastest, a micro-batch of
/// 256 fits the cache, and one of 128 is too small.
pub fn known(variant: &str, settings: &Settings, spec: TestSpec) -> f64 {
    let variant = match variant {
        "zen4" => 1.0,
        "icelake" => 1.1,
        _ => 0.6,
    };
    let threads = match settings.n_threads {
        1 => 0.28,
        2 => 0.53,
        4 => 1.0,
        _ => 0.93,
    };
    let attention = match settings.flash_attn {
        FlashAttention::Off => 0.95,
        _ => 1.0,
    };
    let repack = if settings.repack { 1.0 } else { 0.85 };
    let micro_batch = match settings.n_ubatch {
        _ if spec.n_prompt == 0 => 1.0,
        128 => 0.9,
        256 => 1.08,
        _ => 1.0,
    };
    variant * threads * attention * repack * micro_batch
}

/// Nothing makes any difference.
pub fn all_alike(_: &str, _: &Settings, _: TestSpec) -> f64 {
    1.0
}

/// The defaults are the fastest.
pub fn defaults_win(variant: &str, settings: &Settings, _: TestSpec) -> f64 {
    let is_default = variant == "zen4"
        && settings.n_threads == 4
        && settings.flash_attn == FlashAttention::Auto
        && settings.repack
        && settings.n_ubatch == 512;
    if is_default { 1.0 } else { 0.8 }
}

pub fn seconds(factor: Factor, variant: &str, settings: &Settings, spec: TestSpec) -> f64 {
    let ideal = f64::from(spec.n_prompt) / PREFILL + f64::from(spec.n_gen) / DECODE;
    ideal / factor(variant, settings, spec)
}

/// A factor within `share` of 1, the same for the same seed and number (splitmix64).
fn noise(seed: u64, number: u64, share: f64) -> f64 {
    let mut bits = (seed << 32 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let unit = (bits ^ (bits >> 31)) as f64 / u64::MAX as f64;
    1.0 + share * (2.0 * unit - 1.0)
}

fn answer(
    factor: Factor,
    pace: f64,
    noise: impl Fn(u64) -> f64,
    asked: &Asked<'_>,
    measure: &Measure,
) -> Script {
    let spec = measure.spec;
    let once = seconds(factor, asked.variant, &measure.settings, spec);
    let mut script = Script::new().say(Event::Placed(Placement {
        flash_attention: Some(measure.settings.flash_attn != FlashAttention::Off),
        ..Placement::default()
    }));
    if measure.warmup {
        let warm = TestSpec {
            n_gen: spec.n_gen.min(1),
            ..spec
        };
        let warm = seconds(factor, asked.variant, &measure.settings, warm);
        script = script
            .say(Event::Phase(Phase::Warmup))
            .wait(Duration::from_secs_f64(warm * pace));
    }
    for index in 0..measure.repetitions {
        let number = asked.number as u64 * 100 + u64::from(index);
        let took = once * noise(number);
        let sample = Sample {
            index,
            ns: (took * 1e9) as u64,
            involuntary_switches: None,
            major_faults: None,
            reading: None,
        };
        script = script.repetition(sample, Duration::from_secs_f64(took * pace));
    }
    script.measured(None)
}

pub fn engine(factor: Factor, seed: u64, share: f64) -> FakeEngine {
    at_pace(1.0, factor, seed, share)
}

/// As [`engine`], in so many times the time it reports.
pub fn at_pace(pace: f64, factor: Factor, seed: u64, share: f64) -> FakeEngine {
    FakeEngine::new()
        .with_pace(pace)
        .with_variants(&["zen4", "icelake", "haswell"])
        .answers(move |asked| match asked.request {
            Request::Measure(measure) => {
                let times = |number| noise(seed, number, share);
                Some(answer(factor, pace, times, asked, measure))
            }
            _ => None,
        })
}
