//! What the person chooses to measure.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct PlanRequest {
    /// Rows of Models, in the order they are measured.
    pub models: Vec<String>,
    /// The tests of each.
    pub tests: Tests,
    /// Threads of the engine; `None` = as the settings say.
    pub threads: Option<u32>,
}

/// Which tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "preset", rename_all = "snake_case")]
pub enum Tests {
    /// pp512 and tg128, three repetitions.
    Quick,
    /// pp512 and tg128, five repetitions.
    Article,
    /// Both speeds at growing depths.
    ContextCurve {
        /// Deepest, tokens; `None` = as deep as the model and the memory allow.
        deepest: Option<u32>,
    },
    /// Long prompts, and answers below them.
    LongDocument {
        /// Tokens of the longest; `None` = 16,384, or as many as the model and the memory allow.
        longest: Option<u32>,
    },
    /// People side by side.
    Users {
        /// How many, each a test.
        users: Vec<u32>,
        /// Prompt tokens of each.
        prompt: u32,
        /// Tokens written for each.
        generate: u32,
        /// A part of the cache for each; otherwise they share one.
        split_kv: bool,
        /// All have one prompt, computed once.
        shared_prompt: bool,
    },
    /// What the quantizations of one model cost and give.
    FaceOff {
        /// The row of Models whose predictions are taken for right; `None` = the best that is chosen.
        base: Option<String>,
        /// Perplexity and divergence too, beside both speeds.
        quality: bool,
    },
    /// From asking for the model to the first token of an answer.
    FirstToken {
        /// Prompt tokens.
        prompt: u32,
        /// The file cold, warm, or each.
        cache: FileCaches,
    },
    /// The same prompt again, and with another end.
    PrefixCache {
        /// Prompt tokens.
        prompt: u32,
        /// Tokens of its end that change.
        changed: u32,
    },
    /// One batch of 1, 2, 4, .. 512 tokens, and decode.
    Roofline,
    /// Both speeds in turn for a long time.
    Sustained {
        /// Minutes.
        minutes: u32,
    },
    /// The settings that are fastest, found by racing.
    Tune {
        /// What is to be fast.
        target: TuneFor,
    },
    /// Both speeds with more and more layers on the GPU.
    Offload,
    /// The person's own.
    Own {
        /// Prompt lengths, tokens.
        prompt: Vec<u32>,
        /// Answer lengths, tokens.
        generate: Vec<u32>,
        /// Tokens in the cache before, for each of the above.
        depth: Vec<u32>,
        /// Timed repetitions; with `until` the fewest.
        repetitions: u32,
        /// Repeat until the mean is known to so many percent; `None` = as often as is said.
        until: Option<f64>,
        /// One repetition of each test in turn instead of all of one test at once.
        interleaved: bool,
        /// Settings of which each is measured with each.
        sweep: Box<Sweep>,
    },
}

/// State of the file in the page cache when a load starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FileCaches {
    /// Dropped from memory first.
    Cold,
    /// Read once first.
    Warm,
    /// Each on its own.
    Each,
}

/// What Tune makes fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "tune", rename_all = "snake_case")]
pub enum TuneFor {
    /// Reading a prompt.
    Prefill,
    /// Writing an answer.
    Decode,
    /// A prompt and its answer together.
    Mix {
        /// Prompt tokens.
        prompt: u32,
        /// Answer tokens.
        generate: u32,
    },
}

/// Values of settings, each measured with each; an empty list leaves a setting as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Sweep {
    /// Threads of the engine.
    pub threads: Vec<u32>,
    /// Tokens handed to one call of the engine.
    pub batch: Vec<u32>,
    /// Tokens computed together.
    pub micro_batch: Vec<u32>,
    /// Types of the cache, for K and V alike: `f16`, `q8_0`, ...
    pub cache: Vec<String>,
    /// `auto`, `off`, `on`.
    pub flash_attention: Vec<String>,
    /// `auto`, `none`, `mmap`, `mlock`, `mmap+mlock`, `dio`.
    pub load_mode: Vec<String>,
    /// Weights repacked for the CPU.
    pub repack: Vec<bool>,
    /// CPU variants of the engine by name.
    pub variant: Vec<String>,
}

/// Several choices of tests for the same models, to know what each would take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct OffersRequest {
    /// Rows of Models.
    pub models: Vec<String>,
    /// The choices.
    pub tests: Vec<Tests>,
    /// Threads of the engine; `None` = as the settings say.
    pub threads: Option<u32>,
}

/// What each choice would take, and what can be chosen here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Offers {
    /// One for each choice that was asked for, in that order.
    pub offers: Vec<Offer>,
    /// CPU variants of the engine that run here, best first; empty = not known before a first run.
    pub variants: Vec<String>,
    /// GPUs that the engine computes on; empty = none, or not known before a first run.
    pub gpus: Vec<String>,
}

/// What one choice of tests would take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Offer {
    /// Tests that can be measured.
    pub tests: u32,
    /// Seconds they take; `None` = not known.
    pub seconds: Option<f64>,
    /// Why there is none, a sentence.
    pub why_not: Option<String>,
}
