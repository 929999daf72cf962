//! One answer for one model and one set of settings: what `estimate --json` prints.

use serde::Serialize;
use twospeed_gguf::{Data, Model};

use crate::bandwidth::{Bandwidth, BandwidthSource};
use crate::bounds;
use crate::cache::{self, Cache, FlashAttention};
use crate::device;
use crate::elsewhere;
use crate::expected::{Expected, Term, Work};
use crate::kv_type::KvType;
use crate::note::{Allocated, Note};
use crate::prefill;
use crate::question::{Allocation, BandwidthFrom, Question};
use crate::shape::{Shape, ShapeError, StoreKind};
use crate::units::{Bytes, BytesPerSecond, Flops, TokensPerSecond};
use crate::weights::{self, Weights, WeightsError};

/// What theory allows and what to expect. Unknown is `None`, and so is a sum with an unknown part.
///
/// Serializes as `estimate --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// What it holds for.
    pub at: At,
    /// Of which model.
    pub model: ModelFacts,
    /// What it takes.
    pub memory: Memory,
    /// How fast it writes.
    pub decode: Decode,
    /// How fast it reads.
    pub prefill: Prefill,
    /// What all this rests on.
    pub basis: Basis,
}

/// The settings an estimate holds for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)] // as in `Question` and `ContextSettings`
pub struct At {
    pub prompt: u64,
    pub generate: u64,
    pub depth: u64,
    /// `None` where the model's own was asked for and the file does not say it.
    pub context: Option<u64>,
    pub ubatch: u64,
    pub type_k: KvType,
    pub type_v: KvType,
    pub flash_attention: FlashAttention,
    pub parallel: u64,
    pub split_kv: bool,
    pub outputs: u64,
    pub gpu_layers: i32,
    pub device: Option<String>,
    pub bandwidth_bytes_s: Option<BytesPerSecond>,
    pub bandwidth_source: Option<BandwidthSource>,
}

/// What `inspect` says about the model, as far as estimates use it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)] // as in `twospeed_gguf::Model`
pub struct ModelFacts {
    pub architecture: Option<String>,
    pub name: String,
    pub parameters: u64,
    pub active_parameters: Option<u64>,
    /// Of the whole file, also where only its header is there; `None` where parts are missing.
    pub file_bytes: Option<Bytes>,
    pub quantization: Option<String>,
    pub bits_per_weight: Option<f64>,
    pub layers: Option<u32>,
    pub context_length: Option<u64>,
}

/// Memory that a run takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Weights as they are loaded.
    pub weights_bytes: Option<Bytes>,
    /// Keys and values.
    pub kv_bytes: Option<Bytes>,
    /// The least that keys and values take, where they are known between bounds only.
    pub kv_low_bytes: Option<Bytes>,
    /// The most.
    pub kv_high_bytes: Option<Bytes>,
    /// Recurrent state.
    pub state_bytes: Option<Bytes>,
    /// Working buffers of the graph: the engine alone knows them.
    pub compute_bytes: Option<Bytes>,
    /// Logits.
    pub output_bytes: Option<Bytes>,
    /// The sum of the five.
    pub total_bytes: Option<Bytes>,
    /// Memory that is free.
    pub available_bytes: Option<Bytes>,
    /// Whether it fits; `None` where what is known does not decide it.
    pub fits: Option<bool>,
    /// Keys and values of one token, in all layers that keep it.
    pub kv_bytes_per_cached_token: Option<Bytes>,
    /// Who says so.
    pub source: MemorySource,
    /// The least of what is known; 0 where nothing is.
    #[serde(skip)]
    pub lower_bound: Bytes,
}

/// Who says how much memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemorySource {
    /// The engine was asked.
    Engine,
    /// The closed forms.
    Formula,
}

