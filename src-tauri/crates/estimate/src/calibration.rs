//! What a machine's engine was measured to do: the constants that expected speeds are made of.

use serde::{Deserialize, Serialize};
use twospeed_gguf::TensorType;

use crate::bandwidth::BandwidthReading;
use crate::kv_type::KvType;
use crate::units::Bytes;

/// Readings of single operations on one machine, with one backend, CPU variant, number of threads
/// and build of the engine. Rates are worked out of the readings when they are needed, so what is
/// kept is only what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// UUIDv7.
    pub id: String,
    /// When (RFC 3339, UTC).
    pub at: String,
    /// `CPU`, or llama-bench's `backends`.
    pub backend: String,
    /// The CPU variant.
    pub variant: String,
    /// Threads that computed.
    pub threads: u32,
    /// llama.cpp's build number.
    pub build: u32,
    /// The micro-batch that matrix-matrix readings stand for.
    pub ubatch: u32,
    /// Size of the last-level cache.
    pub last_level_cache: Option<Bytes>,
    /// How fast memory is read, by size of the buffer.
    pub reads: Vec<BandwidthReading>,
    /// What single operations take.
    pub kernels: Vec<KernelReading>,
    /// What a decode step takes beside its operations, in nanoseconds.
    #[serde(default)]
    pub step_ns: Option<f64>,
}

/// One operation and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelReading {
    /// The operation.
    pub kernel: Kernel,
    /// Nanoseconds, the median.
    pub ns: f64,
    /// The median of the distances from the median, in nanoseconds.
    pub spread_ns: f64,
    /// The weights were repacked for this CPU.
    pub repacked: bool,
}

/// An operation of the engine, as `twospeed_engine::protocol::Kernel` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case")]
#[allow(missing_docs)] // as in the protocol
pub enum Kernel {
    /// A matrix times `columns` columns.
    Matrix {
        #[serde(with = "type_name")]
        tensor_type: TensorType,
        inner: u32,
        rows: u32,
        columns: u32,
        set_bytes: u64,
    },
    /// The same with experts.
    Experts {
        #[serde(with = "type_name")]
        tensor_type: TensorType,
        inner: u32,
        rows: u32,
        experts: u32,
        used: u32,
        columns: u32,
        set_bytes: u64,
    },
    /// Attention of one layer.
    Attention {
        heads: u32,
        kv_heads: u32,
        head: u32,
        type_k: KvType,
        type_v: KvType,
        flash: bool,
        cells: u32,
        columns: u32,
        set_bytes: u64,
    },
    /// A layer without its matrices and attention.
    Layer {
        embedding: u32,
        feed_forward: u32,
        heads: u32,
        kv_heads: u32,
        head: u32,
        columns: u32,
    },
}

/// A tensor type as ggml spells it.
mod type_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use twospeed_gguf::TensorType;

    pub fn serialize<S: Serializer>(tensor: &TensorType, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(tensor.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TensorType, D::Error> {
        let name = String::deserialize(from)?;
        TensorType::ALL
            .iter()
            .copied()
            .find(|tensor| tensor.name() == name)
            .ok_or_else(|| D::Error::custom(format!("{name} is no tensor type")))
    }
}
