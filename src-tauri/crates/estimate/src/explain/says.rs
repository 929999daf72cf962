//! What can be said about a model's speeds, with the numbers that it is derived from.

use serde::{Deserialize, Serialize};

/// A statement and what its numbers rest on; the words are the faces'.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What it says.
    pub says: Says,
    /// What that rests on.
    pub rests: Rests,
}

/// What a statement says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum Says {
    /// Where the expected time of one written token goes.
    TokenTime {
        /// Milliseconds of a token.
        total_ms: f64,
        /// Of them reading weights: the layers' matrices, experts and the output matrix.
        weights_ms: f64,
        /// weights / total.
        weights_share: f64,
        /// All parts, the longest first.
        parts: Vec<TimePart>,
    },
    /// How far decode is from the ceiling, and what makes the difference.
    Gap {
        /// Tokens per second.
        decode: f64,
        /// They were measured; otherwise they are expected.
        is_measured: bool,
        /// Tokens per second.
        ceiling: f64,
        /// decode / ceiling.
        share: f64,
        /// Milliseconds of a token beyond those at the ceiling.
        gap_ms: f64,
        /// Milliseconds that each part adds, the largest first; of the weights what they take
        /// beyond the ceiling's time, which is negative where they come faster.
        parts: Vec<GapPart>,
        /// What the parts do not explain: measured beyond expected; negative where it was faster.
        rest_ms: f64,
    },
    /// Numbers of one type take longer to unpack than to read.
    Unpacking {
        /// ggml's name of the type.
        tensor_type: String,
        /// Milliseconds of a token that its matrices take.
        ms: f64,
        /// Of the token's time.
        share: f64,
        /// Bytes per second that this comes to.
        rate_bytes_s: u64,
        /// Bytes per second that memory is read with.
        read_bytes_s: u64,
    },
    /// What was measured beside what is expected.
    Judged {
        /// Which speed.
        phase: Phase,
        /// Tokens per second.
        measured: f64,
        /// Tokens per second.
        expected: f64,
        /// The lower end of the band.
        low: f64,
        /// The upper end of the band.
        high: f64,
        /// measured / expected.
        ratio: f64,
        /// Where it lies.
        verdict: Verdict,
        /// What may be the reason, where it lies outside; empty = none is known.
        reasons: Vec<Reason>,
    },
    /// What is expected holds for another number of threads.
    Threads {
        /// Threads that ran.
        ran: u32,
        /// Threads of the calibration.
        calibrated: u32,
    },
    /// Of two quantizations of a model one reads faster and writes slower.
    Rates {
        /// The one with the faster prefill.
        reads_faster: RateSide,
        /// The one with the faster decode.
        writes_faster: RateSide,
        /// Prefill of the one / of the other.
        prefill_ratio: f64,
        /// Decode of the other / of the one.
        decode_ratio: f64,
        /// Both ratios were measured; otherwise they are expected.
        is_measured: bool,
    },
    /// What the cache grows by, and what it grows to.
    KvGrowth {
        /// Bytes of one token, in all layers that keep it.
        bytes_per_token: u64,
        /// Tokens of context.
        context: u64,
        /// Bytes of the cache at that context.
        kv_bytes: u64,
        /// Bytes at twice the context.
        doubled_bytes: u64,
        /// Bytes of weights that a token reads, which stay as they are.
        weight_bytes: u64,
        /// The depth from which a token reads as much cache as weights; `None` = not within
        /// `most_context`.
        equal_depth: Option<u64>,
        /// The context it was trained for; where the file does not say, the most that was tried.
        most_context: u64,
    },
    /// What active parameters mean.
    Experts {
        /// All parameters.
        parameters: u64,
        /// Those that one token uses.
        active: u64,
        /// Bytes of the file, which all take memory.
        file_bytes: u64,
        /// Bytes of weights that one token reads.
        weight_bytes: Option<u64>,
        /// Experts that a token uses in a layer, of how many, and the tokens of a prompt from which
        /// nearly all of them are touched; `None` = the file is not here to say.
        used: Option<ExpertUse>,
    },
    /// Some layers look back a limited way, and stop growing.
    SlidingWindow {
        /// How many.
        layers: u64,
        /// Of so many.
        of: u64,
        /// Tokens they look back.
        window: u64,
        /// Cells that are kept for them at most.
        cells: u64,
    },
    /// All that a token reads fits the last-level cache, so memory is not what limits it.
    CacheResident {
        /// Bytes of weights and of cache that a token reads.
        working_set_bytes: u64,
        /// Bytes of the last-level cache.
        cache_bytes: u64,
    },
    /// Rows that are no multiple of 256 numbers cannot take the type that the label names.
    FallenBack {
        /// The label: `Q4_K_M`.
        label: String,
        /// Bits per weight of the type it names.
        label_bits: f64,
        /// Bits per weight of the file.
        bits: f64,
        /// Share of the file's bytes in matrices that fell back.
        share: f64,
        /// The types they have instead, most bytes first.
        types: Vec<String>,
    },
}

