//! What a context keeps: the KV cache and the recurrent state, as llama.cpp allocates them.
//!
//! From llama.cpp build 11434: `llama-context.cpp` (context sizes), `llama-kv-cache.cpp` (rows),
//! `llama-kv-cache-iswa.cpp` (cells of a window), `llama-memory-recurrent.cpp` (state).

use serde::Serialize;

use crate::kv_type::KvType;
use crate::shape::{Shape, Store, StoreKind};
use crate::units::Bytes;

/// Cells are allocated and read in steps of this many tokens.
const STEP: u64 = 256;

/// Whether flash attention is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashAttention {
    /// The engine decides; on the CPU it is on wherever the architecture allows it.
    #[default]
    Auto,
    /// Off.
    Off,
    /// On.
    On,
}

/// What shapes a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSettings {
    /// Tokens of context, all sequences together; 0 is what the model was trained for.
    pub context: u64,
    /// Logical batch.
    pub batch: u64,
    /// Micro-batch.
    pub ubatch: u64,
    /// Sequences (users) at once.
    pub sequences: u64,
    /// Each sequence has a cache of its own instead of all sharing one.
    pub split: bool,
    /// Type of the keys.
    pub type_k: KvType,
    /// Type of the values.
    pub type_v: KvType,
    /// Flash attention.
    pub flash_attention: FlashAttention,
}

/// llama-bench's: micro-batches of 512, f16, one sequence, and a context of 4,096.
impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            context: 4096,
            batch: 2048,
            ubatch: 512,
            sequences: 1,
            split: false,
            type_k: KvType::F16,
            type_v: KvType::F16,
            flash_attention: FlashAttention::Auto,
        }
    }
}

/// Why the engine refuses a context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// A quantized V needs flash attention.
    #[error("A V cache of type {0} needs flash attention; switch it on, or take f16.")]
    ValuesNeedFlashAttention(KvType),
    /// The architecture forbids flash attention.
    #[error("{architecture} runs without flash attention, and a V cache of type {type_v} needs it; take f16.")]
    ArchitectureWithoutFlashAttention {
        /// Which one.
        architecture: String,
        /// What was asked for.
        type_v: KvType,
    },
    /// K and V must be of one type.
    #[error("{architecture} keeps one row for keys and values; take one type for both instead of {type_k} and {type_v}.")]
    TypesDiffer {
        /// Which one.
        architecture: String,
        /// Asked for the keys.
        type_k: KvType,
        /// Asked for the values.
        type_v: KvType,
    },
    /// A row does not divide into the type's blocks.
    #[error("A KV cache of type {kv_type} has blocks of {}, which do not divide this model's heads of {elements}; take f16.", kv_type.block_elements())]
    NotWholeBlocks {
        /// Asked for.
        kv_type: KvType,
        /// Elements that should be whole blocks.
        elements: u64,
    },
    /// No context size at all.
    #[error("The file does not say which context it was trained for; say how many tokens of context to take.")]
    NoContext,
    /// No sequence at all.
    #[error("A context needs at least one sequence.")]
    NoSequence,
}

/// What a context keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Its parts, in the order in which the layers first need them.
    pub parts: Vec<CachePart>,
    /// Recurrent state of all sequences.
    pub state: Bytes,
}

/// The rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePart {
    /// What they are for.
    pub kind: StoreKind,
    /// Cells, one row each, in each stream.
    pub cells: u64,
    /// Caches side by side: one for each sequence when they are split.
    pub streams: u64,
    /// Layers that own rows.
    pub layers: Vec<usize>,
    /// Bytes of all keys.
    pub keys: Bytes,
    /// Bytes of all values.
    pub values: Bytes,
}

impl Cache {
    /// Keys and values of all parts.
    pub fn kv(&self) -> Bytes {
        self.parts.iter().map(|part| part.keys + part.values).sum()
    }

