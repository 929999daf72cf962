//! What a context would take: [`Foresee`](super::Request::Foresee).

use serde::{Deserialize, Serialize};

use super::Placement;
use crate::settings::{ModelPath, Settings};

/// Ask the engine what it would allocate. No weights are read; what the header says is kept until the
/// next request of another kind, so that a file can be asked about again quickly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Foresee {
    /// The file, of a split set the first part. It has to have the length its header claims; what
    /// lies behind the header does not matter, so a sparse file does.
    pub model: ModelPath,
    /// The contexts to make of it, one after the other.
    pub contexts: Vec<ForeseeContext>,
}

/// A context that is asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeseeContext {
    /// The settings that shape loading and the context.
    pub settings: Settings,
    /// Tokens of context, all sequences together.
    pub n_ctx: u32,
    /// Sequences.
    pub n_seq: u32,
    /// A part of the cache for each sequence; otherwise they share one.
    pub split_kv: bool,
}

/// The engine's answer to one [`ForeseeContext`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "foreseen", rename_all = "snake_case")]
pub enum Foreseen {
    /// What it would allocate.
    Placed(Placement),
    /// It refuses the model or the context.
    Refused {
        /// One sentence.
        message: String,
    },
}