/// Writing token by token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decode {
    /// The article's ceiling: bandwidth / file size.
    pub ceiling_file_tok_s: Option<TokensPerSecond>,
    /// The ceiling: bandwidth / weight bytes that a token reads.
    pub ceiling_tok_s: Option<TokensPerSecond>,
    /// Weight bytes that a token reads.
    pub weight_bytes_per_token: Option<Bytes>,
    /// Bytes of cache and state that a token at this depth reads, and of state writes.
    pub kv_read_bytes_per_token: Option<Bytes>,
    /// What to expect.
    pub expected_tok_s: Option<TokensPerSecond>,
    /// Its lower end.
    pub expected_low: Option<TokensPerSecond>,
    /// Its upper end.
    pub expected_high: Option<TokensPerSecond>,
    /// Where the expected time goes; empty where none is expected.
    pub breakdown: Vec<Term>,
}

/// Reading a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prefill {
    /// Operations for one prompt token, on the average over the prompt.
    pub flops_per_token: Option<Flops>,
    /// What to expect.
    pub expected_tok_s: Option<TokensPerSecond>,
    /// Its lower end.
    pub expected_low: Option<TokensPerSecond>,
    /// Its upper end.
    pub expected_high: Option<TokensPerSecond>,
    /// Where the expected time goes; empty where none is expected.
    pub breakdown: Vec<Term>,
}

/// What an estimate rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Basis {
    /// The calibration it uses.
    pub calibration: Option<String>,
    /// Own runs that corrected it.
    pub corrected_by_runs: u64,
    /// What a reader should know; a sentence each in JSON.
    pub notes: Vec<Note>,
}

/// Estimates a model: ceilings and what the closed forms know. Never fails; what is unknown is
/// `None`, and a note says why.
pub fn estimate(model: &Model, question: &Question) -> Estimate {
    let mut notes = Vec::new();
    let shape = Shape::from_model(model);
    let weights = Weights::of(model);
    let file = file_bytes(model);

    let reads = weights.as_ref().ok().map(Weights::bytes_per_token);
    let bandwidth = match &question.bandwidth {
        BandwidthFrom::Unknown => None,
        BandwidthFrom::Known(bandwidth) => Some(bandwidth.clone()),
        BandwidthFrom::Probe {
            readings,
            last_level_cache,
        } => reads
            .or(file)
            .and_then(|set| Bandwidth::measured(readings, set, *last_level_cache)),
    };
    let (memory, kv_read) = memory(model, shape.as_ref(), question, &mut notes);
    let mut decode = decode(file, &weights, kv_read, bandwidth.as_ref());
    let mut prefill = prefill(shape.as_ref().ok(), weights.as_ref().ok(), question);
    let other_device = question
        .device
        .as_deref()
        .and_then(|name| device::find(name).ok());
    // What this machine was measured to do says nothing of another device.
    let calibration = question
        .calibration
        .as_deref()
        .filter(|_| question.device.is_none());
    let known = shape.as_ref().ok().zip(weights.as_ref().ok());
    if let Some((device, (shape, weights))) = other_device.zip(known) {
        if let Some(why) = elsewhere::too_large(device, memory.lower_bound) {
            notes.push(Note::Elsewhere(why));
        } else {
            let (of_decode, of_prefill) = elsewhere::expected(device, weights, shape, question);
            decode.expect(of_decode);
            prefill.expect(of_prefill);
            let footing = elsewhere::footing(device, shape, question);
            notes.extend(footing.into_iter().map(Note::Elsewhere));
        }
    }
    if let (Ok(shape), Ok(weights), Some(calibration)) = (&shape, &weights, calibration) {
        let work = Work {
            shape,
            weights,
            question,
            calibration,
        };
        decode.expect(work.decode());
        prefill.expect(work.prefill());
    }
    match &weights {
        Ok(_) => notes.extend(Note::experts(model)),
        Err(error) => notes.push(Note::Weights(error.clone())),
    }
    notes.extend(Note::new_types(model));
    if let Some(bandwidth) = &bandwidth {
        notes.push(Note::Bandwidth(bandwidth.clone()));
    }
    let needed = question
        .depth
        .saturating_add(question.prompt.max(question.generate));
    let at = at(model, question, bandwidth);
    if let Some(context) = at.context.filter(|context| needed > *context) {
        notes.push(Note::ContextTooShort { context, needed });
    }
    Estimate {
        at,
        model: ModelFacts {
            architecture: model.architecture.clone(),
            name: model.name.clone(),
            parameters: model.parameters,
            active_parameters: model.active_parameters,
            file_bytes: file,
            quantization: model.quantization.clone(),
            bits_per_weight: model.bits_per_weight,
            layers: model.layers,
            context_length: model.context_length,
        },
        memory,
        decode,
        prefill,
        basis: Basis {
            calibration: calibration.map(|calibration| calibration.id.clone()),
            corrected_by_runs: match question.device {
                Some(_) => 0,
                None => corrected_by_runs(question),
            },
            notes,
        },
    }
}

