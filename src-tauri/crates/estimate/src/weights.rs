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
    /// Bytes that one decoded token reads, by tensor type.
    pub read_per_token: BTreeMap<TensorType, Bytes>,
    /// Elements of the matrices that each prompt token is multiplied with; without the output,
    /// which only a prompt's last token needs.
    pub matrix_elements: u64,
    /// Those matrices and the output, alike ones together.
    pub matrices: Vec<Matrix>,
    /// Vectors that each layer scales by (norms), all layers together: how many, and their elements.
    pub norms: (u64, u64),
}

/// Matrices of one type and size that a token is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// Their type.
    pub tensor_type: TensorType,
    /// Elements of a row.
    pub inner: u64,
    /// Rows; of one expert where there are experts.
    pub rows: u64,
    /// How many there are, each run counted.
    pub count: u64,
    /// What they are for.
    pub role: Role,
    /// They are of a type that is newer than this program, and `tensor_type` is what it resembles.
    pub resembles: bool,
}

/// What a matrix is for, as far as its cost depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Part of a layer.
    Layer,
    /// The last layer's feed-forward part: of a prompt only the tokens come there whose logits are
    /// wanted.
    LastFeedForward,
    /// Experts, of which a token uses some.
    Experts {
        /// So many are used.
        used: u64,
        /// Of so many.
        of: u64,
        /// They are the last layer's.
        last: bool,
    },
    /// The output matrix: only tokens whose logits are wanted.
    Output,
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
    /// Not all of them are there.
    #[error("{0} of this set of files is not there, so not all weights are known.")]
    MissingPart(String),
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
        all_parts(model)?;
        let uses = Uses::of(model)?;
        let mut weights = Self {
            read_per_token: BTreeMap::new(),
            matrix_elements: 0,
            matrices: Vec::new(),
            norms: (0, 0),
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
            if is_matrix(tensor) {
                weights.matrices_add(uses.matrix(tensor, share)?);
            } else if stem(tensor).contains("norm") && tensor.name.ends_with(".weight") {
                weights.norms.0 = weights.norms.0.saturating_add(share.times);
                let elements = share.of(tensor.elements);
                weights.norms.1 = weights.norms.1.saturating_add(elements);
            }
            if is_matrix(tensor) && !uses.is_output(tensor) {
                weights.matrix_elements = weights
                    .matrix_elements
                    .saturating_add(share.of(tensor.elements));
            }
        }
        Ok(weights)
    }

    fn matrices_add(&mut self, more: Option<Matrix>) {
        let Some(more) = more else {
            return;
        };
        let alike = |other: &&mut Matrix| {
            let count = other.count;
            **other == Matrix { count, ..more }
        };
        match self.matrices.iter_mut().find(alike) {
            Some(matrix) => matrix.count = matrix.count.saturating_add(more.count),
            None => self.matrices.push(more),
        }
    }
}

/// What loading maps or allocates: the span of the tensors that are loaded, padding included.
///
/// Copies are not in it: those that the CPU backend repacks for speed, and a tied output matrix's
/// second copy on a GPU. Errors: [`WeightsError`] where part of a set is missing.
pub fn loaded_bytes(model: &Model) -> Result<Bytes, WeightsError> {
    all_parts(model)?;
    let trunk = trunk(keys(model))?;
    let mut spans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for tensor in model.tensors.iter().filter(|t| is_loaded(t, trunk)) {
        let end = tensor.offset.saturating_add(tensor.bytes);
        let span = spans.entry(tensor.part).or_insert((tensor.offset, end));
        *span = (span.0.min(tensor.offset), span.1.max(end));
    }
    Ok(spans.values().map(|(first, end)| Bytes(end - first)).sum())
}

fn all_parts(model: &Model) -> Result<(), WeightsError> {
    match model.split.as_ref().and_then(|split| split.missing.first()) {
        Some(name) => Err(WeightsError::MissingPart(name.clone())),
        None => Ok(()),
    }
}

fn keys(model: &Model) -> Keys<'_> {
    Keys {
        model,
        architecture: model.architecture.as_deref().unwrap_or_default(),
    }
}

/// Layers before the next-token-prediction blocks; `None` where there are no such blocks.
fn trunk(keys: Keys<'_>) -> Result<Option<u32>, ShapeError> {
    Ok(
        match (keys.get("block_count")?, keys.get("nextn_predict_layers")?) {
            // A file of nothing but such blocks is a draft model of its own.
            (Some(blocks), Some(next)) if next < blocks => u32::try_from(blocks - next).ok(),
            _ => None,
        },
    )
}

