//! Small models for tests, read back from what the writer wrote.

use crate::field::Field;
use crate::model::Model;
use crate::read::read_from;
use crate::tensor_type::TensorType;
use crate::writer::Writer;

/// An architecture with two layers of one tensor each.
pub(crate) fn two_layers(architecture: &str) -> Writer {
    let mut writer = Writer::new();
    writer.set("general.architecture", architecture);
    writer.set(format!("{architecture}.block_count"), 2u32);
    for layer in 0..2 {
        let name = format!("blk.{layer}.attn_q.weight");
        writer.tensor(&name, TensorType::Q8_0, &[256, 256]).unwrap();
    }
    writer
}

/// The model of a file that is whole, from its header.
pub(crate) fn read_back(writer: &Writer) -> Model {
    read_from(&writer.header()[..], "file-name.gguf", writer.file_bytes()).unwrap()
}

/// The same with one more key.
pub(crate) fn with(mut writer: Writer, key: &str, value: impl Into<Field>) -> Writer {
    writer.set(key, value);
    writer
}
