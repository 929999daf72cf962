//! What is to be fast.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use twospeed_engine::TestSpec;

/// What is to be fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// Reading prompts: pp512.
    Prefill,
    /// Writing answers: tg128.
    Decode,
    /// Both for one request: the time to read so many tokens and to write so many.
    Mix {
        /// Tokens that are read, at least 1.
        prompt: u32,
        /// Tokens that are written, at least 1.
        generate: u32,
    },
}

/// llama-bench's prompt.
const BENCH_PROMPT: u32 = 512;
/// Prompts are measured no longer than this: the largest micro-batch that is tried fits in.
const MOST_PROMPT: u32 = 2048;
/// Answers are measured no longer than this: llama-bench's test.
const MOST_GENERATED: u32 = 128;
/// Tokens of the tests that only sort out.
const SCREEN_PROMPT: u32 = 128;
const SCREEN_GENERATED: u32 = 16;
/// Tokens that such a test has at least.
const LEAST_PROMPT: u32 = 16;
const LEAST_GENERATED: u32 = 4;

/// Both speeds in tokens per second, as far as a target needs them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Speeds {
    /// Prefill.
    pub prefill: Option<f64>,
    /// Decode.
    pub decode: Option<f64>,
}

impl Target {
    /// llama-bench's own tests as one request: 512 tokens read, 128 written.
    pub const BENCH: Self = Self::Mix {
        prompt: BENCH_PROMPT,
        generate: MOST_GENERATED,
    };

    /// Tokens that are read and that are written; `None` where that does not matter.
    pub fn work(self) -> (Option<u32>, Option<u32>) {
        match self {
            Self::Prefill => (Some(BENCH_PROMPT), None),
            Self::Decode => (None, Some(MOST_GENERATED)),
            Self::Mix { prompt, generate } => (Some(prompt), Some(generate)),
        }
    }

    /// The prefill test by which it is decided; `None` where prefill does not matter.
    pub fn prefill(self) -> Option<TestSpec> {
        let (prompt, _) = self.work();
        prompt.map(|tokens| pp(tokens.min(MOST_PROMPT)))
    }

    /// The decode test by which it is decided; `None` where decode does not matter.
    pub fn decode(self) -> Option<TestSpec> {
        let (_, generate) = self.work();
        generate.map(|tokens| tg(tokens.min(MOST_GENERATED)))
    }

    /// Both tests, prefill first.
    pub fn tests(self) -> Vec<TestSpec> {
        self.prefill().into_iter().chain(self.decode()).collect()
    }

    /// Shorter tests to sort out with, halved so many times; with whole prompts where those are
    /// needed to see a difference.
    pub fn screening(self, whole_prompts: bool, halvings: u32) -> Vec<TestSpec> {
        let halved = |from: u32, least: u32| (from >> halvings).max(least.min(from));
        let prefill = self.prefill().map(|whole| {
            let from = match whole_prompts {
                true => whole.n_prompt,
                false => whole.n_prompt.min(SCREEN_PROMPT),
            };
            pp(halved(from, LEAST_PROMPT))
        });
        let decode = self
            .decode()
            .map(|whole| tg(halved(whole.n_gen.min(SCREEN_GENERATED), LEAST_GENERATED)));
        prefill.into_iter().chain(decode).collect()
    }

    /// Seconds that the target's work takes at these speeds: for prefill and decode alone those
    /// of their test. `None` where a speed that matters is unknown.
    pub fn seconds(self, speeds: Speeds) -> Option<f64> {
        let part = |tokens: u32, speed: Option<f64>| {
            speed
                .filter(|speed| *speed > 0.0)
                .map(|speed| f64::from(tokens) / speed)
        };
        let (prompt, generate) = self.work();
        let prefill = prompt.map_or(Some(0.0), |tokens| part(tokens, speeds.prefill))?;
        let decode = generate.map_or(Some(0.0), |tokens| part(tokens, speeds.decode))?;
        Some(prefill + decode)
    }
}

fn pp(n_prompt: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen: 0,
        n_depth: 0,
    }
}

fn tg(n_gen: u32) -> TestSpec {
    TestSpec {
        n_prompt: 0,
        n_gen,
        n_depth: 0,
    }
}

/// Its key, as stored: `prefill`, `decode`, `mix:512,128`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefill => f.write_str("prefill"),
            Self::Decode => f.write_str("decode"),
            Self::Mix { prompt, generate } => write!(f, "mix:{prompt},{generate}"),
        }
    }
}

