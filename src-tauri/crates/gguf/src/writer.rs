//! Writes GGUF, version 3.

use std::io::{self, Write};

use crate::field::{Field, push_text};
use crate::model::{Dimensions, TensorInfo};
use crate::tensor_list::MAX_BYTES;
use crate::tensor_type::TensorType;

/// Collects keys and tensors, then writes the header, and the tensors as a callback hands them over.
///
/// ```
/// use twospeed_gguf::{TensorType, Writer, read_from};
///
/// let mut writer = Writer::new();
/// writer.set("general.architecture", "llama").set("llama.block_count", 1u32);
/// writer.tensor("blk.0.attn_q.weight", TensorType::F32, &[4, 2])?;
/// let mut file = Vec::new();
/// writer.write(&mut file, |_tensor, out| out.write_all(&[0; 32]))?;
///
/// let model = read_from(&file[..], "tiny.gguf", file.len() as u64)?;
/// assert_eq!(model.parameters, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Writer {
    fields: Vec<(Vec<u8>, Field)>,
    tensors: Vec<TensorInfo>,
    alignment: u64,
    /// End of the last tensor, from the start of the data.
    end: u64,
}

/// What cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Two tensors of one name.
    #[error("the tensor {0} was added twice.")]
    Duplicate(String),
    /// More than 63 bytes.
    #[error("the tensor name {0} is longer than 63 bytes.")]
    Name(String),
    /// Too many dimensions, partial blocks, or more than 2^53 bytes of file.
    #[error("the tensor {name} cannot be {dimensions:?} of {tensor_type}.")]
    Shape {
        /// The tensor.
        name: String,
        /// Its dimensions.
        dimensions: Vec<u64>,
        /// Its type.
        tensor_type: &'static str,
    },
    /// The callback wrote too much or too little.
    #[error("the tensor {name} takes {expected} bytes, and {written} were handed over.")]
    Length {
        /// The tensor.
        name: String,
        /// Its bytes.
        expected: u64,
        /// What the callback wrote.
        written: u64,
    },
    /// The place to write to failed.
    #[error("writing failed: {0}.")]
    Io(#[from] io::Error),
}

impl Default for Writer {
    fn default() -> Writer {
        Writer::new()
    }
}

impl Writer {
    /// An empty file, with data aligned to 32 bytes.
    #[must_use]
    pub fn new() -> Writer {
        Writer {
            fields: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
            end: 0,
        }
    }

    /// An empty file with data aligned to `1 << log2` bytes (at most `1 << 31`), which it says in
    /// `general.alignment`.
    #[must_use]
    pub fn with_alignment(log2: u32) -> Writer {
        let alignment = 1u32 << log2.min(31);
        let mut writer = Writer {
            alignment: alignment.into(),
            ..Writer::new()
        };
        writer.set("general.alignment", alignment);
        writer
    }

