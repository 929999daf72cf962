//! Which weights a token reads, and what they cost to load.

use std::collections::BTreeMap;

use twospeed_gguf::{Kind, Model, TensorInfo, TensorType};

use crate::architecture::{self, Repeats};
use crate::keys::Keys;
use crate::shape::ShapeError;
use crate::units::Bytes;

/// The weights of a model as decode and prefill use them.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// What loading maps or allocates: the span of the tensors that are loaded, padding included.
    ///
    /// Copies are not in it: those that the CPU backend repacks for speed, and a tied output
    /// matrix's second copy on a GPU.
    pub loaded: Bytes,
    /// Bytes that one decoded token reads, by tensor type.
    pub read_per_token: BTreeMap<TensorType, Bytes>,
    /// Elements of the matrices that each prompt token is multiplied with; without the output,
    /// which only a prompt's last token needs.
    pub matrix_elements: u64,
}

/// Why the weights that a token reads are unknown. One sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// It has experts and does not say how many a token uses.
    #[error("The file has experts and does not say how many of them a token uses ({0}).")]
    UnknownExperts(String),
    /// A key that decides it cannot be used.
    #[error(transparent)]
    Key(#[from] ShapeError),
    /// It does not write token by token.
    #[error("This file does not write an answer token by token, so it has no decode speed.")]
    DoesNotDecode,
}

impl Weights {
    /// Bytes that one decoded token reads: `token_embd` and other looked-up rows left out, the
    /// output matrix once (tied or not), used experts only, next-token-prediction blocks not at
    /// all.
    pub fn bytes_per_token(&self) -> Bytes {
        self.read_per_token.values().copied().sum()
    }

    /// From the tensor list of a model.
    ///
    /// Errors: [`WeightsError`] says what is missing.
    pub fn of(model: &Model) -> Result<Self, WeightsError> {
        if model.kind != Kind::Generates {
            return Err(WeightsError::DoesNotDecode);
        }
        let uses = Uses::of(model)?;
        let mut weights = Self {
            loaded: uses.span(),
            read_per_token: BTreeMap::new(),
            matrix_elements: 0,
        };
        for tensor in &model.tensors {
            let Some(share) = uses.share(tensor)? else {
                continue;
            };
            let read = share.of(tensor.bytes);
            *weights
                .read_per_token
                .entry(tensor.tensor_type)
                .or_default() += Bytes(read);
            if is_matrix(tensor) && !uses.is_output(tensor) {
                weights.matrix_elements =
                    weights.matrix_elements.saturating_add(share.of(tensor.elements));
            }
        }
        Ok(weights)
    }
}

/// What is used of a tensor for one token: `used` of `parts`, `times` over.
#[derive(Debug, Clone, Copy)]
struct Share {
    used: u64,
    parts: u64,
    times: u64,
}

impl Share {
    const WHOLE: Self = Self {
        used: 1,
        parts: 1,
        times: 1,
    };

    fn of(self, amount: u64) -> u64 {
        let part = u128::from(amount) * u128::from(self.used) / u128::from(self.parts.max(1));
        u64::try_from(part.saturating_mul(u128::from(self.times))).unwrap_or(u64::MAX)
    }
}

/// What decides how much of a tensor a token uses.
struct Uses<'a> {
    keys: Keys<'a>,
    /// Layers before the next-token-prediction blocks; all where there are none.
    trunk: Option<u32>,
    /// By layer, where the file says.
    experts_used: Option<Vec<u64>>,
    repeats: BlockRuns,
    tied: bool,
}

/// How often a block is run for one token.
#[derive(Debug, Clone, Copy)]
enum BlockRuns {
    /// Each so often.
    Each(u64),
    /// The first `stack` so often, the others so often.
    Stacks { stack: u32, low: u64, high: u64 },
}

impl<'a> Uses<'a> {
    fn of(model: &'a Model) -> Result<Self, WeightsError> {
        let architecture = model.architecture.as_deref().unwrap_or_default();
        let keys = Keys {
            model,
            architecture,
        };
        let blocks = keys.get("block_count")?;
        let next = keys.get("nextn_predict_layers")?;
        let trunk = match (blocks, next) {
            // A file of nothing but such blocks is a draft model of its own.
            (Some(blocks), Some(next)) if next < blocks => u32::try_from(blocks - next).ok(),
            _ => None,
        };
        let layers = blocks.and_then(|n| usize::try_from(n).ok());
        let experts_used = match layers {
            Some(layers) => keys
                .per_layer("expert_used_count", layers)?
                .filter(|used| used.iter().any(|n| *n > 0)),
            None => None,
        };
        Ok(Self {
            keys,
            trunk,
            experts_used,
            repeats: block_runs(keys)?,
            tied: model.tensor("output.weight").is_none(),
        })
    }

