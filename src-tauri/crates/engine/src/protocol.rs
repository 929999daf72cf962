//! What the app and the worker say to each other: JSON, one message a line, worker's stdout and stdin.
//!
//! The worker speaks first with [`Event::Hello`]. Then one request is served at a time; only
//! [`Request::Go`], [`Request::Enough`] and [`Request::Cancel`] may come while another is being
//! served. A request is answered by any number of progress events and exactly one closing event
//! (named at each request).
//!
//! Each timed section waits for the app: the worker says [`Phase::Repetition`] and starts the
//! clock only after [`Request::Go`]. So the app has stored the sample before and has gone to sleep
//! when the section begins, and the worker says nothing until it has ended.
//!
//! Versions: both sides come from one build, so an unequal [`PROTOCOL`] is an installation fault
//! and is refused. Lines that are no message are skipped: an engine or a debugger may print.

mod foresee;
mod kernels;

use serde::{Deserialize, Serialize};

pub use foresee::{Foresee, ForeseeContext, Foreseen};
pub use kernels::{Calibrate, Kernel, KernelReading};

use crate::settings::{ModelPath, Settings, TestSpec};

/// Version of the messages below; raised with every change of their meaning.
pub const PROTOCOL: u32 = 4;

/// Asked of the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Load a model; a model loaded before is freed first. Closed by [`Event::Loaded`].
    Load(Load),
    /// Run one test on the loaded model. Closed by [`Event::Measured`].
    Measure(Measure),
    /// Answer to [`Phase::Repetition`]: start the timed section now.
    Go,
    /// Answer to [`Phase::Repetition`]: no more repetitions; the test closes with
    /// [`Event::Measured`] and the number that were made.
    Enough,
    /// Serve one real request on the loaded model. Closed by [`Event::Generated`].
    Generate(Generate),
    /// Time requests for a real text, one after the other. Each repetition is one [`Event::Sample`]
    /// with a [`Reading::Served`]; closed by [`Event::Measured`].
    Serve(Serve),
    /// Time sequences side by side, as llama-batched-bench does. Each repetition is one
    /// [`Event::Sample`] with a [`Reading::Users`]; closed by [`Event::Measured`].
    Users(Users),
    /// Judge the loaded model's predictions of a real text. One [`Event::Sample`] with a
    /// [`Reading::Quality`]; closed by [`Event::Measured`].
    Quality(Quality),
    /// Measure how fast memory is read. Closed by [`Event::Bandwidth`].
    ReadBandwidth(ReadBandwidth),
    /// Say what contexts of a model would take. Closed by [`Event::Foreseen`].
    Foresee(Foresee),
    /// Time single operations of the engine. Closed by [`Event::Calibrated`].
    Calibrate(Calibrate),
    /// Run the drift anchor, a fixed short kernel. Closed by [`Event::Anchor`].
    Anchor(AnchorRequest),
    /// Quantize a model file into another. Nothing stays loaded. Closed by [`Event::Quantized`].
    ///
    /// The engine does not stop in the middle: to cancel, end the worker and remove the file.
    Quantize(Quantize),
    /// Stop what is being served; it closes with [`Event::Cancelled`].
    Cancel,
}

/// Load a model file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The file; of a split set the first part.
    pub model: ModelPath,
    /// The settings that shape loading (see [`Settings::same_load`]).
    pub settings: Settings,
    /// What to do about the page cache before the clock starts.
    pub page_cache: PageCache,
}

/// State of the file in the page cache when loading starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// As it is; how much was resident is measured and reported.
    #[default]
    AsIs,
    /// Ask the kernel to drop the file's pages first: a cold load.
    Drop,
    /// Read the file once first: a warm load.
    Warm,
}

/// Run one test by llama-bench's conventions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Prompt, generation, depth.
    pub spec: TestSpec,
    /// The settings that shape the context and the threads.
    pub settings: Settings,
    /// Timed repetitions, at least 1; fewer when the app says [`Request::Enough`].
    pub repetitions: u32,
    /// One untimed warm-up first.
    pub warmup: bool,
    /// Seed of the random tokens.
    pub seed: u64,
}

