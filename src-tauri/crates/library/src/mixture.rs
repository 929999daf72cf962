//! Which tensor of a model gets which type: the mixtures that llama.cpp's quantizer makes.
//!
//! Source: llama.cpp build 11434, `llama-quant.cpp`: `tensor_allows_quantization`,
//! `llama_tensor_get_type_impl`, `tensor_type_fallback`. What needs an importance matrix is not
//! made here, so its rules are left out.

use twospeed_gguf::{Model, TensorType};

use crate::file_type::FileType;

/// A tensor before it is quantized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// As llama.cpp calls it.
    pub name: &'a str,
    /// Elements by dimension, the row first.
    pub dimensions: &'a [u64],
    /// How it is stored now.
    pub tensor_type: TensorType,
}

/// What the rules ask about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `general.architecture`.
    pub architecture: String,
    /// Layers, those for drafting among them.
    pub layers: u64,
    /// Experts; 0 for a dense model.
    pub experts: u64,
    /// Query heads of one key and value head, in the first layer.
    pub heads_per_kv: u64,
    /// What llama.cpp calls a 70B: the values of all query heads are so small that more bits cost little.
    pub is_70b: bool,
}

impl Facts {
    /// What the header says; `None` without an architecture and layers.
    pub(crate) fn of(model: &Model) -> Option<Self> {
        let metadata = model.metadata();
        let architecture = metadata.architecture()?.to_owned();
        let layers = metadata.arch_u64("block_count")?;
        let first = |key: &str| {
            metadata
                .per_layer_u64(key)
                .and_then(|all| all.first().copied())
        };
        let heads = first("attention.head_count").unwrap_or(0);
        let kv_heads = first("attention.head_count_kv").unwrap_or(heads);
        Some(Self {
            is_70b: is_70b(&architecture, layers, heads != kv_heads),
            architecture,
            layers,
            experts: metadata.arch_u64("expert_count").unwrap_or(0),
            heads_per_kv: heads.checked_div(kv_heads).unwrap_or(0),
        })
    }
}

fn is_70b(architecture: &str, layers: u64, grouped: bool) -> bool {
    match architecture {
        "llama" => layers == 80 && grouped,
        "qwen2" | "deci" | "olmo" => layers == 80,
        "jais2" => layers == 68,
        _ => false,
    }
}

