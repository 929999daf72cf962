//! Reads the header of a GGUF file into a [`Model`]: pure, bounded, no llama.cpp.
//!
//! - [`read`] takes a path (of a split set, any part), [`read_from`] the beginning of a remote file.
//! - [`Model::metadata`] gives the keys, [`Model::tensors`] the tensor list.
//! - [`fingerprint`] tells files apart by their content.
//! - [`Writer`] writes GGUF; [`Blocks`] fills tensors with random weights that are valid in their type.
//!
//! A header may claim anything: every count is held against the bytes that follow, sums and
//! products are checked, at most a few MB are kept, nothing recurses.

mod assemble;
mod blocks;
mod check;
mod error;
mod experts;
mod field;
mod fingerprint;
mod header;
mod kind;
mod lookalike;
mod metadata;
mod model;
mod name;
mod os;
mod quantization;
mod random;
mod read;
mod set;
mod source;
mod tensor_list;
mod tensor_type;
#[cfg(test)]
mod testing;
mod text;
mod warning;
mod writer;

pub use blocks::Blocks;
pub use error::{Error, Fault, Limit};
pub use field::Field;
pub use fingerprint::fingerprint;
pub use lookalike::Lookalike;
pub use metadata::{Array, ElementType, Metadata, Numbers, Text, Value};
pub use model::{Data, Dimensions, Kind, Model, Part, Split, TensorInfo, TypeShare};
pub use random::Rng;
pub use read::{read, read_from};
pub use set::SetName;
pub use tensor_type::TensorType;
pub use warning::Warning;
pub use writer::{WriteError, Writer};
