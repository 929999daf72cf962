//! The name a person sees.

use std::path::Path;

use crate::metadata::Metadata;
use crate::set::SetName;
use crate::text::one_line;

/// Words that converters leave in `general.name` and that name no model: formats, folders, stages.
const EMPTY_WORDS: &[&str] = &[
    "n/a",
    "na",
    "none",
    "null",
    "unknown",
    "untitled",
    "name",
    "model",
    "models",
    "llm",
    "safetensors",
    "pytorch",
    "torch",
    "pickle",
    "bin",
    "gguf",
    "ggml",
    "hf",
    "huggingface",
    "transformers",
    "checkpoint",
    "checkpoints",
    "ckpt",
    "snapshot",
    "snapshots",
    "original",
    "output",
    "outputs",
    "out",
    "tmp",
    "temp",
    "download",
    "downloads",
    "main",
    "merged",
    "final",
    "converted",
    "quantized",
    "test",
];

/// `general.name`, or the file's own name where that says nothing.
pub(crate) fn model_name(metadata: &Metadata, path: &Path) -> String {
    match metadata.str("general.name") {
        Some(name) if says_something(&name) => one_line(name.trim()),
        _ => file_name(path),
    }
}

fn says_something(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let is_hash = name.len() >= 32 && name.chars().all(|c| c.is_ascii_hexdigit());
    name.chars().any(char::is_alphabetic) && !is_hash && !EMPTY_WORDS.contains(&name.as_str())
}

/// The file's name without its ending and without its place in a set.
fn file_name(path: &Path) -> String {
    let Some(name) = path.file_name() else {
        return one_line(&path.to_string_lossy());
    };
    if let Some(set) = SetName::of(path) {
        return one_line(&set.stem());
    }
    let name = name.to_string_lossy();
    let stem = name
        .strip_suffix(".gguf")
        .filter(|stem| !stem.is_empty())
        .unwrap_or(&name);
    one_line(stem)
}
