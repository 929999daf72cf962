//! A model that is known only by what a row says of it.

use twospeed_engine::settings::ModelPath;
use twospeed_measure::model::MeasuredModel;

use super::identity;
use crate::test::Told;

/// What a model is called of which nothing is told.
const UNKNOWN: &str = "Unknown model";

/// The model of a row. It is never taken for a file of this machine, whatever its name.
///
/// The size is that of its tensors, which is what llama-bench tells: a header is not in it.
pub(super) fn of(told: &Told, path: Option<&str>, unknown: &mut Vec<String>) -> MeasuredModel {
    let kind = told.model_type.as_deref().unwrap_or_default();
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let size = number(told.model_size);
    let parameters = number(told.model_n_params);
    for (name, missing) in [
        ("model_path", path.is_none()),
        ("file_bytes", told.model_size.is_none()),
        ("parameters", told.model_n_params.is_none()),
    ] {
        if missing {
            unknown.push(name.to_owned());
        }
    }
    MeasuredModel {
        fingerprint: identity::name(&["model", path.unwrap_or_default(), kind, &size, &parameters]),
        path: ModelPath(path.unwrap_or_default().into()),
        name: path
            .map(stem)
            .filter(|name| !name.is_empty())
            .or(Some(kind).filter(|kind| !kind.is_empty()))
            .unwrap_or(UNKNOWN)
            .to_owned(),
        architecture: kind.split_whitespace().next().map(str::to_owned),
        quantization: quantization(kind),
        file_bytes: told.model_size.unwrap_or_default(),
        parameters: told.model_n_params.unwrap_or_default(),
        active_parameters: active_parameters(kind),
        weight_bytes_per_token: None,
        ability: None,
        synthetic: false,
    }
}

/// A file's name without its folders, of whatever system, and its ending.
fn stem(path: &str) -> &str {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    file.strip_suffix(".gguf").unwrap_or(file)
}

/// The quantization in a description such as `llama 7B mostly Q4_0` or `qwen3 8B Q4_K - Medium`.
fn quantization(kind: &str) -> Option<String> {
    let words: Vec<_> = kind
        .split_whitespace()
        .filter(|word| !["mostly", "all", "(guessed)"].contains(word))
        .collect();
    let at = words.iter().rposition(|word| is_type(word))?;
    let size = match words.get(at + 1..)? {
        ["-", "Small", ..] => "_S",
        ["-", "Medium", ..] => "_M",
        ["-", "Large", ..] => "_L",
        _ => "",
    };
    Some(format!("{}{size}", words[at]))
}

/// Whether a word names a type of weights: `Q4_0`, `IQ2_XXS`, `F16`, `MXFP4`.
fn is_type(word: &str) -> bool {
    let digits = word
        .strip_prefix("IQ")
        .or_else(|| word.strip_prefix("TQ"))
        .or_else(|| word.strip_prefix("BF"))
        .or_else(|| word.strip_prefix("MXFP"))
        .or_else(|| word.strip_prefix("NVFP"))
        .or_else(|| word.strip_prefix(['Q', 'F']));
    digits.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Active parameters in a description such as `qwen3moe 30B.A3B Q4_K - Medium`, rounded as they
/// stand there.
fn active_parameters(kind: &str) -> Option<u64> {
    let (_, active) = kind.split_whitespace().nth(1)?.split_once(".A")?;
    let (number, unit) = active.split_at_checked(active.len().checked_sub(1)?)?;
    let unit = match unit {
        "M" => 1e6,
        "B" => 1e9,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_its_quantization() {
        for (kind, label) in [
            ("llama 7B mostly Q4_0", Some("Q4_0")),
            ("qwen3 8B Q4_K - Medium", Some("Q4_K_M")),
            ("llama 8B IQ2_XXS - 2.0625 bpw", Some("IQ2_XXS")),
            ("llama 7B all F32", Some("F32")),
            ("gpt-oss 20B MXFP4 MoE", Some("MXFP4")),
            ("llama 7B unknown, may not work", None),
            ("", None),
        ] {
            assert_eq!(quantization(kind).as_deref(), label, "{kind}");
        }
    }

    #[test]
    fn a_mixture_names_what_is_active() {
        assert_eq!(
            active_parameters("qwen3moe 30B.A3B Q4_K - Medium"),
            Some(3_000_000_000)
        );
        assert_eq!(active_parameters("llama 7B Q4_0"), None);
        assert_eq!(
            active_parameters("granitemoe 1B.A400M Q8_0"),
            Some(400_000_000)
        );
    }

    #[test]
    fn a_name_has_no_folders_of_any_system() {
        assert_eq!(stem("models/a b.gguf"), "a b");
        assert_eq!(stem(r"C:\\models\\x.Q4_0.gguf"), "x.Q4_0");
    }
}
