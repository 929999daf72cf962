//! The types a KV cache can be kept in.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twospeed_gguf::TensorType;

/// Type of the elements of a KV cache: one of those that llama-bench's `-ctk` and `-ctv` take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KvType(TensorType);

impl KvType {
    /// 2 bytes each: the engine's default.
    pub const F16: Self = Self(TensorType::F16);
    /// 34 bytes for 32.
    pub const Q8_0: Self = Self(TensorType::Q8_0);
    /// 18 bytes for 32.
    pub const Q4_0: Self = Self(TensorType::Q4_0);

    /// All of them, the engine's default first.
    pub const ALL: [Self; 9] = [
        Self::F16,
        Self(TensorType::F32),
        Self(TensorType::Bf16),
        Self::Q8_0,
        Self::Q4_0,
        Self(TensorType::Q4_1),
        Self(TensorType::Iq4Nl),
        Self(TensorType::Q5_0),
        Self(TensorType::Q5_1),
    ];

    /// Elements that share a scale; 1 where each stands for itself.
    pub fn block_elements(self) -> u64 {
        self.0.block_elements()
    }

    /// Whether elements are stored in blocks that share a scale.
    pub fn is_quantized(self) -> bool {
        self.block_elements() > 1
    }

    /// Bytes of a row of `elements`; `None` where the row is no whole number of blocks.
    pub fn row_bytes(self, elements: u64) -> Option<u64> {
        self.0.bytes(elements)
    }
}

impl Default for KvType {
    fn default() -> Self {
        Self::F16
    }
}

/// As llama-bench spells it: `f16`, `q8_0`.
impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.name().to_lowercase())
    }
}

impl Serialize for KvType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KvType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// A name that is no KV cache type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is no KV cache type; take one of {}.", names())]
pub struct UnknownKvType {
    name: String,
}

fn names() -> String {
    KvType::ALL.map(|kv| kv.to_string()).join(", ")
}

impl FromStr for KvType {
    type Err = UnknownKvType;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kv| kv.to_string() == name)
            .ok_or_else(|| UnknownKvType {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_the_name_it_shows() {
        for kv in KvType::ALL {
            assert_eq!(kv.to_string().parse(), Ok(kv));
        }
        assert_eq!("f16".parse(), Ok(KvType::default()));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_names_there_are() {
        assert_eq!(
            "q3_k".parse::<KvType>().unwrap_err().to_string(),
            "q3_k is no KV cache type; take one of f16, f32, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1."
        );
    }

    #[test]
    fn a_row_is_a_whole_number_of_blocks() {
        // 192 elements of SmolLM2's keys: 6 blocks of 34 bytes.
        assert_eq!(KvType::Q8_0.row_bytes(192), Some(204));
        assert_eq!(KvType::Q8_0.row_bytes(80), None);
        assert_eq!(KvType::F16.row_bytes(80), Some(160));
    }
}
