//! What the integration tests share.

#![allow(dead_code)] // not every test file uses all of it

use std::path::{Path, PathBuf};

use twospeed_gguf::{Model, TensorType, Writer, read_from};

/// The folder of fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/gguf")
}

/// The lines of a fixture's table below its head, cut at commas (the last cell may hold some).
pub fn table(path: &Path, columns: usize) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let cells = |line: &str| line.splitn(columns, ',').map(str::to_owned).collect();
    text.lines().skip(1).map(cells).collect()
}

/// A llama of two layers with one tensor each, 139,264 bytes of data.
pub fn llama() -> Writer {
    let mut writer = Writer::new();
    writer.set("general.architecture", "llama");
    writer.set("llama.block_count", 2u32);
    writer.set("llama.context_length", 2048u32);
    for layer in 0..2 {
        let name = format!("blk.{layer}.attn_q.weight");
        writer.tensor(&name, TensorType::Q8_0, &[256, 256]).unwrap();
    }
    writer
}

/// The whole file of a writer, its data zeros.
pub fn file(writer: &Writer) -> Vec<u8> {
    let mut bytes = writer.header();
    bytes.resize(writer.file_bytes() as usize, 0);
    bytes
}

/// Reads a file that lies in memory.
pub fn read_bytes(bytes: &[u8]) -> Result<Model, String> {
    read_from(bytes, "file-name.gguf", bytes.len() as u64).map_err(|error| error.to_string())
}

/// The model of a writer's whole file.
pub fn model(writer: &Writer) -> Model {
    read_bytes(&file(writer)).unwrap()
}

/// Puts `value` over the first bytes equal to `marker`.
pub fn replace(bytes: &mut [u8], marker: &[u8], value: &[u8]) {
    assert_eq!(marker.len(), value.len());
    let at = bytes
        .windows(marker.len())
        .position(|window| window == marker)
        .expect("the marker");
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Whether a text is one sentence: one line, one full stop at the end.
pub fn is_one_sentence(text: &str) -> bool {
    let inner = text.strip_suffix('.').unwrap_or_default();
    !inner.is_empty() && !inner.contains('\n') && !inner.contains(". ")
}
