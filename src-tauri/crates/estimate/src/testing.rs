//! Models for tests, from headers written on the spot.

use twospeed_gguf::{Model, TensorType, Writer, read_from};

use crate::shape::Shape;

/// A tensor by name, type and dimensions.
pub(crate) type Tensor<'a> = (String, TensorType, &'a [u64]);

/// A model of these keys and tensors.
pub(crate) fn model(architecture: &str, keys: &[(&str, u32)], tensors: &[Tensor<'_>]) -> Model {
    let mut writer = writer(architecture, keys);
    for (name, tensor_type, dimensions) in tensors {
        writer.tensor(name, *tensor_type, dimensions).unwrap();
    }
    read(&writer)
}

/// The shape of a model of these keys.
pub(crate) fn shape(
    architecture: &str,
    layers: u32,
    embedding: u32,
    keys: &[(&str, u32)],
) -> Shape {
    let mut writer = writer(architecture, keys);
    writer.set(format!("{architecture}.block_count"), layers);
    shape_of(writer, architecture, embedding)
}

/// The shape of a model of these keys and one list with an entry for each layer.
pub(crate) fn shape_with_list(
    architecture: &str,
    embedding: u32,
    keys: &[(&str, u32)],
    list: &str,
    entries: &[u32],
) -> Shape {
    let mut writer = writer(architecture, keys);
    writer.set(format!("{architecture}.block_count"), entries.len() as u32);
    writer.set(format!("{architecture}.{list}"), entries);
    shape_of(writer, architecture, embedding)
}

fn shape_of(mut writer: Writer, architecture: &str, embedding: u32) -> Shape {
    writer.set(format!("{architecture}.embedding_length"), embedding);
    writer.set(format!("{architecture}.context_length"), 4096_u32);
    Shape::from_model(&read(&writer)).unwrap()
}

fn writer(architecture: &str, keys: &[(&str, u32)]) -> Writer {
    let mut writer = Writer::new();
    writer.set("general.architecture", architecture);
    for (key, value) in keys {
        writer.set(format!("{architecture}.{key}"), *value);
    }
    writer
}

fn read(writer: &Writer) -> Model {
    let header = writer.header();
    read_from(&header[..], "test.gguf", header.len() as u64).unwrap()
}
