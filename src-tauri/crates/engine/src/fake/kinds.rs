//! What a fake engine answers to tests that are more than one speed.

use std::time::Duration;

use super::model::{FakeModel, Noise};
use super::script::Script;
use crate::protocol::{
    AgainstBase, Calibrate, Event, Foresee, Foreseen, Kernel, KernelReading, Phase, Quality,
    QualityReading, Reading, Sample, Serve, ServedReading, Users, UsersReading,
};
use crate::settings::TestSpec;

const TOKENIZE_NS: u64 = 50_000;
const FIRST_SAMPLE_NS: u64 = 100_000;
/// Tokens of the fake's text.
const TEXT_TOKENS: u32 = 32_768;

fn spec(n_prompt: u32, n_gen: u32, n_depth: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen,
        n_depth,
    }
}

fn sample(index: u32, ns: u64, reading: Reading) -> Sample {
    Sample {
        index,
        ns,
        involuntary_switches: Some(0),
        major_faults: Some(0),
        reading: Some(reading),
    }
}

pub(super) fn serve(model: &FakeModel, asked: &Serve, takes: impl Fn(u64) -> Duration) -> Script {
    let context = u64::from(asked.n_prompt) + u64::from(asked.n_gen);
    let mut noise = Noise(u64::from(asked.n_prompt));
    let mut script = Script::new().say(Event::Placed(
        model.placement(context, asked.settings.flash_attn),
    ));
    if asked.warmup {
        let once = model.ideal_ns(spec(asked.n_prompt, 1, 0)) as u64;
        script = script.say(Event::Phase(Phase::Warmup)).wait(takes(once));
    }
    for index in 0..asked.repetitions {
        let requests: Vec<ServedReading> = (0..)
            .zip(&asked.requests)
            .map(|(place, ask)| {
                let kept = asked.n_prompt.saturating_sub(ask.changed);
                let n_shared = if place == 0 { 0 } else { kept };
                // The last token is always computed: its logits are needed.
                let tail_drops = !model.loaded.recurrent || n_shared == 0;
                let n_reused = match tail_drops {
                    true => n_shared.min(asked.n_prompt.saturating_sub(1)),
                    false => 0,
                };
                let computed = spec(asked.n_prompt - n_reused, 0, n_reused);
                let prefill_ns = noise.around(model.ideal_ns(computed), 0.01) as u64;
                let step = model.ideal_ns(spec(0, 1, asked.n_prompt)) as u64;
                let decode_ns = step * u64::from(asked.n_gen.saturating_sub(1));
                ServedReading {
                    n_prompt: asked.n_prompt,
                    n_reused,
                    n_shared,
                    tokenize_ns: TOKENIZE_NS,
                    prefill_ns,
                    first_sample_ns: FIRST_SAMPLE_NS,
                    ttft_ns: TOKENIZE_NS + prefill_ns + FIRST_SAMPLE_NS,
                    first_decode_ns: (asked.n_gen > 1).then_some(step),
                    n_generated: asked.n_gen,
                    decode_ns,
                }
            })
            .collect();
        let ns = requests
            .iter()
            .map(|request| request.ttft_ns + request.decode_ns)
            .sum();
        let reading = Reading::Served {
            load: None,
            requests,
        };
        script = script.repetition(sample(index, ns, reading), takes(ns));
    }
    script.measured(Some(model.loaded.model_size + (150 << 20)))
}

pub(super) fn users(model: &FakeModel, asked: &Users, takes: impl Fn(u64) -> Duration) -> Script {
    let users = u64::from(asked.users);
    let prompts = if asked.shared_prompt { 1 } else { users };
    let context = prompts * u64::from(asked.n_prompt) + users * u64::from(asked.n_gen);
    let mut noise = Noise(asked.seed ^ users << 16);
    let mut script = Script::new().say(Event::Placed(
        model.placement(context, asked.settings.flash_attn),
    ));
    if asked.warmup {
        let once = model.ideal_ns(spec(16, 0, 0)) as u64;
        script = script.say(Event::Phase(Phase::Warmup)).wait(takes(once));
    }
    // A step for all reads the weights once, so it takes hardly longer than one for one.
    let step = model.ideal_ns(spec(0, 1, asked.n_prompt)) * (0.9 + 0.1 * users as f64);
    for index in 0..asked.repetitions {
        let one = noise.around(model.ideal_ns(spec(asked.n_prompt, 0, 0)), 0.01);
        let prefill_ns = (one * prompts as f64) as u64;
        let decode_ns = noise.around(step * f64::from(asked.n_gen), 0.01) as u64;
        let reading = Reading::Users(UsersReading {
            prefill_ns,
            decode_ns,
            ttft_ns: (1..=users)
                .map(|user| (one * user.min(prompts) as f64) as u64)
                .collect(),
        });
        let ns = prefill_ns + decode_ns;
        script = script.repetition(sample(index, ns, reading), takes(ns));
    }
    script.measured(Some(model.loaded.model_size + (150 << 20)))
}

