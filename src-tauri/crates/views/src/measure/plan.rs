//! A plan made ready.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{PlanRequest, TuneFor};

/// A plan made ready, before it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct PlanView {
    /// What was asked for; `None` for a run that goes on where another was cut off.
    pub asked: Option<PlanRequest>,
    /// The tests in order.
    pub rows: Vec<PlannedRow>,
    /// Timed repetitions of each; with `until` the fewest.
    pub repetitions: u32,
    /// When a test has been repeated often enough; `None` = after `repetitions`.
    pub until: Option<UntilView>,
    /// How the repetitions of different tests follow each other.
    pub order: RowOrder,
    /// Threads of the engine.
    pub threads: u32,
    /// Seconds it will take, from earlier results here; `None` = not known yet.
    pub seconds: Option<f64>,
    /// What cannot be measured, with why; the rest can.
    pub hindrances: Vec<Hindrance>,
}

/// When a test has been repeated often enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct UntilView {
    /// Half-width of the 95 % confidence interval of the mean over the mean: 0.02 for 2 %.
    pub relative: f64,
    /// Repetitions after which it is given up.
    pub at_most: u32,
}

/// How the repetitions of different tests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum RowOrder {
    /// All of a test, then the next test.
    OneByOne,
    /// One of each test in turn.
    Interleaved,
    /// One of each test in turn until the time is up.
    Sustained {
        /// Seconds.
        seconds: u32,
    },
}

/// A run that was stopped or cut off, with tests that are missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ResumableRun {
    /// Its id.
    pub run: String,
    /// When it began (UTC).
    pub at: String,
    /// Names of its models.
    pub models: Vec<String>,
    /// Tests that are missing.
    pub missing: u32,
    /// All tests of its plan.
    pub of: u32,
    /// It was cut off; otherwise the person stopped it.
    pub interrupted: bool,
}

/// Tests of a model that cannot be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Hindrance {
    /// Row of Models.
    pub model: String,
    /// Its name.
    pub name: String,
    /// One sentence.
    pub sentence: String,
    /// The tests that are left out; empty = all of the model's.
    pub rows: Vec<RowKind>,
}

/// One test of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct PlannedRow {
    /// Its place in the plan, from 0.
    pub position: u32,
    /// Row of Models.
    pub model: String,
    /// Name of the base model.
    pub name: String,
    /// Quantization label.
    pub quantization: String,
    /// What is measured.
    pub what: RowKind,
    /// What the main figure of its samples is.
    pub unit: Unit,
    /// Settings that differ between the plan's tests.
    pub settings: Vec<Setting>,
    /// Seconds it will take; `None` = not known yet.
    pub seconds: Option<f64>,
    /// What decode cannot exceed here; `None` for all else and where it is not known.
    pub ceiling: Option<f64>,
}

/// A setting of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Setting {
    /// llama-bench's name of it: `n_threads`, `type_k`, ...; `variant` for the CPU variant.
    pub key: String,
    /// Its value, in llama-bench's spelling.
    pub value: String,
}

/// What a test measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RowKind {
    /// One of the two speeds.
    Speed {
        /// Which.
        phase: PhaseName,
        /// Tokens read or written.
        tokens: u32,
        /// Tokens in the cache before.
        depth: u32,
    },
    /// A prompt and an answer, timed as one.
    Both {
        /// Tokens read.
        prompt: u32,
        /// Tokens written.
        generate: u32,
        /// Tokens in the cache before.
        depth: u32,
    },
    /// From asking for the model to the first token.
    FirstToken {
        /// Prompt tokens.
        prompt: u32,
        /// State of the file when the load starts; `None` = as it is.
        cold: Option<bool>,
    },
    /// The same prompt again, and with another end.
    PrefixCache {
        /// Prompt tokens.
        prompt: u32,
        /// Tokens of the end that change.
        changed: u32,
    },
    /// People side by side.
    Users {
        /// How many.
        users: u32,
        /// Prompt tokens of each.
        prompt: u32,
        /// Tokens written for each.
        generate: u32,
        /// A part of the cache for each.
        split_kv: bool,
        /// One prompt for all.
        shared_prompt: bool,
    },
    /// The fastest settings.
    Tune {
        /// For what.
        target: TuneFor,
    },
    /// Predictions of a text.
    Quality {
        /// Tokens that are read; `None` = the whole text.
        tokens: Option<u32>,
        /// Tokens of a chunk.
        chunk: u32,
        /// The model whose predictions are taken for right; `None` = perplexity alone.
        base: Option<String>,
    },
}

/// What the main figure of a test's samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Tokens per second: of decode where a test has both, of all users together.
    TokensPerSecond,
    /// Seconds to the first token: with the load of a first token, of the repeated request of a
    /// prefix cache.
    Seconds,
    /// exp of the mean negative log-likelihood.
    Perplexity,
    /// Mean Kullback-Leibler divergence, nats.
    Divergence,
    /// Speed of what tuning found over that of the usual settings: 1 = no faster.
    Gain,
}

/// The two speeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Reading the prompt.
    Prefill,
    /// Writing the answer.
    Decode,
}
