//! What a test asks of the machine, whoever is asked.

use twospeed_engine::{Settings, TestSpec};
use twospeed_estimate::{ContextSettings, Shape, Weights, flops_per_token, read_per_token};
use twospeed_gguf::Model;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Kind, PlannedTest};
use twospeed_workbench::context_settings;

/// Tokens that warm up a test of users.
const USERS_WARMUP: f64 = 16.0;

/// About as many tokens as the bundled text has.
const WHOLE_TEXT: f64 = 32_768.0;

/// Work of the three sorts that take time, and time that passes whatever the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Effort {
    /// Operations of prefill.
    pub(super) prefill: f64,
    /// Bytes that decode reads.
    pub(super) decode: f64,
    /// Bytes of files that are loaded.
    pub(super) load: f64,
}

impl Effort {
    fn plus(self, other: Self) -> Self {
        Self {
            prefill: self.prefill + other.prefill,
            decode: self.decode + other.decode,
            load: self.load + other.load,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            prefill: self.prefill * factor,
            decode: self.decode * factor,
            load: self.load * factor,
        }
    }
}

/// What tokens of a model cost.
pub(super) struct Costs {
    /// Operations of a token and bytes it reads, where attention and cache are not counted.
    operations: Option<f64>,
    bytes: Option<f64>,
    file_bytes: f64,
    /// For what attention and cache add.
    shape: Option<(Shape, Weights)>,
}

impl Costs {
    /// `header` tells what grows with the depth; without it a token costs the same at any.
    pub(super) fn of(model: &MeasuredModel, header: Option<&Model>) -> Self {
        let shape = header.and_then(|header| {
            let shape = Shape::from_model(header).ok()?;
            Some((shape, Weights::of(header).ok()?))
        });
        Self {
            operations: model.active_parameters.map(|active| 2.0 * active as f64),
            bytes: model.weight_bytes_per_token.map(|bytes| bytes as f64),
            file_bytes: model.file_bytes as f64,
            shape,
        }
    }

    /// Reading so many tokens from a depth on; `None` where the model's size is not known.
    pub(super) fn prefill(&self, settings: &Settings, tokens: f64, depth: f64) -> Option<Effort> {
        let exact = || {
            let (shape, weights) = self.shape.as_ref()?;
            let at = context(settings, tokens + depth)?;
            let flops = flops_per_token(shape, weights, &at, tokens as u64, depth as u64).ok()?;
            Some(flops.0 as f64)
        };
        Some(Effort {
            prefill: tokens * exact().or(self.operations)?,
            ..Effort::default()
        })
    }

    /// Writing so many tokens from a depth on, for so many people at once.
    pub(super) fn decode(
        &self,
        settings: &Settings,
        tokens: f64,
        depth: f64,
        users: f64,
    ) -> Option<Effort> {
        let cache = || {
            let (shape, _) = self.shape.as_ref()?;
            let at = context(settings, users * (tokens + depth))?;
            let read = read_per_token(shape, &at, (depth + tokens / 2.0) as u64).ok()?;
            Some(read.0 as f64)
        };
        // The weights are read once for all; what more people add is arithmetic.
        let more = match users > 1.0 {
            true => (users - 1.0) * tokens * self.operations?,
            false => 0.0,
        };
        Some(Effort {
            decode: tokens * (self.bytes? + users * cache().unwrap_or(0.0)),
            prefill: more,
            load: 0.0,
        })
    }

    /// One sample of a test.
    pub(super) fn sample(
        &self,
        kind: &Kind,
        spec: TestSpec,
        settings: &Settings,
    ) -> Option<Effort> {
        let (prompt, answer) = (f64::from(spec.n_prompt), f64::from(spec.n_gen));
        let depth = f64::from(spec.n_depth);
        match kind {
            Kind::Speed => self.both(settings, prompt, answer, depth),
            Kind::FirstToken { .. } => {
                Some(
                    self.load()
                        .plus(self.both(settings, prompt, answer - 1.0, 0.0)?),
                )
            }
            Kind::PrefixCache { changed } => {
                let cold = self.both(settings, prompt, answer - 1.0, 0.0)?;
                let again = self.both(settings, 1.0, answer - 1.0, prompt - 1.0)?;
                let tail = f64::from(*changed).max(1.0);
                let other = self.both(settings, tail, answer - 1.0, prompt - tail)?;
                Some(cold.plus(again).plus(other))
            }
            Kind::Users {
                users,
                shared_prompt,
                ..
            } => {
                let users = f64::from(*users);
                let prompts = if *shared_prompt { 1.0 } else { users };
                let read = self.prefill(settings, prompt, depth)?.times(prompts);
                Some(read.plus(self.decode(settings, answer, depth + prompt, users)?))
            }
            Kind::Quality { n_ctx, base, .. } => {
                let chunk = f64::from(*n_ctx);
                let tokens = if prompt > 0.0 { prompt } else { WHOLE_TEXT };
                let chunks = tokens / chunk;
                let own = self.prefill(settings, chunk, 0.0)?.times(chunks);
                // The base reads the same text; it has as many parameters.
                Some(own.times(if base.is_some() { 2.0 } else { 1.0 }))
            }
        }
    }

    fn both(&self, settings: &Settings, prompt: f64, answer: f64, depth: f64) -> Option<Effort> {
        let mut all = Effort::default();
        if prompt > 0.0 {
            all = all.plus(self.prefill(settings, prompt, depth)?);
        }
        if answer > 0.0 {
            all = all.plus(self.decode(settings, answer, depth + prompt, 1.0)?);
        }
        Some(all)
    }

    pub(super) fn load(&self) -> Effort {
        Effort {
            load: self.file_bytes,
            ..Effort::default()
        }
    }

