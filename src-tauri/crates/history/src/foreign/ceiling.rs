//! Results that no machine there is could have given.

use twospeed_measure::model::MeasuredModel;

use crate::test::{Test, Told};

/// Bytes per second that one device reads, above any there is: HBM of today's fastest GPUs gives 8 TB/s.
const READS: f64 = 20e12;

/// Operations per second of one device, above any there is: today's fastest GPUs give 20 PFLOP/s
/// of sparse 4-bit arithmetic.
const COMPUTES: f64 = 40e15;

/// The smallest share of its weights that a mixture of experts uses for a token, where it is not told.
const LEAST_ACTIVE: f64 = 1.0 / 128.0;

/// How far apart a mean of speeds and a speed of means may lie: as far as they are with samples
/// of which one takes ten times as long as the others.
const APART: f64 = 3.0;

/// Why a result cannot be right; `None` where it can, or where too little is told to say.
pub(super) fn reason(test: &Test, told: &Told) -> Option<String> {
    let speed = test.speed()?.mean;
    let spec = test.record.spec;
    if let Some(ns) = test.reported.and_then(|reported| reported.avg_ns) {
        let of_means = 1e9 * spec.tokens() as f64 / ns;
        if speed > of_means * APART || speed < of_means * 0.99 {
            return Some(format!(
                "{speed:.2} tok/s contradicts its own time, which is {of_means:.2} tok/s"
            ));
        }
    }
    let model = &test.record.model;
    let devices = devices(told);
    let active = active_share(model);
    let seconds = spec.tokens() as f64 / speed;
    let read = told.model_size? as f64 * active * f64::from(spec.n_gen) / seconds;
    if read > READS * devices {
        return Some(format!(
            "{speed:.2} tok/s would read {:.0} TB/s of weights, more than any memory gives",
            read / 1e12
        ));
    }
    let computed = 2.0 * told.model_n_params? as f64 * active * f64::from(spec.n_prompt) / seconds;
    if computed > COMPUTES * devices {
        return Some(format!(
            "{speed:.2} tok/s would be {:.0} PFLOP/s, more than any device gives",
            computed / 1e15
        ));
    }
    None
}

/// Devices that may work side by side: those that are named, each once at least.
fn devices(told: &Told) -> f64 {
    let gpus = told.gpu_info.as_deref().unwrap_or_default();
    gpus.split([',', '/']).count().max(1) as f64
}

/// Share of the weights that a token uses, rather too small than too large.
fn active_share(model: &MeasuredModel) -> f64 {
    let share = |active: u64| active as f64 / model.parameters.max(1) as f64;
    match model.active_parameters {
        Some(active) => share(active).clamp(LEAST_ACTIVE, 1.0) / 2.0,
        None if may_be_mixture(model) => LEAST_ACTIVE,
        None => 1.0,
    }
}

/// Whether the architecture may have experts: all but those that are known to have none.
fn may_be_mixture(model: &MeasuredModel) -> bool {
    const DENSE: [&str; 9] = [
        "llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "falcon", "gpt2",
    ];
    let architecture = model.architecture.as_deref().unwrap_or_default();
    // `llama 8x7B` is Mixtral.
    !DENSE.contains(&architecture.to_ascii_lowercase().as_str()) || model.name.contains('x')
}
