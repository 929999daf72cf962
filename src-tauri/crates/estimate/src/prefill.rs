//! What reading a prompt costs.

use crate::cache::{self, ContextError, ContextSettings};
use crate::shape::Shape;
use crate::units::Flops;
use crate::weights::Weights;

/// Operations for one prompt token, on the average over a prompt of `prompt` tokens that starts
/// at `depth`.
///
/// 2 x (elements of the matrices, used experts only) for the weights. For attention 2 x heads x
/// (key + value of a head) x tokens seen, in every layer that attends; a token sees the depth and
/// half of the prompt, in a sliding-window layer at most its cells. The output matrix is left out:
/// only the last token needs it.
///
/// Errors: [`ContextError`] where the engine refuses the settings.
pub fn flops_per_token(
    shape: &Shape,
    weights: &Weights,
    settings: &ContextSettings,
    prompt: u64,
    depth: u64,
) -> Result<Flops, ContextError> {
    let seen = depth.saturating_add(prompt / 2);
    let mut attention = 0_u64;
    for layer in shape.layers[..shape.trunk].iter().filter(|l| l.attends()) {
        let kept = layer
            .reads
            .and_then(|i| shape.layers.get(i))
            .unwrap_or(layer);
        let Some(store) = kept.stores.first() else {
            continue;
        };
        let seen = seen.min(cache::cells(shape, settings, store.kind)?);
        let per_token = layer
            .heads
            .saturating_mul(layer.head_key.saturating_add(layer.head_value));
        attention = attention.saturating_add(per_token.saturating_mul(seen).saturating_mul(2));
    }
    let weights = weights.matrix_elements.saturating_mul(2);
    Ok(Flops(weights.saturating_add(attention)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::shape;

    fn weights(matrix_elements: u64) -> Weights {
        Weights {
            read_per_token: BTreeMap::new(),
            matrix_elements,
            matrices: Vec::new(),
            norms: (0, 0),
        }
    }

    fn flops(shape: &Shape, prompt: u64, depth: u64) -> u64 {
        let settings = ContextSettings::default();
        flops_per_token(shape, &weights(1_000_000), &settings, prompt, depth)
            .unwrap()
            .0
    }

    #[test]
    fn attention_grows_with_what_a_token_sees() {
        // 2 layers of 4 heads of 64: 2 x 2 x 4 x (64 + 64) = 2,048 operations for each token seen.
        let keys = [("attention.head_count", 4), ("attention.head_count_kv", 2)];
        let shape = shape("llama", 2, 256, &keys);
        assert_eq!(flops(&shape, 0, 0), 2_000_000);
        assert_eq!(flops(&shape, 512, 0), 2_000_000 + 2_048 * 256);
        assert_eq!(flops(&shape, 512, 1024), 2_000_000 + 2_048 * 1280);
    }

    #[test]
    fn a_sliding_layer_sees_no_more_than_its_cells() {
        // Gemma 3's period of 6: five layers slide (1,024 cells), one is full.
        let keys = [
            ("attention.head_count", 4),
            ("attention.head_count_kv", 1),
            ("attention.sliding_window", 512),
        ];
        let shape = shape("gemma3", 6, 256, &keys);
        let per_layer = 2 * 4 * 128;
        assert_eq!(
            flops(&shape, 512, 3000),
            2_000_000 + per_layer * (5 * 1024 + 3256)
        );
    }

    #[test]
    fn a_recurrent_layer_sees_nothing_but_its_state() {
        let keys = [
            ("ssm.conv_kernel", 4),
            ("ssm.inner_size", 64),
            ("ssm.state_size", 16),
        ];
        let shape = shape("mamba", 2, 32, &keys);
        assert_eq!(flops(&shape, 512, 100_000), 2_000_000);
    }
}
