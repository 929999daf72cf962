//! What is measured of a twin, and how much of it there is time for.

use std::collections::BTreeMap;

use twospeed_engine::{Engine, Settings, TestSpec};
use twospeed_estimate::{
    ContextSettings, Shape, TwinTime, Weights, flops_per_token, read_per_token,
};
use twospeed_gguf::Model;
use twospeed_measure::stats::spread;
use twospeed_measure::{
    Kind, Lease, Plan, PlannedTest, Progress, Recorder, RunEnd, Stop, TestOutcome, TestStatus,
};

use crate::subject::context_settings;
use crate::{Problem, RunRequest, Subject, needs};

/// Seconds for the prompts of all twins, and for the tokens they write.
const PREFILL_SECONDS: f64 = 10.0;
const DECODE_SECONDS: f64 = 6.0;

/// Tokens of a prompt and written ones that tell how fast a machine is at all.
const PROBE_PROMPT: u32 = 32;
const PROBE_GENERATE: u32 = 4;

/// Fewer tokens of a prompt than these are no prefill any more: matrices are multiplied with a few
/// columns instead of many.
const LEAST_PROMPT: u32 = 32;

/// Fewer written tokens than these are mostly noise.
const LEAST_GENERATE: u32 = 4;

/// The fewest repetitions that time is taken for.
const LEAST_REPETITIONS: u32 = 2;

/// What is asked of a twin, or of the whole model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub prompt: u32,
    pub generate: u32,
    pub depth: u32,
    pub repetitions: u32,
}

impl Asked {
    /// A first look, to know how much there is time for.
    pub(super) fn probe(self) -> Self {
        Self {
            prompt: self.prompt.min(PROBE_PROMPT),
            generate: self.generate.min(PROBE_GENERATE),
            depth: 0,
            repetitions: 1,
        }
    }

    /// The depth that stands for all tokens that are written.
    pub(super) fn decode_depth(self) -> u32 {
        self.depth + self.generate / 2
    }

    /// What there is time for with twins of this work, at the speed of the first look (of the
    /// first of them): shorter prompts and answers, then fewer repetitions.
    pub(super) fn affordable(self, probe: &Times, twins: &[Work]) -> Self {
        let look = self.probe();
        let Some(first) = twins.first() else {
            return self;
        };
        let mut best = self;
        let cost = |seconds: Option<f64>, work: &dyn Fn(&Work) -> f64, look: f64| {
            let per_work = seconds? / look;
            Some(twins.iter().map(|twin| per_work * work(twin)).sum::<f64>())
        };
        // Each repetition, one more for the warm-up, and the tokens that come before.
        let times = |repetitions: u32| f64::from(repetitions + 1);
        let prefill = |prompt: u32| {
            let prefill = |work: &Work| work.prefill(prompt, self.depth);
            let look = first.prefill(look.prompt, look.depth);
            let each = cost(probe.prefill_seconds, &prefill, look)?;
            Some(each * (f64::from(prompt) * times(best.repetitions)))
        };
        while best.prompt / 2 >= LEAST_PROMPT
            && prefill(best.prompt).is_some_and(|seconds| seconds > PREFILL_SECONDS)
        {
            best.prompt /= 2;
        }
        let decode = |generate: u32| {
            let decode = |work: &Work| work.decode(self.decode_depth());
            let look = first.decode(look.decode_depth());
            let each = cost(probe.decode_seconds, &decode, look)?;
            Some(each * f64::from(generate) * times(best.repetitions))
        };
        while best.generate / 2 >= LEAST_GENERATE
            && decode(best.generate).is_some_and(|seconds| seconds > DECODE_SECONDS)
        {
            best.generate /= 2;
        }
        let slow = prefill(best.prompt).is_some_and(|seconds| seconds > PREFILL_SECONDS)
            || decode(best.generate).is_some_and(|seconds| seconds > DECODE_SECONDS);
        if slow {
            best.repetitions = best.repetitions.min(LEAST_REPETITIONS);
        }
        best
    }
}

/// What a token costs of a model.
pub(super) struct Work {
    shape: Option<Shape>,
    weights: Option<Weights>,
    context: Option<ContextSettings>,
    /// Where the rules say nothing.
    bytes: f64,
}

impl Work {
    pub(super) fn of(model: &Model, settings: &Settings) -> Self {
        Self {
            shape: Shape::from_model(model).ok(),
            weights: Weights::of(model).ok(),
            // So large that nothing is cut off at its end.
            context: context_settings(settings, 1 << 20),
            bytes: model.weight_bytes() as f64,
        }
    }