/// Serve one real request: tokenize, prefill, first token, then the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generate {
    /// The prompt as a person typed it.
    pub prompt: String,
    /// Tokens to write at most.
    pub n_predict: u32,
    /// Context size; 0 = as much as prompt and answer need.
    pub n_ctx: u32,
    /// The settings that shape the context and the threads.
    pub settings: Settings,
    /// Keep what the cache already holds of this prompt from the request before.
    pub reuse_prefix: bool,
    /// Temperature; 0 is greedy.
    pub temperature: f32,
    /// Seed of the sampler.
    pub seed: u64,
    /// Go on after an end-of-generation token.
    pub ignore_eos: bool,
}

/// Time requests for a real text, one after the other.
///
/// The prompts are the engine's tokens of a bundled text, repeated where it is too short. The
/// cache is emptied before each repetition, and between two requests only as much is forgotten as
/// the next prompt differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Serve {
    /// Tokens of each prompt.
    pub n_prompt: u32,
    /// Tokens written after each prompt, at least 1; the first decides the TTFT.
    pub n_gen: u32,
    /// The requests of one repetition, in order.
    pub requests: Vec<ServeAsk>,
    /// The settings that shape the context and the threads.
    pub settings: Settings,
    /// Timed repetitions, at least 1; fewer when the app says [`Request::Enough`].
    pub repetitions: u32,
    /// One untimed warm-up first: every request once.
    pub warmup: bool,
}

/// One request of [`Serve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeAsk {
    /// How many of the prompt's last tokens are others than in the first request; 0 = the same prompt.
    pub changed: u32,
}

/// Time sequences side by side: each user's prompt, then each user's answer, a token of every user
/// in one decode call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// Sequences, at least 1.
    pub users: u32,
    /// Prompt tokens of each.
    pub n_prompt: u32,
    /// Tokens written for each.
    pub n_gen: u32,
    /// A part of the cache for each sequence; otherwise they share one.
    pub split_kv: bool,
    /// All have one prompt, computed once.
    pub shared_prompt: bool,
    /// The settings that shape the context and the threads.
    pub settings: Settings,
    /// Timed repetitions, at least 1; fewer when the app says [`Request::Enough`].
    pub repetitions: u32,
    /// One untimed warm-up first.
    pub warmup: bool,
    /// Seed of the random tokens.
    pub seed: u64,
}

/// Judge the predictions of a bundled text, as llama-perplexity does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Tokens of a chunk; its second half is scored.
    pub n_ctx: u32,
    /// Chunks, from the start of the text; 0 = all of it.
    pub chunks: u32,
    /// The text; `None` = the bundled one.
    pub text: Option<ModelPath>,
    /// The model whose predictions are taken for right; `None` = perplexity alone.
    pub base: Option<ModelPath>,
    /// The settings that shape the context and the threads.
    pub settings: Settings,
}

/// Measure how fast memory is read, by all allowed cores together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadBandwidth {
    /// Buffer sizes in bytes, each measured on its own.
    pub buffer_bytes: Vec<u64>,
    /// Threads that read.
    pub n_threads: u32,
    /// Time for each size in nanoseconds.
    pub duration_ns: u64,
}

/// Run the drift anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnchorRequest {
    /// Threads it uses: those of the test it stands beside.
    pub n_threads: u32,
}

/// Quantize a model file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantize {
    /// The file to read; of a split set the first part.
    pub input: ModelPath,
    /// The file to write; what is there is overwritten.
    pub output: ModelPath,
    /// llama.cpp's `llama_ftype`: 7 is Q8_0.
    pub file_type: u32,
    /// Threads; 0 = all of the machine's.
    pub n_threads: u32,
    /// Quantize weights that are quantized already.
    pub allow_requantize: bool,
}

