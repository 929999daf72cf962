//! What is to be measured, in which order.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::{Ability, PageCache};
use twospeed_engine::{Settings, TestSpec};

use crate::kind::Kind;
use crate::model::MeasuredModel;

/// Tests in the order they run, and what holds for all of them.
///
/// It is stored with its run, so that a run that was cut off can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the person asked for: `quick`, `article`, `bench`, ...
    pub preset: String,
    /// The tests. The order is kept as it is given; [`tests_of`] gives the one that reloads least.
    pub tests: Vec<PlannedTest>,
    /// Timed repetitions of each test.
    pub repetitions: u32,
    /// One untimed warm-up before each test.
    pub warmup: bool,
    /// Pause before each test in milliseconds; llama-bench's `--delay` is in seconds.
    pub delay_ms: u64,
    /// State of the file in the page cache when a load starts.
    pub page_cache: PageCache,
    /// Run the drift anchor before and after each test.
    pub anchor: bool,
    /// Seed of the random tokens.
    pub seed: u64,
    /// Repeat each test until its mean is known this well; `repetitions` are then the fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// In which order repetitions of different tests follow each other.
    #[serde(default)]
    pub order: Order,
}

/// When a test has been repeated often enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Half-width of the 95 % confidence interval of the mean, relative to the mean: 0.02 for 2 %.
    pub relative: f64,
    /// Repetitions after which it is given up.
    pub at_most: u32,
}

/// In which order the repetitions of a plan's tests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// All repetitions of a test, then the next test.
    #[default]
    OneByOne,
    /// One repetition of each test in turn (A B A B), so that what drifts meets all alike.
    Interleaved,
    /// One repetition of each test in turn until the time is up, however many that makes.
    Sustained {
        /// Seconds.
        seconds: u32,
    },
}

/// One test of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTest {
    /// The model.
    pub model: MeasuredModel,
    /// Every setting.
    pub settings: Settings,
    /// What is timed.
    pub spec: TestSpec,
    /// What of it is measured.
    #[serde(default)]
    pub kind: Kind,
    /// The CPU variant that was asked for by name; `None` = the best that runs here.
    ///
    /// A variant asked for by name is never replaced by another.
    pub variant: Option<String>,
}

/// Seed of the random tokens unless another is asked for: any number will do, the same one makes
/// runs repeat the same tokens.
pub const DEFAULT_SEED: u64 = 42;

/// Threads that ggml can run (`GGML_MAX_N_THREADS`); it aborts on more.
pub const MAX_THREADS: u32 = 512;

/// Tokens a context can hold: positions are 32-bit and signed in llama.cpp.
pub const MAX_CONTEXT: u64 = i32::MAX as u64;

/// A named choice of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name, as stored with the run.
    pub name: &'static str,
    /// The tests for each model and settings.
    pub specs: &'static [TestSpec],
    /// Timed repetitions.
    pub repetitions: u32,
}

/// Both speeds in little time: pp512 and tg128, three repetitions, the fewest that show a spread
/// and an outlier apart from it.
pub const QUICK: Preset = Preset {
    name: "quick",
    specs: &[PP512, TG128],
    repetitions: 3,
};

/// The article's test and llama-bench's default: pp512 and tg128, five repetitions.
pub const ARTICLE: Preset = Preset {
    name: "article",
    specs: &[PP512, TG128],
    repetitions: 5,
};

const PP512: TestSpec = TestSpec {
    n_prompt: 512,
    n_gen: 0,
    n_depth: 0,
};

const TG128: TestSpec = TestSpec {
    n_prompt: 0,
    n_gen: 128,
    n_depth: 0,
};

/// Every test of every settings of every model, models outermost: llama-bench's order, which
/// reloads least when settings that share a load stand together.
pub fn tests_of(
    models: &[MeasuredModel],
    settings: &[Settings],
    specs: &[TestSpec],
) -> Vec<PlannedTest> {
    let mut tests = Vec::with_capacity(models.len() * settings.len() * specs.len());
    for model in models {
        for settings in settings {
            tests.extend(specs.iter().map(|&spec| PlannedTest {
                model: model.clone(),
                settings: settings.clone(),
                spec,
                kind: Kind::Speed,
                variant: None,
            }));
        }
    }
    tests
}

impl Plan {
    /// Tests under llama-bench's defaults: five repetitions, a warm-up, no delay; and an anchor.
    pub fn new(preset: impl Into<String>, tests: Vec<PlannedTest>) -> Self {
        Self {
            preset: preset.into(),
            tests,
            repetitions: ARTICLE.repetitions,
            warmup: true,
            delay_ms: 0,
            page_cache: PageCache::AsIs,
            anchor: true,
            seed: DEFAULT_SEED,
            until: None,
            order: Order::OneByOne,
        }
    }

    /// A preset's tests for each model with one choice of settings.
    pub fn of(preset: &Preset, models: &[MeasuredModel], settings: &Settings) -> Self {
        let tests = tests_of(models, std::slice::from_ref(settings), preset.specs);
        Self {
            repetitions: preset.repetitions,
            ..Self::new(preset.name, tests)
        }
    }

