//! The key-value part of a header, as far as it is kept.

use std::borrow::Cow;

use crate::text::lossy;

/// What the header says by key. Numbers and texts are kept; of long arrays (a tokenizer's words)
/// only the length and the element type, so that a header costs little memory whatever it holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// Sorted by key, without duplicates.
    entries: Vec<(Box<[u8]>, Value)>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any integer; the widths of files differ where they should not.
    Integer(i128),
    /// 32 or 64 bit.
    Float(f64),
    /// Any byte but 0 is true.
    Bool(bool),
    /// Bytes, since nothing makes a file use UTF-8.
    Text(Text),
    /// A list.
    Array(Array),
}

/// A text's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The first of them, up to [`Text::KEPT`].
    pub bytes: Vec<u8>,
    /// How many the file holds.
    pub length: u64,
}

impl Text {
    /// Bytes kept of one text: templates are long, names are short.
    pub const KEPT: u64 = 64 * 1024;
}

/// A list: how long, of what, and its numbers where they are few enough to be one per layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Of what.
    pub element: ElementType,
    /// Elements in the file.
    pub length: u64,
    /// The numbers; `None` when there are more than [`Array::KEPT`] or they are no numbers.
    pub numbers: Option<Numbers>,
}

impl Array {
    /// Longest array whose numbers are kept. Per-layer arrays have up to 512 entries.
    pub const KEPT: u64 = 4096;
}

/// The numbers of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Integers and booleans (0 and 1). What does not fit is cut to the largest or smallest.
    Integers(Vec<i64>),
    /// Floating point.
    Floats(Vec<f64>),
}

/// GGUF's value types, by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it all
pub enum ElementType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    Text = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ElementType {
    /// The type with this id.
    #[must_use]
    pub fn from_id(id: u32) -> Option<ElementType> {
        use ElementType as E;
        [
            E::U8,
            E::I8,
            E::U16,
            E::I16,
            E::U32,
            E::I32,
            E::F32,
            E::Bool,
            E::Text,
            E::Array,
            E::U64,
            E::I64,
            E::F64,
        ]
        .get(usize::try_from(id).ok()?)
        .copied()
    }

    /// Bytes of one value; `None` for texts and arrays, which carry their own length.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        match self {
            ElementType::U8 | ElementType::I8 | ElementType::Bool => Some(1),
            ElementType::U16 | ElementType::I16 => Some(2),
            ElementType::U32 | ElementType::I32 | ElementType::F32 => Some(4),
            ElementType::U64 | ElementType::I64 | ElementType::F64 => Some(8),
            ElementType::Text | ElementType::Array => None,
        }
    }

    /// The fewest bytes that one value takes in a file.
    pub(crate) fn least_bytes(self) -> u64 {
        match self {
            ElementType::Text => 8,
            ElementType::Array => 12,
            other => other.bytes().unwrap_or(1),
        }
    }
}

