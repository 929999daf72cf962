//! What is to be measured, in which order.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::PageCache;
use twospeed_engine::{Settings, TestSpec};

use crate::kind::Kind;
use crate::model::MeasuredModel;

pub use self::presets::Preset;
pub use self::refusal::{Need, PlanError, Refusal};

pub mod presets;
mod refusal;

/// Tests in the order they run, and what holds for all of them.
///
/// It is stored with its run, so that a run that was cut off can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the person asked for: `quick`, `article`, `bench`, ...
    pub preset: String,
    /// The tests. The order is kept as it is given; [`tests_of`] gives the one that reloads least.
    pub tests: Vec<PlannedTest>,
    /// Timed repetitions of each test; the fewest where there is `until`. Not counted where the
    /// order is [`Order::Sustained`].
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
    ///
    /// A test begins with its first turn and ends with its last; a failure ends it alone. Its
    /// warm-up comes before each turn: a turn is served from a fresh context, and the first touch of
    /// its memory would fall into the timed section. A worker holds one model, so tests of different
    /// models also load at each turn.
    Interleaved,
    /// One repetition of each test in turn until the time is up, however many that makes and at
    /// least one; the time is looked at between repetitions. Otherwise as [`Order::Interleaved`].
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

/// Sequences that the engine keeps apart (`LLAMA_MAX_SEQ`).
pub const MAX_USERS: u32 = 256;

/// Tokens of a chunk below which its scored half says nothing.
pub const MIN_QUALITY_CONTEXT: u32 = 8;

/// Fewest repetitions where a test is repeated until its mean is known.
pub const FEWEST_UNTIL: u32 = 3;

/// Seed of the random tokens unless another is asked for: any number will do, the same one makes
/// runs repeat the same tokens.
pub const DEFAULT_SEED: u64 = 42;

/// Threads that ggml can run (`GGML_MAX_N_THREADS`); it aborts on more.
pub const MAX_THREADS: u32 = 512;

/// Tokens a context can hold: positions are 32-bit and signed in llama.cpp.
pub const MAX_CONTEXT: u64 = i32::MAX as u64;

/// Every test of every settings of every model, models outermost: llama-bench's order, which
/// reloads least when settings that share a load stand together.
pub fn tests_of(
    models: &[MeasuredModel],
    settings: &[Settings],
    preset: &Preset,
) -> Vec<PlannedTest> {
    let each = |model| move |settings| preset.tests_of(model, settings);
    let of_model = |model| settings.iter().flat_map(each(model));
    models.iter().flat_map(of_model).collect()
}

impl Plan {
    /// Tests under llama-bench's defaults: five repetitions, a warm-up, no delay; and an anchor.
    pub fn new(preset: impl Into<String>, tests: Vec<PlannedTest>) -> Self {
        Self {
            preset: preset.into(),
            tests,
            repetitions: 5,
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
        let tests = tests_of(models, std::slice::from_ref(settings), preset);
        Self {
            repetitions: preset.repetitions,
            order: preset.order,
            ..Self::new(preset.name, tests)
        }
    }

    /// Repetitions that each test makes before it may be enough: with fewer than three nothing is
    /// known of a spread.
    pub fn fewest(&self) -> u32 {
        match self.until {
            Some(_) => self.repetitions.max(FEWEST_UNTIL),
            None => self.repetitions,
        }
    }

    /// Repetitions of a test at most; `None` where only the time ends it.
    pub fn most(&self, test: &PlannedTest) -> Option<u32> {
        match (&test.kind, self.order, self.until) {
            // The same predictions come out again.
            (Kind::Quality { .. }, _, _) => Some(1),
            (_, Order::Sustained { .. }, _) => None,
            (_, _, Some(until)) => Some(until.at_most),
            (_, _, None) => Some(self.repetitions),
        }
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

    /// Whether an untimed warm-up is made, where the plan asks for one. A first token is not
    /// warmed up: what comes with a fresh load is what it measures. Predictions are not timed.
    pub(crate) fn warms_up(&self) -> bool {
        !matches!(self.kind, Kind::FirstToken { .. } | Kind::Quality { .. })
    }
}

#[cfg(test)]
mod tests;
