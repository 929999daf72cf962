//! The tests that a choice makes of one model.

use twospeed_engine::protocol::PageCache;
use twospeed_engine::{Settings, TestSpec};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::presets::{self, Preset};
use twospeed_measure::plan::{FEWEST_UNTIL, MAX_USERS, Order, Until};
use twospeed_measure::{Kind, PlannedTest};
use twospeed_workbench::tune;

use super::{sweep, tuning};
use crate::Problem;
use crate::measure::*;

/// More repetitions than anyone waits for.
const MOST_REPETITIONS: u32 = 1000;
/// Repetitions after which a test that does not settle is given up, unless more are the fewest.
const MOST_UNTIL: u32 = 50;
/// Longest sustained run, minutes.
const MOST_MINUTES: u32 = 24 * 60;
/// Repetitions of what is quick and shown with its parts.
const SERVED_REPETITIONS: u32 = 3;

/// What is measured of each model.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Choice {
    /// What was asked for.
    tests: Tests,
    /// Name of the preset, as stored with the run.
    pub(super) preset: String,
    /// Timed repetitions.
    pub(super) repetitions: u32,
    /// When a test has been repeated often enough.
    pub(super) until: Option<Until>,
    /// How repetitions of different tests follow each other.
    pub(super) order: Order,
}

/// What a model can hold.
pub(super) struct Limits {
    /// Tokens of context: what it was trained for, or what the memory allows.
    pub(super) context: u32,
}

impl Choice {
    /// The tests that were asked for.
    ///
    /// Errors: one sentence for what can never be measured.
    pub(in super::super) fn of(tests: &Tests) -> Result<Self, Problem> {
        check(tests)?;
        // The names, repetitions and orders are the core's; the tests depend on the model.
        let named = |preset: Preset| Self {
            tests: tests.clone(),
            preset: preset.name.to_owned(),
            repetitions: preset.repetitions,
            until: None,
            order: preset.order,
        };
        let own = |name: &str, repetitions| Self {
            tests: tests.clone(),
            preset: name.to_owned(),
            repetitions,
            until: None,
            order: Order::OneByOne,
        };
        Ok(match tests {
            Tests::Quick => named(presets::quick()),
            Tests::Article => named(presets::article()),
            Tests::ContextCurve { .. } => named(presets::context_curve(0)),
            Tests::LongDocument { .. } => named(presets::long_document(0)),
            Tests::Users { .. } => named(presets::users(1, 0)),
            Tests::FaceOff { .. } => own("face_off", presets::article().repetitions),
            Tests::FirstToken { .. } => own("first_token", SERVED_REPETITIONS),
            Tests::PrefixCache { .. } => own("prefix_cache", SERVED_REPETITIONS),
            Tests::Sustained { minutes } => named(presets::sustained(minutes * 60)),
            Tests::Roofline => named(presets::roofline()),
            Tests::Tune { .. } => own(tune::PRESET, 1),
            Tests::Offload => own("offload", presets::quick().repetitions),
            Tests::Own {
                repetitions,
                until,
                interleaved,
                ..
            } => Self {
                until: until.map(|percent| Until {
                    relative: percent / 100.0,
                    at_most: MOST_UNTIL.max(*repetitions),
                }),
                order: match interleaved {
                    true => Order::Interleaved,
                    false => Order::OneByOne,
                },
                ..own("own", *repetitions)
            },
        })
    }

    /// The row of Models that is the base of a face-off, where one was named.
    pub(in super::super) fn base(&self) -> Option<&str> {
        match &self.tests {
            Tests::FaceOff { base, .. } => base.as_deref(),
            _ => None,
        }
    }

    /// What tuning is for, where it is that.
    pub(in super::super) fn tunes(&self) -> Option<TuneFor> {
        match &self.tests {
            Tests::Tune { target } => Some(*target),
            _ => None,
        }
    }

    /// Predictions are held against those of a base.
    pub(in super::super) fn needs_base(&self) -> bool {
        matches!(self.tests, Tests::FaceOff { quality: true, .. })
    }