impl Metadata {
    /// Takes the entries as a file lists them; `Err` is the first key that is there twice.
    pub(crate) fn new(mut entries: Vec<(Box<[u8]>, Value)>) -> Result<Metadata, Box<[u8]>> {
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(pair[0].0.clone());
        }
        Ok(Metadata { entries })
    }

    /// The value under `key`, just as it is (0 is 0).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let index = self
            .entries
            .binary_search_by(|entry| entry.0.as_ref().cmp(key.as_bytes()))
            .ok()?;
        self.entries.get(index).map(|entry| &entry.1)
    }

    /// Keys (as bytes allow) and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, &Value)> {
        self.entries
            .iter()
            .map(|(key, value)| (String::from_utf8_lossy(key), value))
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// `general.architecture`, where it is UTF-8 and says something.
    #[must_use]
    pub fn architecture(&self) -> Option<&str> {
        match self.get("general.architecture")? {
            Value::Text(text) => std::str::from_utf8(&text.bytes)
                .ok()
                .filter(|name| !name.is_empty()),
            _ => None,
        }
    }

    /// The full key of one of the architecture's own: `attention.head_count_kv` becomes
    /// `llama.attention.head_count_kv`.
    #[must_use]
    pub fn arch_key(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.architecture().unwrap_or_default())
    }

    /// A positive integer of any width (a boolean counts as 0 or 1). A key that is present and 0
    /// is absent: files carry such zeros for what their architecture does not have.
    #[must_use]
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.integer(key)
            .and_then(|value| u64::try_from(value).ok())
            .filter(|value| *value > 0)
    }

    /// The integer or boolean under `key`, 0 included.
    pub(crate) fn integer(&self, key: &str) -> Option<i128> {
        match self.get(key)? {
            Value::Integer(value) => Some(*value),
            Value::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// A number that is not 0 (which counts as absent).
    #[must_use]
    pub fn f64(&self, key: &str) -> Option<f64> {
        let value = match self.get(key)? {
            Value::Float(value) => *value,
            Value::Integer(value) => *value as f64,
            _ => return None,
        };
        (value != 0.0).then_some(value)
    }

    /// A yes or no; here `false` is an answer. Integers count as in C.
    #[must_use]
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.integer(key).map(|value| value != 0)
    }

    /// A text, as its bytes allow; empty counts as absent.
    #[must_use]
    pub fn str(&self, key: &str) -> Option<Cow<'_, str>> {
        match self.get(key)? {
            Value::Text(text) if text.length > 0 => Some(lossy(&text.bytes)),
            _ => None,
        }
    }

    /// Elements of the array under `key` (`tokenizer.ggml.tokens`: the size of the vocabulary);
    /// an empty one counts as absent.
    #[must_use]
    pub fn array_len(&self, key: &str) -> Option<u64> {
        self.array(key)
            .map(|array| array.length)
            .filter(|length| *length > 0)
    }

    /// The array under `key`.
    #[must_use]
    pub fn array(&self, key: &str) -> Option<&Array> {
        match self.get(key)? {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// [`Metadata::u64`] of one of the architecture's own keys.
    #[must_use]
    pub fn arch_u64(&self, suffix: &str) -> Option<u64> {
        self.u64(&self.arch_key(suffix))
    }

    /// [`Metadata::f64`] of one of the architecture's own keys.
    #[must_use]
    pub fn arch_f64(&self, suffix: &str) -> Option<f64> {
        self.f64(&self.arch_key(suffix))
    }

    /// One integer per layer, `block_count` of them: an array's first entries, or a scalar for all
    /// layers. Inside an array 0 is an answer (a layer without attention heads); a scalar 0 is
    /// absent. `None` when there is no such key or no block count, when the array is shorter than
    /// the layers are many, and when an entry is negative or no integer.
    #[must_use]
    pub fn per_layer_u64(&self, suffix: &str) -> Option<Vec<u64>> {
        let key = self.arch_key(suffix);
        let layers = usize::try_from(self.arch_u64("block_count")?)
            .ok()
            .filter(|n| *n as u64 <= Array::KEPT)?;
        match self.get(&key)? {
            Value::Array(Array {
                numbers: Some(Numbers::Integers(values)),
                ..
            }) => values
                .get(..layers)?
                .iter()
                .map(|value| u64::try_from(*value).ok())
                .collect(),
            Value::Array(_) => None,
            _ => Some(vec![self.u64(&key)?; layers]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::testing::{read_back, two_layers, with};

    fn metadata(key: &str, value: impl Into<Field>) -> Metadata {
        read_back(&with(two_layers("lfm2"), key, value)).metadata
    }

    #[test]
    fn a_key_that_is_zero_is_absent() {
        assert_eq!(
            metadata("lfm2.kda.head_dim", 0u32).arch_u64("kda.head_dim"),
            None
        );
        assert_eq!(
            metadata("lfm2.kda.head_dim", 64u32).arch_u64("kda.head_dim"),
            Some(64)
        );
        assert_eq!(
            metadata("lfm2.logit_scale", 0f32).arch_f64("logit_scale"),
            None
        );
        let zero = metadata("lfm2.kda.head_dim", 0u32);
        assert_eq!(
            zero.get("lfm2.kda.head_dim"),
            Some(&Value::Integer(0)),
            "but it is there"
        );
    }

    #[test]
    fn any_width_of_integer_is_read() {
        for value in [
            Field::from(7u8),
            7i8.into(),
            7u16.into(),
            7i32.into(),
            7u64.into(),
            7i64.into(),
        ] {
            assert_eq!(metadata("lfm2.x", value).arch_u64("x"), Some(7));
        }
        assert_eq!(
            metadata("lfm2.x", -7i32).arch_u64("x"),
            None,
            "a count is not negative"
        );
        assert_eq!(
            metadata("lfm2.x", "7").arch_u64("x"),
            None,
            "a text is no number"
        );
    }

    #[test]
    fn a_scalar_holds_for_every_layer_and_an_array_for_its_own() {
        let key = "lfm2.attention.head_count_kv";
        let per_layer =
            |value: Field| metadata(key, value).per_layer_u64("attention.head_count_kv");
        assert_eq!(per_layer(8u32.into()), Some(vec![8, 8]));
        assert_eq!(
            per_layer((&[0u32, 8][..]).into()),
            Some(vec![0, 8]),
            "0 is an answer in an array"
        );
        assert_eq!(
            per_layer((&[1i32; 512][..]).into()),
            Some(vec![1, 1]),
            "only two layers count"
        );
        assert_eq!(per_layer((&[true, false][..]).into()), Some(vec![1, 0]));
        assert_eq!(per_layer((&[8u32][..]).into()), None, "too short");
        assert_eq!(per_layer((&[-1i32, 8][..]).into()), None, "no count");
        assert_eq!(per_layer((&[0.5f32, 0.5][..]).into()), None, "no integers");
        assert_eq!(per_layer(0u32.into()), None);
    }

    #[test]
    fn of_a_vocabulary_only_the_length_is_kept() {
        let words = (0..5000).map(|number| number.to_string());
        let metadata = metadata("tokenizer.ggml.tokens", Field::texts(words));
        assert_eq!(metadata.array_len("tokenizer.ggml.tokens"), Some(5000));
        let array = metadata.array("tokenizer.ggml.tokens").unwrap();
        assert_eq!(
            (array.element, array.numbers.clone()),
            (ElementType::Text, None)
        );
    }

    #[test]
    fn bytes_that_are_no_unicode_are_kept_and_shown_with_a_replacement() {
        let metadata = metadata("lfm2.word", b"caf\xe9".to_vec());
        assert_eq!(metadata.str("lfm2.word").as_deref(), Some("caf\u{fffd}"));
        let Some(Value::Text(text)) = metadata.get("lfm2.word") else {
            panic!()
        };
        assert_eq!(text.bytes, b"caf\xe9");
    }

    #[test]
    fn a_byte_other_than_0_is_true() {
        assert_eq!(
            metadata("lfm2.x", Field::raw(7, vec![2])).bool("lfm2.x"),
            Some(true)
        );
        assert_eq!(
            metadata("lfm2.x", false).bool("lfm2.x"),
            Some(false),
            "false is an answer"
        );
    }
}
