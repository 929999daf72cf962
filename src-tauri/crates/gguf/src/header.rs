//! Reads one file's header by the rules of llama.cpp's `gguf.cpp`.

use std::io::Read;

use crate::error::Fault;
use crate::lookalike::Lookalike;
use crate::metadata::{Array, ElementType, Metadata, Numbers, Text, Value};
use crate::model::{Dimensions, TensorInfo};
use crate::source::{Source, Stop};
use crate::tensor_type::{TensorType, withdrawn_type};
use crate::text::{lossy, quoted};

/// The most tensors read of a file or set. The largest models, with a scale beside each weight,
/// have some thousand.
pub(crate) const MAX_TENSORS: u64 = 16_384;

/// The most keys. Real files have some dozens.
const MAX_KEYS: u64 = 16_384;

/// The longest key; the format allows 65,535 bytes.
const MAX_KEY_BYTES: u64 = 65_535;

/// Longest name of a tensor (`GGML_MAX_NAME` less the closing zero).
const MAX_NAME_BYTES: u64 = 63;

/// `GGML_MAX_DIMS`.
const MAX_DIMENSIONS: u32 = 4;

/// How deep arrays may lie in arrays. No file in use has any.
const MAX_NESTING: usize = 8;

/// Most bytes of all keys together.
const ALL_KEY_BYTES: u64 = 1 << 20;

/// Bytes of texts and numbers that are kept of one header; beyond it only lengths are.
const KEPT_BYTES: u64 = 2 << 20;

/// Alignment of the data where `general.alignment` is absent.
const DEFAULT_ALIGNMENT: u64 = 32;

/// Most bytes of data, 8 PiB: sizes stay exact in a JSON number (2^53).
const MAX_DATA_BYTES: u64 = 1 << 53;

/// One file's header.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
    /// Bytes before the data section, padding included where there are tensors.
    pub(crate) bytes: u64,
    /// Bytes of the data up to the end of the last tensor.
    pub(crate) data_bytes: u64,
}

/// What the first bytes say.
pub(crate) enum Opening {
    /// GGUF, and the rest could be read.
    Header(Header),
    /// Something else.
    NotGguf(Lookalike),
}

/// Reads the header of a file of `total` bytes.
pub(crate) fn read_header<R: Read>(reader: R, total: u64) -> Result<Opening, Stop> {
    let mut source = Source::new(reader, total);
    // Of the beginning of a remote file there may be less than the window.
    let start = match source.peek(Lookalike::WINDOW) {
        Err(Stop::Dry { .. }) => source.peek(4)?,
        other => other?,
    };
    if !start.starts_with(b"GGUF") {
        return Ok(Opening::NotGguf(Lookalike::of(start)));
    }
    source.skip(4)?;
    check_version(source.u32()?)?;
    let tensor_count = source.count(24, || "tensors".to_owned())?;
    let key_count = source.count(14, || "keys".to_owned())?;
    let metadata = read_metadata(&mut source, key_count)?;
    let alignment = alignment(&metadata)?;
    let (tensors, data_bytes) = read_tensors(&mut source, tensor_count, alignment)?;

    let end = source.offset();
    let bytes = if tensors.is_empty() {
        end
    } else {
        end.next_multiple_of(alignment)
    };
    Ok(Opening::Header(Header {
        metadata,
        tensors,
        bytes,
        data_bytes,
    }))
}

fn check_version(version: u32) -> Result<(), Fault> {
    match version {
        2 | 3 => Ok(()),
        // The upper half is where the small number of the other byte order would stand.
        other if other & 0xffff == 0 && other != 0 => Err(Fault::BigEndian),
        0 | 1 => Err(Fault::OldVersion(version)),
        _ => Err(Fault::NewVersion(version)),
    }
}

fn read_metadata<R: Read>(source: &mut Source<R>, count: u64) -> Result<Metadata, Stop> {
    if count > MAX_KEYS {
        return Err(Fault::TooMany {
            what: "keys",
            claimed: count,
            limit: MAX_KEYS,
        }
        .into());
    }
    let mut budget = KEPT_BYTES;
    let mut key_bytes = 0;
    let mut entries = Vec::new();
    for number in 0..count {
        let length = source.count(1, || format!("bytes for the name of key number {number}"))?;
        if length == 0 {
            return Err(Fault::EmptyKey(number).into());
        }
        if length > MAX_KEY_BYTES {
            return Err(Fault::LongKey(number, length).into());
        }
        key_bytes += length;
        if key_bytes > ALL_KEY_BYTES {
            return Err(Fault::TooMany {
                what: "bytes of keys",
                claimed: key_bytes,
                limit: ALL_KEY_BYTES,
            }
            .into());
        }
        let key = source.text(length, length)?.bytes.into_boxed_slice();
        let value = read_value(source, &key, &mut budget)?;
        entries.push((key, value));
    }
    Metadata::new(entries).map_err(|key| Fault::DuplicateKey(quoted(&key)).into())
}

fn read_type<R: Read>(source: &mut Source<R>, key: &[u8]) -> Result<ElementType, Stop> {
    let id = source.u32()?;
    ElementType::from_id(id).ok_or_else(|| {
        Fault::ValueType {
            key: quoted(key),
            id,
        }
        .into()
    })
}