/// The type that each tensor gets, in the order given; `None` where the engine refuses a shape.
pub(crate) fn types(
    facts: &Facts,
    tensors: &[Source<'_>],
    file_type: FileType,
) -> Option<Vec<TensorType>> {
    let values = tensors
        .iter()
        .filter(|tensor| Role::of(tensor.name) == Role::Value);
    let mut rules = Rules {
        facts,
        mixture: file_type.name(),
        plain: file_type.plain(),
        tied: !tensors.iter().any(|tensor| tensor.name == "output.weight"),
        values: values.count() as u64,
        values_seen: 0,
        down_seen: 0,
    };
    let mut types: Vec<_> = tensors.iter().map(|tensor| tensor.tensor_type).collect();
    for at in in_the_engines_order(tensors) {
        let tensor = &tensors[at];
        if !is_quantized(tensor) || is_left_alone_in_glm5_next(facts, tensor.name) {
            continue;
        }
        types[at] = if file_type.is_float() {
            rules.plain
        } else {
            fitting(rules.wanted(tensor), tensor.dimensions.first().copied()?)?
        };
    }
    Some(types)
}

/// Indices of the tensors as the engine goes through them: what belongs to no layer, then layer by
/// layer, by name within each. The rules that count depend on it, and so does progress.
pub(crate) fn in_the_engines_order(tensors: &[Source<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|at| (layer(tensors[*at].name), tensors[*at].name));
    order
}

/// The layer in a tensor's name; -1 outside the layers.
fn layer(name: &str) -> i64 {
    name.strip_prefix("blk.")
        .and_then(|rest| rest.split('.').next()?.parse().ok())
        .unwrap_or(-1)
}

/// Parts of names whose tensors stay as they are: small, or too sensitive.
const LEFT_ALONE: [&str; 35] = [
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// Whether the quantizer touches a tensor: matrices of weights, with exceptions.
pub(crate) fn is_quantized(tensor: &Source<'_>) -> bool {
    let is_matrix = tensor.dimensions.iter().skip(1).any(|size| *size > 1);
    is_matrix
        && tensor.name.ends_with("weight")
        && !["position_embd.weight", "token_types.weight"].contains(&tensor.name)
        && !LEFT_ALONE.iter().any(|part| tensor.name.contains(part))
}

/// One architecture has small matrices of its own.
fn is_left_alone_in_glm5_next(facts: &Facts, name: &str) -> bool {
    const PARTS: [&str; 14] = [
        "hc_",
        "indexer.attn_q_b",
        "indexer.attn_k",
        "indexer.proj",
        "indexer_compressor_gate",
        "indexer_compressor_ape",
        "ssm_f_a.weight",
        "ssm_f_b.weight",
        "ssm_g_a.weight",
        "ssm_g_b.weight",
        "ssm_beta.weight",
        "attn_kv_a_mqa.weight",
        "attn_k_b.weight",
        "attn_v_b.weight",
    ];
    facts.architecture == "glm5-next" && PARTS.iter().any(|part| name.contains(part))
}

/// The kinds of tensor that the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Embedding,
    Output,
    /// Values of attention, alone or together with queries and keys.
    Value,
    Key,
    AttentionOutput,
    Up,
    Gate,
    Down,
    Other,
}

impl Role {
    fn of(name: &str) -> Self {
        match name {
            "output.weight" => return Self::Output,
            "token_embd.weight" | "per_layer_token_embd.weight" => return Self::Embedding,
            _ => {}
        }
        const BY_PART: [(&str, Role); 9] = [
            ("attn_qkv.weight", Role::Value),
            ("attn_kv_b.weight", Role::Value),
            ("attn_v.weight", Role::Value),
            ("attn_k.weight", Role::Key),
            ("attn_q.weight", Role::Other),
            ("attn_output.weight", Role::AttentionOutput),
            ("ffn_up", Role::Up),
            ("ffn_gate", Role::Gate),
            ("ffn_down", Role::Down),
        ];
        let part = BY_PART.iter().find(|(part, _)| name.contains(part));
        part.map_or(Self::Other, |(_, role)| *role)
    }
}

/// The rules at work on one model, with what they count on the way.
struct Rules<'a> {
    facts: &'a Facts,
    mixture: &'static str,
    plain: TensorType,
    tied: bool,
    values: u64,
    values_seen: u64,
    down_seen: u64,
}

