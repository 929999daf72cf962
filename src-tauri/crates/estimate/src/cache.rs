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
    #[error(
        "{architecture} runs without flash attention, and a V cache of type {type_v} needs it; take f16."
    )]
    ArchitectureWithoutFlashAttention {
        /// Which one.
        architecture: String,
        /// What was asked for.
        type_v: KvType,
    },
    /// K and V must be of one type.
    #[error(
        "{architecture} keeps one row for keys and values; take one type for both instead of {type_k} and {type_v}."
    )]
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
    #[error(
        "The file does not say which context it was trained for; say how many tokens of context to take."
    )]
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
        let read = layer
            .reads
            .and_then(|i| shape.layers.get(i))
            .unwrap_or(layer);
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
pub(crate) fn padded(tokens: u64) -> u64 {
    tokens
        .checked_next_multiple_of(STEP)
        .unwrap_or(u64::MAX - u64::MAX % STEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shape;

    const F16: ContextSettings = ContextSettings {
        context: 4096,
        batch: 2048,
        ubatch: 512,
        sequences: 1,
        split: false,
        type_k: KvType::F16,
        type_v: KvType::F16,
        flash_attention: FlashAttention::Auto,
    };

    fn at(context: u64) -> ContextSettings {
        ContextSettings { context, ..F16 }
    }

    fn kv(shape: &Shape, settings: &ContextSettings) -> Bytes {
        Cache::of(shape, settings).unwrap().kv()
    }

    /// Qwen3 8B: 36 layers, 8 KV heads of 128.
    fn qwen3_8b() -> Shape {
        let keys = [
            ("attention.head_count", 32),
            ("attention.head_count_kv", 8),
            ("attention.key_length", 128),
            ("attention.value_length", 128),
        ];
        shape("qwen3", 36, 4096, &keys)
    }

    /// SmolLM2 135M: 30 layers, 9 heads of 64, 3 of them KV heads.
    fn smollm2() -> Shape {
        let keys = [("attention.head_count", 9), ("attention.head_count_kv", 3)];
        shape("llama", 30, 576, &keys)
    }

    /// Gemma 3 270M: 18 layers, every sixth full, the others with a window of 512; 1 KV head of 256.
    fn gemma3_270m() -> Shape {
        let keys = [
            ("attention.head_count", 4),
            ("attention.head_count_kv", 1),
            ("attention.key_length", 256),
            ("attention.value_length", 256),
            ("attention.sliding_window", 512),
        ];
        shape("gemma3", 18, 640, &keys)
    }

    #[test]
    fn qwen3_8b_has_the_articles_figures() {
        let shape = qwen3_8b();
        // 2 x 36 x 8 x 128 x 2 bytes = 147,456 bytes = 144 KiB per token.
        assert_eq!(kv_per_token(&shape, &F16), Ok(Bytes(147_456)));
        assert_eq!(kv(&shape, &at(4096)), Bytes::mib(576));
        assert_eq!(kv(&shape, &at(8192)), Bytes::mib(1152));
    }

    #[test]
    fn smollm2_is_sized_as_llama_cpp_logged_it() {
        // Rows of 3 x 64 = 192; 30 layers x 4,096 cells x 2 x 192 x 2 bytes.
        assert_eq!(kv(&smollm2(), &F16), Bytes(94_371_840));
        assert_eq!(kv(&smollm2(), &at(32_768)), Bytes(754_974_720));
        // Q8_0: 192 elements are 6 blocks of 34 bytes; 30 x 4,096 x 2 x 204.
        let q8_0 = ContextSettings {
            type_k: KvType::Q8_0,
            type_v: KvType::Q8_0,
            ..F16
        };
        assert_eq!(kv(&smollm2(), &q8_0), Bytes(50_135_040));
    }

    #[test]
    fn gemma3_270m_is_sized_as_llama_cpp_logged_it() {
        let shape = gemma3_270m();
        // 3 full layers x 4,096 cells + 15 sliding x (512 + 512) cells, x 2 x 256 x 2 bytes.
        assert_eq!(kv(&shape, &F16), Bytes(28_311_552));
        assert_eq!(kv(&shape, &at(32_768)), Bytes(116_391_936));
        // Four sequences in one cache: the window counts four times, 4 x 512 + 512 = 2,560 cells.
        let unified = ContextSettings {
            sequences: 4,
            ..F16
        };
        assert_eq!(kv(&shape, &unified), Bytes(51_904_512));
        // Four caches of 1,024 cells: 1,024 + 512 is more than there is, so windows get 1,024 too.
        let split = ContextSettings {
            split: true,
            ..unified
        };
        assert_eq!(kv(&shape, &split), Bytes(75_497_472));
    }

    #[test]
    fn lfm2_caches_only_where_it_attends() {
        // Of 16 layers 6 attend with 8 KV heads of 64; the file gives 0 heads for the others, the
        // first among them. 6 x 2 x 512 x 2 bytes = 12,288 bytes per token.
        let heads = [0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0];
        let keys = [("attention.head_count", 32), ("shortconv.l_cache", 3)];
        let shape =
            crate::testing::shape_with_list("lfm2", 2048, &keys, "attention.head_count_kv", &heads);
        assert_eq!(kv(&shape, &at(4096)), Bytes::mib(48));
        assert_eq!(kv(&shape, &at(32_768)), Bytes::mib(384));
        // The 10 others keep 2,048 x (3 - 1) floats each.
        assert_eq!(shape.state_per_sequence(), Bytes(10 * 2048 * 2 * 4));
    }

    #[test]
    fn deepseek_keeps_one_compressed_key_where_the_file_allows_it() {
        let old = [
            ("attention.head_count", 128),
            ("attention.head_count_kv", 128),
            ("attention.key_length", 192),
            ("attention.value_length", 128),
        ];
        let new = [
            ("attention.head_count", 128),
            ("attention.head_count_kv", 1),
            ("attention.key_length", 576),
            ("attention.value_length", 512),
            ("attention.key_length_mla", 192),
            ("attention.value_length_mla", 128),
        ];
        // 61 layers x (512 + 64) x 2 bytes; without the keys 61 x 128 x (192 + 128) x 2 bytes.
        let per_token = |keys| kv_per_token(&shape("deepseek2", 61, 7168, keys), &F16);
        assert_eq!(per_token(&new), Ok(Bytes(70_272)));
        assert_eq!(per_token(&old), Ok(Bytes(4_997_120)));
    }

    #[test]
    fn a_context_is_rounded_up_to_256_cells() {
        // 2 layers x 2 x 32 x 2 bytes = 256 bytes a cell.
        let shape = shape("llama", 2, 32, &[("attention.head_count", 1)]);
        assert_eq!(kv(&shape, &at(1)), Bytes(256 * 256));
        assert_eq!(kv(&shape, &at(257)), Bytes(512 * 256));
        // 1,000 for three sequences: 1,024 / 3 = 341, so each gets 512.
        let split = ContextSettings {
            sequences: 3,
            split: true,
            ..at(1000)
        };
        assert_eq!(kv(&shape, &split), Bytes(3 * 512 * 256));
        // 0 is what it was trained for: 4,096.
        assert_eq!(kv(&shape, &at(0)), Bytes(4096 * 256));
    }

    #[test]
    fn without_flash_attention_values_are_padded_to_the_widest_layer() {
        let keys = [
            ("attention.head_count", 4),
            ("attention.key_length", 32),
            ("attention.value_length", 32),
        ];
        let shape = crate::testing::shape_with_list(
            "openelm",
            128,
            &keys,
            "attention.head_count_kv",
            &[1, 4],
        );
        let off = ContextSettings {
            flash_attention: FlashAttention::Off,
            ..F16
        };
        // Keys (32 + 128) and values (32 + 128), in bytes 320 + 320; off: values 128 + 128.
        assert_eq!(kv(&shape, &F16), Bytes(4096 * 640));
        assert_eq!(kv(&shape, &off), Bytes(4096 * (320 + 512)));
    }

    #[test]
    fn a_token_reads_whole_steps_of_cells_and_no_more_than_there_are() {
        let shape = qwen3_8b();
        let read = |depth| read_per_token(&shape, &F16, depth).unwrap();
        assert_eq!(read(0), Bytes(256 * 147_456));
        assert_eq!(read(255), Bytes(256 * 147_456));
        assert_eq!(read(256), Bytes(512 * 147_456));
        assert_eq!(read(1_000_000), Bytes(4096 * 147_456));
    }

    #[test]
    fn sliding_layers_read_their_cells_and_not_their_window() {
        // 1,024 bytes a cell and layer. At depth 2,048: 3 full layers read 2,304 cells (2,049
        // rounded up), 15 sliding ones their 1,024 cells.
        let read = read_per_token(&gemma3_270m(), &F16, 2048);
        assert_eq!(read, Ok(Bytes(1024 * (3 * 2304 + 15 * 1024))));
    }

    #[test]
    fn layers_that_share_a_cache_read_it_again() {
        // Gemma 3n: 22 layers of which the last 2 share; a period of 5, so layers 4, 9, 14, 19 are
        // full, and 20 and 21 slide and read layer 18's cache.
        let keys = [
            ("attention.head_count", 1),
            ("attention.key_length", 64),
            ("attention.value_length", 64),
            ("attention.sliding_window", 512),
        ];
        let shape = shape("gemma3n", 22, 64, &keys);
        assert_eq!(shape.layers[20].reads, Some(18));
        assert_eq!(shape.layers[21].reads, Some(18));
        // 256 bytes a cell and layer; 20 layers own cells, 22 are read.
        assert_eq!(kv(&shape, &F16), Bytes(256 * (4 * 4096 + 16 * 1024)));
        assert_eq!(read_per_token(&shape, &F16, 0), Ok(Bytes(256 * 22 * 256)));
    }

    #[test]
    fn state_is_read_and_written_whatever_the_depth() {
        let keys = [
            ("ssm.conv_kernel", 4),
            ("ssm.inner_size", 512),
            ("ssm.state_size", 128),
        ];
        let shape = shape("mamba", 2, 256, &keys);
        // Each of 2 layers keeps 3 x 512 and 128 x 512 floats.
        let state = Bytes(2 * (3 * 512 + 128 * 512) * 4);
        assert_eq!(shape.state_per_sequence(), state);
        for depth in [0, 100_000] {
            assert_eq!(read_per_token(&shape, &F16, depth), Ok(Bytes(2 * state.0)));
        }
    }

    #[test]
    fn settings_that_the_engine_refuses_are_refused_in_a_sentence() {
        let refused = |shape: &Shape, settings: ContextSettings| {
            Cache::of(shape, &settings).unwrap_err().to_string()
        };
        let quantized = ContextSettings {
            type_v: KvType::Q8_0,
            flash_attention: FlashAttention::Off,
            ..F16
        };
        assert_eq!(
            refused(&smollm2(), quantized),
            "A V cache of type q8_0 needs flash attention; switch it on, or take f16."
        );
        let grok = shape("grok", 2, 256, &[("attention.head_count", 2)]);
        let asked = ContextSettings {
            flash_attention: FlashAttention::On,
            ..quantized
        };
        assert!(refused(&grok, asked).starts_with("grok runs without flash attention"));
        let odd = shape("llama", 2, 160, &[("attention.head_count", 2)]);
        let keys = ContextSettings {
            type_k: KvType::Q8_0,
            ..F16
        };
        assert_eq!(
            refused(&odd, keys),
            "A KV cache of type q8_0 has blocks of 32, which do not divide this model's heads of 80; take f16."
        );
        let none = ContextSettings {
            sequences: 0,
            ..F16
        };
        assert_eq!(
            refused(&odd, none),
            "A context needs at least one sequence."
        );
    }
}
