//! What a model takes here and how fast it is expected to be: in Models, in a row's details, and
//! of any header that is asked about.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct EstimateRequest {
    /// A row of Models, or a header that was looked at.
    pub of: String,
    /// With these settings.
    pub at: EstimateAt,
    /// The engine is asked what it would allocate, which takes a moment; otherwise its answer is
    /// taken only where it is known already.
    pub exact: bool,
}

/// The settings that memory and speeds depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
pub struct EstimateAt {
    /// Tokens of context, of all users together.
    pub context: u32,
    /// People at once, each with a part of the context.
    pub users: u32,
    /// Type of keys and values: `f16`, `q8_0`, `q4_0`.
    pub cache: String,
    /// `auto`, `on`, `off`.
    pub flash_attention: String,
}

/// What a model takes with these settings and how fast it is expected to be. Nothing of it was
/// measured with this model, except where the twin says so of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct EstimateView {
    /// As it was asked.
    pub of: String,
    /// As it was asked.
    pub at: EstimateAt,
    /// Memory by part.
    pub memory: MemoryView,
    /// How the cache comes to its size, one entry for each kind of layer.
    pub cache: Vec<CachePartView>,
    /// What one cached token takes, bytes.
    pub cache_bytes_per_token: Option<u64>,
    /// Why the engine refuses these settings, a sentence.
    pub refused: Option<String>,
    /// Weights that a decoded token reads, bytes.
    pub weight_bytes_per_token: Option<u64>,
    /// What decode of one user cannot exceed here, tokens per second.
    pub decode_ceiling: Option<f64>,
    /// Speeds with an empty cache, and with one that is nearly full.
    pub speeds: Vec<SpeedsAt>,
    /// Where the time of one decoded token of each user goes with an empty cache; empty = not
    /// calibrated.
    pub decode_parts: Vec<TimePart>,
    /// Where the time of a prompt goes.
    pub prefill_parts: Vec<TimePart>,
    /// What the expected speeds rest on.
    pub basis: BasisView,
    /// What a twin of it ran at.
    pub twin: Option<TwinView>,
    /// What a reader should know, sentences.
    pub notes: Vec<String>,
}

/// Memory by part, bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct MemoryView {
    /// Weights as they are loaded.
    pub weights_bytes: Option<u64>,
    /// Keys and values.
    pub kv_bytes: Option<u64>,
    /// Recurrent state.
    pub state_bytes: Option<u64>,
    /// Working buffers; `None` where the engine was not asked.
    pub compute_bytes: Option<u64>,
    /// Logits.
    pub output_bytes: Option<u64>,
    /// All of it; `None` where a part is not known.
    pub total_bytes: Option<u64>,
    /// What is known of it.
    pub at_least_bytes: u64,
    /// Memory that is free now.
    pub free_bytes: Option<u64>,
    /// That fits; `None` where what is known does not decide it.
    pub fits: Option<bool>,
    /// Who says so.
    pub source: MemoryFrom,
    /// What would fit instead, where it does not.
    pub instead: Vec<Instead>,
}

/// Who says how much memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum MemoryFrom {
    /// The engine, which was asked.
    Engine,
    /// The closed forms.
    Formula,
}

/// A change of one thing with which it would fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "instead", rename_all = "snake_case")]
pub enum Instead {
    /// A shorter context.
    Context {
        /// At most so many tokens.
        tokens: u32,
    },
    /// A smaller type of the cache.
    Cache {
        /// `q8_0`.
        cache: String,
    },
    /// Fewer people, each with the share of the context that they have now.
    Users {
        /// At most so many.
        users: u32,
    },
    /// Another quantization of the same model.
    Quantization {
        /// Row of Models.
        row: String,
        /// Its label.
        quantization: String,
        /// What it needs, bytes.
        bytes: u64,
    },
}

/// The cache of the layers of one kind: layers x cells x bytes of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct CachePartView {
    /// What these layers keep.
    pub kind: CacheKind,
    /// How many they are.
    pub layers: u32,
    /// Cells of each, all streams together.
    pub cells: u64,
    /// Heads of keys and values; `None` where the layers differ, or a row is no whole number of
    /// heads.
    pub kv_heads: Option<u64>,
    /// Elements of one key in a row; `None` where the layers differ.
    pub key_elements: Option<u64>,
    /// Elements of one value; 0 where only keys are kept.
    pub value_elements: Option<u64>,
    /// Bytes of a cell of one layer, the mean where the layers differ.
    pub cell_bytes: f64,
    /// All of it, bytes.
    pub bytes: u64,
}

/// What a layer keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Keys and values of every token.
    Full,
    /// Those within a sliding window.
    Window,
    /// Keys that choose what to attend to.
    Indexer,
    /// One row for several tokens.
    Compressed,
}