/// Said by the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First message of a worker.
    Hello(Hello),
    /// Part of the model that is loaded, 0 to 1; at most ten a second.
    LoadProgress {
        /// From 0 to 1.
        fraction: f32,
    },
    /// The model is loaded.
    Loaded(Loaded),
    /// The context exists: what lies where. Before the first sample of a test, or with a request.
    Placed(Placement),
    /// What a test does next; said outside timed sections only.
    Phase(Phase),
    /// One timed repetition, said right after it.
    Sample(Sample),
    /// All repetitions are done.
    Measured(Measured),
    /// A piece of the answer to [`Request::Generate`].
    Token(Token),
    /// The request is served.
    Generated(Generated),
    /// Answer to [`Request::ReadBandwidth`].
    Bandwidth {
        /// One reading for each size asked for, in that order.
        readings: Vec<BandwidthReading>,
    },
    /// Answer to [`Request::Foresee`].
    Foreseen {
        /// One for each context asked about, in that order.
        contexts: Vec<Foreseen>,
    },
    /// A kernel was timed; after each but the last.
    CalibrateProgress {
        /// Kernels that are done.
        done: u32,
        /// All kernels.
        kernels: u32,
    },
    /// Answer to [`Request::Calibrate`].
    Calibrated {
        /// One for each kernel asked for, in that order.
        readings: Vec<KernelReading>,
    },
    /// Answer to [`Request::Anchor`].
    Anchor {
        /// Duration of the fixed kernel in nanoseconds.
        ns: u64,
    },
    /// The engine begins with a tensor of the file it quantizes; at most ten a second, the first
    /// and the last always.
    QuantizeProgress {
        /// Tensors that are done.
        done: u32,
        /// All tensors of the model.
        tensors: u32,
    },
    /// The file is written, as far as the engine noticed: it does not notice a full disk.
    Quantized(Quantized),
    /// The request was cancelled; what was said before stands.
    Cancelled,
    /// The request failed; the worker lives and takes the next.
    Failed(Failure),
}

impl Event {
    /// Whether this closes the request that is served.
    pub fn is_closing(&self) -> bool {
        match self {
            Self::Loaded(_)
            | Self::Measured(_)
            | Self::Generated(_)
            | Self::Bandwidth { .. }
            | Self::Foreseen { .. }
            | Self::Calibrated { .. }
            | Self::Anchor { .. }
            | Self::Quantized(_)
            | Self::Cancelled
            | Self::Failed(_) => true,
            Self::Hello(_)
            | Self::LoadProgress { .. }
            | Self::QuantizeProgress { .. }
            | Self::CalibrateProgress { .. }
            | Self::Placed(_)
            | Self::Phase(_)
            | Self::Sample(_)
            | Self::Token(_) => false,
        }
    }
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the worker.
    pub protocol: u32,
    /// The engine it was built with.
    pub engine: EngineBuild,
    /// The CPU variant that was loaded.
    pub variant: Variant,
    /// Every variant that claims to run on this CPU, best first.
    pub variants: Vec<Variant>,
    /// Devices the engine sees, the CPU among them.
    pub devices: Vec<Device>,
    /// Name of the CPU, as llama-bench's `cpu_info`.
    pub cpu_info: String,
    /// Names of the GPUs, as llama-bench's `gpu_info`; empty when there is none.
    pub gpu_info: String,
    /// Backends as llama-bench's `backends`: `CPU`, `Vulkan`, `CUDA,BLAS`.
    pub backends: String,
    /// The engine's own line of CPU features.
    pub system_info: String,
}

/// What the engine was built from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EngineBuild {
    /// llama.cpp's build number.
    pub build_number: u32,
    /// llama.cpp's commit, `unknown` where the source does not say.
    pub build_commit: String,
    /// Version of the crate that carries the source.
    pub crate_version: String,
}

/// One build of the CPU backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name: `haswell`, `icelake`, `zen4`, ...; `static` where there is only one.
    pub name: String,
    /// The engine's score for this CPU; higher is better, 0 cannot run.
    pub score: i32,
}

/// A device the engine can compute on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The engine's name for it: `CPU`, `Vulkan0`.
    pub name: String,
    /// In words: `NVIDIA GeForce RTX 4090`.
    pub description: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its memory in bytes, where it says.
    pub memory_total: Option<u64>,
    /// Its free memory in bytes, where it says.
    pub memory_free: Option<u64>,
}

/// Kinds of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A GPU with its own memory.
    Gpu,
    /// A GPU that shares the processor's memory.
    IntegratedGpu,
    /// A GPU interface computed by the processor (lavapipe, llvmpipe): never to be labelled GPU.
    SoftwareGpu,
    /// Helps the CPU: BLAS, AMX.
    Accelerator,
}

/// A loaded model, as the engine sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// From asking for the model until its weights are ready, in nanoseconds.
    pub load_ns: u64,
    /// Share of the file that lay in the page cache when the clock started; `None` = not known.
    pub resident_before: Option<f32>,
    /// What was done about the page cache.
    pub page_cache: PageCache,
    /// llama-bench's `model_type`.
    pub model_type: String,
    /// llama-bench's `model_size`, bytes of all tensors.
    pub model_size: u64,
    /// llama-bench's `model_n_params`.
    pub model_n_params: u64,
    /// Layers.
    pub n_layer: u32,
    /// Context it was trained for.
    pub n_ctx_train: u32,
    /// Entries of the vocabulary.
    pub n_vocab: u32,
    /// What it can be asked to do.
    pub ability: Ability,
    /// Whether the weights carry recurrent state (no cache tail can be dropped).
    pub recurrent: bool,
}