    /// What is measured of one model with each settings.
    pub(super) fn kinds(
        &self,
        limits: &Limits,
        base: Option<&MeasuredModel>,
    ) -> Vec<(TestSpec, Kind)> {
        match &self.tests {
            Tests::Quick | Tests::Offload => presets::quick().tests,
            Tests::Article => presets::article().tests,
            Tests::Roofline => presets::roofline().tests,
            // The tests that it races with: what they take tells what it will take.
            Tests::Tune { target } => {
                let tests = tuning::target(*target).tests();
                tests.into_iter().map(|spec| (spec, Kind::Speed)).collect()
            }
            Tests::ContextCurve { deepest } => {
                presets::context_curve(within(limits.context, *deepest, presets::PROMPT)).tests
            }
            Tests::LongDocument { longest } => {
                presets::long_document(within(limits.context, *longest, presets::ANSWER)).tests
            }
            Tests::Users {
                users,
                prompt,
                generate,
                split_kv,
                shared_prompt,
            } => {
                let spec = spec(*prompt, *generate, 0);
                let each = users.iter().map(|users| Kind::Users {
                    users: *users,
                    split_kv: *split_kv,
                    shared_prompt: *shared_prompt,
                });
                each.map(|kind| (spec, kind)).collect()
            }
            Tests::FaceOff { quality, .. } => match base.filter(|_| *quality) {
                Some(base) => presets::face_off(base).tests,
                None => presets::article().tests,
            },
            Tests::FirstToken { prompt, cache } => {
                let caches: &[PageCache] = match cache {
                    FileCaches::Cold => &[PageCache::Drop],
                    FileCaches::Warm => &[PageCache::Warm],
                    FileCaches::Each => &[PageCache::Drop, PageCache::Warm],
                };
                let spec = spec(*prompt, presets::FIRST_TOKENS, 0);
                let kind = |page_cache: &PageCache| Kind::FirstToken {
                    page_cache: *page_cache,
                };
                caches.iter().map(|cache| (spec, kind(cache))).collect()
            }
            Tests::PrefixCache { prompt, changed } => vec![(
                spec(*prompt, presets::FIRST_TOKENS, 0),
                Kind::PrefixCache { changed: *changed },
            )],
            Tests::Sustained { minutes } => presets::sustained(minutes * 60).tests,
            Tests::Own {
                prompt,
                generate,
                depth,
                ..
            } => own(prompt, generate, depth),
        }
    }

    /// The settings that each of them is measured with, those that share a load together.
    ///
    /// `layers` is how many the model has, where that matters.
    pub(super) fn settings(
        &self,
        usual: &Settings,
        layers: Option<u32>,
    ) -> Vec<(Settings, Option<String>)> {
        match &self.tests {
            Tests::Own { sweep, .. } => sweep::settings(usual, sweep),
            Tests::Offload => sweep::offload(usual, layers),
            _ => vec![(usual.clone(), None)],
        }
    }

    /// Every test of one model, in the order that reloads and refills least.
    pub(super) fn tests_of(
        &self,
        model: &MeasuredModel,
        kinds: &[(TestSpec, Kind)],
        settings: &[(Settings, Option<String>)],
    ) -> Vec<PlannedTest> {
        let mut tests = Vec::with_capacity(kinds.len() * settings.len());
        for (settings, variant) in settings {
            tests.extend(kinds.iter().map(|(spec, kind)| PlannedTest {
                model: model.clone(),
                settings: settings.clone(),
                spec: *spec,
                kind: kind.of(model),
                variant: variant.clone(),
            }));
        }
        tests
    }
}

/// A limit of context that leaves `asked` tokens with `beside` more, where so many were asked for.
fn within(limit: u32, asked: Option<u32>, beside: u32) -> u32 {
    asked.map_or(limit, |asked| limit.min(asked.saturating_add(beside)))
}

fn spec(n_prompt: u32, n_gen: u32, n_depth: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen,
        n_depth,
    }
}

