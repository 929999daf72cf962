//! Reads the tensor list of a header by the rules of llama.cpp's `gguf.cpp`.

use std::io::Read;

use crate::error::Fault;
use crate::model::{Dimensions, TensorInfo};
use crate::source::{Source, Stop};
use crate::tensor_type::{TensorType, withdrawn_type};
use crate::text::{lossy, quoted};

mod new_types;

/// The most tensors read of a file or set. The largest models, with a scale beside each weight,
/// have some thousand.
pub(crate) const MAX_TENSORS: u64 = 16_384;

/// Longest name of a tensor (`GGML_MAX_NAME` less the closing zero).
const MAX_NAME_BYTES: u64 = 63;

/// `GGML_MAX_DIMS`.
const MAX_DIMENSIONS: u32 = 4;

/// Most bytes of a file or set (8 PiB), and most parameters: both stay exact in a JSON number.
pub(crate) const MAX_BYTES: u64 = 1 << 53;

/// Reads the tensor list; with it the bytes of the data up to the end of the last tensor.
pub(crate) fn read_tensors<R: Read>(
    source: &mut Source<R>,
    count: u64,
    alignment: u64,
) -> Result<(Vec<TensorInfo>, u64), Stop> {
    if count > MAX_TENSORS {
        return Err(Fault::TooMany {
            what: "tensors",
            claimed: count,
            limit: MAX_TENSORS,
        }
        .into());
    }
    // The count was held against the bytes left, before the keys: the list may still end early.
    let mut tensors = Vec::with_capacity(count.min(source.left() / 24) as usize);
    let mut broken_names = Vec::new();
    let mut end = 0u64;
    for number in 0..count {
        let Entry {
            tensor,
            broken_name,
        } = read_tensor(source, number)?;
        broken_names.extend(broken_name);
        if let Some(before) = tensors.last_mut() {
            end = new_types::end(before, tensor.offset, end, alignment)?;
        }
        let start = end.next_multiple_of(alignment);
        if tensor.offset != start {
            return Err(Fault::Offset {
                name: quoted(tensor.name.as_bytes()),
                offset: tensor.offset,
                expected: start,
            }
            .into());
        }
        end = start
            .checked_add(tensor.bytes)
            .filter(|end| *end <= MAX_BYTES)
            .ok_or_else(|| Fault::Size(quoted(tensor.name.as_bytes())))?;
        tensors.push(tensor);
    }
    refuse_duplicates(&tensors, broken_names)?;
    let header = source.offset().next_multiple_of(alignment);
    let last = new_types::size(&mut tensors, source.total().saturating_sub(header));
    let end = end.checked_add(last).filter(|end| *end <= MAX_BYTES);
    let end = end.ok_or_else(|| Fault::Size("the last".to_owned()))?;
    Ok((tensors, end))
}

/// Refuses a name that is there twice. Names are bytes: those that are no UTF-8 are compared as
/// they stand in the file, since two may look alike on the screen.
fn refuse_duplicates(
    tensors: &[TensorInfo],
    mut broken_names: Vec<Box<[u8]>>,
) -> Result<(), Fault> {
    broken_names.sort_unstable();
    if let Some(pair) = broken_names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Fault::DuplicateTensor(quoted(&pair[0])));
    }
    match duplicate_name(tensors) {
        Some(name) => Err(Fault::DuplicateTensor(quoted(name.as_bytes()))),
        None => Ok(()),
    }
}

/// A name that two of the tensors bear, as far as names are UTF-8.
pub(crate) fn duplicate_name(tensors: &[TensorInfo]) -> Option<&str> {
    let names = tensors.iter().map(|tensor| tensor.name.as_str());
    let mut names: Vec<&str> = names
        .filter(|name| !name.contains(char::REPLACEMENT_CHARACTER))
        .collect();
    names.sort_unstable();
    names
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

/// One entry of the list.
struct Entry {
    tensor: TensorInfo,
    /// The bytes of its name where they are no UTF-8.
    broken_name: Option<Box<[u8]>>,
}

fn read_tensor<R: Read>(source: &mut Source<R>, number: u64) -> Result<Entry, Stop> {
    let length = source.count(1, || {
        format!("bytes for the name of tensor number {number}")
    })?;
    if length > MAX_NAME_BYTES {
        return Err(Fault::TensorName { number, length }.into());
    }
    let bytes = source.text(length, length)?.bytes;
    let name = lossy(&bytes).into_owned();
    let broken_name = name
        .contains(char::REPLACEMENT_CHARACTER)
        .then(|| bytes.into_boxed_slice());
    let dimension_count = source.u32()?;
    if dimension_count > MAX_DIMENSIONS {
        return Err(Fault::Dimensions {
            name: quoted(name.as_bytes()),
            dimensions: dimension_count,
        }
        .into());
    }
    let mut dimensions = [1u64; 4];
    for dimension in dimensions.iter_mut().take(dimension_count as usize) {
        *dimension = source.u64()?;
    }
    let dimensions = Dimensions::new(dimensions, dimension_count as usize);
    let id = source.u32()?;
    let offset = source.u64()?;

    let name_for_fault = || quoted(name.as_bytes());
    let elements = dimensions
        .elements()
        .ok_or_else(|| Fault::Shape(name_for_fault()))?;
    if let Some(was) = withdrawn_type(id) {
        return Err(Fault::WithdrawnType {
            name: name_for_fault(),
            was,
        }
        .into());
    }
    let Some(tensor_type) = TensorType::from_id(id) else {
        let tensor = TensorInfo {
            name,
            dimensions,
            // Until it is known what it resembles.
            tensor_type: TensorType::F32,
            new_type: Some(id),
            elements,
            bytes: 0,
            offset,
            part: 0,
        };
        return Ok(Entry {
            tensor,
            broken_name,
        });
    };
    let row = dimensions.row();
    if !row.is_multiple_of(tensor_type.block_elements()) {
        return Err(Fault::PartialBlock {
            name: name_for_fault(),
            row,
            block: tensor_type.block_elements(),
            tensor_type: tensor_type.name(),
        }
        .into());
    }
    let bytes = tensor_type
        .bytes(elements)
        .filter(|bytes| *bytes <= MAX_BYTES)
        .ok_or_else(|| Fault::Size(name_for_fault()))?;
    let tensor = TensorInfo {
        name,
        dimensions,
        tensor_type,
        new_type: None,
        elements,
        bytes,
        offset,
        part: 0,
    };
    Ok(Entry {
        tensor,
        broken_name,
    })
}
