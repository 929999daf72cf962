//! What a fake engine answers when no rule says otherwise: a small model on a laptop.

use std::path::PathBuf;
use std::time::Duration;

use super::script::Script;
use super::{Cast, kinds};
use crate::protocol::{
    Ability, BandwidthReading, Buffer, BufferUse, Device, DeviceKind, EngineBuild, Event, Failure,
    FailureCode, Generate, Generated, Hello, Load, Loaded, Measure, PROTOCOL, PageCache, Phase,
    Placement, Quantized, Request, Sample, Stop, Token, Variant,
};
use crate::settings::{FlashAttention, TestSpec};

/// A model that is not there: its facts and its speeds.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeModel {
    /// What loading it reports; what was done about the page cache is filled in.
    pub loaded: Loaded,
    /// Prompt tokens per second with an empty cache.
    pub prefill: f64,
    /// Tokens written per second with an empty cache.
    pub decode: f64,
    /// Bytes of K and V for one token, f16.
    pub kv_bytes_per_token: u64,
}

/// SmolLM2 135M Q4_1 on two cores of a laptop, by its file's facts and in round numbers.
impl Default for FakeModel {
    fn default() -> Self {
        Self {
            loaded: Loaded {
                load_ns: 90_000_000,
                resident_before: Some(1.0),
                page_cache: PageCache::AsIs,
                model_type: "llama 256M Q4_1".into(),
                model_size: 96_576_768,
                model_n_params: 134_515_008,
                n_layer: 30,
                n_ctx_train: 8192,
                n_vocab: 49152,
                ability: Ability::Generates,
                recurrent: false,
            },
            prefill: 600.0,
            decode: 90.0,
            // K and V, 30 layers, 3 heads of 64, 2 bytes.
            kv_bytes_per_token: 2 * 30 * 3 * 64 * 2,
        }
    }
}

/// Tokens in the cache that halve each speed.
const PREFILL_HALVES_AT: f64 = 8000.0;
const DECODE_HALVES_AT: f64 = 6000.0;

/// What one core with its caches cold and large buffers reads.
const BYTES_PER_SECOND: f64 = 20e9;

impl FakeModel {
    /// Nanoseconds of one timed section, without noise.
    pub(super) fn ideal_ns(&self, spec: TestSpec) -> f64 {
        let prompt = f64::from(spec.n_prompt);
        let gen_start = f64::from(spec.n_depth) + prompt;
        let half_way = |start: f64, tokens: f64| start + tokens / 2.0;
        let slower = |at: f64, halves_at: f64| 1.0 + at / halves_at;
        let prefill = prompt / self.prefill
            * slower(half_way(f64::from(spec.n_depth), prompt), PREFILL_HALVES_AT);
        let written = f64::from(spec.n_gen);
        let decode = written / self.decode * slower(half_way(gen_start, written), DECODE_HALVES_AT);
        (prefill + decode) * 1e9
    }

    /// The timed sections of a test: the same ones whenever it is run with the same seed.
    fn samples(&self, measure: &Measure) -> impl Iterator<Item = Sample> {
        let ideal = self.ideal_ns(measure.spec);
        let spec = measure.spec;
        let mut noise = Noise(measure.seed ^ spec.tokens() << 32 ^ u64::from(spec.n_depth));
        (0..measure.repetitions).map(move |index| Sample {
            index,
            ns: noise.around(ideal, 0.01) as u64,
            involuntary_switches: Some(0),
            major_faults: Some(0),
            reading: None,
        })
    }

    pub(super) fn placement(&self, context: u64, flash: FlashAttention) -> Placement {
        let n_ctx = context.next_multiple_of(256).max(256);
        let buffer = |device: &str, holds, bytes| Buffer {
            device: device.into(),
            holds,
            bytes,
        };
        Placement {
            context_ns: 4_000_000,
            n_ctx: u32::try_from(n_ctx).unwrap_or(u32::MAX),
            offloaded_layers: None,
            total_layers: None,
            flash_attention: Some(flash != FlashAttention::Off),
            buffers: vec![
                buffer("CPU_Mapped", BufferUse::Model, self.loaded.model_size),
                buffer("CPU", BufferUse::Kv, n_ctx * self.kv_bytes_per_token),
                buffer("CPU", BufferUse::Compute, 104 << 20),
                buffer("CPU", BufferUse::Output, 4 * u64::from(self.loaded.n_vocab)),
            ],
        }
    }
}

