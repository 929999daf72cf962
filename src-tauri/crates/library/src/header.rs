//! A model's header with its bytes: what the reader keeps of it is not all that a twin needs, the
//! words of a tokenizer for one.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use twospeed_gguf::{Array, ElementType, Error, Field, Model};

/// A model's header, read from a file here or elsewhere.
#[derive(Clone, PartialEq)]
pub struct ModelHeader {
    /// What it says.
    pub model: Model,
    /// The file up to its data; of a split set the first part's, or one that stands for all parts.
    bytes: Vec<u8>,
    /// Bytes that were read to know it.
    pub bytes_read: u64,
}

/// Megabytes of words say nothing to anybody.
impl fmt::Debug for ModelHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelHeader")
            .field("name", &self.model.name)
            .field("bytes", &self.bytes.len())
            .field("bytes_read", &self.bytes_read)
            .finish_non_exhaustive()
    }
}

/// A key and its value as they stand in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawField<'a> {
    pub key: &'a [u8],
    pub type_id: u32,
    pub value: &'a [u8],
}

impl RawField<'_> {
    /// The value for the writer.
    pub fn field(&self) -> Field {
        Field::raw(self.type_id, self.value.to_vec())
    }
}

impl ModelHeader {
    /// Reads the header of a file; of a split set, of every part.
    ///
    /// Errors: those of [`twospeed_gguf::read`] and [`Model::check`]: a set with missing parts and
    /// a file that is cut short are refused, a header alone is not.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = twospeed_gguf::read(path)?;
        model.check()?;
        let first = model.parts.first().filter(|part| part.number == 1);
        let (path, length) = first.map_or((path, model.header_bytes), |part| {
            (part.path.as_path(), part.header_bytes)
        });
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(length).read_to_end(&mut bytes))
            .map_err(|reason| Error::Unreadable {
                file: crate::display::shown_path(path),
                reason,
            })?;
        Ok(Self {
            bytes_read: model.header_bytes,
            model,
            bytes,
        })
    }

    /// Of a header that was read; `bytes` may go on behind it.
    pub(crate) fn new(model: Model, mut bytes: Vec<u8>, bytes_read: u64) -> Self {
        bytes.truncate(usize::try_from(model.header_bytes).unwrap_or(usize::MAX));
        Self {
            model,
            bytes,
            bytes_read,
        }
    }

    /// The file up to its data.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its keys in the order of the file; `None` where they cannot be told apart, which the reader
    /// of the model would have refused.
    pub(crate) fn fields(&self) -> Option<Vec<RawField<'_>>> {
        let mut bytes = Cursor(&self.bytes);
        bytes.take(4 + 4 + 8)?;
        let count = bytes.u64()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let length = bytes.u64()?;
            let key = bytes.take(length)?;
            let type_id = bytes.u32()?;
            let before = bytes.0;
            bytes.skip_value(type_id)?;
            let value = before.get(..before.len() - bytes.0.len())?;
            fields.push(RawField {
                key,
                type_id,
                value,
            });
        }
        Some(fields)
    }
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

/// How deep lists may lie in lists: what the reader takes.
const MAX_NESTING: usize = 8;

impl<'a> Cursor<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn skip_value(&mut self, type_id: u32) -> Option<()> {
        // Lists that are open: the type of their elements, and how many are left.
        let mut open = vec![(ElementType::from_id(type_id)?, 1u64)];
        while let Some((element, left)) = open.last_mut() {
            let (element, count) = (*element, *left);
            if count == 0 {
                open.pop();
                continue;
            }
            match (element, element.bytes()) {
                (_, Some(bytes)) => {
                    self.take(bytes.checked_mul(count)?)?;
                    open.pop();
                }
                (ElementType::Array, None) => {
                    *left -= 1;
                    if open.len() > MAX_NESTING {
                        return None;
                    }
                    let element = ElementType::from_id(self.u32()?)?;
                    open.push((element, self.u64()?));
                }
                (_, None) => {
                    *left -= 1;
                    let length = self.u64()?;
                    self.take(length)?;
                }
            }
        }
        Some(())
    }
}

/// The numbers of a list at these places, as a value for the writer; `None` where it is shorter.
///
/// `list` is the list as the reader knows it, `field` as it stands in the file.
pub(crate) fn picked(list: &Array, field: &RawField<'_>, places: &[u32]) -> Option<Field> {
    let width = list.element.bytes()?;
    let mut cursor = Cursor(field.value);
    cursor.take(4 + 8)?;
    let elements = cursor.0;
    let mut bytes = (list.element as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&(places.len() as u64).to_le_bytes());
    for place in places {
        let at = usize::try_from(u64::from(*place).checked_mul(width)?).ok()?;
        bytes.extend_from_slice(elements.get(at..at.checked_add(width as usize)?)?);
    }
    Some(Field::raw(field.type_id, bytes))
}

#[cfg(test)]
mod tests {
    use twospeed_gguf::{TensorType, Writer, read_from};

    use super::*;

    fn header(writer: &Writer) -> ModelHeader {
        let bytes = writer.header();
        let model = read_from(&bytes[..], "x.gguf", 1 << 20).unwrap();
        let length = bytes.len() as u64;
        ModelHeader::new(model, [bytes, vec![7; 99]].concat(), length)
    }

    #[test]
    fn every_kind_of_value_is_found_as_it_stands_in_the_file() {
        let mut writer = Writer::new();
        let nested = [
            &9u32.to_le_bytes()[..],
            &1u64.to_le_bytes(),
            &5u32.to_le_bytes(),
            &2u64.to_le_bytes(),
            &[1, 0, 0, 0, 2, 0, 0, 0],
        ]
        .concat();
        let values: [(&str, Field); 6] = [
            ("number", 7u32.into()),
            ("text", "é".into()),
            ("words", Field::texts(["a", "", "long"])),
            ("list", (&[1i32, -1, 5][..]).into()),
            ("nested", Field::raw(9, nested)),
            ("none", Field::texts::<&str>([])),
        ];
        for (key, field) in &values {
            writer.set(key, field.clone());
        }
        writer.tensor("a", TensorType::F32, &[4]).unwrap();
        let header = header(&writer);
        let fields = header.fields().unwrap();
        assert_eq!(fields.len(), values.len());
        for (found, (key, field)) in fields.iter().zip(&values) {
            assert_eq!(found.key, key.as_bytes());
            assert_eq!(&found.field(), field, "{key}");
        }
    }

    #[test]
    fn entries_of_a_list_are_picked_by_their_places() {
        let mut writer = Writer::new();
        writer
            .set("numbers", &[10i32, 20, 30][..])
            .set("flags", &[true, false, true][..]);
        let header = header(&writer);
        let fields = header.fields().unwrap();
        let pick = |at: usize, key, places: &[u32]| {
            let list = header.model.metadata().array(key).unwrap();
            picked(list, &fields[at], places)
        };
        let expected = Field::from(&[30i32, 10, 10][..]);
        assert_eq!(pick(0, "numbers", &[2, 0, 0]), Some(expected));
        let expected = Field::from(&[false, true][..]);
        assert_eq!(pick(1, "flags", &[1, 2]), Some(expected));
        assert_eq!(pick(0, "numbers", &[3]), None, "there is no such entry");
    }

    #[test]
    fn a_file_here_is_read_up_to_its_data() {
        let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let header = ModelHeader::open(&path).unwrap();
        assert_eq!(header.bytes.len() as u64, header.model.header_bytes);
        let fields = header.fields().unwrap();
        assert_eq!(fields.len(), header.model.metadata().len());
        assert!(ModelHeader::open(Path::new("missing.gguf")).is_err());
    }
}