    /// Refuses what can never be measured, before anything is started.
    ///
    /// What only a single model or the free memory forbids is refused test by test when its turn
    /// comes ([`PlannedTest::refusal`]), so that the rest of the plan is measured.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.tests.is_empty() {
            return Err(PlanError::NoTests);
        }
        if self.repetitions == 0 {
            return Err(PlanError::NoRepetitions);
        }
        self.tests.iter().try_for_each(PlannedTest::check)
    }
}

impl PlannedTest {
    /// `pp512 of Qwen3-8B`, for sentences.
    pub fn name(&self) -> String {
        format!("{} of {}", self.kind.name(self.spec), self.model.name)
    }

    /// Tokens that its context has to hold, all sequences together.
    pub fn context(&self) -> u64 {
        self.kind.context(self.spec)
    }

    /// Whether the model that `self` needs is loaded when `other` is.
    pub fn shares_load(&self, other: &Self) -> bool {
        self.model.path == other.model.path
            && self.model.fingerprint == other.model.fingerprint
            && self.variant == other.variant
            && self.settings.same_load(&other.settings)
    }

    fn check(&self) -> Result<(), PlanError> {
        let settings = &self.settings;
        if self.spec.tokens() == 0 {
            return Err(PlanError::NothingTimed {
                model: self.model.name.clone(),
            });
        }
        if self.context() > MAX_CONTEXT {
            return Err(PlanError::ContextTooLong {
                test: self.name(),
                tokens: self.context(),
            });
        }
        if settings.n_threads == 0 {
            return Err(PlanError::NoThreads);
        }
        if settings.n_threads > MAX_THREADS {
            return Err(PlanError::TooManyThreads {
                threads: settings.n_threads,
            });
        }
        if settings.n_batch == 0 {
            return Err(PlanError::NoBatch);
        }
        if settings.n_ubatch == 0 {
            return Err(PlanError::NoMicroBatch);
        }
        Ok(())
    }

    /// Why this test is not even tried: the model is not able, or memory cannot hold it.
    ///
    /// `needs` is what it needs in memory and `available` what is free for it, both in bytes;
    /// where one is unknown the engine is asked to try.
    pub fn refusal(&self, needs: Option<u64>, available: Option<u64>) -> Option<Refusal> {
        if self.spec.n_gen > 0
            && let Some(kind) = self.model.ability.and_then(without_decode)
        {
            return Some(Refusal::NotAble {
                model: self.model.name.clone(),
                kind,
                spec: self.spec,
            });
        }
        match (needs, available) {
            (Some(needs), Some(available)) if needs > available => Some(Refusal::TooLittleMemory {
                model: self.model.name.clone(),
                context: self.context(),
                needs,
                available,
            }),
            _ => None,
        }
    }
}

fn without_decode(ability: Ability) -> Option<&'static str> {
    match ability {
        Ability::Generates => None,
        Ability::Embeds => Some("an embedding model"),
        Ability::Diffuses => Some("a diffusion model"),
    }
}

/// A plan that cannot be run, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It holds no test.
    #[error("There is nothing to measure: name at least one model and one test.")]
    NoTests,
    /// Zero repetitions.
    #[error("Repetitions must be at least 1.")]
    NoRepetitions,
    /// A test without a token to time.
    #[error(
        "A test of {model} times no tokens: give it prompt tokens (-p) or tokens to generate (-n)."
    )]
    NothingTimed {
        /// The model's name.
        model: String,
    },
    /// More tokens than any context holds.
    #[error("{test} needs a context of {tokens} tokens; no context holds more than {MAX_CONTEXT}.")]
    ContextTooLong {
        /// The test's name.
        test: String,
        /// Tokens asked for.
        tokens: u64,
    },
    /// Zero threads.
    #[error("Threads must be at least 1.")]
    NoThreads,
    /// More threads than ggml runs.
    #[error("{threads} threads are more than the engine can run; at most {MAX_THREADS}.")]
    TooManyThreads {
        /// Threads asked for.
        threads: u32,
    },
    /// Batch size zero.
    #[error("The batch size (-b) must be at least 1.")]
    NoBatch,
    /// Micro-batch size zero.
    #[error("The micro-batch size (-ub) must be at least 1.")]
    NoMicroBatch,
}

/// Why a test is not tried, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The model has no decode.
    #[error(
        "{model} is {kind} and cannot generate tokens one by one, so {spec} cannot be measured. Measure its prompt speed alone (-n 0)."
    )]
    NotAble {
        /// The model's name.
        model: String,
        /// `an embedding model`.
        kind: &'static str,
        /// The test.
        spec: TestSpec,
    },
    /// It cannot fit.
    #[error(
        "A context of {context} tokens for {model} needs at least {} of memory; {} is free. Try a shorter context, a smaller KV cache type or a smaller quantization.",
        gib(*needs), gib(*available)
    )]
    TooLittleMemory {
        /// The model's name.
        model: String,
        /// The test's context in tokens.
        context: u64,
        /// Bytes it needs.
        needs: u64,
        /// Bytes that are free.
        available: u64,
    },
}

impl Refusal {
    /// The key of this refusal for those who branch on it: `not_able` or `too_little_memory`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAble { .. } => "not_able",
            Self::TooLittleMemory { .. } => "too_little_memory",
        }
    }
}

fn gib(bytes: u64) -> String {
    const GIB: f64 = (1u64 << 30) as f64;
    format!("{:.1} GiB", bytes as f64 / GIB)
}

#[cfg(test)]
mod tests;
