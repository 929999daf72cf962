//! What was typed wrong, in one sentence.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::flags;

/// Whether this "error" is what was asked for: help or the version.
pub fn is_an_answer(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    )
}

/// The fault in one sentence that names what was typed, and where to read on.
pub fn sentence(error: &clap::Error, typed: &[OsString]) -> String {
    let fault = Fault { error, typed };
    let command = match flags::command_of(typed) {
        Some(command) if error.kind() != ErrorKind::InvalidSubcommand => {
            format!("twospeed {}", command.to_string_lossy())
        }
        _ => "twospeed".to_owned(),
    };
    format!("{}. See {command} --help.", fault.words(&command))
}

struct Fault<'a> {
    error: &'a clap::Error,
    typed: &'a [OsString],
}

impl Fault<'_> {
    fn words(&self, command: &str) -> String {
        let argument = || self.name(ContextKind::InvalidArg);
        match self.error.kind() {
            ErrorKind::UnknownArgument => {
                let argument = argument();
                let suggested = self.text(ContextKind::SuggestedArg);
                let nearest = match suggested.or_else(|| self.nearest_flag(&argument)) {
                    Some(nearest) => format!("; the nearest is {nearest}"),
                    None => String::new(),
                };
                format!("{command} does not take {argument}{nearest}")
            }
            ErrorKind::InvalidSubcommand => {
                let named = self
                    .text(ContextKind::InvalidSubcommand)
                    .unwrap_or_default();
                let nearest = match self.text(ContextKind::SuggestedSubcommand) {
                    Some(nearest) => format!("; the nearest is {nearest}"),
                    None => String::new(),
                };
                format!("There is no command {named}{nearest}")
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                let value = self.text(ContextKind::InvalidValue).unwrap_or_default();
                if value.is_empty() {
                    return format!("{} needs a value", argument());
                }
                let why = match (self.error.source(), self.text(ContextKind::ValidValue)) {
                    (Some(source), _) => source.to_string(),
                    (None, Some(known)) => format!("it takes {known}"),
                    (None, None) => "it takes other values".to_owned(),
                };
                let why = why.trim_end_matches('.');
                format!("{} {value} is no good: {why}", argument())
            }
            ErrorKind::MissingRequiredArgument => format!("{command} needs {}", argument()),
            ErrorKind::ArgumentConflict => {
                format!("{} and {} exclude each other", argument(), self.other())
            }
            ErrorKind::MissingSubcommand => {
                "Name a command: bench measures, chart draws".to_owned()
            }
            ErrorKind::InvalidUtf8 => "An argument is not valid Unicode".to_owned(),
            _ => self.first_line(),
        }
    }

    fn text(&self, kind: ContextKind) -> Option<String> {
        let list = |names: &[String]| names.join(", ");
        match self.error.get(kind)? {
            ContextValue::String(text) => Some(text.clone()),
            ContextValue::Strings(names) => Some(list(names)),
            ContextValue::StyledStrs(names) => {
                let names: Vec<_> = names.iter().map(ToString::to_string).collect();
                Some(list(&names))
            }
            other => Some(other.to_string()),
        }
        .filter(|text| !text.is_empty())
    }

    /// An argument's name as the person typed it: `-ngl`, not `--n-gpu-layers <N>`.
    fn name(&self, kind: ContextKind) -> String {
        self.as_typed(&self.text(kind).unwrap_or_default())
    }

    fn as_typed(&self, full: &str) -> String {
        match short_of(full) {
            Some(short) if self.typed.iter().any(|word| word == short) => short.to_owned(),
            _ => full.to_owned(),
        }
    }

    /// What the argument does not go with: of a whole group the one that was typed.
    fn other(&self) -> String {
        let Some(ContextValue::Strings(names)) = self.error.get(ContextKind::PriorArg) else {
            return self.name(ContextKind::PriorArg);
        };
        let is_typed = |full: &&String| {
            let long = long_of(full);
            let is_it = |word: &OsString| {
                let word = word.to_string_lossy();
                let name = word.split('=').next().unwrap_or_default();
                name.replace('_', "-") == long || short_of(full) == Some(name)
            };
            self.typed.iter().any(is_it)
        };
        let typed = names.iter().find(is_typed).or_else(|| names.first());
        typed.map(|full| self.as_typed(full)).unwrap_or_default()
    }

    /// The command's long flag that looks most like this word.
    fn nearest_flag(&self, word: &str) -> Option<String> {
        let command = crate::command();
        let named = flags::command_of(self.typed)?.to_str()?;
        let arguments = command.find_subcommand(named)?.get_arguments();
        let known: Vec<String> = arguments
            .filter(|argument| !argument.is_hide_set())
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect();
        flags::nearest(word, known.iter().map(String::as_str)).map(str::to_owned)
    }

    fn first_line(&self) -> String {
        let text = self.error.render().to_string();
        let line = text.lines().next().unwrap_or_default();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        line.trim_end_matches('.').to_owned()
    }
}

