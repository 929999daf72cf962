//! What a header says about a model.

use std::borrow::Cow;
use std::ops::Deref;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::metadata::Metadata;
use crate::tensor_type::TensorType;
use crate::warning::Warning;

/// What a GGUF file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Prefill and decode.
    Generates,
    /// Embedding and other encoder models: one pass, no decode speed.
    Embeds,
    /// Denoises whole blocks: no decode speed.
    Diffusion,
    /// A projector for images or sound (mmproj), used beside a model.
    Projector,
    /// A LoRA, a control vector or a draft head, used on top of a model.
    Adapter,
    /// An importance matrix, used for quantizing.
    Imatrix,
    /// A tokenizer without weights.
    Vocabulary,
    /// A sound container that is none of these.
    None,
}

/// Whether the tensors' data is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Every tensor is there whole.
    Complete,
    /// No tensor is there whole: a header file.
    Absent,
    /// Some are there and some are not: a cut-off download.
    Truncated,
}

/// Bytes and parameters of one tensor type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeShare {
    /// Serialized by ggml's name: `Q4_K`, `F32`.
    #[serde(rename = "type", serialize_with = "type_name")]
    pub tensor_type: TensorType,
    /// ggml's number of a type that is newer than this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_type: Option<u32>,
    /// Tensors of it.
    pub tensors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their elements.
    pub parameters: u64,
}

impl TypeShare {
    /// The type's name: `Q4_K`, `type 99`.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        match self.new_type {
            Some(id) => format!("type {id}").into(),
            None => self.tensor_type.name().into(),
        }
    }
}

fn type_name<S: Serializer>(tensor_type: &TensorType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tensor_type.name())
}

/// A file's place in a split set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Split {
    /// The part that was named, counted from 1 as in the file names.
    pub part: u32,
    /// Parts of the set.
    pub parts: u32,
    /// Names of the parts that are not on disk.
    pub missing: Vec<String>,
}

/// One file of the model: the only one, or one of a split set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it lies.
    pub path: PathBuf,
    /// Its number in the set, from 1; 1 where there is no set.
    pub number: u32,
    /// Its size.
    pub bytes: u64,
    /// Bytes before its data section: where the offsets of its tensors count from.
    pub header_bytes: u64,
}

/// The shape of a tensor, one to four numbers, the row's length first. Reads like a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// Ones where the file left them out.
    sizes: [u64; 4],
    count: u8,
}

impl Dimensions {
    /// The first `count` of `sizes` are the file's; the others have to be 1.
    pub(crate) fn new(sizes: [u64; 4], count: usize) -> Dimensions {
        Dimensions {
            sizes,
            count: count.min(4) as u8,
        }
    }

    /// Elements of a row.
    #[must_use]
    pub fn row(&self) -> u64 {
        self.sizes[0]
    }

    /// Elements in all; `None` when they do not fit ggml's signed 64 bits. A 0 makes it 0, but
    /// does not excuse an overflow before it, as in llama.cpp.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        const MOST: u64 = i64::MAX as u64;
        if self.sizes.iter().any(|size| *size > MOST) {
            return None;
        }
        self.sizes.iter().try_fold(1u64, |product, size| {
            product.checked_mul(*size).filter(|p| *p <= MOST)
        })
    }
}

impl Deref for Dimensions {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.sizes[..usize::from(self.count)]
    }
}

/// One tensor of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, as bytes allow.
    pub name: String,
    /// Elements by dimension, the row first.
    pub dimensions: Dimensions,
    /// How its elements are stored; of a new type, the known one that takes about as many bits.
    pub tensor_type: TensorType,
    /// ggml's number of a type that is newer than this program. Its bytes are told by where the next
    /// tensor begins.
    pub new_type: Option<u32>,
    /// Elements in all.
    pub elements: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// From the start of its part's data section.
    pub offset: u64,
    /// Index of its part in [`Model::parts`].
    pub part: u32,
}

impl TensorInfo {
    /// The layer it belongs to: 3 for `blk.3.attn_q.weight`; `None` outside the layers.
    #[must_use]
    pub fn layer(&self) -> Option<u32> {
        let name = self
            .name
            .strip_prefix("enc.")
            .or_else(|| self.name.strip_prefix("dec."))
            .unwrap_or(&self.name);
        name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
    }
}

/// What the header of a model file says. Unknown is `None`, never zero.
///
/// Made by [`crate::read`] and [`crate::read_from`] alone; a model for a test comes from a header
/// that [`crate::Writer`] wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Where it was read from; of a split set the first part.
    #[serde(skip)]
    pub path: PathBuf,
    /// What it is for.
    pub kind: Kind,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// `general.name`, or the file's name where that says nothing.
    pub name: String,
    /// Elements of all tensors.
    pub parameters: u64,
    /// The same without the experts that one token does not use; `None` when the header does not
    /// say how many it uses.
    pub active_parameters: Option<u64>,
    /// Size on disk of all parts that are there.
    pub file_bytes: u64,
    /// Bytes before the data section (all parts).
    pub header_bytes: u64,
    /// Whether the data is there.
    pub data: Data,
    /// What the whole file (set) has at least: up to the end of the last tensor, without the
    /// padding after it; of a set, as far as its parts are there.
    pub bytes_expected: u64,
    /// What is there.
    pub bytes_found: u64,
    /// The label: `Q4_K_M`, `F16`, `unknown (999)`; `None` without tensors.
    pub quantization: Option<String>,
    /// 8 x tensor bytes / parameters.
    pub bits_per_weight: Option<f64>,
    /// Bytes and parameters by tensor type, most bytes first.
    pub types: Vec<TypeShare>,
    /// `{arch}.block_count`.
    pub layers: Option<u32>,
    /// `{arch}.context_length`.
    pub context_length: Option<u64>,
    /// Place in a split set.
    pub split: Option<Split>,
    /// What a person should know about the file; a sentence each in JSON.
    pub warnings: Vec<Warning>,
    /// Every tensor, in the order of the file(s).
    #[serde(skip)]
    pub tensors: Vec<TensorInfo>,
    /// The files that are there, in order.
    #[serde(skip)]
    pub parts: Vec<Part>,
    #[serde(skip)]
    pub(crate) metadata: Metadata,
}

impl Model {
    /// The header's keys (of a split set, the first part's).
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensor of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Bytes of all tensors, without header and padding.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.types.iter().map(|share| share.bytes).sum()
    }
}