    /// How much of a tensor one token uses; `None` for nothing.
    fn share(&self, tensor: &TensorInfo) -> Result<Option<Share>, WeightsError> {
        if !self.is_loaded(tensor) || is_looked_up(tensor, self.tied) || is_of_another_path(tensor)
        {
            return Ok(None);
        }
        let mut share = Share::WHOLE;
        if let Some(layer) = tensor.layer() {
            share.times = match self.repeats {
                BlockRuns::Each(times) => times,
                BlockRuns::Stacks { stack, low, high } => {
                    if layer < stack { low } else { high }
                }
            };
            if let Some(experts) = self.experts(tensor)? {
                let used = self.experts_used.as_ref().and_then(|by_layer| {
                    by_layer.get(usize::try_from(layer).ok()?).copied()
                });
                let used = used.filter(|used| *used > 0).ok_or_else(|| {
                    WeightsError::UnknownExperts(self.keys.name("expert_used_count"))
                })?;
                share.parts = experts;
                share.used = used.min(experts);
            }
        }
        Ok(Some(share))
    }

    /// Of how many experts a tensor is or holds a slice; `None` where it belongs to no expert.
    ///
    /// Experts lie stacked in one tensor (`blk.0.ffn_up_exps.weight`, the last dimension counts
    /// them), in old files in a tensor each (`blk.0.ffn_up.7.weight`).
    fn experts(&self, tensor: &TensorInfo) -> Result<Option<u64>, WeightsError> {
        let stem = stem(tensor);
        let numbered = || {
            let after = tensor.name.split('.').nth(3);
            stem.starts_with("ffn_") && after.is_some_and(|part| part.parse::<u32>().is_ok())
        };
        if stem.ends_with("exps") && stem != "ffn_norm_exps" {
            Ok(tensor.dimensions.last().copied().filter(|n| *n > 0))
        } else if numbered() {
            Ok(Some(self.keys.need("expert_count")?))
        } else {
            Ok(None)
        }
    }

    fn is_loaded(&self, tensor: &TensorInfo) -> bool {
        match (tensor.layer(), self.trunk) {
            (Some(layer), Some(trunk)) => layer < trunk,
            _ => true,
        }
    }

    fn is_output(&self, tensor: &TensorInfo) -> bool {
        tensor.name == "output.weight" || (self.tied && tensor.name == "token_embd.weight")
    }

    /// From the first to the last byte of the loaded tensors, in each part of a split set.
    fn span(&self) -> Bytes {
        let mut spans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for tensor in self.keys.model.tensors.iter().filter(|t| self.is_loaded(t)) {
            let end = tensor.offset.saturating_add(tensor.bytes);
            let span = spans.entry(tensor.part).or_insert((tensor.offset, end));
            *span = (span.0.min(tensor.offset), span.1.max(end));
        }
        spans.values().map(|(first, end)| Bytes(end - first)).sum()
    }
}

/// How often blocks are run (looped models run the same weights several times for a token).
fn block_runs(keys: Keys<'_>) -> Result<BlockRuns, ShapeError> {
    let repeats = architecture::rules(keys.architecture).map(|rules| rules.repeats);
    Ok(match repeats {
        Some(Repeats::Loops) => BlockRuns::Each(keys.get("num_loops")?.unwrap_or(1)),
        Some(Repeats::Cycles) => {
            let high = keys.need("hrm.h_cycles")?;
            BlockRuns::Stacks {
                stack: u32::try_from(keys.need("hrm.layers_per_stack")?).unwrap_or(u32::MAX),
                low: high.saturating_mul(keys.need("hrm.l_cycles")?),
                high,
            }
        }
        _ => BlockRuns::Each(1),
    })
}

/// The tensor's role: `ffn_gate_exps` of `blk.3.ffn_gate_exps.weight`.
fn stem(tensor: &TensorInfo) -> &str {
    let mut parts = tensor.name.split('.');
    let mut part = parts.next().unwrap_or_default();
    if matches!(part, "enc" | "dec") {
        part = parts.next().unwrap_or_default();
    }
    if part == "blk" {
        part = parts.nth(1).unwrap_or_default();
    }
    part
}

/// Tables of which a token reads a row or two: too little to count.
fn is_looked_up(tensor: &TensorInfo, tied: bool) -> bool {
    match stem(tensor) {
        "token_embd" => !tied,
        "per_layer_token_embd" | "position_embd" | "token_types" | "attn_rel_b"
        | "cross_attn_rel_b" | "ffn_gate_tid2eid" | "attn_compressor_ape" | "d2t" => true,
        _ => false,
    }
}

/// Used for images or by an encoder, not while text is written.
fn is_of_another_path(tensor: &TensorInfo) -> bool {
    tensor.name.starts_with("enc.") || stem(tensor).starts_with("vis_")
}

/// Whether a token is multiplied with it as a matrix (biases, norms and convolutions are not).
fn is_matrix(tensor: &TensorInfo) -> bool {
    let stem = stem(tensor);
    tensor.name.ends_with(".weight")
        && tensor.dimensions.len() >= 2
        && !stem.contains("conv")
        && !stem.contains("norm")
}
