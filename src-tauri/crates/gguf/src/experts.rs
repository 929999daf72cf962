//! How many parameters one token uses.

use crate::metadata::Metadata;
use crate::model::TensorInfo;

/// Elements of all tensors without the experts that one token does not use. `None` when there are
/// experts and the header does not say how many of them a token uses.
pub(crate) fn active_parameters(metadata: &Metadata, tensors: &[TensorInfo]) -> Option<u64> {
    let used_by_layer = metadata.per_layer_u64("expert_used_count");
    let mut active = 0u64;
    for tensor in tensors {
        active += match experts(tensor, metadata) {
            Experts::None => tensor.elements,
            Experts::Unknown => return None,
            Experts::Of(experts) => {
                let layer = usize::try_from(tensor.layer()?).ok()?;
                let used = *used_by_layer.as_ref()?.get(layer)?;
                let share = u128::from(tensor.elements) * u128::from(used.min(experts))
                    / u128::from(experts);
                u64::try_from(share).ok()?
            }
        };
    }
    Some(active)
}

enum Experts {
    /// Used for every token.
    None,
    /// One of so many, of which a token uses some.
    Of(u64),
    /// Of a number that the header does not give.
    Unknown,
}

/// Experts lie stacked in one tensor (`blk.0.ffn_up_exps.weight`, the last dimension counts them),
/// in old files in a tensor each (`blk.0.ffn_up.7.weight`).
fn experts(tensor: &TensorInfo, metadata: &Metadata) -> Experts {
    let mut segments = tensor.name.split('.').skip(2);
    let (Some(role), Some(next)) = (segments.next(), segments.next()) else {
        return Experts::None;
    };
    let experts = if role.ends_with("exps") && role.starts_with("ffn_") && !role.contains("norm") {
        tensor.dimensions.last().copied()
    } else if role.starts_with("ffn_") && next.parse::<u32>().is_ok() {
        metadata.arch_u64("expert_count")
    } else {
        return Experts::None;
    };
    experts
        .filter(|count| *count > 0)
        .map_or(Experts::Unknown, Experts::Of)
}

#[cfg(test)]
mod tests {
    use crate::model::Model;
    use crate::tensor_type::TensorType;
    use crate::testing::{read_back, two_layers};
    use crate::writer::Writer;

    /// The shape of Qwen3-30B-A3B, from its config.json: 48 layers, 2,048 wide, 32 heads and 4 KV
    /// heads of 128, 128 experts of 768, 8 used, vocabulary 151,936, output not tied.
    fn qwen3_30b_a3b() -> Writer {
        let mut writer = Writer::new();
        writer.set("general.architecture", "qwen3moe");
        writer.set("qwen3moe.block_count", 48u32);
        writer.set("qwen3moe.expert_count", 128u32);
        writer.set("qwen3moe.expert_used_count", 8u32);
        let mut add = |name: String, dimensions: &[u64]| {
            writer.tensor(&name, TensorType::Bf16, dimensions).unwrap();
        };
        add("token_embd.weight".into(), &[2048, 151_936]);
        add("output.weight".into(), &[2048, 151_936]);
        add("output_norm.weight".into(), &[2048]);
        for layer in 0..48 {
            let mut layer_tensor = |name: &str, dimensions: &[u64]| {
                add(format!("blk.{layer}.{name}.weight"), dimensions);
            };
            layer_tensor("attn_norm", &[2048]);
            layer_tensor("attn_q", &[2048, 4096]);
            layer_tensor("attn_k", &[2048, 512]);
            layer_tensor("attn_v", &[2048, 512]);
            layer_tensor("attn_q_norm", &[128]);
            layer_tensor("attn_k_norm", &[128]);
            layer_tensor("attn_output", &[4096, 2048]);
            layer_tensor("ffn_norm", &[2048]);
            layer_tensor("ffn_gate_inp", &[2048, 128]);
            layer_tensor("ffn_gate_exps", &[2048, 768, 128]);
            layer_tensor("ffn_up_exps", &[2048, 768, 128]);
            layer_tensor("ffn_down_exps", &[768, 2048, 128]);
        }
        writer
    }

    #[test]
    fn of_qwen3_30b_a3b_a_token_uses_three_of_thirty_billion() {
        let model = read_back(&qwen3_30b_a3b());
        // The model card: 30.5 billion parameters. By hand, experts: 48 layers x 3 matrices of
        // 2,048 x 768 = 226,492,416 for one expert each, 128 of them there and 8 used.
        assert_eq!(model.parameters, 30_532_122_624);
        let unused = 120 * 226_492_416;
        assert_eq!(model.active_parameters, Some(30_532_122_624 - unused));
        assert_eq!(
            model.active_parameters,
            Some(3_353_032_704),
            "about 3.35 billion"
        );
    }

    #[test]
    fn a_dense_model_uses_everything() {
        let model = read_back(&two_layers("llama"));
        assert_eq!(model.active_parameters, Some(model.parameters));
    }

    fn experts(change: impl FnOnce(&mut Writer)) -> Model {
        let mut writer = two_layers("qwen3moe");
        writer.set("qwen3moe.expert_count", 4u32);
        change(&mut writer);
        read_back(&writer)
    }

    #[test]
    fn how_many_experts_are_used_may_be_unknown() {
        let model = experts(|writer| {
            writer
                .tensor("blk.0.ffn_up_exps.weight", TensorType::F32, &[8, 2, 4])
                .unwrap();
        });
        assert_eq!(model.active_parameters, None);
    }

    #[test]
    fn layers_may_use_different_numbers_of_experts() {
        let model = experts(|writer| {
            writer.set("qwen3moe.expert_used_count", &[1u32, 2][..]);
            for layer in 0..2 {
                let name = format!("blk.{layer}.ffn_up_exps.weight");
                writer.tensor(&name, TensorType::F32, &[8, 2, 4]).unwrap();
            }
        });
        // 64 parameters a layer, of which a quarter and a half are used.
        assert_eq!(model.active_parameters, Some(model.parameters - 48 - 32));
    }

    #[test]
    fn shared_experts_routers_and_norms_are_used_whole_and_biases_in_part() {
        let model = experts(|writer| {
            writer.set("qwen3moe.expert_used_count", 1u32);
            let mut add = |name: &str, dimensions: &[u64]| {
                writer.tensor(name, TensorType::F32, dimensions).unwrap();
            };
            add("blk.0.ffn_up_shexp.weight", &[8, 2]);
            add("blk.0.ffn_gate_inp.weight", &[8, 4]);
            add("blk.0.ffn_norm_exps.weight", &[8]);
            add("blk.0.ffn_up_exps.bias", &[2, 4]);
        });
        assert_eq!(
            model.active_parameters,
            Some(model.parameters - 6),
            "one bias of four"
        );
    }

    #[test]
    fn experts_in_a_tensor_each_are_counted_as_well() {
        let model = experts(|writer| {
            writer.set("qwen3moe.expert_used_count", 1u32);
            for expert in 0..4 {
                let name = format!("blk.0.ffn_up.{expert}.weight");
                writer.tensor(&name, TensorType::F32, &[8, 2]).unwrap();
            }
        });
        assert_eq!(
            model.active_parameters,
            Some(model.parameters - 48),
            "three of four"
        );
    }
}