impl Rules<'_> {
    /// The type that a tensor should get, whether its rows are whole blocks of it or not.
    fn wanted(&mut self, tensor: &Source<'_>) -> TensorType {
        if self.facts.architecture == "glm5-next"
            && ["attn_q_a", "attn_q_b", "nextn.eh_proj"]
                .iter()
                .any(|part| tensor.name.contains(part))
        {
            return TensorType::Q8_0;
        }
        let role = Role::of(tensor.name);
        if role == Role::Output || (self.tied && role == Role::Embedding) {
            return self.output(tensor.dimensions.first().copied().unwrap_or(0));
        }
        if self.mixture == "MXFP4_MOE" {
            return self.mxfp4(tensor, role);
        }
        match role {
            Role::Embedding => match self.mixture {
                "TQ1_0" | "TQ2_0" | "Q2_0" => TensorType::Q4K,
                _ => self.plain,
            },
            Role::Value => self.value(),
            Role::Key if self.facts.experts == 8 => TensorType::Q8_0,
            Role::Down => self.down(tensor.name),
            Role::AttentionOutput => self.attention_output(),
            _ => self.plain,
        }
    }

    fn is_falcon(&self) -> bool {
        self.facts.architecture == "falcon"
    }

    fn output(&self, row: u64) -> TensorType {
        let whole = row.is_multiple_of(self.plain.block_elements());
        match self.plain {
            _ if self.mixture == "MXFP4_MOE" || self.is_falcon() || !whole => TensorType::Q8_0,
            TensorType::Q8_0 => TensorType::Q8_0,
            _ => TensorType::Q6K,
        }
    }

    fn mxfp4(&self, tensor: &Source<'_>, role: Role) -> TensorType {
        let experts = tensor.dimensions.get(2).is_some_and(|count| *count > 1);
        let counts = self.facts.architecture != "bailingmoe3"
            || matches!(role, Role::Up | Role::Gate | Role::Down);
        if experts && counts {
            TensorType::Mxfp4
        } else {
            TensorType::Q8_0
        }
    }

    fn value(&mut self) -> TensorType {
        let seen = self.values_seen;
        self.values_seen += 1;
        let grouped = self.facts.heads_per_kv >= 4;
        let mut wanted = match self.mixture {
            "Q2_K" if grouped => TensorType::Q4K,
            "Q2_K" => TensorType::Q3K,
            "IQ3_S" if grouped => TensorType::Q4K,
            "IQ3_M" => TensorType::Q4K,
            "Q3_K_M" if seen < 2 => TensorType::Q5K,
            "Q3_K_M" => TensorType::Q4K,
            "Q3_K_L" => TensorType::Q5K,
            "IQ4_NL" | "IQ4_XS" if grouped => TensorType::Q5K,
            "Q4_K_M" | "Q5_K_M" if gets_more_bits(seen, self.values) => TensorType::Q6K,
            "Q4_K_S" if seen < 4 => TensorType::Q5K,
            _ => self.plain,
        };
        if self.facts.is_70b && matches!(wanted, TensorType::Q3K | TensorType::Q4K) {
            wanted = TensorType::Q5K;
        }
        if self.facts.experts == 8 {
            TensorType::Q8_0
        } else {
            wanted
        }
    }

    fn down(&mut self, name: &str) -> TensorType {
        let counted = self.down_seen;
        self.down_seen += 1;
        // Of experts there are several in a layer, so the name says which layer it is.
        let at = match self.facts.experts {
            0 | 1 => counted,
            _ => u64::try_from(layer(name)).unwrap_or(counted),
        };
        let layers = self.facts.layers;
        let more = gets_more_bits(at, layers);
        match self.mixture {
            "Q2_K" => TensorType::Q3K,
            "Q3_K_M" if at < layers / 16 => TensorType::Q5K,
            "Q3_K_M" if !self.is_falcon() || more => TensorType::Q4K,
            "IQ3_M" if at < layers / 8 || (self.facts.experts == 8 && more) => TensorType::Q4K,
            "Q3_K_L" if self.is_falcon() => TensorType::Q4K,
            "Q3_K_L" => TensorType::Q5K,
            "Q4_K_M" if self.is_falcon() => match (at < layers / 16, more) {
                (true, _) => TensorType::Q6K,
                (false, true) => TensorType::Q5K,
                (false, false) => TensorType::Q4K,
            },
            "Q4_K_M" | "Q5_K_M" if more => TensorType::Q6K,
            "IQ4_NL" | "IQ4_XS" if at < layers / 8 => TensorType::Q5K,
            "Q4_K_S" if !self.is_falcon() && at < layers / 8 => TensorType::Q5K,
            _ => self.plain,
        }
    }

    fn attention_output(&self) -> TensorType {
        if self.is_falcon() {
            return match self.mixture {
                "Q3_K_L" => TensorType::Q4K,
                _ => self.plain,
            };
        }
        match (self.mixture, self.facts.experts) {
            (
                "Q2_K" | "Q3_K_S" | "Q3_K_M" | "IQ4_NL" | "Q4_K_S" | "Q4_K_M" | "IQ3_S" | "IQ3_M"
                | "IQ4_XS",
                8,
            ) => TensorType::Q5K,
            (_, 8) => self.plain,
            ("Q2_K", _) => TensorType::Q3K,
            ("Q3_K_M" | "IQ3_M", _) => TensorType::Q4K,
            ("Q3_K_L", _) => TensorType::Q5K,
            _ => self.plain,
        }
    }
}

