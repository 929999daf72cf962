//! Reads the header of a GGUF file into a [`Model`]: pure, bounded, no llama.cpp.

mod model;

pub use model::{Data, Kind, Model, Split, TensorInfo, TypeShare};
