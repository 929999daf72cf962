//! What is not measured, and why.

use twospeed_engine::TestSpec;
use twospeed_engine::protocol::Ability;

use super::{MAX_CONTEXT, MAX_THREADS, MAX_USERS, MIN_QUALITY_CONTEXT, Plan, PlannedTest};
use super::{Order, Until};
use crate::kind::Kind;

impl Plan {
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
        if let Some(until) = self.until {
            self.check_until(until)?;
        }
        if self.order == (Order::Sustained { seconds: 0 }) {
            return Err(PlanError::NoTime);
        }
        self.tests.iter().try_for_each(PlannedTest::check)
    }

    fn check_until(&self, until: Until) -> Result<(), PlanError> {
        if !(until.relative > 0.0 && until.relative < 1.0) {
            return Err(PlanError::ImpossibleTarget);
        }
        let fewest = self.fewest();
        if until.at_most < fewest {
            return Err(PlanError::TooFewAtMost {
                at_most: until.at_most,
                fewest,
            });
        }
        match self.order {
            Order::Sustained { .. } => Err(PlanError::TwoEnds),
            Order::OneByOne | Order::Interleaved => Ok(()),
        }
    }
}

impl PlannedTest {
    pub(super) fn check(&self) -> Result<(), PlanError> {
        let settings = &self.settings;
        self.check_kind()?;
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

    fn check_kind(&self) -> Result<(), PlanError> {
        let TestSpec {
            n_prompt,
            n_gen,
            n_depth,
        } = self.spec;
        let test = || self.name();
        if self.kind.is_speed() {
            return match self.spec.tokens() {
                0 => Err(PlanError::NothingTimed {
                    model: self.model.name.clone(),
                }),
                _ => Ok(()),
            };
        }
        if n_depth > 0 {
            return Err(PlanError::NoDepth { test: test() });
        }
        if let Kind::Quality { n_ctx, .. } = self.kind {
            if n_ctx < MIN_QUALITY_CONTEXT {
                return Err(PlanError::ChunkTooShort { n_ctx });
            }
            // Nothing at all stands for the whole text.
            if n_prompt > 0 && (n_prompt < n_ctx || n_prompt % n_ctx > 0) {
                return Err(PlanError::NoWholeChunks {
                    test: test(),
                    n_prompt,
                    n_ctx,
                });
            }
            return Ok(());
        }
        if n_prompt == 0 || n_gen == 0 {
            return Err(PlanError::PromptAndAnswer { test: test() });
        }
        match self.kind {
            Kind::PrefixCache { changed } if changed == 0 || changed >= n_prompt => {
                Err(PlanError::TailTooLong {
                    test: test(),
                    changed,
                    n_prompt,
                })
            }
            Kind::Users { users, .. } if users == 0 || users > MAX_USERS => {
                Err(PlanError::Users { users })
            }
            _ => Ok(()),
        }
    }

    /// Why this test is not even tried: the model is not able, or memory cannot hold it.
    ///
    /// `needs` is what it needs in memory and `available` what is free for it, in bytes; where one is
    /// unknown the engine is asked to try.
    pub fn refusal(&self, needs: Option<Need>, available: Option<u64>) -> Option<Refusal> {
        if self.kind.decodes(self.spec)
            && let Some(kind) = self.model.ability.and_then(without_decode)
        {
            return Some(Refusal::NotAble {
                model: self.model.name.clone(),
                kind,
                test: self.kind.name(self.spec),
            });
        }
        match (needs, available) {
            (Some(needs), Some(available)) if needs.bytes > available => {
                Some(Refusal::TooLittleMemory {
                    model: self.model.name.clone(),
                    context: self.context(),
                    needs: needs.bytes,
                    available,
                    instead: match needs.instead {
                        Some(instead) => instead(available),
                        None => ANYTHING_SMALLER.to_owned(),
                    },
                })
            }
            _ => None,
        }
    }
}

/// What a test needs in memory at least.
pub struct Need {
    /// In bytes.
    pub bytes: u64,
    /// What would fit so many free bytes instead, a sentence; `None` where that is not known.
    pub instead: Option<Box<dyn Fn(u64) -> String + Send + Sync>>,
}

/// So many bytes, and nobody knows what would fit instead.
impl From<u64> for Need {
    fn from(bytes: u64) -> Self {
        Self {
            bytes,
            instead: None,
        }
    }
}

const ANYTHING_SMALLER: &str =
    "Try a shorter context, a smaller KV cache type or a smaller quantization.";

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
    /// A target that no mean can reach or every mean does.
    #[error(
        "The target for repeating must lie between 0 and 100 %: 2 % is what most comparisons need."
    )]
    ImpossibleTarget,
    /// A cap below the fewest repetitions.
    #[error(
        "Repeating until the mean is known takes at least {fewest} repetitions; at most {at_most} are allowed. Raise the cap."
    )]
    TooFewAtMost {
        /// The cap.
        at_most: u32,
        /// The fewest.
        fewest: u32,
    },
    /// A time and a target at once.
    #[error(
        "A run for a set time does not end when the means are known: give it a time or a target, not both."
    )]
    TwoEnds,
    /// A sustained run of no time.
    #[error("A sustained run needs at least 1 second; ten minutes show what the machine holds.")]
    NoTime,
    /// A test without a token to time.
    #[error(
        "A test of {model} times no tokens: give it prompt tokens (-p) or tokens to generate (-n)."
    )]
    NothingTimed {
        /// The model's name.
        model: String,
    },
    /// A kind that starts from an empty context.
    #[error("{test} begins with an empty context: leave out the depth (-d).")]
    NoDepth {
        /// The test's name.
        test: String,
    },
    /// A kind that serves requests, without a prompt or an answer.
    #[error(
        "{test} serves a prompt and its answer: give it prompt tokens (-p) and tokens to generate (-n), at least 1 of each."
    )]
    PromptAndAnswer {
        /// The test's name.
        test: String,
    },
    /// A changed tail that leaves nothing of the prompt, or no tail.
    #[error(
        "{test} changes the last {changed} of {n_prompt} prompt tokens: change at least 1 and leave at least 1."
    )]
    TailTooLong {
        /// The test's name.
        test: String,
        /// Tokens that change.
        changed: u32,
        /// Tokens of the prompt.
        n_prompt: u32,
    },
    /// No users, or more than the engine serves.
    #[error(
        "{users} users cannot be served side by side: take 1 to {MAX_USERS}, as many as the engine has sequences."
    )]
    Users {
        /// Users asked for.
        users: u32,
    },
    /// Chunks that hardly score anything.
    #[error(
        "Chunks of {n_ctx} tokens are too short to judge predictions: take at least {MIN_QUALITY_CONTEXT}; 512 is usual."
    )]
    ChunkTooShort {
        /// Tokens of a chunk.
        n_ctx: u32,
    },
    /// A text that is no whole number of chunks.
    #[error(
        "{test} reads {n_prompt} tokens in chunks of {n_ctx}: take a multiple of {n_ctx}, or 0 for the whole text."
    )]
    NoWholeChunks {
        /// The test's name.
        test: String,
        /// Tokens to read.
        n_prompt: u32,
        /// Tokens of a chunk.
        n_ctx: u32,
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
    /// A run that is to be resumed and keeps no plan.
    #[error("This run does not keep its plan, so it cannot be resumed. Measure again.")]
    NoPlan,
    /// A run of another machine that is to be resumed here.
    #[error(
        "This run was made on {machine} and can only be resumed there: results of two machines do not belong into one run."
    )]
    OtherMachine {
        /// That machine's name, or its processor where it has none.
        machine: String,
    },
}

/// Why a test is not tried, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The model has no decode.
    #[error(
        "{model} is {kind} and cannot generate tokens one by one, so {test} cannot be measured. Measure its prompt speed alone (-n 0)."
    )]
    NotAble {
        /// The model's name.
        model: String,
        /// `an embedding model`.
        kind: &'static str,
        /// The test's name.
        test: String,
    },
    /// It cannot fit.
    #[error(
        "A context of {context} tokens for {model} needs at least {} of memory; {} is free. {instead}",
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
        /// What to do, a sentence.
        instead: String,
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
