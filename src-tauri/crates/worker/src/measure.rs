//! [`Request::Measure`]: one test by llama-bench's conventions.
//!
//! Untimed warm-up; before each repetition the cache is emptied and filled to the depth; then the
//! clock covers nothing but decoding. Tokens are made before the clock starts.
//!
//! [`Request::Measure`]: twospeed_engine::protocol::Request::Measure

use std::time::Instant;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::{Ability, Event, Measure};
use twospeed_engine::{Settings, TestSpec};

use crate::context::{Context, DecodeError};
use crate::failure::Stopped;
use crate::load::{self, LoadedModel};
use crate::random::Random;
use crate::repeat::{self, Test, Timed, ns_since, repeat};
use crate::serve::Worker;
use crate::settings::tokens_of_context;

/// Runs one test on the loaded model.
pub fn measure(worker: &mut Worker, test: &Measure, request: u64) -> Result<Event, Stopped> {
    // One context at a time: what the request before served from is freed first.
    worker.served = None;
    let loaded = worker.loaded()?;
    check(&loaded, test)?;
    let n_ctx = tokens_of_context(test.spec.context())?;
    let context = worker.make_context(&loaded, &test.settings, n_ctx, request)?;
    check_remembers(&loaded, &context, test.spec)?;
    let mut run = Run {
        random: Random::new(test.seed),
        spec: test.spec,
        settings: &test.settings,
        tokens: Tokens::default(),
        n_batch: context.n_batch().min(test.settings.n_batch as usize),
        n_vocab: loaded.model.vocabulary().len(),
        first: loaded.model.vocabulary().first_token(),
        context,
    };
    repeat(worker, &loaded, &mut run, test.repetitions, test.warmup)
}

/// Refuses what cannot be measured before anything is computed.
fn check(loaded: &LoadedModel, test: &Measure) -> Result<(), Stopped> {
    load::check_same_load(loaded, &test.settings)?;
    repeat::check(test.repetitions)?;
    if test.spec.tokens() == 0 {
        return Err(Stopped::bad_setting(
            "The test has no tokens: give a prompt or tokens to generate.",
        ));
    }
    load::check_vocabulary(loaded)?;
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
        return Err(loaded.not_able(&format!(
            "{what} and has no decode speed; measure its prefill (-p) alone"
        )));
    }
    if test.spec.n_depth > 0 {
        return Err(loaded.not_able(&format!(
            "{what} and keeps nothing of it, so there is no depth; use -d 0"
        )));
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
    Err(loaded.not_able(
        "keeps no cache, so it has no decode speed; measure its prefill (-p) alone, in one micro-batch",
    ))
}

/// Tokens of one repetition.
#[derive(Debug, Default)]
struct Tokens {
    prompt: Vec<sys::llama_token>,
    generated: Vec<sys::llama_token>,
}

struct Run<'a> {
    context: Context,
    random: Random,
    spec: TestSpec,
    settings: &'a Settings,
    /// Of the repetition that is next.
    tokens: Tokens,
    n_batch: usize,
    n_vocab: u32,
    first: Option<sys::llama_token>,
}

impl Test for Run<'_> {
    fn name(&self) -> String {
        self.spec.to_string()
    }

    /// The whole prompt and one single token, as llama-bench warms up.
    fn warm_up(&mut self) -> Result<(), DecodeError> {
        self.tokens = self.draw();
        self.tokens.generated.truncate(1);
        self.context.forget();
        self.decode(0)
    }

    fn prepare(&mut self, worker: &mut Worker) -> Result<(), DecodeError> {
        self.context.forget();
        if self.spec.n_depth > 0 {
            let wire = &mut worker.wire;
            worker.depth.fill(
                &mut self.context,
                self.settings,
                self.spec.n_depth,
                |phase| wire.say(&Event::Phase(phase)),
            )?;
        }
        self.tokens = self.draw();
        Ok(())
    }

    fn run(&mut self) -> Result<Timed, DecodeError> {
        let start = Instant::now();
        self.decode(self.spec.n_depth)?;
        Ok(Timed {
            ns: ns_since(start),
            reading: None,
        })
    }
}

impl Run<'_> {
    fn draw(&mut self) -> Tokens {
        let prompt = self.begin(self.spec.n_prompt);
        let generated = self.begin(self.spec.n_gen);
        Tokens { prompt, generated }
    }

    /// Random tokens; the first is the one that begins every text of the model, where it has one.
    fn begin(&mut self, count: u32) -> Vec<sys::llama_token> {
        let mut tokens = self.random.tokens(self.n_vocab, count);
        if let (Some(token), Some(first)) = (tokens.first_mut(), self.first) {
            *token = first;
        }
        tokens
    }

    /// What is timed: the prompt in batches, then single tokens, each waited for.
    fn decode(&mut self, depth: u32) -> Result<(), DecodeError> {
        let mut position = depth as i32;
        for batch in self.tokens.prompt.chunks(self.n_batch) {
            self.context.decode(batch, position)?;
            position += batch.len() as i32;
        }
        if !self.tokens.prompt.is_empty() {
            self.context.wait();
        }
        for token in &self.tokens.generated {
            self.context.decode(std::slice::from_ref(token), position)?;
            self.context.wait();
            position += 1;
        }
        Ok(())
    }
}