/// Next-token-prediction blocks are not loaded.
fn is_loaded(tensor: &TensorInfo, trunk: Option<u32>) -> bool {
    match (tensor.layer(), trunk) {
        (Some(layer), Some(trunk)) => layer < trunk,
        _ => true,
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
    /// The last layer that a token passes.
    last_layer: Option<u32>,
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
        let keys = keys(model);
        let layers = keys.get("block_count")?;
        let experts_used = match layers {
            Some(layers) => keys
                .per_layer("expert_used_count", layers as usize)?
                .filter(|used| used.iter().any(|n| *n > 0)),
            None => None,
        };
        let trunk = trunk(keys)?;
        let blocks = layers.and_then(|layers| u32::try_from(layers).ok());
        Ok(Self {
            keys,
            trunk,
            last_layer: trunk.or(blocks).and_then(|layers| layers.checked_sub(1)),
            experts_used,
            repeats: block_runs(keys)?,
            tied: model.tensor("output.weight").is_none(),
        })
    }

    /// How much of a tensor one token uses; `None` for nothing.
    fn share(&self, tensor: &TensorInfo) -> Result<Option<Share>, WeightsError> {
        if !is_loaded(tensor, self.trunk)
            || is_looked_up(tensor, self.tied)
            || is_of_another_path(tensor)
        {
            return Ok(None);
        }
        let mut share = Share::WHOLE;
        if let Some(layer) = tensor.layer() {
            share.times = match self.repeats {
                BlockRuns::Each(times) => times,
                BlockRuns::Stacks { stack, low, high } => {
                    if layer < stack {
                        low
                    } else {
                        high
                    }
                }
            };
            if let Some(experts) = self.experts(tensor)? {
                let used = self
                    .experts_used
                    .as_ref()
                    .and_then(|by_layer| by_layer.get(usize::try_from(layer).ok()?).copied());
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
        if stem.ends_with("exps") && stem != "ffn_norm_exps" {
            Ok(tensor.dimensions.last().copied().filter(|n| *n > 0))
        } else if numbered_expert(tensor).is_some() {
            Ok(Some(self.keys.need("expert_count")?))
        } else {
            Ok(None)
        }
    }

    fn matrix(&self, tensor: &TensorInfo, share: Share) -> Result<Option<Matrix>, WeightsError> {
        let dimension = |place: usize| tensor.dimensions.get(place).copied().unwrap_or(1);
        let last = self.last_layer.is_some() && tensor.layer() == self.last_layer;
        let experts = self.experts(tensor)?;
        // Old files hold each expert in a tensor of its own: as many count as a token uses.
        if let Some(number) = numbered_expert(tensor)
            && u64::from(number) >= share.used
        {
            return Ok(None);
        }
        let stacked = experts.is_some() && numbered_expert(tensor).is_none();
        let role = if self.is_output(tensor) {
            Role::Output
        } else if stacked {
            Role::Experts {
                used: share.used,
                of: share.parts,
                last,
            }
        } else if last && stem(tensor).starts_with("ffn_") {
            Role::LastFeedForward
        } else {
            Role::Layer
        };
        let rows = if stacked {
            dimension(1)
        } else {
            tensor.elements / dimension(0).max(1)
        };
        Ok(Some(Matrix {
            tensor_type: tensor.tensor_type,
            inner: dimension(0),
            rows,
            count: share.times,
            role,
            resembles: tensor.new_type.is_some(),
        }))
    }

    fn is_output(&self, tensor: &TensorInfo) -> bool {
        tensor.name == "output.weight" || (self.tied && tensor.name == "token_embd.weight")
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

/// Which expert a tensor belongs to alone, as old files have it.
fn numbered_expert(tensor: &TensorInfo) -> Option<u32> {
    let number = tensor.name.split('.').nth(3)?.parse().ok()?;
    stem(tensor).starts_with("ffn_").then_some(number)
}

/// Tables of which a token reads a row or two: too little to count.
fn is_looked_up(tensor: &TensorInfo, tied: bool) -> bool {
    match stem(tensor) {
        "token_embd" => !tied,
        "per_layer_token_embd"
        | "position_embd"
        | "token_types"
        | "attn_rel_b"
        | "cross_attn_rel_b"
        | "ffn_gate_tid2eid"
        | "attn_compressor_ape"
        | "d2t" => true,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tensor, model};
    use TensorType::{F16, F32, Q4K, Q6K};

    fn named(tensors: &[(&str, TensorType, &'static [u64])]) -> Vec<Tensor<'static>> {
        tensors
            .iter()
            .map(|(name, tensor_type, dimensions)| ((*name).to_owned(), *tensor_type, *dimensions))
            .collect()
    }

    const LAYER: [(&str, TensorType, &[u64]); 2] = [
        ("blk.0.attn_q.weight", Q4K, &[256, 512]),
        ("blk.0.attn_norm.weight", F32, &[256]),
    ];

    #[test]
    fn the_embedding_is_looked_up_and_the_output_is_read() {
        let mut tensors = named(&LAYER);
        tensors.extend(named(&[
            ("token_embd.weight", Q4K, &[256, 1000]),
            ("output.weight", Q6K, &[256, 1000]),
            ("position_embd.weight", F32, &[256, 64]),
        ]));
        let weights = Weights::of(&model("llama", &[("block_count", 1)], &tensors)).unwrap();
        // 512 rows of 144 bytes; the norm's 256 floats; 1,000 rows of 210 bytes.
        let by_type = [
            (F32, Bytes(1024)),
            (Q4K, Bytes(73_728)),
            (Q6K, Bytes(210_000)),
        ];
        assert_eq!(weights.read_per_token, BTreeMap::from(by_type));
        assert_eq!(weights.bytes_per_token(), Bytes(284_752));
        // Prefill multiplies with attn_q alone: the output serves the last token only.
        assert_eq!(weights.matrix_elements, 256 * 512);
    }

    #[test]
    fn a_tied_output_is_read_once() {
        let mut tensors = named(&LAYER);
        tensors.extend(named(&[("token_embd.weight", Q4K, &[256, 1000])]));
        let weights = Weights::of(&model("llama", &[("block_count", 1)], &tensors)).unwrap();
        assert_eq!(weights.read_per_token[&Q4K], Bytes(73_728 + 144_000));
        assert_eq!(weights.matrix_elements, 256 * 512);
    }

    #[test]
    fn of_experts_only_those_used_are_read_and_shared_ones_in_full() {
        let tensors = named(&[
            ("output.weight", F16, &[256, 10]),
            ("blk.0.ffn_up_exps.weight", F16, &[256, 64, 8]),
            ("blk.0.ffn_up_shexp.weight", F16, &[256, 64]),
            ("blk.0.ffn_gate_inp.weight", F32, &[256, 8]),
            ("blk.0.ffn_norm_exps.weight", F32, &[256]),
        ]);
        let keys = [
            ("block_count", 1),
            ("expert_count", 8),
            ("expert_used_count", 2),
        ];
        let weights = Weights::of(&model("qwen2moe", &keys, &tensors)).unwrap();
        // F16: output 5,120 + 2/8 of 262,144 + shared 32,768. F32: router 8,192 + norm 1,024.
        assert_eq!(weights.read_per_token[&F16], Bytes(5_120 + 65_536 + 32_768));
        assert_eq!(weights.read_per_token[&F32], Bytes(9_216));
        assert_eq!(
            weights.matrix_elements,
            2 * 256 * 64 + 256 * 64 + 256 * 8,
            "two experts, the shared one, the router"
        );
    }

    #[test]
    fn experts_of_which_nobody_says_how_many_are_used_leave_it_unknown() {
        let tensors = named(&[("blk.0.ffn_up_exps.weight", F16, &[256, 64, 8])]);
        let error = Weights::of(&model("qwen2moe", &[("block_count", 1)], &tensors)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "The file has experts and does not say how many of them a token uses \
             (qwen2moe.expert_used_count)."
        );
    }

    #[test]
    fn next_token_prediction_blocks_are_neither_loaded_nor_read() {
        let tensors = named(&[
            ("output.weight", F16, &[256, 10]),
            ("blk.0.attn_q.weight", F16, &[256, 256]),
            ("blk.1.attn_q.weight", F16, &[256, 256]),
            ("blk.1.nextn.eh_proj.weight", F16, &[512, 256]),
        ]);
        let keys = [("block_count", 2), ("nextn_predict_layers", 1)];
        let model = model("glm4moe", &keys, &tensors);
        let bytes = Bytes(5_120 + 131_072);
        assert_eq!(Weights::of(&model).unwrap().bytes_per_token(), bytes);
        assert_eq!(loaded_bytes(&model), Ok(bytes));
    }

    #[test]
    fn blocks_that_run_in_loops_are_read_each_time() {
        let tensors = named(&[
            ("output.weight", F16, &[256, 10]),
            ("blk.0.attn_q.weight", F16, &[256, 256]),
        ]);
        let keys = [("block_count", 1), ("num_loops", 3)];
        let weights = Weights::of(&model("nanbeige", &keys, &tensors)).unwrap();
        assert_eq!(weights.bytes_per_token(), Bytes(5_120 + 3 * 131_072));
    }

    #[test]
    fn a_model_that_does_not_write_has_no_decode_reads() {
        for architecture in ["bert", "dream"] {
            let tensors = named(&[("token_embd.weight", F16, &[256, 10])]);
            let model = model(architecture, &[("block_count", 1)], &tensors);
            assert_eq!(Weights::of(&model), Err(WeightsError::DoesNotDecode));
        }
    }

    #[test]
    fn qwen3_30b_a3b_reads_a_tenth_of_its_weights() {
        // The published configuration: 48 layers of 2,048, 32 heads and 4 KV heads of 128,
        // 128 experts of 768 of which 8 are used, 151,936 words. As F16, 2 bytes each.
        let mut tensors: Vec<Tensor<'_>> = named(&[
            ("token_embd.weight", F16, &[2048, 151_936]),
            ("output.weight", F16, &[2048, 151_936]),
            ("output_norm.weight", F32, &[2048]),
        ]);
        let layer: [(&str, TensorType, &[u64]); 12] = [
            ("attn_norm", F32, &[2048]),
            ("attn_q", F16, &[2048, 4096]),
            ("attn_k", F16, &[2048, 512]),
            ("attn_v", F16, &[2048, 512]),
            ("attn_output", F16, &[4096, 2048]),
            ("attn_q_norm", F32, &[128]),
            ("attn_k_norm", F32, &[128]),
            ("ffn_norm", F32, &[2048]),
            ("ffn_gate_inp", F32, &[2048, 128]),
            ("ffn_gate_exps", F16, &[2048, 768, 128]),
            ("ffn_up_exps", F16, &[2048, 768, 128]),
            ("ffn_down_exps", F16, &[768, 2048, 128]),
        ];
        for i in 0..48 {
            for (role, tensor_type, dimensions) in layer {
                tensors.push((format!("blk.{i}.{role}.weight"), tensor_type, dimensions));
            }
        }
        let keys = [
            ("block_count", 48),
            ("expert_count", 128),
            ("expert_used_count", 8),
        ];
        let model = model("qwen3moe", &keys, &tensors);
        // A layer: attention 18,874,368 + norms 4,352 + router 262,144 + experts 603,979,776;
        // with 8 of 128 experts 37,748,736 instead. Two matrices of 311,164,928, one norm of 2,048.
        let all = 48 * (18_874_368 + 4_352 + 262_144 + 603_979_776) + 2 * 311_164_928 + 2_048;
        let active = 48 * (18_874_368 + 4_352 + 262_144 + 37_748_736) + 2 * 311_164_928 + 2_048;
        assert_eq!(model.parameters, all);
        assert_eq!(model.active_parameters, Some(active));
        assert_eq!(
            (all, active),
            (30_532_122_624, 3_353_032_704),
            "30.5 and 3.35 billion"
        );

        let read = Weights::of(&model).unwrap().bytes_per_token();
        // One embedding matrix is not read; norms and router are F32, the rest F16.
        let half = 48 * (18_874_368 + 37_748_736) + 311_164_928;
        let full = 48 * (4_352 + 262_144) + 2_048;
        assert_eq!(read, Bytes(2 * half + 4 * full));
        // 273 GB/s / 6.11 GB = 44.7 tok/s, where the file's 61.1 GB would give 4.5.
        let bandwidth = crate::units::BytesPerSecond::from_gb_s(273.0).unwrap();
        assert_eq!(bandwidth.reads_of(read).unwrap().to_string(), "44.7 tok/s");
        let file = loaded_bytes(&model).unwrap();
        assert_eq!(bandwidth.reads_of(file).unwrap().to_string(), "4.47 tok/s");
    }
}