/// `--n-gpu-layers` of `--n-gpu-layers <N>`.
fn long_of(full: &str) -> &str {
    full.split_whitespace().next().unwrap_or_default()
}

fn short_of(full: &str) -> Option<&'static str> {
    flags::short_of(long_of(full))
}

#[cfg(test)]
mod tests {
    use crate::Failure;

    fn said(line: &str) -> String {
        let words: Vec<_> = ["twospeed"]
            .into_iter()
            .chain(line.split(' ').filter(|word| !word.is_empty()))
            .map(std::ffi::OsString::from)
            .collect();
        match crate::parse(&words) {
            Err(Failure::Usage(sentence)) => sentence,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_fault_is_one_sentence_that_names_what_was_typed() {
        for (line, sentence) in [
            (
                "bench -m x --output-er md",
                "twospeed bench does not take --output-er; the nearest is --output-err. See twospeed bench --help.",
            ),
            (
                "bench -m x --gpu-layer 9",
                "twospeed bench does not take --gpu-layer; the nearest is --n-gpu-layers. See twospeed bench --help.",
            ),
            (
                "bench -m x --until 2% --sustained 10m",
                "--until <PERCENT> and --sustained <TIME> exclude each other. See twospeed bench --help.",
            ),
            (
                "bench -m x --split-kv",
                "twospeed bench needs --users <N>. See twospeed bench --help.",
            ),
            (
                "bench --resume -m x",
                "--resume [<RUN>] and -m exclude each other. See twospeed bench --help.",
            ),
            (
                "bench --plan a.json -fa on",
                "--plan <FILE> and -fa exclude each other. See twospeed bench --help.",
            ),
            (
                "bench -m x -ngk 99",
                "twospeed bench does not take -ngk; the nearest is -ngl. See twospeed bench --help.",
            ),
            (
                "bench -m x -t some",
                "-t some is no good: \"some\" is no number and no range: write 512, 128-512, 0-4096+1024 or 1-64*2. See twospeed bench --help.",
            ),
            (
                "bench -m x -r -1",
                "-r -1 is no good: -1 is not in 0..=4294967295. See twospeed bench --help.",
            ),
            (
                "bench -m x -ctk q9",
                "-ctk q9 is no good: it takes f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1. See twospeed bench --help.",
            ),
            (
                "bench",
                "twospeed bench needs --model <FILE>. See twospeed bench --help.",
            ),
            (
                "bench -m x -p",
                "-p needs a value. See twospeed bench --help.",
            ),
            (
                "bnch",
                "There is no command bnch; the nearest is bench. See twospeed --help.",
            ),
            (
                "estimate x --device a --bandwidth 3",
                "--device <NAME> and --bandwidth <GB/S> exclude each other. See twospeed estimate --help.",
            ),
        ] {
            assert_eq!(said(line), sentence);
        }
    }
}