/// What a session remembers from one request to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    loaded: Option<PathBuf>,
    prompt: Vec<String>,
}

impl Memory {
    /// The answer to a request.
    pub(super) fn answer(&mut self, request: &Request, cast: &Cast) -> Script {
        let takes = |ns: u64| Duration::from_nanos(ns).mul_f64(cast.pace);
        let model = self.loaded.as_ref().map(|path| cast.model(path));
        match (request, model) {
            (Request::Load(asked), _) => {
                self.loaded = Some(asked.model.0.clone());
                self.prompt.clear();
                load(cast.model(&asked.model.0), asked, takes)
            }
            (Request::Measure(asked), Some(model)) => measure(model, asked, takes),
            (Request::Generate(asked), Some(model)) => {
                let words: Vec<String> = asked.prompt.split_whitespace().map(Into::into).collect();
                let known = words.iter().zip(&self.prompt);
                let shared = known.take_while(|(new, old)| new == old).count();
                // The last token is always computed: its logits are needed.
                let reused = shared.min(words.len().saturating_sub(1));
                let reused = if asked.reuse_prefix { reused } else { 0 };
                let script = generate(model, asked, words.len(), reused, takes);
                self.prompt = words;
                script
            }
            (Request::ReadBandwidth(asked), _) => {
                let readings = asked.buffer_bytes.iter().map(|bytes| BandwidthReading {
                    buffer_bytes: *bytes,
                    bytes_per_second: BYTES_PER_SECOND,
                });
                Script::new()
                    .wait(takes(asked.duration_ns * asked.buffer_bytes.len() as u64))
                    .say(Event::Bandwidth {
                        readings: readings.collect(),
                    })
            }
            (Request::Foresee(asked), _) => kinds::foresee(cast.model(&asked.model.0), asked),
            (Request::Calibrate(asked), _) => kinds::calibrate(asked, takes),
            (Request::Anchor(_), _) => {
                let ns = 300_000_000;
                // As the worker's own: a third of a second that nothing interrupts.
                Script::new().busy(takes(ns)).say(Event::Anchor { ns })
            }
            // A script computes nothing, so no file comes of it.
            (Request::Quantize(_), _) => {
                let said = |done| Event::QuantizeProgress { done, tensors: 4 };
                let step = |script: Script, done| script.wait(takes(100_000_000)).say(said(done));
                (0..4)
                    .fold(Script::new(), step)
                    .say(Event::Quantized(Quantized {
                        ns: 400_000_000,
                        fallbacks: None,
                    }))
            }
            (Request::Serve(asked), Some(model)) => {
                self.prompt.clear();
                match model.loaded.ability {
                    Ability::Generates => kinds::serve(model, asked, takes),
                    _ => not_able(),
                }
            }
            (Request::Users(asked), Some(model)) => match model.loaded.ability {
                Ability::Generates => kinds::users(model, asked, takes),
                _ => not_able(),
            },
            (Request::Quality(asked), Some(model)) => match model.loaded.ability {
                Ability::Generates => kinds::quality(model, asked, takes),
                _ => not_able(),
            },
            (
                Request::Measure(_)
                | Request::Generate(_)
                | Request::Serve(_)
                | Request::Users(_)
                | Request::Quality(_),
                None,
            ) => fail(
                FailureCode::NothingLoaded,
                "No model is loaded. Load one first.",
            ),
            (Request::Go | Request::Enough | Request::Cancel, _) => Script::new(),
        }
    }
}

fn load(model: &FakeModel, asked: &Load, takes: impl Fn(u64) -> Duration) -> Script {
    let part = takes(model.loaded.load_ns / 4);
    let mut script = Script::new();
    for fraction in [0.25, 0.5, 0.75, 1.0] {
        script = script.wait(part).say(Event::LoadProgress { fraction });
    }
    script.say(Event::Loaded(Loaded {
        page_cache: asked.page_cache,
        resident_before: match asked.page_cache {
            PageCache::AsIs => model.loaded.resident_before,
            PageCache::Drop => Some(0.0),
            PageCache::Warm => Some(1.0),
        },
        ..model.loaded.clone()
    }))
}

