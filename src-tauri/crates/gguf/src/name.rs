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

#[cfg(test)]
mod tests {
    use crate::testing::{read_back, with};
    use crate::writer::Writer;
    use std::path::Path;

    fn name(general_name: &str) -> String {
        read_back(&with(Writer::new(), "general.name", general_name)).name
    }

    #[test]
    fn a_name_that_says_something_is_kept() {
        assert_eq!(name("Qwen3 8B"), "Qwen3 8B");
        assert_eq!(name("  Tiny "), "Tiny");
        assert_eq!(name("模型"), "模型");
    }

    #[test]
    fn a_leftover_word_gives_way_to_the_file_name() {
        for leftover in [
            "",
            " ",
            "Safetensors",
            "n/a",
            ".",
            "Model",
            "123",
            &"0123456789abcdef".repeat(3),
        ] {
            assert_eq!(name(leftover), "file-name", "{leftover:?}");
        }
    }

    #[test]
    fn a_long_name_is_shortened_and_stays_on_one_line() {
        assert_eq!(name(&"x".repeat(4000)).chars().count(), 80);
        assert_eq!(name("two\nlines"), "two\u{fffd}lines");
    }

    #[test]
    fn the_file_name_loses_its_ending_and_its_place_in_a_set() {
        let file_name = |path: &str| super::file_name(Path::new(path));
        assert_eq!(file_name("/m/big-Q4_K_M-00001-of-00003.gguf"), "big-Q4_K_M");
        assert_eq!(file_name("/m/sha256-4d5e"), "sha256-4d5e");
        assert_eq!(file_name("/m/.gguf"), ".gguf");
    }
}
