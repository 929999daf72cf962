//! What a reader of an estimate should know, as data; shown as one sentence each.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use twospeed_gguf::{Model, TensorType};

use crate::architecture::NoCache;
use crate::bandwidth::Bandwidth;
use crate::cache::ContextError;
use crate::elsewhere::Footing;
use crate::keys::Keys;
use crate::shape::ShapeError;
use crate::units::Bytes;
use crate::weights::WeightsError;

/// What a reader of an estimate should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Where the bandwidth comes from.
    Bandwidth(Bandwidth),
    /// Why cache and state are unknown.
    Shape(ShapeError),
    /// What the cache takes at least and at most where its rules are unknown.
    KvBetween {
        /// With every layer as sparing as the keys allow.
        least: Bytes,
        /// With full attention in every layer.
        most: Bytes,
    },
    /// The engine counted a cache whose rules are not known here.
    ReadsUnknown,
    /// Cache rules are unknown, and neither keys nor tensors set bounds.
    KvUnbounded,
    /// Why the engine would refuse the context.
    Context(ContextError),
    /// The engine's count is another than that of the closed forms; the engine's is shown.
    EngineDiffers {
        /// Of what.
        what: Allocated,
        /// What the engine allocates.
        engine: Bytes,
        /// What the closed forms say.
        formula: Bytes,
    },
    /// Why the engine's own count is not there: one sentence or more.
    NotForeseen(String),
    /// The engine of this machine counted for another device.
    CountedHere,
    /// A device would hold more than it has.
    DeviceTooSmall {
        /// Which.
        device: String,
        /// What it would hold.
        need: Bytes,
        /// What is free there.
        free: Bytes,
    },
    /// Why the weights that a token reads are unknown.
    Weights(WeightsError),
    /// Tensors of a type that is newer than this program.
    NewType {
        /// ggml's number of it.
        id: u32,
        /// How many.
        tensors: usize,
        /// What takes about as many bits.
        like: TensorType,
    },
    /// Why there is no cache.
    NoCache(NoCache),
    /// What the expectations of another device rest on, or why there are none.
    Elsewhere(Footing),
    /// Some layers look back a limited way.
    SlidingWindow {
        /// How many.
        layers: usize,
        /// Of so many.
        of: usize,
        /// Tokens they look back.
        window: u64,
        /// Cells that are kept for them.
        cells: u64,
    },
    /// A token uses some of the experts.
    Experts {
        /// At most so many in a layer.
        used: u64,
        /// Of so many.
        of: u64,
    },
    /// What is asked for does not fit the context.
    ContextTooShort {
        /// Tokens of context.
        context: u64,
        /// Tokens that depth and prompt or answer take.
        needed: u64,
    },
    /// More than is free.
    TooLarge {
        /// What is known to be needed.
        at_least: Bytes,
        /// What is free.
        free: Bytes,
    },
    /// Working buffers, and with them the total, are unknown.
    ComputeUnknown,
}

/// What both the engine and the closed forms count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocated {
    /// Keys and values.
    Kv,
    /// Recurrent state.
    State,
}

impl fmt::Display for Allocated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kv => "the KV cache",
            Self::State => "the recurrent state",
        })
    }
}

impl Note {
    /// Of each new type.
    pub(crate) fn new_types(model: &Model) -> impl Iterator<Item = Self> {
        let mut by_id = BTreeMap::new();
        for tensor in &model.tensors {
            if let Some(id) = tensor.new_type {
                let (tensors, _) = by_id.entry(id).or_insert((0, tensor.tensor_type));
                *tensors += 1;
            }
        }
        by_id
            .into_iter()
            .map(|(id, (tensors, like))| Self::NewType { id, tensors, like })
    }

    /// For a model with experts.
    pub(crate) fn experts(model: &Model) -> Option<Self> {
        let architecture = model.architecture.as_deref()?;
        let keys = Keys {
            model,
            architecture,
        };
        let of = keys.get("expert_count").ok()??;
        let layers = keys.get("block_count").ok()??;
        let used = keys
            .per_layer("expert_used_count", usize::try_from(layers).ok()?)
            .ok()??
            .into_iter()
            .max()?;
        Some(Self::Experts { used, of })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bandwidth(bandwidth) => f.write_str(&bandwidth.note()),
            Self::Shape(error) => write!(f, "KV cache and state are unknown: {error}"),
            Self::KvBetween { least, most } => write!(
                f,
                "As far as its keys tell, the KV cache takes between {least} and {most}."
            ),
            Self::ReadsUnknown => f.write_str(
                "The engine counted; how much of the cache a token reads is unknown.",
            ),
            Self::KvUnbounded => f.write_str(
                "Neither keys nor tensors say how large a row of the KV cache is, so not even a range can be given.",
            ),
            Self::Context(error) => write!(f, "The engine refuses this context: {error}"),
            Self::EngineDiffers {
                what,
                engine,
                formula,
            } => write!(
                f,
                "The engine allocates {} bytes for {what} where the rules known here give {}; the engine's count is shown.",
                engine.0, formula.0
            ),
            Self::NotForeseen(why) => {
                write!(f, "{why} So the memory is computed from the file's keys.")
            }
            Self::CountedHere => f.write_str(
                "The engine of this machine counted: on the device, copies and working buffers may be of other sizes.",
            ),
            Self::Weights(error) => write!(f, "{error}"),
            Self::NewType { id, tensors, like } => write!(
                f,
                "{} of type {id}, which is newer than this program: its size is told by where the next tensor begins, and its speed is taken from {}, which takes about as many bits.",
                match tensors {
                    1 => "1 tensor is".to_owned(),
                    tensors => format!("{tensors} tensors are"),
                },
                like.name()
            ),
            Self::Elsewhere(footing) => write!(f, "{footing}"),
            Self::NoCache(why) => f.write_str(match why {
                NoCache::Encoder => "It encodes each batch anew and keeps no cache.",
                NoCache::Diffusion => {
                    "It denoises whole blocks, keeps no cache and has no decode speed."
                }
                NoCache::Draft => "It drafts for another model and reads that model's cache.",
            }),
            Self::SlidingWindow {
                layers,
                of,
                window,
                cells,
            } => write!(
                f,
                "{layers} of {of} layers look back {window} tokens and keep {cells} cells, \
                 however long the context is."
            ),
            Self::Experts { used, of } => write!(
                f,
                "A token uses {used} of {of} experts: all of them take memory, and only those \
                 used are read."
            ),
            Self::ContextTooShort { context, needed } => write!(
                f,
                "This takes {needed} tokens and the context holds {context}."
            ),
            Self::DeviceTooSmall { device, need, free } => {
                write!(f, "{device} would hold {need}; {free} is free there.")
            }
            Self::TooLarge { at_least, free } => {
                write!(f, "It needs at least {at_least}; {free} is free.")
            }
            Self::ComputeUnknown => f.write_str(
                "Working buffers are known to the engine alone and are not counted, \
                 so the total is unknown.",
            ),
        }
    }
}

/// As its sentence.
impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
