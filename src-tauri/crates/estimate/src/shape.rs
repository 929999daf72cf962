//! The shape of a model: what each layer keeps and reads, with every rule of its architecture
//! already applied. What is computed from a shape knows no architecture's name.

use twospeed_gguf::Model;

use crate::architecture::{self, NoCache};
use crate::build;
use crate::units::Bytes;

/// Layers the engine can hold (`LLAMA_MAX_LAYERS`).
pub(crate) const MAX_LAYERS: u64 = 512;

/// What a model looks like to the memory and the clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// `general.architecture`.
    pub architecture: String,
    /// Every layer in order; the last may predict further tokens (see `trunk`), and blocks that
    /// are run several times for a token stand here as often as they have a cache of their own.
    pub layers: Vec<Layer>,
    /// Layers that every token passes: those before the next-token-prediction blocks.
    pub trunk: usize,
    /// Width of the embeddings.
    pub embedding: u64,
    /// Words of the vocabulary.
    pub vocabulary: Option<u64>,
    /// Context the model was trained for, in tokens.
    pub training_context: Option<u64>,
    /// Tokens that sliding-window layers look back.
    pub window: Option<u64>,
    /// Why there is no cache at all, where there is none.
    pub no_cache: Option<NoCache>,
    /// One compressed key for all heads and no values (MLA): key and value types must be equal.
    pub latent: bool,
    /// Sequences never share one cache, whatever is asked for.
    pub separate_sequences: bool,
    /// The engine forces flash attention off.
    pub without_flash_attention: bool,
}

/// What one layer keeps and reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layer {
    /// Attention heads (queries).
    pub heads: u64,
    /// Elements of one head's key.
    pub head_key: u64,
    /// Elements of one head's value.
    pub head_value: u64,
    /// What is kept for each token.
    pub stores: Vec<Store>,
    /// What is kept for each sequence whatever its length, in 32-bit floats.
    pub state: u64,
    /// The layer whose stores it reads instead of its own.
    pub reads: Option<usize>,
}

impl Layer {
    /// Whether it attends with keys of its own or of another layer.
    pub fn attends(&self) -> bool {
        self.reads.is_some() || !self.stores.is_empty()
    }
}

/// Rows that a layer keeps, one for each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// What it is for.
    pub kind: StoreKind,
    /// Elements of a row of keys.
    pub key: u64,
    /// Elements of a row of values; `None` where only keys are kept.
    pub value: Option<Value>,
}

/// A row of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Elements of this layer's row.
    pub row: u64,
    /// Elements of the widest layer's row: without flash attention every row is padded to it.
    pub widest: u64,
}

/// What a store is for, which decides how many cells it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// Keys and values of every token.
    Full,
    /// Keys and values of a sliding window.
    Window,
    /// Keys that choose what to attend to.
    Indexer,
    /// One row for so many tokens.
    Compressed(u64),
    /// Indexer keys, one row for so many tokens.
    CompressedIndexer(u64),
}

/// Why a shape cannot be known. The sentence names the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The file names no architecture.
    #[error("The file does not say which architecture it has (general.architecture).")]
    NoArchitecture,
    /// The engine does not know it.
    #[error("The architecture {0:?} is not known to the engine.")]
    UnknownArchitecture(String),
    /// A key is absent or 0.
    #[error("The file does not say {0}.")]
    MissingKey(String),
    /// A key holds what cannot be: a list shorter than the layers are many, a number beyond 32 bits.
    #[error("What the file says under {0} cannot be used.")]
    UnusableKey(String),
    /// More layers than the engine can hold.
    #[error("The file claims {0} layers; the engine holds at most {MAX_LAYERS}.")]
    TooManyLayers(u64),
}

impl Shape {
    /// The shape of a model, by the rules of its architecture.
    ///
    /// Errors: [`ShapeError`] names what is missing or unknown.
    pub fn from_model(model: &Model) -> Result<Self, ShapeError> {
        let name = architecture(model)?;
        let rules = architecture::rules(name)
            .ok_or_else(|| ShapeError::UnknownArchitecture(name.to_owned()))?;
        build::shape(model, name, rules)
    }

    /// The least and the most that a model of an unknown architecture can be: every layer as
    /// sparing as the keys allow, and every layer with full attention.
    ///
    /// Errors: [`ShapeError`] where not even the plain keys are there.
    pub fn bounds(model: &Model) -> Result<(Self, Self), ShapeError> {
        let name = architecture(model)?;
        let least = build::least_rules(model, name);
        Ok((
            build::shape(model, name, least)?,
            build::shape(model, name, architecture::PLAIN)?,
        ))
    }

    /// Bytes of recurrent state for one sequence, F32 as the engine keeps it.
    pub fn state_per_sequence(&self) -> Bytes {
        let elements = self.layers.iter().map(|layer| layer.state);
        Bytes(elements.fold(0, u64::saturating_add).saturating_mul(4))
    }
}

fn architecture(model: &Model) -> Result<&str, ShapeError> {
    model
        .architecture
        .as_deref()
        .filter(|name| !name.is_empty())
        .ok_or(ShapeError::NoArchitecture)
}
