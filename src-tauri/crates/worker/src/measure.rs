//! [`Request::Measure`]: one test by llama-bench's conventions.
//!
//! Untimed warm-up; before each repetition the cache is emptied and filled to the depth; then the
//! clock covers nothing but decoding. Tokens are made before the clock starts.
//!
//! [`Request::Measure`]: twospeed_engine::protocol::Request::Measure

use std::time::{Duration, Instant};

use llama_cpp_sys_2 as sys;
use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{Ability, Event, FailureCode, Measure, Measured, Phase, Sample};

use crate::context::{Context, DecodeError};
use crate::failure::Stopped;
use crate::load::LoadedModel;
use crate::random::Random;
use crate::serve::{Answer, Worker};
use crate::{load, log, os};

/// How long the worker stays busy between "go" and the start of the clock: by then the app sleeps
/// again and so does the thread that read the message. Busy, so that the core does not clock down.
const SETTLE: Duration = Duration::from_millis(2);

/// Runs one test on the loaded model.
pub fn measure(worker: &mut Worker, test: &Measure, request: u64) -> Result<Event, Stopped> {
    // One context at a time: what the request before served from is freed first.
    worker.served = None;
    let loaded = worker.loaded()?;
    check(&loaded, test)?;
    let n_ctx = u32::try_from(test.spec.context())
        .ok()
        .filter(|n_ctx| *n_ctx < i32::MAX as u32)
        .ok_or_else(|| {
            Stopped::because(
                FailureCode::ContextRefused,
                format!(
                    "{} tokens are more than any context holds.",
                    test.spec.context()
                ),
            )
        })?;
    let mut context = worker.make_context(&loaded, &test.settings, n_ctx, request)?;
    check_remembers(&loaded, &context, test.spec)?;

    let mut run = Run {
        random: Random::new(test.seed),
        spec: test.spec,
        n_batch: context.n_batch().min(test.settings.n_batch as usize),
        n_vocab: loaded.model.vocabulary().len(),
        first: loaded.model.vocabulary().first_token(),
    };
    let failed = |error| stopped(&loaded, test.spec, error);
    if test.warmup {
        worker.say_phase(Phase::Warmup);
        run.warm_up(&mut context).map_err(failed)?;
    }
    let mut repetitions = 0;
    while repetitions < test.repetitions {
        context.forget();
        if test.spec.n_depth > 0 {
            let wire = &mut worker.wire;
            worker
                .depth
                .fill(&mut context, &test.settings, test.spec.n_depth, |phase| {
                    wire.say(&Event::Phase(phase))
                })
                .map_err(failed)?;
        }
        let tokens = run.tokens();
        worker.say_phase(Phase::Repetition {
            number: repetitions + 1,
        });
        match worker.wait_for_go()? {
            Answer::Go => {}
            Answer::Enough => break,
        }
        let sample = timed(&mut context, &run, &tokens, repetitions).map_err(failed)?;
        worker.wire.say(&Event::Sample(sample));
        repetitions += 1;
    }
    Ok(Event::Measured(Measured {
        repetitions,
        peak_rss_bytes: os::peak_rss_bytes(),
    }))
}

/// Refuses what cannot be measured before anything is computed.
fn check(loaded: &LoadedModel, test: &Measure) -> Result<(), Stopped> {
    load::check_same_load(loaded, &test.settings)?;
    if test.repetitions == 0 {
        return Err(Stopped::bad_setting(
            "0 repetitions measure nothing: ask for at least 1.",
        ));
    }
    if test.spec.tokens() == 0 {
        return Err(Stopped::bad_setting(
            "The test has no tokens: give a prompt or tokens to generate.",
        ));
    }
    if loaded.model.vocabulary().len() == 0 {
        return Err(not_able(
            loaded,
            "has no vocabulary, so there are no tokens to measure with",
        ));
    }
    load::check_positions(loaded, test.spec.context())?;
    let ability = loaded.model.ability();
    if ability == Ability::Generates {
        return Ok(());
    }
    let what = match ability {
        Ability::Diffuses => "is a diffusion model: it denoises whole blocks",
        _ => "is an embedding model: it reads a text in one pass",
    };
    if test.spec.n_gen > 0 {
        return Err(not_able(
            loaded,
            &format!("{what} and has no decode speed; measure its prefill (-p) alone"),
        ));
    }
    if test.spec.n_depth > 0 {
        return Err(not_able(
            loaded,
            &format!("{what} and keeps nothing of it, so there is no depth; use -d 0"),
        ));
    }
    let settings = &test.settings;
    let at_once = settings.n_batch.min(if settings.n_ubatch == 0 {
        settings.n_batch
    } else {
        settings.n_ubatch
    });
    if test.spec.n_prompt > at_once {
        return Err(Stopped::bad_setting(format!(
            "{} {what}, and {} tokens do not fit a micro-batch of {at_once}: raise -b and -ub to {}.",
            loaded.name(),
            test.spec.n_prompt,
            test.spec.n_prompt
        )));
    }
    Ok(())
}