fn measure(model: &FakeModel, asked: &Measure, takes: impl Fn(u64) -> Duration) -> Script {
    if model.loaded.ability != Ability::Generates && asked.spec.n_gen > 0 {
        return not_able();
    }
    let placement = model.placement(asked.spec.context(), asked.settings.flash_attn);
    let mut script = Script::new().say(Event::Placed(placement));
    let once = takes(model.ideal_ns(asked.spec) as u64);
    if asked.warmup {
        script = script.say(Event::Phase(Phase::Warmup)).wait(once);
    }
    for sample in model.samples(asked) {
        if asked.spec.n_depth > 0 {
            let restored = sample.index > 0;
            let fill = TestSpec {
                n_prompt: asked.spec.n_depth,
                n_gen: 0,
                n_depth: 0,
            };
            script = script.say(Event::Phase(Phase::Depth { restored }));
            if !restored {
                script = script.wait(takes(model.ideal_ns(fill) as u64));
            }
        }
        let duration = takes(sample.ns);
        script = script.repetition(sample, duration);
    }
    script.measured(Some(model.loaded.model_size + (150 << 20)))
}

fn generate(
    model: &FakeModel,
    asked: &Generate,
    n_prompt: usize,
    n_reused: usize,
    takes: impl Fn(u64) -> Duration,
) -> Script {
    if model.loaded.ability != Ability::Generates {
        return not_able();
    }
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let spec = |n_prompt, n_gen, n_depth| TestSpec {
        n_prompt,
        n_gen,
        n_depth,
    };
    let (n_prompt, n_reused) = (count(n_prompt).max(1), count(n_reused));
    let tokenize_ns = 50_000;
    let prefill_ns = model.ideal_ns(spec(n_prompt - n_reused, 0, n_reused)) as u64;
    let first_sample_ns = 100_000;
    let ttft_ns = tokenize_ns + prefill_ns + first_sample_ns;

    let context = u64::from(n_prompt) + u64::from(asked.n_predict);
    let placement = model.placement(context.max(asked.n_ctx.into()), asked.settings.flash_attn);
    let mut script = Script::new()
        .say(Event::Placed(placement))
        .wait(takes(ttft_ns));
    let mut token_at_ns = Vec::new();
    let mut at_ns = ttft_ns;
    for number in 0..asked.n_predict {
        if number > 0 {
            let step = model.ideal_ns(spec(0, 1, n_prompt + number)) as u64;
            script = script.wait(takes(step));
            at_ns += step;
        }
        token_at_ns.push(at_ns);
        let text = WORDS[number as usize % WORDS.len()].to_owned();
        script = script.say(Event::Token(Token { text, at_ns }));
    }
    script.say(Event::Generated(Generated {
        n_prompt,
        n_reused,
        n_generated: asked.n_predict,
        stop: Stop::Length,
        tokenize_ns,
        prefill_ns,
        first_sample_ns,
        ttft_ns,
        decode_ns: at_ns - ttft_ns,
        token_at_ns,
    }))
}

/// What it writes, again and again.
const WORDS: [&str; 8] = [
    "Reading", " is", " quick", ",", " writing", " is", " not", ".\n",
];

fn not_able() -> Script {
    let message = "This model computes embeddings and writes no text. Measure its prefill alone.";
    fail(FailureCode::NotAble, message)
}

fn fail(code: FailureCode, message: &str) -> Script {
    Script::new().say(Event::Failed(Failure {
        code,
        message: message.into(),
        log: Vec::new(),
    }))
}

/// The hello of a fake engine: two CPU variants, no GPU.
pub fn hello() -> Hello {
    let variants: Vec<Variant> = [("icelake", 2048), ("haswell", 1024)]
        .map(|(name, score)| Variant {
            name: name.into(),
            score,
        })
        .into();
    Hello {
        protocol: PROTOCOL,
        engine: EngineBuild {
            build_number: 11434,
            build_commit: "unknown".into(),
            crate_version: "0.1.161".into(),
        },
        variant: variants[0].clone(),
        variants,
        devices: vec![Device {
            name: "CPU".into(),
            description: "Scripted CPU".into(),
            kind: DeviceKind::Cpu,
            memory_total: Some(16 << 30),
            memory_free: Some(12 << 30),
        }],
        cpu_info: "Scripted CPU".into(),
        gpu_info: String::new(),
        backends: "CPU".into(),
        system_info: "CPU : AVX2 = 1 | AVX512 = 1 | OPENMP = 1 | REPACK = 1 | ".into(),
    }
}

/// Numbers that look random and are the same for the same seed (splitmix64).
pub(super) struct Noise(pub(super) u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A value within this share of another.
    pub(super) fn around(&mut self, value: f64, share: f64) -> f64 {
        let unit = self.next() as f64 / u64::MAX as f64;
        value * (1.0 + share * (2.0 * unit - 1.0))
    }
}
