//! Types that came after this program. Where the next tensor begins says how many bytes they take, and
//! that says which known type they resemble.

use std::collections::BTreeMap;

use super::MAX_BYTES;
use crate::error::Fault;
use crate::model::TensorInfo;
use crate::tensor_type::TensorType;
use crate::text::quoted;

/// Bits that an element takes, at least and at most.
const BITS: (f64, f64) = (1.0, 64.0);
/// An element of a type of which nothing is known but that it is a quantized one.
const USUAL_BITS: f64 = 4.5;

/// Where a tensor ends whose next begins at `next`: it is `end`, unless its type is new. Then it gets
/// its size here.
///
/// Errors: no type takes so few or so many bytes.
pub(super) fn end(
    tensor: &mut TensorInfo,
    next: u64,
    end: u64,
    alignment: u64,
) -> Result<u64, Fault> {
    let Some(id) = tensor.new_type else {
        return Ok(end);
    };
    let refused = || Fault::TensorType {
        name: quoted(tensor.name.as_bytes()),
        id,
    };
    let bytes = next
        .checked_sub(tensor.offset)
        .filter(|_| next <= MAX_BYTES)
        .ok_or_else(refused)?;
    let elements = tensor.elements as f64;
    let (least, most) = (
        BITS.0 / 8.0 * elements,
        BITS.1 / 8.0 * elements + alignment as f64,
    );
    if !(least..=most).contains(&(bytes as f64)) {
        return Err(refused());
    }
    tensor.bytes = bytes;
    Ok(next)
}

/// Gives the last tensor its size, where it is of a new type, and each new type the known one that
/// takes about as many bits. `data` is how many bytes of the data are there. The bytes of the last
/// tensor, if it had none.
pub(super) fn size(tensors: &mut [TensorInfo], data: u64) -> u64 {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let last = tensors.len().saturating_sub(1);
    for (index, tensor) in tensors.iter().enumerate() {
        if let Some(id) = tensor.new_type {
            let sum = sums.entry(id).or_default();
            if index < last {
                sum.0 = sum.0.saturating_add(tensor.bytes);
                sum.1 = sum.1.saturating_add(tensor.elements);
            }
        }
    }
    let bits = |id: u32| {
        let (bytes, elements) = sums.get(&id).copied().unwrap_or_default();
        match elements {
            0 => USUAL_BITS,
            elements => (8.0 * bytes as f64 / elements as f64).clamp(BITS.0, BITS.1),
        }
    };
    let mut added = 0;
    if let Some(tensor) = tensors.last_mut()
        && let Some(id) = tensor.new_type
    {
        let rest = data.saturating_sub(tensor.offset);
        let bits_of_rest = 8.0 * rest as f64 / tensor.elements.max(1) as f64;
        tensor.bytes = if (BITS.0..=BITS.1).contains(&bits_of_rest) {
            rest
        } else {
            (bits(id) * tensor.elements as f64 / 8.0).ceil() as u64
        };
        added = tensor.bytes;
        let sum = sums.entry(id).or_default();
        if sum.1 == 0 {
            *sum = (tensor.bytes, tensor.elements);
        }
    }
    let bits = |id: u32| {
        let (bytes, elements) = sums.get(&id).copied().unwrap_or_default();
        8.0 * bytes as f64 / elements.max(1) as f64
    };
    for tensor in tensors {
        if let Some(id) = tensor.new_type {
            tensor.tensor_type = resembling(bits(id), tensor.dimensions.row());
        }
    }
    added
}

/// The type of weights with about as many bits, in whose blocks such rows can be kept.
fn resembling(bits: f64, row: u64) -> TensorType {
    use TensorType as T;
    let weights = |tensor_type: &T| {
        !matches!(
            tensor_type,
            T::I8 | T::I16 | T::I32 | T::I64 | T::F64 | T::Q8_1 | T::Q8K
        )
    };
    let far = |tensor_type: &T| {
        (tensor_type.bits_per_weight() / bits.max(BITS.0))
            .ln()
            .abs()
    };
    T::ALL
        .iter()
        .copied()
        .filter(weights)
        .filter(|tensor_type| row.is_multiple_of(tensor_type.block_elements()))
        .min_by(|a, b| far(a).total_cmp(&far(b)))
        .unwrap_or(T::F32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dimensions;

    fn tensor(new_type: Option<u32>, elements: u64, bytes: u64, offset: u64) -> TensorInfo {
        TensorInfo {
            name: "blk.0.ffn_up.weight".into(),
            dimensions: Dimensions::new([256, elements / 256, 1, 1], 2),
            tensor_type: TensorType::F32,
            new_type,
            elements,
            bytes,
            offset,
            part: 0,
        }
    }

    #[test]
    fn a_new_type_resembles_the_one_with_as_many_bits() {
        // 144 bytes for 256 elements: 4.5 bits. The last is as long as what is there of the data.
        let mut tensors = [
            tensor(Some(99), 65_536, 36_864, 0),
            tensor(Some(99), 65_536, 0, 36_864),
        ];
        assert_eq!(size(&mut tensors, 36_864 + 36_900), 36_900);
        assert_eq!(tensors[0].tensor_type.bits_per_weight(), 4.5);
        assert_eq!(tensors[1].tensor_type.bits_per_weight(), 4.5);
    }

    #[test]
    fn without_data_the_last_is_as_long_as_the_others_of_its_type() {
        let mut tensors = [
            tensor(Some(99), 65_536, 65_536, 0),
            tensor(Some(99), 131_072, 0, 65_536),
        ];
        assert_eq!(size(&mut tensors, 0), 131_072, "8 bits each");
        let mut alone = [tensor(Some(99), 65_536, 0, 0)];
        assert_eq!(size(&mut alone, 0), 36_864, "4.5 bits");
    }

    #[test]
    fn offsets_that_no_type_explains_are_refused() {
        let mut new = tensor(Some(99), 65_536, 0, 64);
        assert_eq!(end(&mut new, 64 + 36_864, 64, 32).unwrap(), 64 + 36_864);
        assert_eq!(new.bytes, 36_864);
        // Before it, with no byte at all, beyond 64 bits for each element, at the end of all numbers.
        for next in [0, 64, 64 + 8 * 65_536 + 33, u64::MAX] {
            assert!(end(&mut new, next, 64, 32).is_err(), "{next}");
        }
    }

    #[test]
    fn known_types_stay_as_they_are() {
        let mut tensors = [tensor(None, 65_536, 262_144, 0)];
        assert_eq!(size(&mut tensors, 1 << 30), 0);
        assert_eq!(tensors[0].bytes, 262_144);
    }
}