    /// What the engine allocates for a model and a context.
    ///
    /// Errors: [`ContextError`] where the engine refuses the settings.
    pub fn of(shape: &Shape, settings: &ContextSettings) -> Result<Self, ContextError> {
        let context = Context::of(shape, settings)?;
        let mut parts: Vec<CachePart> = Vec::new();
        for (i, layer) in shape.layers.iter().enumerate() {
            for store in &layer.stores {
                let cells = context.cells(store.kind);
                let rows = cells.saturating_mul(context.streams);
                let (key, value) = context.row(store)?;
                let part = match parts.iter_mut().find(|part| part.kind == store.kind) {
                    Some(part) => part,
                    None => parts.push_mut(CachePart {
                        kind: store.kind,
                        cells,
                        streams: context.streams,
                        layers: Vec::new(),
                        keys: Bytes::ZERO,
                        values: Bytes::ZERO,
                    }),
                };
                part.layers.push(i);
                part.keys += Bytes(rows.saturating_mul(key));
                part.values += Bytes(rows.saturating_mul(value));
            }
        }
        let state = Bytes(
            shape
                .state_per_sequence()
                .0
                .saturating_mul(settings.sequences),
        );
        Ok(Self { parts, state })
    }
}

/// Bytes of keys and values that one cached token takes, in all layers that keep it.
///
/// In a sliding-window layer only while it is within the window; compressed rows count their share.
/// Errors: as [`Cache::of`].
pub fn kv_per_token(shape: &Shape, settings: &ContextSettings) -> Result<Bytes, ContextError> {
    let context = Context::of(shape, settings)?;
    let mut sum = Bytes::ZERO;
    for store in shape.layers.iter().flat_map(|layer| &layer.stores) {
        let (key, value) = context.row(store)?;
        let tokens = match store.kind {
            StoreKind::Compressed(ratio) | StoreKind::CompressedIndexer(ratio) => ratio.max(1),
            _ => 1,
        };
        sum += Bytes(key.saturating_add(value) / tokens);
    }
    Ok(sum)
}

/// The output buffer: one row of 32-bit logits for each sequence.
///
/// `None` where the vocabulary's size is unknown. A test that keeps more logits at once makes it
/// grow.
pub fn output_bytes(shape: &Shape, settings: &ContextSettings) -> Option<Bytes> {
    let logits = shape.vocabulary?.saturating_mul(settings.sequences);
    Some(Bytes(logits.saturating_mul(4)))
}

/// Bytes of cache and state that decoding one token at `depth` reads (and, of state, writes).
///
/// The engine reads whole steps of 256 cells; a sliding-window layer reads its cells, not its
/// window. Layers that share another's cache read it again. Errors: as [`Cache::of`].
pub fn read_per_token(
    shape: &Shape,
    settings: &ContextSettings,
    depth: u64,
) -> Result<Bytes, ContextError> {
    let context = Context::of(shape, settings)?;
    let mut sum = Bytes::ZERO;
    for layer in &shape.layers[..shape.trunk] {
        let read = layer.reads.and_then(|i| shape.layers.get(i)).unwrap_or(layer);
        for store in &read.stores {
            let held = depth.saturating_add(1);
            let held = match store.kind {
                StoreKind::Compressed(ratio) | StoreKind::CompressedIndexer(ratio) => {
                    held / ratio.max(1)
                }
                _ => held,
            };
            let rows = padded(held.max(1)).min(context.cells(store.kind));
            let (key, value) = context.unpadded_row(store)?;
            sum += Bytes(rows.saturating_mul(key.saturating_add(value)));
        }
    }
    let state = shape.state_per_sequence().0.saturating_mul(2);
    Ok(sum + Bytes(state))
}

/// Cells of one stream of a store.
///
/// Errors: as [`Cache::of`].
pub(crate) fn cells(
    shape: &Shape,
    settings: &ContextSettings,
    kind: StoreKind,
) -> Result<u64, ContextError> {
    Ok(Context::of(shape, settings)?.cells(kind))
}

/// A context's sizes, as the engine rounds them.
#[derive(Debug, Clone, Copy)]
struct Context {
    /// Cells of one stream where nothing slides.
    full: u64,
    /// Cells of one stream where a window slides.
    window: u64,
    streams: u64,
    type_k: KvType,
    type_v: KvType,
    flash_attention: bool,
}