/// Runs that either phase was corrected by; both come from the same ones.
fn corrected_by_runs(question: &Question) -> u64 {
    let corrections = question.corrections;
    let both = [corrections.prefill, corrections.decode];
    let runs = both.into_iter().flatten().map(|correction| correction.runs);
    runs.max().unwrap_or(0)
}

impl Decode {
    fn expect(&mut self, expected: Option<Expected>) {
        let Some(expected) = expected else {
            return;
        };
        self.expected_tok_s = Some(expected.speed);
        self.expected_low = Some(expected.low);
        self.expected_high = Some(expected.high);
        self.breakdown = expected.terms;
    }
}

impl Prefill {
    fn expect(&mut self, expected: Option<Expected>) {
        let Some(expected) = expected else {
            return;
        };
        self.expected_tok_s = Some(expected.speed);
        self.expected_low = Some(expected.low);
        self.expected_high = Some(expected.high);
        self.breakdown = expected.terms;
    }
}

fn at(model: &Model, question: &Question, bandwidth: Option<Bandwidth>) -> At {
    let context = &question.context;
    At {
        prompt: question.prompt,
        generate: question.generate,
        depth: question.depth,
        context: match context.context {
            0 => model.context_length,
            tokens => Some(tokens),
        },
        ubatch: context.ubatch,
        type_k: context.type_k,
        type_v: context.type_v,
        flash_attention: context.flash_attention,
        parallel: context.sequences,
        split_kv: context.split,
        outputs: question.outputs,
        gpu_layers: question.gpu_layers,
        device: question.device.clone(),
        bandwidth_bytes_s: bandwidth.as_ref().map(|bandwidth| bandwidth.rate),
        bandwidth_source: bandwidth.map(|bandwidth| bandwidth.source),
    }
}

/// The size of the whole file or set; `None` where parts of a set are missing.
fn file_bytes(model: &Model) -> Option<Bytes> {
    let missing = model
        .split
        .as_ref()
        .is_some_and(|split| !split.missing.is_empty());
    let bytes = match model.data {
        Data::Complete => model.file_bytes,
        Data::Absent | Data::Truncated => model.bytes_expected,
    };
    (!missing && bytes > 0).then_some(Bytes(bytes))
}

fn decode(
    file: Option<Bytes>,
    weights: &Result<Weights, WeightsError>,
    kv_read: Option<Bytes>,
    bandwidth: Option<&Bandwidth>,
) -> Decode {
    let decodes = *weights != Err(WeightsError::DoesNotDecode);
    let ceiling = |bytes: Option<Bytes>| bandwidth?.rate.reads_of(bytes?);
    let reads = weights.as_ref().ok().map(Weights::bytes_per_token);
    Decode {
        ceiling_file_tok_s: ceiling(file.filter(|_| decodes)),
        ceiling_tok_s: ceiling(reads),
        weight_bytes_per_token: reads,
        kv_read_bytes_per_token: kv_read.filter(|_| decodes),
        expected_tok_s: None,
        expected_low: None,
        expected_high: None,
        breakdown: Vec::new(),
    }
}

fn prefill(shape: Option<&Shape>, weights: Option<&Weights>, question: &Question) -> Prefill {
    let flops = shape.zip(weights).and_then(|(shape, weights)| {
        prefill::flops_per_token(
            shape,
            weights,
            &question.context,
            question.prompt,
            question.depth,
        )
        .ok()
    });
    Prefill {
        flops_per_token: flops,
        expected_tok_s: None,
        expected_low: None,
        expected_high: None,
        breakdown: Vec::new(),
    }
}