fn read_value<R: Read>(
    source: &mut Source<R>,
    key: &[u8],
    budget: &mut u64,
) -> Result<Value, Stop> {
    let value_type = read_type(source, key)?;
    if key == b"general.alignment" && value_type != ElementType::U32 {
        return Err(Fault::Alignment("no 32-bit number".to_owned()).into());
    }
    match value_type {
        ElementType::Text => {
            let length = source.count(1, || format!("bytes for the text of {}", quoted(key)))?;
            let text = source.text(length, Text::KEPT.min(*budget))?;
            *budget -= text.bytes.len() as u64;
            Ok(Value::Text(text))
        }
        ElementType::Array => read_array(source, key, budget).map(Value::Array),
        scalar => Ok(match read_number(source, scalar)? {
            Number::Integer(value) if scalar == ElementType::Bool => Value::Bool(value != 0),
            Number::Integer(value) => Value::Integer(value),
            Number::Float(value) => Value::Float(value),
        }),
    }
}

enum Number {
    Integer(i128),
    Float(f64),
}

/// Reads one number. Texts and arrays are no numbers and read as nothing.
fn read_number<R: Read>(source: &mut Source<R>, element: ElementType) -> Result<Number, Stop> {
    Ok(match element {
        ElementType::U8 => Number::Integer(source.take::<1>()?[0].into()),
        ElementType::Bool => Number::Integer((source.take::<1>()?[0] != 0).into()),
        ElementType::I8 => Number::Integer(i8::from_le_bytes(source.take()?).into()),
        ElementType::U16 => Number::Integer(u16::from_le_bytes(source.take()?).into()),
        ElementType::I16 => Number::Integer(i16::from_le_bytes(source.take()?).into()),
        ElementType::U32 => Number::Integer(source.u32()?.into()),
        ElementType::I32 => Number::Integer(i32::from_le_bytes(source.take()?).into()),
        ElementType::U64 => Number::Integer(source.u64()?.into()),
        ElementType::I64 => Number::Integer(i64::from_le_bytes(source.take()?).into()),
        ElementType::F32 => Number::Float(f32::from_le_bytes(source.take()?).into()),
        ElementType::F64 => Number::Float(f64::from_le_bytes(source.take()?)),
        ElementType::Text | ElementType::Array => Number::Integer(0),
    })
}

/// Reads an array: keeps its numbers where they are few, else passes over it. Arrays in arrays are
/// walked with a list of what is left on each level, so that no file decides how deep we call.
fn read_array<R: Read>(
    source: &mut Source<R>,
    key: &[u8],
    budget: &mut u64,
) -> Result<Array, Stop> {
    let what = || format!("elements for the array {}", quoted(key));
    let element = read_type(source, key)?;
    let length = source.count(element.least_bytes(), what)?;

    let kept_bytes = length.saturating_mul(8);
    if element.bytes().is_some() && length <= Array::KEPT && kept_bytes <= *budget {
        *budget -= kept_bytes;
        let numbers = read_numbers(source, element, length)?;
        return Ok(Array {
            element,
            length,
            numbers: Some(numbers),
        });
    }

    let mut levels = vec![(element, length)];
    while let Some((element, left)) = levels.last_mut() {
        match element.bytes() {
            Some(bytes) => source.skip(left.saturating_mul(bytes))?,
            None if *element == ElementType::Text => {
                source.skip_texts(*left, || format!("bytes for a text in {}", quoted(key)))?;
            }
            None if *left > 0 => {
                *left -= 1;
                if levels.len() == MAX_NESTING {
                    return Err(Fault::NestedTooDeep(quoted(key)).into());
                }
                let inner = read_type(source, key)?;
                let count = source.count(inner.least_bytes(), what)?;
                levels.push((inner, count));
                continue;
            }
            None => {}
        }
        levels.pop();
    }
    Ok(Array {
        element,
        length,
        numbers: None,
    })
}

fn read_numbers<R: Read>(
    source: &mut Source<R>,
    element: ElementType,
    length: u64,
) -> Result<Numbers, Stop> {
    let length = length as usize;
    if matches!(element, ElementType::F32 | ElementType::F64) {
        let mut floats = Vec::with_capacity(length);
        for _ in 0..length {
            if let Number::Float(value) = read_number(source, element)? {
                floats.push(value);
            }
        }
        return Ok(Numbers::Floats(floats));
    }
    let mut integers = Vec::with_capacity(length);
    for _ in 0..length {
        if let Number::Integer(value) = read_number(source, element)? {
            integers.push(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
    Ok(Numbers::Integers(integers))
}

/// `general.alignment`: absent, or a 32-bit power of two.
fn alignment(metadata: &Metadata) -> Result<u64, Fault> {
    let Some(Value::Integer(value)) = metadata.get("general.alignment") else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    u32::try_from(*value)
        .ok()
        .filter(|alignment| alignment.is_power_of_two())
        .map(u64::from)
        .ok_or_else(|| Fault::Alignment(value.to_string()))
}

/// Reads the tensor list; with it the bytes of the data up to the end of the last tensor.
fn read_tensors<R: Read>(
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
            .filter(|end| *end <= MAX_DATA_BYTES)
            .ok_or_else(|| Fault::Size(quoted(tensor.name.as_bytes())))?;
        tensors.push(tensor);
    }
    refuse_duplicates(&tensors, broken_names)?;
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
    let tensor_type = TensorType::from_id(id).ok_or_else(|| match withdrawn_type(id) {
        Some(was) => Fault::WithdrawnType {
            name: name_for_fault(),
            was,
        },
        None => Fault::TensorType {
            name: name_for_fault(),
            id,
        },
    })?;
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
        .filter(|bytes| *bytes <= MAX_DATA_BYTES)
        .ok_or_else(|| Fault::Size(name_for_fault()))?;
    let tensor = TensorInfo {
        name,
        dimensions,
        tensor_type,
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
