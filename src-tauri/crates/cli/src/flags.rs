//! llama-bench's flags of one dash and several letters (`-ngl`, `-ctk`), which no argument parser
//! of today takes, become their long names before parsing.

use std::ffi::OsString;

/// One-dash names and the long names they stand for.
const ONE_DASH: [(&str, &str); 20] = [
    ("-pg", "--prompt-gen"),
    ("-ub", "--ubatch-size"),
    ("-ctk", "--cache-type-k"),
    ("-ctv", "--cache-type-v"),
    ("-ngl", "--n-gpu-layers"),
    ("-ncmoe", "--n-cpu-moe"),
    ("-sm", "--split-mode"),
    ("-mg", "--main-gpu"),
    ("-nkvo", "--no-kv-offload"),
    ("-fa", "--flash-attn"),
    ("-dev", "--device"),
    ("-lm", "--load-mode"),
    ("-lzm", "--lazy-mode"),
    ("-embd", "--embeddings"),
    ("-ts", "--tensor-split"),
    ("-ot", "--override-tensor"),
    ("-nopo", "--no-op-offload"),
    ("-oe", "--output-err"),
    ("-fitt", "--fit-target"),
    ("-fitc", "--fit-ctx"),
];

/// `arguments` with every known one-dash name replaced; what follows `--` is left alone.
pub fn with_long_names(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut literal = false;
    arguments
        .into_iter()
        .map(|argument| {
            literal |= argument == "--";
            let long = ONE_DASH
                .iter()
                .find(|(short, _)| !literal && argument == *short);
            match long {
                Some((_, long)) => OsString::from(long),
                None => argument,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(arguments: &[&str]) -> Vec<String> {
        with_long_names(arguments.iter().map(OsString::from))
            .into_iter()
            .map(|argument| argument.into_string().unwrap())
            .collect()
    }

    #[test]
    fn one_dash_names_become_long_ones() {
        assert_eq!(
            changed(&["bench", "-ngl", "99", "-p", "512"]),
            ["bench", "--n-gpu-layers", "99", "-p", "512"]
        );
    }

    #[test]
    fn a_file_of_that_name_can_still_be_named() {
        assert_eq!(
            changed(&["inspect", "--", "-ngl"]),
            ["inspect", "--", "-ngl"]
        );
    }
}