    /// Sets a key; the last value of a key counts. The width of a number matters to readers:
    /// llama.cpp wants counts as `u32`, split numbers as `u16`.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl Into<Field>) -> &mut Writer {
        let (key, value) = (key.as_ref(), value.into());
        match self.fields.iter_mut().find(|(there, _)| there == key) {
            Some((_, slot)) => *slot = value,
            None => self.fields.push((key.to_owned(), value)),
        }
        self
    }

    /// Adds a tensor behind the others; `dimensions` has the row's length first.
    pub fn tensor(
        &mut self,
        name: &str,
        tensor_type: TensorType,
        dimensions: &[u64],
    ) -> Result<&mut Writer, WriteError> {
        let shape_error = || WriteError::Shape {
            name: name.to_owned(),
            dimensions: dimensions.to_owned(),
            tensor_type: tensor_type.name(),
        };
        if name.len() > 63 {
            return Err(WriteError::Name(name.to_owned()));
        }
        if self.tensors.iter().any(|tensor| tensor.name == name) {
            return Err(WriteError::Duplicate(name.to_owned()));
        }
        let mut sizes = [1; 4];
        sizes
            .get_mut(..dimensions.len())
            .ok_or_else(shape_error)?
            .copy_from_slice(dimensions);
        let dimensions = Dimensions::new(sizes, dimensions.len());
        let elements = dimensions.elements().ok_or_else(shape_error)?;
        if !dimensions
            .row()
            .is_multiple_of(tensor_type.block_elements())
        {
            return Err(shape_error());
        }
        let bytes = tensor_type.bytes(elements).ok_or_else(shape_error)?;
        let offset = self
            .end
            .checked_next_multiple_of(self.alignment)
            .ok_or_else(shape_error)?;
        let end = offset.checked_add(bytes).filter(|end| *end <= MAX_BYTES);
        self.end = end.ok_or_else(shape_error)?;
        self.tensors.push(TensorInfo {
            name: name.to_owned(),
            dimensions,
            tensor_type,
            new_type: None,
            elements,
            bytes,
            offset,
            part: 0,
        });
        Ok(self)
    }

    /// The tensors added so far.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Bytes of the whole file, padding at its end included.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.header().len() as u64 + self.end.next_multiple_of(self.alignment)
    }

    /// The header with the padding before the data: what a header file holds.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend_from_slice(&3u32.to_le_bytes());
        out.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.fields.len() as u64).to_le_bytes());
        for (key, field) in &self.fields {
            push_text(&mut out, key);
            out.extend_from_slice(&field.type_id.to_le_bytes());
            out.extend_from_slice(&field.bytes);
        }
        for tensor in &self.tensors {
            push_text(&mut out, tensor.name.as_bytes());
            out.extend_from_slice(&(tensor.dimensions.len() as u32).to_le_bytes());
            for size in tensor.dimensions.iter() {
                out.extend_from_slice(&size.to_le_bytes());
            }
            out.extend_from_slice(&tensor.tensor_type.id().to_le_bytes());
            out.extend_from_slice(&tensor.offset.to_le_bytes());
        }
        if !self.tensors.is_empty() {
            let padding = (out.len() as u64).next_multiple_of(self.alignment) - out.len() as u64;
            out.resize(out.len() + padding as usize, 0);
        }
        out
    }

    /// Writes the whole file. `data` is called for each tensor in order and has to write exactly its
    /// bytes. `out` should be buffered.
    pub fn write<W: Write>(
        &self,
        out: &mut W,
        mut data: impl FnMut(&TensorInfo, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        out.write_all(&self.header())?;
        for tensor in &self.tensors {
            let mut counted = Counted {
                inner: &mut *out,
                written: 0,
            };
            data(tensor, &mut counted)?;
            let written = counted.written;
            if written != tensor.bytes {
                return Err(WriteError::Length {
                    name: tensor.name.clone(),
                    expected: tensor.bytes,
                    written,
                });
            }
            let padding = tensor.bytes.next_multiple_of(self.alignment) - tensor.bytes;
            io::copy(&mut io::Read::take(io::repeat(0), padding), out)?;
        }
        out.flush()?;
        Ok(())
    }
}