    /// Operations for one token of a prompt.
    pub(super) fn prefill(&self, prompt: u32, depth: u32) -> f64 {
        let known = || {
            let (shape, weights) = (self.shape.as_ref()?, self.weights.as_ref()?);
            let context = self.context.as_ref()?;
            let (prompt, depth) = (u64::from(prompt), u64::from(depth));
            let flops = flops_per_token(shape, weights, context, prompt, depth).ok()?;
            Some(flops.0 as f64)
        };
        known().filter(|flops| *flops > 0.0).unwrap_or(self.bytes)
    }

    /// Bytes that a written token reads.
    pub(super) fn decode(&self, depth: u32) -> f64 {
        let known = || {
            let (shape, weights) = (self.shape.as_ref()?, self.weights.as_ref()?);
            let context = self.context.as_ref()?;
            let cache = read_per_token(shape, context, u64::from(depth)).ok()?;
            Some((weights.bytes_per_token() + cache).0 as f64)
        };
        known().filter(|bytes| *bytes > 0.0).unwrap_or(self.bytes)
    }
}

/// What was measured with a twin.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Times {
    /// Seconds for a token of the prompt.
    prefill_seconds: Option<f64>,
    prefill_error: Option<f64>,
    /// Seconds for a written token.
    decode_seconds: Option<f64>,
    decode_error: Option<f64>,
    /// The CPU variant that ran.
    pub variant: Option<String>,
}

impl Times {
    pub(super) fn prefill(&self, work: f64) -> Option<TwinTime> {
        Some(TwinTime {
            work,
            seconds: self.prefill_seconds?,
            error: self.prefill_error,
        })
    }

    pub(super) fn decode(&self, work: f64) -> Option<TwinTime> {
        Some(TwinTime {
            work,
            seconds: self.decode_seconds?,
            error: self.decode_error,
        })
    }
}

/// Measures twins the way models are measured.
pub(super) struct Bench<'a> {
    pub engine: &'a dyn Engine,
    pub recorder: &'a dyn Recorder,
    pub settings: &'a Settings,
    pub lease: &'a Lease,
    pub stop: &'a Stop,
}

impl Bench<'_> {
    /// Both tests of one twin. `told` hears the name of each as it begins.
    pub(super) async fn measure(
        &self,
        subject: &Subject,
        asked: Asked,
        told: &mut (dyn FnMut(String) + Send),
    ) -> Result<Times, Problem> {
        let test = |n_prompt, n_gen, n_depth| PlannedTest {
            model: subject.measured.clone(),
            settings: self.settings.clone(),
            spec: TestSpec {
                n_prompt,
                n_gen,
                n_depth,
            },
            kind: Kind::Speed,
            variant: None,
        };
        let mut tests = Vec::new();
        if asked.prompt > 0 {
            tests.push(test(asked.prompt, 0, asked.depth));
        }
        if asked.generate > 0 {
            tests.push(test(0, asked.generate, asked.depth));
        }
        let plan = Plan {
            repetitions: asked.repetitions,
            anchor: false,
            ..Plan::new("twin", tests)
        };
        let needs = |test: &PlannedTest| needs(&subject.header, test);
        let request = RunRequest {
            plan: &plan,
            engine: self.engine,
            recorder: self.recorder,
            needs: &needs,
            stop: self.stop,
        };
        let outcome = crate::run(request, self.lease, &mut |step| {
            if let Progress::TestStarted { test } = step {
                told(test.spec.to_string());
            }
        })
        .await?;
        match outcome.end {
            RunEnd::Complete => {}
            RunEnd::Stopped => return Err(super::cancelled()),
            RunEnd::NoEngine { code, message } => return Err(Problem::new(code, message)),
            RunEnd::NotKept(error) => return Err(Problem::new("not_stored", error)),
        }
        // A test that was run again, after a CPU variant had died, is there twice: the last counts.
        let last: BTreeMap<u32, TestOutcome> = outcome
            .tests
            .into_iter()
            .map(|test| (test.test.position, test))
            .collect();
        let mut times = Times::default();
        for test in last.into_values() {
            match test.end.status {
                TestStatus::Done => {}
                TestStatus::Failed { code, message, .. } => {
                    return Err(Problem::new(code, message));
                }
                _ => return Err(super::cancelled()),
            }
            let tokens = test.test.spec.tokens() as f64;
            let seconds: Vec<f64> = test
                .samples
                .iter()
                .map(|kept| kept.sample.ns as f64 / 1e9 / tokens)
                .collect();
            let Some(all) = spread(&seconds) else {
                continue;
            };
            let error = all
                .standard_deviation
                .map(|deviation| deviation / f64::from(all.count).sqrt());
            times.variant = test.end.worker.map(|hello| hello.variant.name);
            if test.test.spec.n_gen > 0 {
                (times.decode_seconds, times.decode_error) = (Some(all.median), error);
            } else {
                (times.prefill_seconds, times.prefill_error) = (Some(all.median), error);
            }
        }
        Ok(times)
    }
}