/// What a model can be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Prefill and decode.
    Generates,
    /// One pass, no decode speed: embedding and other encoder models.
    Embeds,
    /// Denoises whole blocks: no decode speed either.
    Diffuses,
}

/// What lies where, read from the engine's own log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// From asking for the context until it exists, in nanoseconds.
    pub context_ns: u64,
    /// Context in tokens, as the engine rounded it.
    pub n_ctx: u32,
    /// Layers computed on a GPU, the output layer counted as llama.cpp does; `None` on CPU builds.
    pub offloaded_layers: Option<u32>,
    /// All layers, counted the same way.
    pub total_layers: Option<u32>,
    /// What flash attention came to: asked `auto`, decided here.
    pub flash_attention: Option<bool>,
    /// Every buffer the engine named, sizes added where one name comes twice.
    pub buffers: Vec<Buffer>,
}

/// One buffer of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// The engine's name of the place: `CPU`, `CPU_Mapped`, `CPU_REPACK`, `Vulkan0`.
    pub device: String,
    /// What it holds.
    pub holds: BufferUse,
    /// Bytes (the log prints MiB with two decimals: exact to 5,243 bytes; the engine's breakdown is exact).
    pub bytes: u64,
}

/// What a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferUse {
    /// Weights.
    Model,
    /// K and V.
    Kv,
    /// Recurrent state.
    State,
    /// Working memory of the graph.
    Compute,
    /// Logits and embeddings.
    Output,
}

/// What a test does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// The untimed warm-up.
    Warmup,
    /// Filling the cache to the depth, untimed.
    Depth {
        /// The state was kept from before, so nothing is computed.
        restored: bool,
    },
    /// Judging the text; at most ten a second, the first and the last always.
    Text {
        /// Chunks that are done.
        done: u32,
        /// All chunks.
        chunks: u32,
    },
    /// Everything is ready for a timed repetition (the depth is filled or restored); it begins
    /// when the app answers [`Request::Go`]. Counted from 1.
    Repetition {
        /// Which.
        number: u32,
    },
}

/// One timed repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Counted from 0.
    pub index: u32,
    /// Duration of the timed section, monotonic clock.
    pub ns: u64,
    /// Times another process took the CPU from the engine's main thread inside the section; `None` = not known.
    pub involuntary_switches: Option<u64>,
    /// Major page faults of the worker inside the section; `None` = not known.
    pub major_faults: Option<u64>,
    /// What the section consists of, where it is not one speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
}

/// What a repetition found beside its duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reading", rename_all = "snake_case")]
pub enum Reading {
    /// Of [`Request::Serve`]; the sample's duration is the sum of its requests.
    Served {
        /// What was loaded right before, where the model is loaded for each repetition.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<LoadReading>,
        /// One for each request, in order.
        requests: Vec<ServedReading>,
    },
    /// Of [`Request::Users`]; the sample's duration is prefill and decode together.
    Users(UsersReading),
    /// Of [`Request::Quality`]; the sample's duration is that of the judging.
    Quality(QualityReading),
}

/// A load that belongs to a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadReading {
    /// From asking for the model until its weights are ready, in nanoseconds.
    pub load_ns: u64,
    /// From asking for the context until it exists, in nanoseconds.
    pub context_ns: u64,
    /// Share of the file that lay in the page cache when the clock started; `None` = not known.
    pub resident_before: Option<f32>,
    /// What was done about the page cache.
    pub page_cache: PageCache,
}

/// One request with its parts timed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ServedReading {
    /// Tokens of the prompt.
    pub n_prompt: u32,
    /// Of those, taken from the cache: never counted as prefill.
    pub n_reused: u32,
    /// Tokens that the prompt shares with what the cache held. Where fewer were reused, this
    /// memory cannot drop a tail (recurrent state, a sliding window that has moved on).
    pub n_shared: u32,
    /// Tokenizing.
    pub tokenize_ns: u64,
    /// Computing the prompt's tokens that were not reused.
    pub prefill_ns: u64,
    /// Sampling the first token.
    pub first_sample_ns: u64,
    /// From the submission to the first token.
    pub ttft_ns: u64,
    /// Decoding and sampling the second token; `None` when only one was asked for.
    pub first_decode_ns: Option<u64>,
    /// Tokens written.
    pub n_generated: u32,
    /// From the first token to the last.
    pub decode_ns: u64,
}