pub(super) fn quality(
    model: &FakeModel,
    asked: &Quality,
    takes: impl Fn(u64) -> Duration,
) -> Script {
    let n_ctx = asked.n_ctx.max(2);
    let all = TEXT_TOKENS / n_ctx;
    let chunks = if asked.chunks == 0 {
        all
    } else {
        all.min(asked.chunks)
    };
    let models = if asked.base.is_some() { 2 } else { 1 };
    let once = models * model.ideal_ns(spec(n_ctx, 0, 0)) as u64;
    let text = |done| Event::Phase(Phase::Text { done, chunks });
    let placement = model.placement(u64::from(n_ctx), asked.settings.flash_attn);
    let mut script = Script::new().say(Event::Placed(placement)).say(text(0));
    for done in 1..=chunks {
        script = script.wait(takes(once)).say(text(done));
    }
    let reading = Reading::Quality(QualityReading {
        n_ctx,
        chunks,
        n_scored: u64::from(chunks) * u64::from(n_ctx / 2 - 1),
        perplexity: 18.5,
        perplexity_error: 0.4,
        against_base: asked.base.as_ref().map(|_| AgainstBase {
            base_perplexity: 17.9,
            kl_mean: 0.041,
            kl_error: 0.001,
            kl_max: 2.3,
            kl_p99: 0.4,
            kl_median: 0.02,
            same_top: 0.91,
        }),
    });
    let ns = once * u64::from(chunks);
    script
        .say(Event::Sample(sample(0, ns, reading)))
        .say(Event::Measured(crate::protocol::Measured {
            repetitions: 1,
            peak_rss_bytes: Some(model.loaded.model_size + (150 << 20)),
        }))
}

/// Every context as the fake model's own tests get it.
pub(super) fn foresee(model: &FakeModel, asked: &Foresee) -> Script {
    let contexts = asked
        .contexts
        .iter()
        .map(|context| {
            let flash = context.settings.flash_attn;
            Foreseen::Placed(model.placement(context.n_ctx.into(), flash))
        })
        .collect();
    Script::new().say(Event::Foreseen { contexts })
}

/// A machine that reads 20 GB/s and computes 200 GFLOP/s, and takes a microsecond to begin.
pub(super) fn calibrate(asked: &Calibrate, takes: impl Fn(u64) -> Duration) -> Script {
    let kernels = asked.kernels.len() as u32;
    let mut script = Script::new();
    for done in 1..=kernels {
        script = script.wait(takes(asked.duration_ns));
        if done < kernels {
            script = script.say(Event::CalibrateProgress { done, kernels });
        }
    }
    let readings = asked
        .kernels
        .iter()
        .map(|kernel| KernelReading {
            ns: Some(kernel_ns(kernel)),
            spread_ns: Some(0.0),
            repacked: false,
            refused: None,
        })
        .collect();
    script.say(Event::Calibrated { readings })
}

const BYTES_PER_NS: f64 = 20.0;
const FLOPS_PER_NS: f64 = 200.0;
const BEGIN_NS: f64 = 1_000.0;

fn kernel_ns(kernel: &Kernel) -> f64 {
    let product = |inner: u32, rows: u32, columns: u32| {
        let elements = f64::from(inner) * f64::from(rows);
        // Half a byte an element, whatever the type.
        let reads = elements / 2.0 / BYTES_PER_NS;
        reads.max(2.0 * elements * f64::from(columns) / FLOPS_PER_NS)
    };
    let takes = match *kernel {
        Kernel::Matrix {
            inner,
            rows,
            columns,
            ..
        } => product(inner, rows, columns),
        Kernel::Experts {
            inner,
            rows,
            used,
            columns,
            ..
        } => product(inner, rows, columns) * f64::from(used),
        Kernel::Attention {
            heads,
            head,
            cells,
            columns,
            ..
        } => {
            let seen = f64::from(heads) * f64::from(head) * f64::from(cells) * f64::from(columns);
            4.0 * seen / FLOPS_PER_NS
        }
        Kernel::Layer {
            embedding,
            feed_forward,
            columns,
            ..
        } => 10.0 * f64::from(embedding + feed_forward) * f64::from(columns) / FLOPS_PER_NS,
    };
    BEGIN_NS + takes
}