/// Depths outermost, prompts before answers: llama-bench's order. What is written twice is
/// measured once.
fn own(prompt: &[u32], generate: &[u32], depth: &[u32]) -> Vec<(TestSpec, Kind)> {
    let lengths = prompt.iter().map(|tokens| (*tokens, 0));
    let lengths: Vec<(u32, u32)> = lengths
        .chain(generate.iter().map(|tokens| (0, *tokens)))
        .filter(|(prompt, answer)| prompt + answer > 0)
        .collect();
    let depths = if depth.is_empty() { &[0] } else { depth };
    let mut all = Vec::new();
    for n_depth in depths {
        for (n_prompt, n_gen) in &lengths {
            let test = (spec(*n_prompt, *n_gen, *n_depth), Kind::Speed);
            if !all.contains(&test) {
                all.push(test);
            }
        }
    }
    all
}

fn check(tests: &Tests) -> Result<(), Problem> {
    let refuse = |code, sentence: String| Err(Problem::new(code, sentence));
    let no_tests = |sentence: &str| refuse("no_tests", sentence.to_owned());
    match tests {
        Tests::Own {
            prompt,
            generate,
            repetitions,
            until,
            sweep,
            ..
        } => {
            let none = prompt.iter().chain(generate).all(|tokens| *tokens == 0);
            if none {
                return no_tests(
                    "There is nothing to measure: give at least one prompt length or answer length above 0.",
                );
            }
            check_repetitions(*repetitions, *until)?;
            sweep::check(sweep)
        }
        Tests::Users {
            users,
            prompt,
            generate,
            ..
        } => {
            if users.is_empty() || *prompt == 0 || *generate == 0 {
                return no_tests(
                    "There is nothing to measure: give at least one number of users, and a prompt and an answer of at least 1 token.",
                );
            }
            match users.iter().find(|users| !(1..=MAX_USERS).contains(*users)) {
                None => Ok(()),
                Some(users) => refuse(
                    "users_impossible",
                    format!(
                        "{users} users cannot be served side by side: take 1 to {MAX_USERS}, as many as the engine keeps apart."
                    ),
                ),
            }
        }
        Tests::Tune {
            target: TuneFor::Mix { prompt, generate },
        } if *prompt == 0 || *generate == 0 => {
            no_tests("There is nothing to tune: give a prompt and an answer of at least 1 token.")
        }
        Tests::FirstToken { prompt: 0, .. } => {
            no_tests("There is nothing to measure: give a prompt of at least 1 token.")
        }
        Tests::PrefixCache { prompt, changed } if *changed == 0 || changed >= prompt => refuse(
            "tail_impossible",
            format!(
                "A prompt of {prompt} tokens with {changed} changed shows nothing of the cache: change at least 1 and leave at least 1."
            ),
        ),
        Tests::Sustained { minutes } if !(1..=MOST_MINUTES).contains(minutes) => refuse(
            "minutes_impossible",
            format!(
                "A sustained run lasts 1 to {MOST_MINUTES} minutes; ten show what a machine holds."
            ),
        ),
        _ => Ok(()),
    }
}

fn check_repetitions(repetitions: u32, until: Option<f64>) -> Result<(), Problem> {
    let refuse = |code, sentence: String| Err(Problem::new(code, sentence));
    if repetitions == 0 {
        return refuse("no_repetitions", "Repetitions must be at least 1.".into());
    }
    if repetitions > MOST_REPETITIONS {
        return refuse(
            "too_many_repetitions",
            format!(
                "{repetitions} repetitions are more than anyone waits for: take at most {MOST_REPETITIONS}."
            ),
        );
    }
    match until {
        Some(percent) if !(percent > 0.0 && percent < 100.0) => refuse(
            "until_impossible",
            format!(
                "The mean cannot be known to {percent} %: take between 0 and 100, 2 is what most comparisons need. At least {FEWEST_UNTIL} repetitions are made."
            ),
        ),
        _ => Ok(()),
    }
}