    /// What comes before the samples of a test: its warm-up and the filling of its cache, of which
    /// `filled` tokens are there.
    pub(super) fn before(
        &self,
        kind: &Kind,
        spec: TestSpec,
        settings: &Settings,
        filled: u32,
    ) -> Option<Effort> {
        let warmup = match kind {
            // One token stands for an answer.
            Kind::Speed => self.both(
                settings,
                f64::from(spec.n_prompt),
                f64::from(spec.n_gen.min(1)),
                0.0,
            )?,
            Kind::Users { .. } => self.prefill(settings, USERS_WARMUP, 0.0)?,
            Kind::PrefixCache { .. } => self.sample(kind, spec, settings)?,
            Kind::FirstToken { .. } | Kind::Quality { .. } => Effort::default(),
        };
        let missing = spec.n_depth.saturating_sub(filled);
        if missing == 0 {
            return Some(warmup);
        }
        let filling = self.prefill(settings, f64::from(missing), f64::from(filled))?;
        Some(warmup.plus(filling))
    }
}

fn context(settings: &Settings, tokens: f64) -> Option<ContextSettings> {
    context_settings(settings, tokens as u64)
}

/// What a planned test asks for: before its samples, and for each of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) before: Option<Effort>,
    pub(super) sample: Option<Effort>,
}

impl Work {
    /// `last` ran right before: what it loaded and filled is there.
    pub(super) fn of(test: &PlannedTest, costs: &Costs, last: Option<&PlannedTest>) -> Self {
        let last = last.filter(|last| last.shares_load(test));
        let filled = last.map_or(0, |last| match last.settings == test.settings {
            true => last.spec.n_depth.min(test.spec.n_depth),
            false => 0,
        });
        let before = costs.before(&test.kind, test.spec, &test.settings, filled);
        let loads = last.is_none() && !matches!(test.kind, Kind::FirstToken { .. });
        Self {
            before: before.map(|before| match loads {
                true => before.plus(costs.load()),
                false => before,
            }),
            sample: costs.sample(&test.kind, test.spec, &test.settings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::results_fixture::model;
    use super::*;

    fn costs() -> Costs {
        // 134,515,008 parameters: 269,030,016 operations a token; 100 MB of weights.
        Costs::of(&model("A", "Q4_0", 100_000_000), None)
    }

    fn spec(n_prompt: u32, n_gen: u32, n_depth: u32) -> TestSpec {
        TestSpec {
            n_prompt,
            n_gen,
            n_depth,
        }
    }

    fn sample(kind: &Kind, spec: TestSpec) -> Effort {
        costs().sample(kind, spec, &Settings::default()).unwrap()
    }

    const TOKEN: f64 = 269_030_016.0;
    const WEIGHTS: f64 = 100e6;

    #[test]
    fn a_prompt_is_arithmetic_and_an_answer_is_reading() {
        let both = sample(&Kind::Speed, spec(512, 128, 0));
        assert_eq!(
            (both.prefill, both.decode),
            (512.0 * TOKEN, 128.0 * WEIGHTS)
        );
    }

    #[test]
    fn four_users_read_the_weights_together_and_their_prompts_apart() {
        let users = |shared_prompt| Kind::Users {
            users: 4,
            split_kv: false,
            shared_prompt,
        };
        let apart = sample(&users(false), spec(128, 32, 0));
        assert_eq!(apart.decode, 32.0 * WEIGHTS);
        // Four prompts, and three more tokens in each of 32 steps.
        assert_eq!(apart.prefill, (4.0 * 128.0 + 3.0 * 32.0) * TOKEN);
        let shared = sample(&users(true), spec(128, 32, 0));
        assert_eq!(shared.prefill, (128.0 + 3.0 * 32.0) * TOKEN);
    }

    #[test]
    fn a_first_token_loads_each_time_and_a_repeated_prompt_is_one_token() {
        let page_cache = twospeed_engine::protocol::PageCache::Drop;
        let first = sample(&Kind::FirstToken { page_cache }, spec(512, 2, 0));
        assert_eq!(first.load, 100e6);
        assert_eq!((first.prefill, first.decode), (512.0 * TOKEN, WEIGHTS));
        let cached = sample(&Kind::PrefixCache { changed: 128 }, spec(512, 1, 0));
        assert_eq!(cached.prefill, (512.0 + 1.0 + 128.0) * TOKEN);
    }

    #[test]
    fn quality_reads_the_text_once_for_each_of_two_models() {
        let kind = |base| Kind::Quality {
            n_ctx: 512,
            text: None,
            base,
        };
        assert_eq!(
            sample(&kind(None), spec(5120, 0, 0)).prefill,
            5120.0 * TOKEN
        );
        let base = Some(Box::new(model("A", "F16", 1)));
        assert_eq!(
            sample(&kind(base), spec(5120, 0, 0)).prefill,
            2.0 * 5120.0 * TOKEN
        );
    }

    #[test]
    fn what_the_test_before_loaded_and_filled_is_not_paid_again() {
        let planned = |n_depth| PlannedTest {
            model: model("A", "Q4_0", 100_000_000),
            settings: Settings::default(),
            spec: spec(512, 0, n_depth),
            kind: Kind::Speed,
            variant: None,
        };
        let (first, second) = (planned(1024), planned(4096));
        let before = |last| Work::of(&second, &costs(), last).before.unwrap();
        // The warm-up is the prompt.
        assert_eq!(before(None).load, 100e6);
        assert_eq!(before(None).prefill, (512.0 + 4096.0) * TOKEN);
        let after = before(Some(&first));
        assert_eq!((after.load, after.prefill), (0.0, (512.0 + 3072.0) * TOKEN));
    }
}
