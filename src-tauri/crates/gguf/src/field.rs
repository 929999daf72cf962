//! Values for the writer, encoded as they stand in a file.

/// A value as it stands in a file: made from numbers, booleans, texts, and lists of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub(crate) type_id: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Field {
    /// A value of a type id and bytes, whatever they are.
    #[must_use]
    pub fn raw(type_id: u32, bytes: Vec<u8>) -> Field {
        Field { type_id, bytes }
    }

    /// A list of texts.
    pub fn texts<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Field {
        let mut items = Vec::new();
        let mut count = 0;
        for text in texts {
            push_text(&mut items, text.as_ref());
            count += 1;
        }
        Field::list(8, count, &items)
    }

    fn list(element_id: u32, count: u64, items: &[u8]) -> Field {
        let mut bytes = element_id.to_le_bytes().to_vec();
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(items);
        Field { type_id: 9, bytes }
    }
}

/// A text as it stands in a file: its length, then its bytes.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

macro_rules! numbers {
    ($($number:ty = $id:literal),*) => {
        $(
            impl From<$number> for Field {
                fn from(value: $number) -> Field {
                    Field { type_id: $id, bytes: value.to_le_bytes().to_vec() }
                }
            }

            impl From<&[$number]> for Field {
                fn from(values: &[$number]) -> Field {
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                    Field::list($id, values.len() as u64, &bytes)
                }
            }
        )*
    };
}

numbers!(
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    u64 = 10,
    i64 = 11,
    f64 = 12
);

impl From<bool> for Field {
    fn from(value: bool) -> Field {
        Field {
            type_id: 7,
            bytes: vec![value.into()],
        }
    }
}

impl From<&[bool]> for Field {
    fn from(values: &[bool]) -> Field {
        let bytes: Vec<u8> = values.iter().map(|value| u8::from(*value)).collect();
        Field::list(7, values.len() as u64, &bytes)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Field {
        Field::from(text.as_bytes().to_vec())
    }
}

impl From<Vec<u8>> for Field {
    /// A text of these bytes.
    fn from(text: Vec<u8>) -> Field {
        let mut bytes = Vec::new();
        push_text(&mut bytes, &text);
        Field { type_id: 8, bytes }
    }
}
