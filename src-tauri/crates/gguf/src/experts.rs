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