/// A text that names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is nothing to tune for: write prefill, decode, or tokens to read and to write, both at least 1, for example 512,128."
)]
pub struct NotATarget(pub String);

/// As a person writes it (`512,128`) or as it is stored (`mix:512,128`).
impl FromStr for Target {
    type Err = NotATarget;

    fn from_str(text: &str) -> Result<Self, NotATarget> {
        let wrong = || NotATarget(text.to_owned());
        match text {
            "prefill" => return Ok(Self::Prefill),
            "decode" => return Ok(Self::Decode),
            _ => {}
        }
        let mix = text.strip_prefix("mix:").unwrap_or(text);
        let (prompt, generate) = mix.split_once(',').ok_or_else(wrong)?;
        let tokens = |text: &str| {
            let number: u32 = text.trim().parse().map_err(|_| wrong())?;
            // Positions in llama.cpp are signed.
            (1..=i32::MAX as u32)
                .contains(&number)
                .then_some(number)
                .ok_or_else(wrong)
        };
        Ok(Self::Mix {
            prompt: tokens(prompt)?,
            generate: tokens(generate)?,
        })
    }
}

impl TryFrom<String> for Target {
    type Error = NotATarget;

    fn try_from(text: String) -> Result<Self, NotATarget> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tests: &[TestSpec]) -> Vec<String> {
        tests.iter().map(TestSpec::to_string).collect()
    }

    const MIX: Target = Target::Mix {
        prompt: 4096,
        generate: 32,
    };

    #[test]
    fn a_target_is_read_as_it_is_written_and_as_it_is_stored() {
        for (text, target) in [
            ("prefill", Target::Prefill),
            ("decode", Target::Decode),
            ("4096,32", MIX),
            ("mix:4096,32", MIX),
            ("512, 128", Target::BENCH),
        ] {
            assert_eq!(text.parse(), Ok(target));
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        let stored = serde_json::to_string(&MIX).unwrap();
        assert_eq!(stored, "\"mix:4096,32\"");
        assert_eq!(serde_json::from_str::<Target>(&stored).unwrap(), MIX);
    }

    #[test]
    fn what_times_nothing_is_no_target() {
        for text in [
            "",
            "speed",
            "512",
            "0,128",
            "512,0",
            "512,-1",
            "1,3000000000",
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.to_string().contains("512,128"), "{error}");
        }
    }

    #[test]
    fn tests_are_llama_benchs_and_no_longer_than_they_need_to_be() {
        assert_eq!(names(&Target::BENCH.tests()), ["pp512", "tg128"]);
        assert_eq!(names(&Target::Prefill.tests()), ["pp512"]);
        assert_eq!(names(&Target::Decode.tests()), ["tg128"]);
        assert_eq!(names(&MIX.tests()), ["pp2048", "tg32"]);
    }

    #[test]
    fn screening_is_shorter_and_keeps_whole_prompts_where_they_are_needed() {
        let bench = |whole, halvings| names(&Target::BENCH.screening(whole, halvings));
        assert_eq!(bench(false, 0), ["pp128", "tg16"]);
        assert_eq!(bench(true, 0), ["pp512", "tg16"]);
        assert_eq!(bench(false, 1), ["pp64", "tg8"]);
        assert_eq!(bench(false, 9), ["pp16", "tg4"]);
        let short = Target::Mix {
            prompt: 8,
            generate: 2,
        };
        assert_eq!(names(&short.screening(true, 1)), ["pp8", "tg2"]);
    }

    #[test]
    fn a_mix_takes_the_time_of_both_parts() {
        let speeds = Speeds {
            prefill: Some(1024.0),
            decode: Some(64.0),
        };
        // 4096 / 1024 + 32 / 64 = 4.5 s; 128 / 64 = 2 s; 512 / 1024 = 0.5 s.
        assert_eq!(MIX.seconds(speeds), Some(4.5));
        assert_eq!(Target::Decode.seconds(speeds), Some(2.0));
        assert_eq!(Target::Prefill.seconds(speeds), Some(0.5));
        let unknown = Speeds {
            decode: None,
            ..speeds
        };
        assert_eq!(MIX.seconds(unknown), None);
        assert_eq!(Target::Prefill.seconds(unknown), Some(0.5));
    }
}
