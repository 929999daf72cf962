//! llama-bench's flags of one dash and several letters (`-ngl`, `-ctk`), which no argument parser
//! of today takes, become their long names before parsing.

use std::ffi::{OsStr, OsString};

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

/// Names of one letter, for sentences: as the parser has them.
const ONE_LETTER: [(&str, &str); 10] = [
    ("-m", "--model"),
    ("-p", "--n-prompt"),
    ("-n", "--n-gen"),
    ("-d", "--n-depth"),
    ("-r", "--repetitions"),
    ("-b", "--batch-size"),
    ("-t", "--threads"),
    ("-C", "--cpu-mask"),
    ("-o", "--output"),
    ("-v", "--verbose"),
];

/// Flags that llama-bench had or has and `bench` does not, with what to do instead.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (&["-mmp", "--mmap"], "say -lm none for 0 and -lm mmap for 1"),
    (&["-dio", "--direct-io"], "say -lm dio for 1"),
    (
        &["-hf", "-hfr", "--hf-repo", "-hff", "--hf-file"],
        "it never uses the network. Fetch the model with twospeed download and name the file with -m",
    ),
    (
        &["-hft", "--hf-token"],
        "it never uses the network. twospeed download takes the token from HF_TOKEN",
    ),
    (
        &["-rpc", "--rpc"],
        "the engine is built without RPC, so it measures this machine alone",
    ),
];

/// `arguments` with every known one-dash name replaced; what follows `--` is left alone.
///
/// In `bench`, where they are at home, a word of one dash and several letters that is none of them
/// is refused: the parser would take `-mmp 0` for `-m mp`. Underscores in long names are dashes, as
/// in llama-bench.
///
/// Errors: one sentence that names the word and the flag that comes nearest.
pub fn with_long_names(arguments: &[OsString]) -> Result<Vec<OsString>, String> {
    let bench = command_of(arguments).is_some_and(|command| command == "bench");
    let mut literal = false;
    arguments
        .iter()
        .map(|argument| {
            literal |= argument == "--";
            if literal {
                return Ok(argument.clone());
            }
            if let Some((_, long)) = ONE_DASH.iter().find(|(short, _)| argument == *short) {
                return Ok(OsString::from(long));
            }
            match argument.to_str() {
                Some(word) if bench => known_to_bench(word).map(OsString::from),
                _ => Ok(argument.clone()),
            }
        })
        .collect()
}

fn known_to_bench(word: &str) -> Result<String, String> {
    let (flag, value) = match word.split_once('=') {
        Some((flag, value)) if word.starts_with("--") => (flag, Some(value)),
        _ => (word, None),
    };
    let flag = match flag.strip_prefix("--") {
        Some(name) => format!("--{}", name.replace('_', "-")),
        None => flag.to_owned(),
    };
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(flags, _)| flags.contains(&&*flag)) {
        return Err(format!("twospeed bench does not take {flag}: {instead}."));
    }
    if flag.starts_with("--") {
        return Ok(match value {
            Some(value) => format!("{flag}={value}"),
            None => flag,
        });
    }
    let letters = word.strip_prefix('-').unwrap_or_default();
    if letters
        .chars()
        .take(2)
        .filter(char::is_ascii_alphabetic)
        .count()
        < 2
    {
        return Ok(word.to_owned());
    }
    let known = ONE_DASH.iter().chain(&ONE_LETTER).map(|(short, _)| *short);
    let nearest = match nearest(word, known) {
        Some(short) => format!("; the nearest is {short}"),
        None => String::new(),
    };
    Err(format!(
        "twospeed bench does not take {word}{nearest}. See twospeed bench --help."
    ))
}

/// Of the known words the one that looks most like `word`, unless none looks like it at all.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (distance(word, known), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= word.len() / 2)
        .map(|(_, known)| known)
}

/// The command's name among the arguments: the first word that is no flag.
pub fn command_of(arguments: &[OsString]) -> Option<&OsStr> {
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--data-dir" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(word);
        }
    }
    None
}

/// The short name of a long one.
pub fn short_of(long: &str) -> Option<&'static str> {
    ONE_DASH
        .iter()
        .chain(&ONE_LETTER)
        .find(|(_, name)| *name == long)
        .map(|(short, _)| *short)
}

/// Letters to change, add or remove to make one word of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (done, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (at, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn changed(line: &str) -> String {
        let words = with_long_names(&words(line)).unwrap();
        let words: Vec<_> = words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        words.join(" ")
    }

    fn refused(line: &str) -> String {
        with_long_names(&words(line)).unwrap_err()
    }

    #[test]
    fn one_dash_names_become_long_ones() {
        assert_eq!(
            changed("twospeed bench -ngl 99 -p 512"),
            "twospeed bench --n-gpu-layers 99 -p 512"
        );
    }

    #[test]
    fn a_file_of_that_name_can_still_be_named() {
        assert_eq!(
            changed("twospeed inspect -- -ngl"),
            "twospeed inspect -- -ngl"
        );
    }

    #[test]
    fn long_names_may_be_written_with_underscores() {
        assert_eq!(
            changed("twospeed bench --n_depth 4 --cache_type_k=q8_0"),
            "twospeed bench --n-depth 4 --cache-type-k=q8_0"
        );
    }

    #[test]
    fn an_unknown_word_of_one_dash_is_not_taken_apart() {
        assert_eq!(
            refused("twospeed bench -m x -ngll 99"),
            "twospeed bench does not take -ngll; the nearest is -ngl. See twospeed bench --help."
        );
        assert_eq!(
            refused("twospeed --data-dir x bench -m x -xyzzy"),
            "twospeed bench does not take -xyzzy. See twospeed bench --help."
        );
        // Values and other commands are not looked at.
        let line = "twospeed bench -ngl -1 -p512 -fa -1";
        assert_eq!(
            changed(line),
            "twospeed bench --n-gpu-layers -1 -p512 --flash-attn -1"
        );
        assert_eq!(
            changed("twospeed generate -p -bye"),
            "twospeed generate -p -bye"
        );
    }

    #[test]
    fn what_llama_bench_takes_and_this_does_not_is_said_with_a_way_out() {
        for (flag, way_out) in [
            ("-mmp", "-lm none"),
            ("-dio", "-lm dio"),
            ("-hf", "twospeed download"),
            ("--hf_repo=a/b", "twospeed download"),
            ("-hff", "twospeed download"),
            ("-hft", "HF_TOKEN"),
            ("-rpc", "without RPC"),
        ] {
            let sentence = refused(&format!("twospeed bench {flag} x"));
            assert!(sentence.contains(way_out), "{sentence}");
            assert!(!sentence.contains("nearest"), "{sentence}");
        }
    }

    #[test]
    fn a_distance_counts_letters() {
        assert_eq!(distance("-ngl", "-ngl"), 0);
        assert_eq!(distance("-nlg", "-ngl"), 2);
        assert_eq!(distance("", "-t"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
