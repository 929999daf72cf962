//! What a header says about a model.

use std::path::PathBuf;

use serde::Serialize;

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
    /// A LoRA or control vector, used on top of a model.
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeShare {
    /// ggml's name: `Q4_K`, `F32`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Tensors of it.
    pub tensors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their elements.
    pub parameters: u64,
}

/// A file's place in a split set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Split {
    /// This part, counted from 1 as in the file names.
    pub part: u32,
    /// Parts of the set.
    pub parts: u32,
    /// Names of the parts that are not on disk.
    pub missing: Vec<String>,
}

/// One tensor of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, as bytes allow.
    pub name: String,
    /// Elements by dimension; trailing ones left out by the file are absent.
    pub dimensions: Vec<u64>,
    /// ggml type id.
    pub type_id: u32,
    /// Elements in all.
    pub elements: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// From the start of the data section.
    pub offset: u64,
    /// Part of the split set that holds it, counted from 0.
    pub part: u32,
}

/// What the header of a model file says. Unknown is `None`, never zero.
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
    /// The same without the experts that one token does not use.
    pub active_parameters: Option<u64>,
    /// Size on disk of all parts that are there.
    pub file_bytes: u64,
    /// Bytes before the data section (all parts).
    pub header_bytes: u64,
    /// Whether the data is there.
    pub data: Data,
    /// What the whole file (set) has at least.
    pub bytes_expected: u64,
    /// What is there.
    pub bytes_found: u64,
    /// The label: `Q4_K_M`, `F16`, `unknown (999)`.
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
    /// What a person should know about the file, a sentence each.
    pub warnings: Vec<String>,
    /// Every tensor.
    #[serde(skip)]
    pub tensors: Vec<TensorInfo>,
}
