//! What explains a result: statements with their numbers.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use twospeed_estimate::explain::{self, Rests, Says};

use crate::measure::PhaseName;

/// A statement with its numbers; the words are the page's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "statement", rename_all = "snake_case")]
pub enum Statement {
    /// Prefill / decode of the focused result.
    Ratio {
        /// Prefill, tokens per second.
        prefill: f64,
        /// Decode, tokens per second.
        decode: f64,
        /// prefill / decode.
        ratio: f64,
    },
    /// What decode reached of what the read speed allows.
    CeilingShare {
        /// Decode, tokens per second.
        decode: f64,
        /// Ceiling, tokens per second.
        ceiling: f64,
        /// decode / ceiling; above 1 the ceiling is wrong, which the page says.
        share: f64,
        /// Bytes of weights that one token reads.
        weight_bytes: u64,
        /// Read speed that the ceiling stands on, bytes per second.
        read_bytes_s: u64,
    },
    /// The ceiling is not known, since the read speed was not measured on that machine.
    NoCeiling,
    /// Where a token's time goes: reading weights at the read speed, and the rest.
    TokenTime {
        /// Milliseconds a token takes.
        token_ms: f64,
        /// Of them, milliseconds that reading the weights takes at least.
        weights_ms: f64,
    },
    /// The focused result beside the one that is nearest to compare: another quantization of the
    /// same model, or else another model.
    Against {
        /// Which speed.
        phase: PhaseName,
        /// The focused result, to show.
        this: String,
        /// The other, to show.
        other: String,
        /// this / other.
        ratio: f64,
        /// Size of this file / size of the other.
        size_ratio: f64,
        /// The difference is smaller than the spread of the samples.
        within_noise: bool,
    },
    /// Seconds an everyday request takes with these speeds: a long prompt and a short answer.
    Request {
        /// Prompt, tokens.
        prompt: u32,
        /// Answer, tokens.
        answer: u32,
        /// Seconds for the prompt.
        prefill_s: f64,
        /// Seconds for the answer.
        decode_s: f64,
    },
    /// What a speed has lost at the last depth.
    DepthLoss {
        /// Which speed.
        phase: PhaseName,
        /// The last depth, tokens.
        depth: u32,
        /// Tokens per second at the first depth.
        first: f64,
        /// At the last.
        last: f64,
        /// 1 - last / first; negative where it became faster.
        lost: f64,
        /// The difference is smaller than the spread of the samples.
        within_noise: bool,
    },
    /// What the cache adds to the time of each token that is written.
    DepthCost {
        /// Milliseconds more for each thousand tokens in the cache.
        ms_per_thousand: f64,
        /// Milliseconds of a token at the first depth.
        token_ms: f64,
    },
    /// What users decode together.
    UsersTogether {
        /// The most users.
        users: u32,
        /// The fewest.
        fewest: u32,
        /// Tokens per second of the most together.
        together: f64,
        /// Of the fewest together.
        before: f64,
        /// together / before.
        ratio: f64,
    },
    /// What is left for each of them.
    UsersEach {
        /// The most users.
        users: u32,
        /// Tokens per second of each.
        each: f64,
        /// Of each of the fewest.
        before: f64,
        /// each / before.
        share: f64,
    },
    /// How long they wait for their first token.
    UsersWait {
        /// The most users.
        users: u32,
        /// Median over the users, milliseconds.
        median_ms: f64,
        /// The longest wait, milliseconds.
        worst_ms: f64,
    },
    /// What a wait consists of.
    WaitParts {
        /// To the first token, milliseconds.
        total_ms: f64,
        /// Its parts in their order, milliseconds; what comes after the first token is none.
        parts: Vec<WaitPart>,
    },
    /// What the cache saves of a prompt that was read before.
    Reuse {
        /// Tokens taken from the cache.
        reused: u32,
        /// Tokens of the prompt.
        prompt: u32,
        /// Milliseconds of the new prompt.
        new_ms: f64,
        /// Of the repeated one.
        again_ms: f64,
    },
    /// What a cold start takes more than a warm one.
    ColdStart {
        /// Milliseconds of the cold start.
        cold_ms: f64,
        /// Of the warm one.
        warm_ms: f64,
    },
    /// What a quantization's speed costs.
    QualityCost {
        /// The quantization, to show.
        this: String,
        /// The one with the largest file, to show.
        other: String,
        /// Decode of this / of the other; `None` = not both measured.
        decode_ratio: Option<f64>,
        /// Perplexity of this / of the other - 1.
        perplexity_more: f64,
        /// Perplexity of this.
        perplexity: f64,
    },
    /// How far its predictions are from those of the base model.
    Divergence {
        /// Mean Kullback-Leibler divergence, nats.
        nats: f64,
        /// Share of tokens whose most likely prediction is the same.
        same_top: f64,
    },
    /// What the machine holds of a speed.
    Held {
        /// Which speed.
        phase: PhaseName,
        /// Mean of the first fifth, tokens per second.
        first: f64,
        /// Of the last.
        last: f64,
        /// last / first.
        share: f64,
        /// Seconds of all.
        seconds: f64,
    },
    /// What the estimator says of it.
    Explained {
        /// What.
        says: Says,
        /// What that rests on.
        rests: Rests,
    },
    /// What the machine did meanwhile.
    MachineCourse {
        /// Clock in the first and the last fifth, GHz; `None` = not readable.
        clock_ghz: Option<[f64; 2]>,
        /// The highest temperature, degrees Celsius; `None` = not readable.
        hottest_c: Option<f64>,
    },
}

impl From<explain::Statement> for Statement {
    fn from(statement: explain::Statement) -> Self {
        let explain::Statement { says, rests } = statement;
        Self::Explained { says, rests }
    }
}

/// A part of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct WaitPart {
    /// Which.
    pub part: WaitPartName,
    /// Mean, milliseconds.
    pub ms: f64,
}

/// What a wait consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum WaitPartName {
    /// Loading the model.
    Load,
    /// Making the context.
    Context,
    /// Tokenizing the prompt.
    Tokenize,
    /// Computing what was not in the cache.
    Prefill,
    /// Sampling the first token.
    FirstSample,
}