/// The memory, and the bytes of cache that a token reads.
fn memory(
    model: &Model,
    shape: Result<&Shape, &ShapeError>,
    question: &Question,
    notes: &mut Vec<Note>,
) -> (Memory, Option<Bytes>) {
    let settings = &question.context;
    let mut memory = Memory {
        weights_bytes: weights::loaded_bytes(model).ok(),
        kv_bytes: None,
        kv_low_bytes: None,
        kv_high_bytes: None,
        state_bytes: None,
        compute_bytes: None,
        output_bytes: None,
        total_bytes: None,
        available_bytes: question.available,
        fits: None,
        kv_bytes_per_cached_token: None,
        source: MemorySource::Formula,
        lower_bound: Bytes::ZERO,
    };
    let mut kv_read = None;
    match shape {
        Ok(shape) => {
            memory.output_bytes = cache::output_bytes(shape, settings);
            match Cache::of(shape, settings) {
                Ok(kept) => {
                    memory.kv_bytes = Some(kept.kv());
                    memory.state_bytes = Some(kept.state);
                    memory.kv_bytes_per_cached_token = cache::kv_per_token(shape, settings).ok();
                    kv_read = cache::read_per_token(shape, settings, question.depth).ok();
                    notes.extend(windows(shape, &kept));
                }
                // The engine accepts it: then the rules known here are not the whole truth.
                Err(_) if question.allocation.is_some() => notes.push(Note::ReadsUnknown),
                Err(error) => notes.push(Note::Context(error)),
            }
            notes.extend(shape.no_cache.map(Note::NoCache));
        }
        Err(_) if question.allocation.is_some() => notes.push(Note::ReadsUnknown),
        Err(error) => {
            notes.push(Note::Shape(error.clone()));
            match bounds::kv(model, settings) {
                Some((least, most)) => {
                    memory.kv_low_bytes = Some(least);
                    memory.kv_high_bytes = Some(most);
                    notes.push(Note::KvBetween { least, most });
                }
                None => notes.push(Note::KvUnbounded),
            }
        }
    }
    match question.allocation {
        Some(allocation) => memory.take(allocation, notes),
        None => notes.push(Note::ComputeUnknown),
    }
    memory.sum_up();
    if let (Some(false), Some(free)) = (memory.fits, question.available) {
        notes.push(Note::TooLarge {
            at_least: memory.lower_bound,
            free,
        });
    }
    (memory, kv_read)
}

impl Memory {
    /// Takes the engine's own count; where the closed forms say otherwise, a note has both.
    fn take(&mut self, engine: Allocation, notes: &mut Vec<Note>) {
        for (what, formula, counted) in [
            (Allocated::Kv, self.kv_bytes, engine.kv),
            (Allocated::State, self.state_bytes, engine.state),
        ] {
            if let Some(formula) = formula.filter(|formula| *formula != counted) {
                notes.push(Note::EngineDiffers {
                    what,
                    engine: counted,
                    formula,
                });
            }
        }
        self.source = MemorySource::Engine;
        self.weights_bytes = Some(engine.weights);
        self.kv_bytes = Some(engine.kv);
        self.state_bytes = Some(engine.state);
        self.compute_bytes = Some(engine.compute);
        self.output_bytes = Some(engine.output);
    }

    /// The total and whether it fits.
    fn sum_up(&mut self) {
        let parts = [
            self.weights_bytes,
            self.kv_bytes,
            self.state_bytes,
            self.compute_bytes,
            self.output_bytes,
        ];
        self.total_bytes = parts.into_iter().sum();
        let known = parts.into_iter().flatten().sum::<Bytes>();
        // The bounds are there where the cache itself is unknown.
        self.lower_bound = known + self.kv_low_bytes.unwrap_or(Bytes::ZERO);
        self.fits = self
            .available_bytes
            .and_then(|free| match self.total_bytes {
                Some(total) => Some(total <= free),
                // What is known can rule it out, never promise it.
                None => (self.lower_bound > free).then_some(false),
            });
    }
}

/// Which layers slide, where some do.
fn windows(shape: &Shape, kept: &Cache) -> Option<Note> {
    let part = kept
        .parts
        .iter()
        .find(|part| part.kind == StoreKind::Window)?;
    Some(Note::SlidingWindow {
        layers: part.layers.len(),
        of: shape.trunk,
        window: shape.window?,
        cells: part.cells,
    })
}