/// The engine's own word on what [`check`] read off the file's metadata: without a cache, "decoding"
/// encodes each token anew, and what that takes is no decode speed.
fn check_remembers(loaded: &LoadedModel, context: &Context, spec: TestSpec) -> Result<(), Stopped> {
    if context.remembers()
        || (spec.n_gen == 0 && spec.n_depth == 0 && spec.n_prompt as usize <= context.n_ubatch())
    {
        return Ok(());
    }
    Err(not_able(
        loaded,
        "keeps no cache, so it has no decode speed; measure its prefill (-p) alone, in one micro-batch",
    ))
}

fn not_able(loaded: &LoadedModel, why: &str) -> Stopped {
    Stopped::because(FailureCode::NotAble, format!("{} {why}.", loaded.name()))
}

fn stopped(loaded: &LoadedModel, spec: TestSpec, error: DecodeError) -> Stopped {
    match error {
        DecodeError::Cancelled => Stopped::Cancelled,
        DecodeError::NoRoom => Stopped::by_engine(
            FailureCode::ContextTooSmall,
            format!(
                "The context is too small for {spec} on {}: the engine found no room for the next tokens.",
                loaded.name()
            ),
        ),
        DecodeError::Failed(number) => Stopped::by_engine(
            FailureCode::DecodeFailed,
            format!(
                "The engine could not compute {spec} on {} (its error {number}).",
                loaded.name()
            ),
        ),
    }
}

/// Tokens of one repetition.
struct Tokens {
    prompt: Vec<sys::llama_token>,
    generated: Vec<sys::llama_token>,
}

struct Run {
    random: Random,
    spec: TestSpec,
    n_batch: usize,
    n_vocab: u32,
    first: Option<sys::llama_token>,
}

impl Run {
    fn tokens(&mut self) -> Tokens {
        let prompt = self.begin(self.spec.n_prompt);
        let generated = self.begin(self.spec.n_gen);
        Tokens { prompt, generated }
    }

    /// Random tokens; the first is the one that begins every text of the model, where it has one.
    fn begin(&mut self, count: u32) -> Vec<sys::llama_token> {
        let mut tokens: Vec<_> = (0..count)
            .map(|_| self.random.token(self.n_vocab))
            .collect();
        if let (Some(token), Some(first)) = (tokens.first_mut(), self.first) {
            *token = first;
        }
        tokens
    }

    /// The whole prompt and one single token, as llama-bench warms up.
    fn warm_up(&mut self, context: &mut Context) -> Result<(), DecodeError> {
        let mut tokens = self.tokens();
        tokens.generated.truncate(1);
        context.forget();
        self.decode(context, &tokens, 0)
    }

    /// What is timed: the prompt in batches, then single tokens, each waited for.
    fn decode(
        &self,
        context: &mut Context,
        tokens: &Tokens,
        depth: u32,
    ) -> Result<(), DecodeError> {
        let mut position = depth as i32;
        for batch in tokens.prompt.chunks(self.n_batch) {
            context.decode(batch, position)?;
            position += batch.len() as i32;
        }
        if !tokens.prompt.is_empty() {
            context.wait();
        }
        for token in &tokens.generated {
            context.decode(std::slice::from_ref(token), position)?;
            context.wait();
            position += 1;
        }
        Ok(())
    }
}

fn timed(
    context: &mut Context,
    run: &Run,
    tokens: &Tokens,
    index: u32,
) -> Result<Sample, DecodeError> {
    log::hush();
    let settle = Instant::now();
    while settle.elapsed() < SETTLE {
        std::hint::spin_loop();
    }
    let before = os::usage();
    let start = Instant::now();
    let result = run.decode(context, tokens, run.spec.n_depth);
    let ns = start.elapsed().as_nanos() as u64;
    let during = os::usage().since(before);
    log::release();
    result.map(|()| Sample {
        index,
        ns,
        involuntary_switches: during.involuntary_switches,
        major_faults: during.major_faults,
        reading: None,
    })
}