/// Sequences side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsersReading {
    /// All prompts: `t_pp` of llama-batched-bench.
    pub prefill_ns: u64,
    /// All answers: `t_tg` of llama-batched-bench.
    pub decode_ns: u64,
    /// For each user, from the submission of all until the logits of that user's first token.
    pub ttft_ns: Vec<u64>,
}

/// How well a text is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QualityReading {
    /// Tokens of a chunk.
    pub n_ctx: u32,
    /// Chunks that were judged.
    pub chunks: u32,
    /// Tokens that were scored.
    pub n_scored: u64,
    /// exp of the mean negative log-likelihood.
    pub perplexity: f64,
    /// Its standard error.
    pub perplexity_error: f64,
    /// Against the base model, where there is one.
    pub against_base: Option<AgainstBase>,
}

/// How far predictions are from those of the base model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AgainstBase {
    /// Perplexity of the base model on the same tokens.
    pub base_perplexity: f64,
    /// Mean Kullback-Leibler divergence, in nats.
    pub kl_mean: f64,
    /// Its standard error.
    pub kl_error: f64,
    /// Largest.
    pub kl_max: f64,
    /// 99th percentile.
    pub kl_p99: f64,
    /// Median.
    pub kl_median: f64,
    /// Share of tokens whose most likely prediction is the same, 0 to 1.
    pub same_top: f64,
}

/// A finished test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Repetitions that were said as [`Event::Sample`].
    pub repetitions: u32,
    /// Highest resident memory of the worker so far; `None` = not known.
    pub peak_rss_bytes: Option<u64>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Text of the piece; bytes that complete no character yet are held back.
    pub text: String,
    /// From the submission until this token was sampled, in nanoseconds.
    pub at_ns: u64,
}

/// A served request with its parts timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Tokens of the prompt.
    pub n_prompt: u32,
    /// Of those, taken from the cache: never counted as prefill.
    pub n_reused: u32,
    /// Tokens written, the first included.
    pub n_generated: u32,
    /// Why it ended.
    pub stop: Stop,
    /// Tokenizing.
    pub tokenize_ns: u64,
    /// Computing the prompt's tokens that were not reused.
    pub prefill_ns: u64,
    /// Sampling the first token.
    pub first_sample_ns: u64,
    /// From the submission to the first token.
    pub ttft_ns: u64,
    /// From the first token to the last: `n_generated - 1` tokens.
    pub decode_ns: u64,
    /// When each token was sampled, from the submission.
    pub token_at_ns: Vec<u64>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model said so.
    EndOfText,
    /// As many tokens as were asked for.
    Length,
    /// The context is full.
    ContextFull,
    /// Cancelled.
    Cancelled,
}

/// Read speed at one buffer size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BandwidthReading {
    /// Size of the buffer.
    pub buffer_bytes: u64,
    /// Bytes per second, the median of the passes.
    pub bytes_per_second: f64,
}

/// A quantized file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantized {
    /// From asking for it until the file was closed, in nanoseconds.
    pub ns: u64,
    /// Tensors whose rows are no whole blocks of the type meant for them and got another.
    pub fallbacks: Option<u32>,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure: the app branches on this, never on the text.
    pub code: FailureCode,
    /// One sentence that names the thing and says what to do.
    pub message: String,
    /// Last lines of the engine's log.
    pub log: Vec<String>,
}

/// Kinds of failure inside a living worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The file is not there or cannot be read.
    FileUnreadable,
    /// The engine refuses the model.
    ModelRefused,
    /// The engine refuses the context (too little memory, impossible settings).
    ContextRefused,
    /// The model cannot do what was asked (an embedding model asked to decode).
    NotAble,
    /// The prompt and the answer do not fit the context.
    ContextTooSmall,
    /// A setting the engine does not know.
    BadSetting,
    /// Nothing is loaded.
    NothingLoaded,
    /// A decode call failed.
    DecodeFailed,
    /// The engine does not quantize this file so.
    QuantizeRefused,
    /// The file to write cannot be written.
    OutputUnwritable,
    /// Anything else.
    Internal,
}
