//! What was measured, read from the names that sources give their tests.

use serde::Serialize;

use crate::cache::ContextSettings;
use crate::question::Question;

/// Reading a prompt or writing an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading a prompt.
    Prefill,
    /// Writing an answer.
    Decode,
}

/// A published test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PublishedTest {
    /// What was measured.
    pub phase: Phase,
    /// Tokens that were read or written; `None` where the source does not say.
    pub tokens: Option<u64>,
    /// Tokens in the cache before.
    pub depth: u64,
    /// The micro-batch, where the test's name has it.
    pub ubatch: Option<u64>,
}

/// Tokens of a test whose source does not say how many: llama-bench's defaults.
const PROMPT: u64 = 512;
const ANSWER: u64 = 128;

impl PublishedTest {
    /// From llama-bench's names (`pp512`, `tg128 @ d4096`, `pp2048 ub=64`) and those of sources that
    /// used something else (`tg~1024(main)`, `eval rate`, `decode after 8010 tokens`).
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut words = name.split_whitespace();
        let first = words.next()?;
        let mut test = Self {
            phase: Phase::Decode,
            tokens: None,
            depth: 0,
            ubatch: None,
        };
        match first {
            "eval" => return (words.eq(["rate"])).then_some(test),
            // The length of the answer is not said, nor how far the context was filled.
            "decode," => return Some(test),
            "decode" => {
                let [after, depth, tokens] = words.collect::<Vec<_>>()[..] else {
                    return None;
                };
                test.depth = depth.parse().ok()?;
                return (after == "after" && tokens == "tokens").then_some(test);
            }
            _ => {}
        }
        let (phase, rest) = match (first.strip_prefix("pp"), first.strip_prefix("tg")) {
            (Some(rest), _) => (Phase::Prefill, rest),
            (_, Some(rest)) => (Phase::Decode, rest),
            _ => return None,
        };
        test.phase = phase;
        test.tokens = match rest.trim_end_matches("(main)").trim_start_matches('~') {
            "" | "prompt" => None,
            tokens => Some(tokens.parse().ok()?),
        };
        while let Some(word) = words.next() {
            if word == "@" {
                test.depth = words.next()?.strip_prefix('d')?.parse().ok()?;
            } else if let Some(ubatch) = word.strip_prefix("ub=") {
                test.ubatch = Some(ubatch.parse().ok()?);
            } else if !["time", "request"].contains(&word) {
                return None;
            }
        }
        Some(test)
    }

    /// The question that this test answers.
    pub(crate) fn question(self, settings: &str) -> Question {
        let (prompt, generate) = match self.phase {
            Phase::Prefill => (self.tokens.unwrap_or(PROMPT), 0),
            Phase::Decode => (0, self.tokens.unwrap_or(ANSWER)),
        };
        let defaults = ContextSettings::default();
        let among_settings = || {
            let mut words = settings.split_whitespace();
            words.find_map(|word| word.strip_prefix("ub=")?.parse().ok())
        };
        Question {
            prompt,
            generate,
            depth: self.depth,
            context: ContextSettings {
                context: self.depth + prompt + generate,
                ubatch: self
                    .ubatch
                    .or_else(among_settings)
                    .unwrap_or(defaults.ubatch),
                ..defaults
            },
            ..Question::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Option<(Phase, Option<u64>, u64, Option<u64>)> {
        let test = PublishedTest::parse(name)?;
        Some((test.phase, test.tokens, test.depth, test.ubatch))
    }

    #[test]
    fn the_names_of_sources_are_understood() {
        use Phase::{Decode, Prefill};
        for (name, test) in [
            ("pp512", (Prefill, Some(512), 0, None)),
            ("tg32 @ d4096", (Decode, Some(32), 4096, None)),
            ("pp2048 ub=64", (Prefill, Some(2048), 0, Some(64))),
            ("pp512 ub=1 @ d32768", (Prefill, Some(512), 32_768, Some(1))),
            ("tg~1024(main)", (Decode, Some(1024), 0, None)),
            ("pp~prompt(main)", (Prefill, None, 0, None)),
            ("eval rate", (Decode, None, 0, None)),
            ("tg", (Decode, None, 0, None)),
            ("pp1024 time", (Prefill, Some(1024), 0, None)),
            ("pp32585 request", (Prefill, Some(32_585), 0, None)),
            ("decode after 8010 tokens", (Decode, None, 8010, None)),
            ("decode, 4096 context setting", (Decode, None, 0, None)),
        ] {
            assert_eq!(parsed(name), Some(test), "{name}");
        }
    }

    #[test]
    fn what_is_no_test_is_not_guessed_at() {
        for name in [
            "",
            "ppl512",
            "pp512 @ 4096",
            "tg128 fast",
            "KV shape",
            "eval",
            "decode",
        ] {
            assert_eq!(parsed(name), None, "{name}");
        }
    }

    #[test]
    fn the_micro_batch_is_read_from_the_test_or_else_from_the_settings() {
        let ubatch = |name: &str, settings: &str| {
            PublishedTest::parse(name)
                .unwrap()
                .question(settings)
                .context
                .ubatch
        };
        assert_eq!(ubatch("pp2048", "ngl=99 ub=2048 fa=1"), 2048);
        assert_eq!(ubatch("pp2048 ub=16", "ngl=99"), 16);
        assert_eq!(ubatch("pp512", "ngl=99"), 512);
    }
}