/// What a statement rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "rests", rename_all = "snake_case")]
pub enum Rests {
    /// What the model's file says.
    File,
    /// The calibration of this machine.
    Calibrated,
    /// The same, corrected by own runs.
    Corrected {
        /// How many.
        runs: u64,
    },
    /// Published figures of a device alone.
    Published,
}

/// One of the two speeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "ExplainedPhase"))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading a prompt.
    Prefill,
    /// Writing an answer.
    Decode,
}

/// A kind of work that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Portion {
    /// The layers' matrices.
    Weights,
    /// Experts that are used.
    Experts,
    /// The output matrix.
    Output,
    /// Attention over cached keys and values.
    Attention,
    /// Recurrent state.
    State,
    /// All other work of the layers, the same at any depth.
    Layers,
    /// What a step takes whatever the model.
    Step,
}

/// A part of a token's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "ExplainedPart"))]
pub struct TimePart {
    /// What takes it.
    pub portion: Portion,
    /// Milliseconds.
    pub ms: f64,
    /// Of the whole time.
    pub share: f64,
}

/// A part of the way to the ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct GapPart {
    /// What takes it; all that is read as weights is one.
    pub portion: Portion,
    /// Milliseconds.
    pub ms: f64,
}

/// Where a measured speed lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "ExpectedVerdict"))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the band.
    Within,
    /// Above it.
    Faster,
    /// Below it.
    Slower,
}

/// Why a measured speed may lie outside the band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(rename = "ExpectedReason"))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// The run was disturbed; its warnings say by what.
    Disturbed,
    /// It ran with another number of threads than the calibration.
    Threads {
        /// Threads that ran.
        ran: u32,
        /// Threads of the calibration.
        calibrated: u32,
    },
    /// Another CPU variant ran.
    Variant {
        /// The one that ran.
        ran: String,
        /// The one of the calibration.
        calibrated: String,
    },
    /// Another build of the engine ran.
    Build {
        /// The one that ran.
        ran: u32,
        /// The one of the calibration.
        calibrated: u32,
    },
    /// A good part of the time was taken over from operations that resemble those of the model.
    Resembling {
        /// Of the expected time.
        share: f64,
    },
    /// Expected of published figures, not of this machine.
    Published,
}

/// A side of a comparison of two quantizations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct RateSide {
    /// Its label.
    pub label: String,
    /// ggml's name of the type that most of its work is done in.
    pub tensor_type: String,
    /// Operations per second that a matrix of it times a batch of tokens is done with here.
    pub flops_s: f64,
    /// Bytes of weights that a token reads.
    pub weight_bytes: u64,
}

/// How experts are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct ExpertUse {
    /// Experts that a token uses in a layer.
    pub used: u64,
    /// Of so many.
    pub of: u64,
    /// Tokens of a prompt from which 19 of 20 experts are touched.
    pub nearly_all_from: u64,
}
