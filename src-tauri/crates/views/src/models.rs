//! The view Models.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::estimate::{MemoryFrom, Predicted};

/// Every model that is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelsView {
    /// Base models, the smallest first; the built-in one is always among them.
    pub groups: Vec<ModelGroup>,
    /// Files that cannot be read.
    pub broken: Vec<OddFile>,
    /// Files that go with a model or hold none (projectors, adapters, importance matrices).
    pub helpers: Vec<OddFile>,
    /// What the scan passed over, sentences.
    pub notes: Vec<String>,
    /// Folders and files that the person added.
    pub folders: Vec<Folder>,
    /// A scan goes on.
    pub scanning: Option<Scanning>,
    /// Memory that is free to use now, bytes.
    pub free_memory_bytes: Option<u64>,
    /// Context that memory is counted for, tokens.
    pub context: u32,
}

/// A place that the person added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Folder {
    /// Its id.
    pub id: String,
    /// Its path, to show.
    pub path: String,
    /// It is there.
    pub exists: bool,
    /// Models found in it.
    pub models: u32,
    /// It is one file, not a folder.
    pub is_file: bool,
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Scanning {
    /// Headers read.
    pub read: u32,
    /// Headers there are; `None` while folders are still walked.
    pub of: Option<u32>,
}

/// A base model with its quantizations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelGroup {
    /// Its id.
    pub id: String,
    /// Its name without a quantization.
    pub name: String,
    /// Architecture.
    pub architecture: Option<String>,
    /// Parameters.
    pub parameters: Option<u64>,
    /// Those that one token uses, where they are fewer.
    pub active_parameters: Option<u64>,
    /// The context it was trained for, tokens.
    pub context_length: Option<u64>,
    /// Random weights made here: its speed is real, its text is noise.
    pub synthetic: bool,
    /// Its quantizations, the fewest bits per weight first.
    pub rows: Vec<ModelRow>,
}

/// One quantization of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelRow {
    /// Its id, also in plans.
    pub id: String,
    /// The label of the chip: `Q4_K_M`; `unknown` where the file does not say.
    pub quantization: String,
    /// Where it is.
    pub place: Place,
    /// File name, to show.
    pub file: Option<String>,
    /// Whole path, to show.
    pub path: Option<String>,
    /// Size of the file (set), foreseen where it is not there yet; bytes.
    pub file_bytes: Option<u64>,
    /// Bits per weight.
    pub bits_per_weight: Option<f64>,
    /// Memory at the view's context, bytes: all of it where the engine was asked, otherwise without
    /// its working buffers.
    pub memory_bytes: Option<u64>,
    /// Who says so.
    pub memory_source: MemoryFrom,
    /// That fits into the memory that is free now.
    pub fits: Option<bool>,
    /// The newest measured prefill here.
    pub prefill: Option<Speed>,
    /// The newest measured decode here.
    pub decode: Option<Speed>,
    /// What prefill of 512 tokens is expected to be; `None` = not calibrated, or not known.
    pub prefill_expected: Option<Predicted>,
    /// What decode is expected to be.
    pub decode_expected: Option<Predicted>,
    /// What decode cannot exceed here, tokens per second; `None` = read speed not measured.
    pub decode_ceiling: Option<f64>,
    /// Why it cannot be measured, a sentence; `None` = it can.
    pub hindrance: Option<String>,
}

/// Where a quantization is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum Place {
    /// On disk.
    OnDisk,
    /// Made of a file on disk with one click (`make`).
    CanBeMade {
        /// Quantization of the source.
        from: String,
        /// The source is itself so coarse that quality suffers beyond that of the type.
        lossy_source: bool,
    },
    /// Fetched on request (`make`).
    CanBeDownloaded {
        /// Where from, to show: repository and file.
        from: String,
    },
}

/// A measured speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Speed {
    /// Mean of the samples, tokens per second.
    pub mean: f64,
    /// Standard deviation; `None` for one sample.
    pub deviation: Option<f64>,
    /// Each sample, tokens per second, in the order they were made.
    pub samples: Vec<f64>,
    /// Tokens read or written.
    pub tokens: u32,
    /// Tokens in the cache before.
    pub depth: u32,
    /// When it was measured.
    pub at: String,
}

/// A file that is no model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct OddFile {
    /// Its id.
    pub id: String,
    /// File name, to show.
    pub file: String,
    /// Whole path, to show.
    pub path: String,
    /// What is wrong with it, or what it is: one sentence.
    pub sentence: String,
}

/// What `inspect` says of a file, for the details of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Facts {
    /// The row.
    pub row: String,
    /// Facts in order.
    pub facts: Vec<Fact>,
    /// Tensor types, most bytes first.
    pub types: Vec<TypeShare>,
    /// What a reader of the file should know, sentences.
    pub warnings: Vec<String>,
}

/// One fact; the page knows the words and the unit of each name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Fact {
    /// What it is.
    pub name: FactName,
    /// A number, in the unit of its name.
    pub number: Option<f64>,
    /// A text, to show.
    pub text: Option<String>,
}

/// The facts there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FactName {
    /// Name in the header (text).
    Name,
    /// Architecture (text).
    Architecture,
    /// What it can do: generates, embeds, ... (text).
    Kind,
    /// Parameters (number).
    Parameters,
    /// Parameters that one token uses (number).
    ActiveParameters,
    /// Quantization (text).
    Quantization,
    /// Bits per weight (number).
    BitsPerWeight,
    /// Layers (number).
    Layers,
    /// Context it was trained for, tokens (number).
    ContextLength,
    /// Size of the file, bytes (number).
    FileBytes,
    /// Size of the header, bytes (number).
    HeaderBytes,
    /// Weights that one decoded token reads, bytes (number).
    WeightBytesPerToken,
    /// Cache for one token, bytes (number).
    KvBytesPerToken,
    /// Parts of a split file there are, of how many (text).
    Split,
    /// Whole path (text).
    Path,
}

/// A tensor type's share of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TypeShare {
    /// `Q4_K`.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Parameters.
    pub parameters: u64,
}

/// What adding a path came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Added {
    /// The folder or file as it stands in the list.
    pub folder: Folder,
    /// It was in the list before.
    pub known: bool,
    /// Row of Models, where it is one model file.
    pub row: Option<String>,
}
