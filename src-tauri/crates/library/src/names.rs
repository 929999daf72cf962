//! Names of models without the quantization that hangs on them.

/// `name` without its quantization, and with spaces where a file name has none.
///
/// `SmolLM2-135M-Instruct.Q4_1` becomes `SmolLM2 135M Instruct`. A name that is nothing but a
/// quantization stays as it is.
pub fn without_quantization(name: &str) -> String {
    let words = words(name);
    let mut kept = String::with_capacity(name.len());
    let mut end = None;
    let mut at = 0;
    while at < words.len() {
        let length = match quantization(&words[at..]) {
            0 => usize::from(is_container(words[at].text)),
            length => length,
        };
        if length == 0 {
            let word = words[at];
            match end {
                None => {}
                // Dashes of a name that has spaces too are meant: `built-in`.
                Some(end) if name.contains(' ') && end == at => {
                    kept.push_str(&name[words[at - 1].end()..word.start]);
                }
                Some(_) => kept.push(' '),
            }
            kept.push_str(word.text);
            end = Some(at + 1);
        }
        at += length.max(1);
    }
    if kept.is_empty() {
        name.trim().to_owned()
    } else {
        kept
    }
}

/// The quantization that `name` has in it, as it is written there: `q4_k_m` of
/// `gemma-3-270m-q4_k_m`; the last where there are several.
pub fn quantization_of(name: &str) -> Option<&str> {
    label(name).map(|place| &name[place])
}

/// `name` with its quantization replaced by `label`, or with `label` appended where it has none.
///
/// A name written small keeps to that.
pub(crate) fn with_quantization(name: &str, new: &str) -> String {
    match label(name) {
        Some(place) => {
            let small = !name[place.clone()].contains(|c: char| c.is_ascii_uppercase());
            let new = match small {
                true => new.to_ascii_lowercase(),
                false => new.to_owned(),
            };
            format!("{}{new}{}", &name[..place.start], &name[place.end..])
        }
        None => format!("{name}-{new}"),
    }
}

/// Where the last quantization stands in a name.
fn label(name: &str) -> Option<std::ops::Range<usize>> {
    let words = words(name);
    let mut found = None;
    let mut at = 0;
    while at < words.len() {
        let length = quantization(&words[at..]);
        if length > 0 {
            found = Some(words[at].start..words[at + length - 1].end());
        }
        at += length.max(1);
    }
    found
}

/// What of a name decides whether two files are the same model: letters and digits, small.
pub(crate) fn key(name: &str) -> String {
    without_quantization(name)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// A word of a name, and where it starts.
#[derive(Clone, Copy)]
struct Word<'a> {
    start: usize,
    text: &'a str,
}

impl Word<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// A name cut at spaces, dashes, underlines and at dots that are no decimal points.
fn words(name: &str) -> Vec<Word<'_>> {
    let bytes = name.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let mut words = Vec::new();
    let mut start = 0;
    let ends = name
        .char_indices()
        .filter(|(at, c)| match c {
            '-' | '_' | ' ' => true,
            '.' => !(digit(at.checked_sub(1)) && digit(Some(at + 1))),
            _ => false,
        })
        .map(|(at, _)| at);
    for end in ends.chain([name.len()]) {
        words.push(Word {
            start,
            text: &name[start..end],
        });
        // Every character that cuts is one byte long.
        start = end + 1;
    }
    words.retain(|word| !word.text.is_empty());
    words
}

/// How many of the first `words` are a quantization label: `Q4_K_M` is three, `UD-IQ2_XXS` too.
fn quantization(words: &[Word]) -> usize {
    let is = |at: usize, list: &[&str]| {
        words
            .get(at)
            .is_some_and(|word| list.iter().any(|l| l.eq_ignore_ascii_case(word.text)))
    };
    let prefix = usize::from(is(0, &["UD", "i1"]));
    if is(prefix, &["F32", "F16", "BF16", "FP32", "FP16", "NVFP4"]) {
        return prefix + 1;
    }
    if is(prefix, &["MXFP4"]) {
        return prefix + 1 + usize::from(is(prefix + 1, &["MOE"]));
    }
    if !words.get(prefix).is_some_and(|word| is_bits(word.text)) {
        return 0;
    }
    const REST: [&str; 12] = [
        "0", "1", "K", "S", "M", "L", "XS", "XXS", "XL", "NL", "4", "8",
    ];
    let rest = (prefix + 1..prefix + 4)
        .take_while(|at| is(*at, &REST))
        .count();
    prefix + 1 + rest
}

