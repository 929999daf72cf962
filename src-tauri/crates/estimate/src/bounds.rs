//! What a cache takes at least and at most where the rules of its architecture are unknown.

use twospeed_gguf::{Model, TensorInfo};

use crate::cache::{Cache, ContextSettings};
use crate::shape::Shape;
use crate::units::Bytes;

/// Cells are allocated in steps of this many.
const STEP: u64 = 256;

/// Bytes of keys and values at least and at most: by the plain keys that most architectures have,
/// else by the tensors that make keys and values. `None` where neither is there.
pub(crate) fn kv(model: &Model, settings: &ContextSettings) -> Option<(Bytes, Bytes)> {
    by_keys(model, settings).or_else(|| by_tensors(model, settings))
}

fn by_keys(model: &Model, settings: &ContextSettings) -> Option<(Bytes, Bytes)> {
    let (sparing, plain) = Shape::bounds(model).ok()?;
    let plain = Cache::of(&plain, settings).ok()?.kv();
    // Where the sparing rules do not allow these settings, nothing is certain.
    let sparing = Cache::of(&sparing, settings).map_or(Bytes::ZERO, |kept| kept.kv());
    // A window's heads may be the longer ones.
    Some((sparing.min(plain), sparing.max(plain)))
}

/// A layer's projections say how long its rows are; what is unknown is how many of them are kept.
///
/// At most: every cell of the context, each sequence for itself where they are split. At least: the
/// smallest window that there is, or nothing where a layer may be recurrent.
fn by_tensors(model: &Model, settings: &ContextSettings) -> Option<(Bytes, Bytes)> {
    let tokens = match settings.context {
        0 => model.context_length?,
        tokens => tokens,
    };
    let sequences = settings.sequences.max(1);
    let padded = |tokens: u64| tokens.checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
    let most_cells = if settings.split {
        padded(padded(tokens) / sequences).saturating_mul(sequences)
    } else {
        padded(tokens)
    };
    let is_recurrent = |tensor: &TensorInfo| {
        ["ssm_", "time_mix", "shortconv"]
            .iter()
            .any(|part| tensor.name.contains(part))
    };
    let least_cells = if model.tensors.iter().any(is_recurrent) {
        0
    } else {
        STEP.min(most_cells)
    };
    let (mut row_at_least, mut row_at_most) = (0_u64, 0_u64);
    for tensor in &model.tensors {
        let rows: u64 = tensor.dimensions.iter().skip(1).product();
        let Some((always, perhaps)) = projected(tensor, rows) else {
            continue;
        };
        // One number for keys and values: the wider type bounds from above, the narrower from below.
        let bytes = |elements: u64| {
            let of = [settings.type_k, settings.type_v];
            of.map(|kv_type| {
                let whole = elements.checked_next_multiple_of(kv_type.block_elements());
                whole.and_then(|elements| kv_type.row_bytes(elements))
            })
        };
        let least = bytes(always).into_iter().flatten().min()?;
        let most = bytes(perhaps).into_iter().flatten().max()?;
        row_at_least = row_at_least.saturating_add(least);
        row_at_most = row_at_most.saturating_add(most);
    }
    (row_at_most > 0).then(|| {
        (
            Bytes(row_at_least.saturating_mul(least_cells)),
            Bytes(row_at_most.saturating_mul(most_cells)),
        )
    })
}

/// Elements that a layer's projection adds to a row of the cache: for certain, and perhaps.
fn projected(tensor: &TensorInfo, rows: u64) -> Option<(u64, u64)> {
    tensor.layer()?;
    let (_, role) = tensor.name.split_once("attn_")?;
    match role {
        "k.weight" | "v.weight" => Some((rows, rows)),
        // Queries, keys and values in one.
        "qkv.weight" => Some((0, rows)),
        // One compressed key; or what keys and values are made from, which are longer.
        "kv_a_mqa.weight" => Some((rows, rows)),
        "kv_b.weight" | "k_b.weight" | "v_b.weight" => Some((0, rows)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use twospeed_gguf::TensorType::F16;

    use super::*;
    use crate::testing::{Tensor, model};

    fn layer(roles: &[(&str, &'static [u64])]) -> Vec<Tensor<'static>> {
        let named = |(role, dimensions): &(&str, &'static [u64])| {
            (format!("blk.0.{role}.weight"), F16, *dimensions)
        };
        roles.iter().map(named).collect()
    }

    fn range(tensors: &[Tensor<'_>]) -> Option<(Bytes, Bytes)> {
        // No key says how many heads there are.
        let keys = [("block_count", 1), ("embedding_length", 256)];
        kv(
            &model("llama9", &keys, tensors),
            &ContextSettings::default(),
        )
    }

    #[test]
    fn projections_bound_the_cache_where_keys_are_missing() {
        // Rows of 64 and 64 in f16 are 256 bytes: 256 cells at least, 4,096 at most.
        let tensors = layer(&[("attn_k", &[256, 64]), ("attn_v", &[256, 64])]);
        let bounds = Some((Bytes::kib(64), Bytes::mib(1)));
        assert_eq!(range(&tensors), bounds);
    }

    #[test]
    fn a_fused_projection_bounds_from_above_alone() {
        // 256 + 64 + 64 rows of 2 bytes are 768; whose they are is not known.
        let tensors = layer(&[("attn_qkv", &[256, 384])]);
        assert_eq!(range(&tensors), Some((Bytes::ZERO, Bytes(768 * 4096))));
    }

    #[test]
    fn layers_that_may_be_recurrent_may_keep_nothing() {
        let tensors = layer(&[("attn_k", &[256, 64]), ("ssm_in", &[256, 64])]);
        assert_eq!(range(&tensors), Some((Bytes::ZERO, Bytes(128 * 4096))));
    }

    #[test]
    fn without_keys_and_projections_there_is_no_range() {
        assert_eq!(range(&layer(&[("ffn_up", &[256, 64])])), None);
    }
}