impl Context {
    fn of(shape: &Shape, settings: &ContextSettings) -> Result<Self, ContextError> {
        if settings.sequences == 0 {
            return Err(ContextError::NoSequence);
        }
        let asked = match settings.context {
            0 => shape.training_context.ok_or(ContextError::NoContext)?,
            tokens => tokens,
        };
        let flash_attention = flash_attention(shape, settings)?;
        if shape.latent && settings.type_k != settings.type_v {
            return Err(ContextError::TypesDiffer {
                architecture: shape.architecture.clone(),
                type_k: settings.type_k,
                type_v: settings.type_v,
            });
        }
        let all = padded(asked);
        let full = if settings.split {
            padded(all / settings.sequences)
        } else {
            all
        };
        let split = settings.split || shape.separate_sequences;
        let ubatch = settings.ubatch.min(settings.batch).min(asked);
        let sharing = if split { 1 } else { settings.sequences };
        let seen = shape
            .window
            .unwrap_or(0)
            .saturating_mul(sharing)
            .saturating_add(ubatch);
        let context = Self {
            full,
            window: padded(full.min(seen)),
            streams: if split { settings.sequences } else { 1 },
            type_k: settings.type_k,
            type_v: settings.type_v,
            flash_attention,
        };
        if flash_attention {
            context.check_heads(shape)?;
        }
        Ok(context)
    }

    fn cells(&self, kind: StoreKind) -> u64 {
        match kind {
            StoreKind::Full | StoreKind::Indexer => self.full,
            StoreKind::Window => self.window,
            StoreKind::Compressed(ratio) | StoreKind::CompressedIndexer(ratio) => {
                padded(self.full.div_ceil(ratio.max(1)).max(1))
            }
        }
    }

    /// Bytes of a store's row of keys and of values as they are allocated.
    fn row(&self, store: &Store) -> Result<(u64, u64), ContextError> {
        let value = store.value.map_or(0, |value| {
            if self.flash_attention {
                value.row
            } else {
                value.widest
            }
        });
        Ok((bytes(self.type_k, store.key)?, bytes(self.type_v, value)?))
    }

    /// The same as they are read.
    fn unpadded_row(&self, store: &Store) -> Result<(u64, u64), ContextError> {
        let value = store.value.map_or(0, |value| value.row);
        Ok((bytes(self.type_k, store.key)?, bytes(self.type_v, value)?))
    }

    /// With flash attention the engine wants each head to be whole blocks.
    fn check_heads(&self, shape: &Shape) -> Result<(), ContextError> {
        for layer in &shape.layers[..shape.trunk] {
            bytes(self.type_k, layer.head_key)?;
            bytes(self.type_v, layer.head_value)?;
        }
        Ok(())
    }
}

fn bytes(kv_type: KvType, elements: u64) -> Result<u64, ContextError> {
    kv_type
        .row_bytes(elements)
        .ok_or(ContextError::NotWholeBlocks { kv_type, elements })
}

/// Whether the context runs with flash attention.
fn flash_attention(shape: &Shape, settings: &ContextSettings) -> Result<bool, ContextError> {
    let quantized = settings.type_v.is_quantized();
    match settings.flash_attention {
        _ if shape.without_flash_attention && quantized => {
            Err(ContextError::ArchitectureWithoutFlashAttention {
                architecture: shape.architecture.clone(),
                type_v: settings.type_v,
            })
        }
        FlashAttention::Off if quantized => {
            Err(ContextError::ValuesNeedFlashAttention(settings.type_v))
        }
        FlashAttention::Off => Ok(false),
        FlashAttention::On | FlashAttention::Auto => Ok(!shape.without_flash_attention),
    }
}

/// Rounded up to a whole step of cells.
fn padded(tokens: u64) -> u64 {
    tokens
        .checked_next_multiple_of(STEP)
        .unwrap_or(u64::MAX - u64::MAX % STEP)
}
