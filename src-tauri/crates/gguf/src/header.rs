//! Reads one file's header by the rules of llama.cpp's `gguf.cpp`.

use std::io::Read;

use crate::error::Fault;
use crate::lookalike::Lookalike;
use crate::metadata::{Array, ElementType, Metadata, Numbers, Text, Value};
use crate::model::TensorInfo;
use crate::source::{Source, Stop};
use crate::tensor_list::read_tensors;
use crate::text::quoted;

/// The most keys. Real files have some dozens.
const MAX_KEYS: u64 = 16_384;

/// The longest key; the format allows 65,535 bytes.
const MAX_KEY_BYTES: u64 = 65_535;

/// How deep arrays may lie in arrays. No file in use has any.
const MAX_NESTING: usize = 8;

/// Most bytes of all keys together.
const ALL_KEY_BYTES: u64 = 1 << 20;

/// Bytes of texts and numbers that are kept of one header; beyond it only lengths are.
const KEPT_BYTES: u64 = 2 << 20;

/// Alignment of the data where `general.alignment` is absent.
const DEFAULT_ALIGNMENT: u64 = 32;

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