/// `Q4`, `IQ3`, `TQ1`, and run together `Q4K`, `Q8KXL`.
fn is_bits(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let Some(bits) = ["IQ", "TQ", "Q"].iter().find_map(|p| word.strip_prefix(p)) else {
        return false;
    };
    let kind = bits.trim_start_matches(|c: char| c.is_ascii_digit());
    bits.len() > kind.len()
        && matches!(
            kind,
            "" | "K" | "KS" | "KM" | "KL" | "KXL" | "XS" | "XXS" | "NL"
        )
}

/// Words that say how a file was made and not what is in it.
fn is_container(word: &str) -> bool {
    ["gguf", "imat", "imatrix"]
        .iter()
        .any(|w| w.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantization_falls_off_a_file_name_and_the_version_stays() {
        for (name, model) in [
            ("SmolLM2-135M-Instruct.Q4_1", "SmolLM2 135M Instruct"),
            ("Qwen2.5-7B-Instruct-Q4_K_M", "Qwen2.5 7B Instruct"),
            ("Llama-3.1-8B.i1-IQ3_XXS", "Llama 3.1 8B"),
            ("gpt-oss-20b-mxfp4", "gpt oss 20b"),
            ("gpt-oss-120b-MXFP4_MOE", "gpt oss 120b"),
            ("gemma-3-270m-it-UD-Q8_K_XL", "gemma 3 270m it"),
            ("gemma-3-270m-q4_k_m", "gemma 3 270m"),
            ("Meta-Llama-3-8B-BF16-GGUF", "Meta Llama 3 8B"),
            ("mistral-q4km", "mistral"),
            ("Mistral Nemo Q6_K_L", "Mistral Nemo"),
        ] {
            assert_eq!(without_quantization(name), model, "{name}");
        }
    }

    #[test]
    fn a_name_with_spaces_keeps_its_dashes() {
        for (name, model) in [
            (
                "Twospeed built-in 150M (random weights)",
                "Twospeed built-in 150M (random weights)",
            ),
            ("Mixtral 8x7B-v0.1 - Q4_K_M", "Mixtral 8x7B-v0.1"),
            ("Meta-Llama Q8_0 Instruct", "Meta-Llama Instruct"),
        ] {
            assert_eq!(without_quantization(name), model);
        }
    }

    #[test]
    fn what_only_looks_like_a_quantization_stays() {
        for name in ["Q", "Qwen3 8B", "Quokka", "IQ test", "Q4_K_M", "Llama 4 S"] {
            assert_eq!(without_quantization(name), name);
        }
    }

    #[test]
    fn a_file_and_a_proper_name_have_the_same_key() {
        assert_eq!(
            key("SmolLM2-135M-Instruct.Q4_1"),
            key("Smollm2 135M Instruct")
        );
        assert_ne!(key("Qwen3-8B"), key("Qwen3-8B-Base"));
    }

    #[test]
    fn a_quantization_is_replaced_where_it_stands_and_appended_where_there_is_none() {
        for (name, new, made) in [
            (
                "SmolLM2-135M-Instruct.Q4_1",
                "Q8_0",
                "SmolLM2-135M-Instruct.Q8_0",
            ),
            ("gemma-3-270m-q4_k_m", "Q6_K", "gemma-3-270m-q6_k"),
            ("Qwen3-8B-BF16-GGUF", "Q4_K_M", "Qwen3-8B-Q4_K_M-GGUF"),
            ("Qwen3-8B", "Q4_K_M", "Qwen3-8B-Q4_K_M"),
            ("模型", "F16", "模型-F16"),
        ] {
            assert_eq!(with_quantization(name, new), made);
        }
        assert_eq!(quantization_of("a-UD-IQ2_XXS-b"), Some("UD-IQ2_XXS"));
        assert_eq!(quantization_of("Qwen3-8B"), None);
    }

    #[test]
    fn names_of_any_script_survive() {
        assert_eq!(without_quantization("模型.Q8_0"), "模型");
        assert_eq!(without_quantization(""), "");
        assert_eq!(without_quantization("…-…"), "… …");
        assert_eq!(without_quantization("--"), "--");
    }
}