struct Counted<'a, W> {
    inner: &'a mut W,
    written: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Array, ElementType, Numbers, Value};
    use crate::model::Data;
    use crate::read::read_from;

    fn written(writer: &Writer) -> Vec<u8> {
        let mut file = Vec::new();
        writer
            .write(&mut file, |tensor, out| {
                out.write_all(&vec![1; tensor.bytes as usize])
            })
            .unwrap();
        file
    }

    #[test]
    fn every_kind_of_value_comes_back_as_it_was_set() {
        let mut writer = Writer::new();
        writer
            .set("u8", u8::MAX)
            .set("i8", i8::MIN)
            .set("u16", u16::MAX)
            .set("i16", i16::MIN)
            .set("u32", u32::MAX)
            .set("i32", i32::MIN)
            .set("u64", u64::MAX)
            .set("i64", i64::MIN)
            .set("f32", 0.5f32)
            .set("f64", -0.25f64)
            .set("bool", true)
            .set("text", "é")
            .set("words", Field::texts(["a", "b", ""]))
            .set("numbers", &[1i32, -1][..])
            .set("floats", &[0.5f32][..])
            .set("flags", &[true, false][..]);
        let file = written(&writer);
        let model = read_from(&file[..], "x", file.len() as u64).unwrap();
        let metadata = model.metadata();
        let integer = |key| match metadata.get(key) {
            Some(Value::Integer(value)) => *value,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(integer("u8"), 255);
        assert_eq!(integer("i8"), -128);
        assert_eq!(integer("u16"), 65_535);
        assert_eq!(integer("i16"), -32_768);
        assert_eq!(integer("u32"), i128::from(u32::MAX));
        assert_eq!(integer("i32"), i128::from(i32::MIN));
        assert_eq!(integer("u64"), i128::from(u64::MAX));
        assert_eq!(integer("i64"), i128::from(i64::MIN));
        assert_eq!(metadata.get("f32"), Some(&Value::Float(0.5)));
        assert_eq!(metadata.get("f64"), Some(&Value::Float(-0.25)));
        assert_eq!(metadata.get("bool"), Some(&Value::Bool(true)));
        assert_eq!(metadata.str("text").as_deref(), Some("é"));
        let array = |element, length, numbers| {
            Some(Value::Array(Array {
                element,
                length,
                numbers,
            }))
        };
        assert_eq!(
            metadata.get("words").cloned(),
            array(ElementType::Text, 3, None)
        );
        let numbers = Some(Numbers::Integers(vec![1, -1]));
        assert_eq!(
            metadata.get("numbers").cloned(),
            array(ElementType::I32, 2, numbers)
        );
        let floats = Some(Numbers::Floats(vec![0.5]));
        assert_eq!(
            metadata.get("floats").cloned(),
            array(ElementType::F32, 1, floats)
        );
        let flags = Some(Numbers::Integers(vec![1, 0]));
        assert_eq!(
            metadata.get("flags").cloned(),
            array(ElementType::Bool, 2, flags)
        );
    }

    #[test]
    fn tensors_lie_aligned_and_whole_whatever_the_alignment() {
        for log2 in [0, 3, 5, 12] {
            let mut writer = Writer::with_alignment(log2);
            writer.tensor("a", TensorType::Q4_0, &[32]).unwrap();
            writer.tensor("b", TensorType::F32, &[3, 1, 2]).unwrap();
            writer.tensor("scalar", TensorType::F16, &[]).unwrap();
            let file = written(&writer);
            assert_eq!(file.len() as u64, writer.file_bytes());
            let model = read_from(&file[..], "x", file.len() as u64).unwrap();
            assert_eq!(model.data, Data::Complete, "alignment {}", 1 << log2);
            for tensor in &model.tensors {
                assert_eq!(tensor.offset % (1 << log2), 0);
                let start = (model.header_bytes + tensor.offset) as usize;
                assert!(
                    file[start..][..tensor.bytes as usize]
                        .iter()
                        .all(|byte| *byte == 1)
                );
            }
            assert_eq!(model.tensors[1].dimensions[..], [3, 1, 2]);
            assert_eq!(model.tensors[2].elements, 1, "no dimensions: one element");
        }
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        let mut writer = Writer::new();
        writer
            .set("general.name", "First")
            .set("general.name", "Second");
        let header = writer.header();
        let model = read_from(&header[..], "x", header.len() as u64).unwrap();
        assert_eq!(model.name, "Second");
    }

    #[test]
    fn a_tensor_that_no_reader_takes_is_not_written() {
        let mut writer = Writer::new();
        let mut add = |name: &str, tensor_type, dimensions: &[u64]| {
            writer
                .tensor(name, tensor_type, dimensions)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        let long = "x".repeat(64);
        assert!(add(&long, TensorType::F32, &[1]).ends_with("is longer than 63 bytes."));
        assert_eq!(
            add("a", TensorType::Q4K, &[100]),
            "the tensor a cannot be [100] of Q4_K."
        );
        assert_eq!(
            add("a", TensorType::F32, &[1; 5]),
            "the tensor a cannot be [1, 1, 1, 1, 1] of F32."
        );
        assert!(add("a", TensorType::F32, &[1 << 60]).starts_with("the tensor a cannot be"));
        writer.tensor("a", TensorType::F32, &[1]).unwrap();
        let again = writer
            .tensor("a", TensorType::F32, &[1])
            .map(|_| ())
            .unwrap_err();
        assert_eq!(again.to_string(), "the tensor a was added twice.");
    }

    #[test]
    fn a_callback_that_writes_too_little_is_found_out() {
        let mut writer = Writer::new();
        writer.tensor("a", TensorType::F32, &[2]).unwrap();
        let result = writer.write(&mut Vec::new(), |_, out| out.write_all(&[0; 4]));
        assert_eq!(
            result.unwrap_err().to_string(),
            "the tensor a takes 8 bytes, and 4 were handed over."
        );
    }
}