/// The first and the last eighth of the layers, and every third between them.
fn gets_more_bits(layer: u64, layers: u64) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

/// `wanted`, or what stands in for it where a row of so many elements is no whole number of its
/// blocks; `None` where the engine gives up.
fn fitting(wanted: TensorType, row: u64) -> Option<TensorType> {
    let fits = |tensor_type: TensorType| row.is_multiple_of(tensor_type.block_elements());
    if fits(wanted) {
        return Some(wanted);
    }
    let smaller = match wanted {
        TensorType::Iq3S | TensorType::Iq4Xs => TensorType::Iq4Nl,
        TensorType::Q2_0
        | TensorType::Q2K
        | TensorType::Q3K
        | TensorType::Tq1_0
        | TensorType::Tq2_0 => TensorType::Q4_0,
        TensorType::Q4K => TensorType::Q5_0,
        TensorType::Q5K => TensorType::Q5_1,
        TensorType::Q6K => TensorType::Q8_0,
        other if other.block_elements() <= 32 => other,
        _ => return None,
    };
    Some(if fits(smaller) {
        smaller
    } else {
        TensorType::F16
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_no_whole_blocks_fall_back_as_llama_cpp_lets_them() {
        // SmolLM2's width is 576: a multiple of 32 and not of 256.
        assert_eq!(fitting(TensorType::Q4K, 576), Some(TensorType::Q5_0));
        assert_eq!(fitting(TensorType::Q5K, 576), Some(TensorType::Q5_1));
        assert_eq!(fitting(TensorType::Q6K, 576), Some(TensorType::Q8_0));
        assert_eq!(fitting(TensorType::Q3K, 576), Some(TensorType::Q4_0));
        assert_eq!(fitting(TensorType::Iq4Xs, 576), Some(TensorType::Iq4Nl));
        assert_eq!(fitting(TensorType::Q4K, 768), Some(TensorType::Q4K));
        assert_eq!(fitting(TensorType::Q8_0, 100), Some(TensorType::F16));
        assert_eq!(fitting(TensorType::Q1_0, 576), None, "the engine gives up");
    }

    #[test]
    fn vectors_norms_and_routers_stay_as_they_are() {
        let touched = |name: &str, dimensions: &[u64]| {
            is_quantized(&Source {
                name,
                dimensions,
                tensor_type: TensorType::F32,
            })
        };
        assert!(touched("blk.0.attn_q.weight", &[64, 64]));
        assert!(touched("blk.0.ffn_down_exps.weight", &[64, 64, 8]));
        assert!(!touched("blk.0.attn_norm.weight", &[64]));
        assert!(!touched("blk.0.attn_q_norm.weight", &[64, 4]));
        assert!(!touched("blk.0.attn_q.bias", &[64, 4]));
        assert!(!touched("blk.0.ffn_gate_inp.weight", &[64, 8]));
        assert!(!touched("blk.0.ssm_conv1d.weight", &[4, 64]));
        assert!(!touched("blk.0.attn_q.weight", &[64, 1]), "one row");
    }

    #[test]
    fn the_engine_goes_by_layer_and_name() {
        let names = ["blk.10.a", "output.weight", "blk.2.b", "blk.2.a"];
        let tensors = names.map(|name| Source {
            name,
            dimensions: &[],
            tensor_type: TensorType::F32,
        });
        let order = in_the_engines_order(&tensors)
            .into_iter()
            .map(|at| names[at]);
        assert_eq!(
            order.collect::<Vec<_>>(),
            ["output.weight", "blk.2.a", "blk.2.b", "blk.10.a"]
        );
    }
}
