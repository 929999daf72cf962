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
        let kept = layer.reads.and_then(|i| shape.layers.get(i)).unwrap_or(layer);
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