/// Expected speeds at a depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SpeedsAt {
    /// Tokens in the cache before.
    pub depth: u32,
    /// Of reading 512 tokens.
    pub prefill: Option<Predicted>,
    /// Of writing, all users together.
    pub decode: Option<Predicted>,
    /// Cache and state that a decoded token reads there, bytes.
    pub kv_read_bytes: Option<u64>,
}

/// A speed that was worked out, not measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct Predicted {
    /// Tokens per second.
    pub tok_s: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TimePart {
    /// What takes it.
    pub what: TimeOf,
    /// Of which tensor type, of weights.
    pub tensor_type: Option<String>,
    /// Milliseconds.
    pub ms: f64,
    /// Of the whole, from 0 to 1.
    pub share: f64,
    /// The very operation was measured here; otherwise one that resembles it.
    pub measured: bool,
}

/// What takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TimeOf {
    /// Matrices of the layers.
    Weights,
    /// Matrices of the experts that are used.
    Experts,
    /// The output matrix.
    Output,
    /// Attention over the cache.
    Attention,
    /// Recurrent state.
    State,
    /// Everything else in the layers.
    Layers,
    /// What a step takes whatever the model.
    Step,
}

/// What expected speeds rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct BasisView {
    /// The calibration they come from; `None` = none holds, and only ceilings are known.
    pub calibrated: Option<CalibratedAt>,
    /// Why none holds, a few words: `not calibrated for 4 threads (for 2 it is)`.
    pub why_not: Option<String>,
    /// Own runs that corrected them.
    pub corrected_by_runs: u32,
}

/// Which calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct CalibratedAt {
    /// When.
    pub at: String,
    /// CPU variant.
    pub variant: String,
    /// Threads that computed.
    pub threads: u32,
}

/// What a twin of a model ran at: shallower models of the same shapes and types with random
/// weights, measured here. The model itself was not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TwinView {
    /// Prefill of 512 tokens, carried over to all layers.
    pub prefill: Option<Predicted>,
    /// Decode, likewise.
    pub decode: Option<Predicted>,
    /// Layers of each model that was made.
    pub layers: Vec<u32>,
    /// Layers of the real one.
    pub of_layers: u32,
    /// Size of each model that was made, bytes.
    pub bytes: Vec<u64>,
    /// Seconds that it took, all in all.
    pub seconds: f64,
    /// When.
    pub at: String,
    /// What to know of it, sentences.
    pub notes: Vec<String>,
}

/// A header that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Looked {
    /// To ask for an estimate or a twin: a row of Models, where it is one.
    pub id: String,
    /// Name of the model.
    pub name: String,
    /// Label of its quantization.
    pub quantization: String,
    /// Where it is, to show.
    pub from: String,
    /// It is in the list of models.
    pub is_row: bool,
    /// Parameters.
    pub parameters: Option<u64>,
    /// Those that one token uses, where they are fewer.
    pub active_parameters: Option<u64>,
    /// What the whole file is, bytes.
    pub file_bytes: Option<u64>,
    /// What was read of it over the network, bytes; `None` where it is on this disk.
    pub fetched_bytes: Option<u64>,
    /// Layers.
    pub layers: Option<u32>,
    /// The context it was trained for, tokens.
    pub context_length: Option<u64>,
    /// What a reader should know, sentences.
    pub notes: Vec<String>,
}

/// What this machine's engine was measured to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct CalibrationView {
    /// When.
    pub at: String,
    /// `CPU`.
    pub backend: String,
    /// CPU variant.
    pub variant: String,
    /// Threads that computed.
    pub threads: u32,
    /// llama.cpp's build number.
    pub build: u32,
    /// Why it does not stand for runs as they are set up now, a few words; `None` = it does.
    pub does_not_hold: Option<String>,
    /// Read speed by size of the buffer, the smallest first.
    pub reads: Vec<ReadAt>,
    /// Speed of matrices by tensor type, as they lie in the list of types.
    pub rates: Vec<MatrixRate>,
    /// Size of the last-level cache, bytes.
    pub last_level_cache_bytes: Option<u64>,
    /// Tokens of a micro-batch that prefill's rates hold for.
    pub ubatch: u32,
}

/// How fast a buffer is read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct ReadAt {
    /// Its size.
    pub buffer_bytes: u64,
    /// Bytes per second.
    pub bytes_s: u64,
}

/// How fast matrices of one type are gone through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct MatrixRate {
    /// `Q4_K`.
    pub tensor_type: String,
    /// With one token, from a cache: weights read per second, bytes; `None` = not measured.
    pub near_bytes_s: Option<u64>,
    /// With one token, from memory.
    pub far_bytes_s: Option<u64>,
    /// With a micro-batch: operations per second.
    pub flops_s: Option<u64>,
    /// The weights are repacked for this CPU.
    pub repacked: bool,
}
