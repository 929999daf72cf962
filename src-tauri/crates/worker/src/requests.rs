//! [`Request::Serve`]: requests for a real text, one after the other, each part timed.
//!
//! Each repetition begins with an empty cache. A request is what a server does: the text is
//! tokenized, what the cache holds of it is kept, the rest is computed, tokens are chosen one by one
//! (the likeliest; an end of text is one like any other).
//!
//! [`Request::Serve`]: twospeed_engine::protocol::Request::Serve

use std::time::Instant;

use twospeed_engine::protocol::{Event, Reading, Serve, ServeAsk, ServedReading};

use crate::context::DecodeError;
use crate::failure::Stopped;
use crate::load::{self, LoadedModel};
use crate::prompts::Prompts;
use crate::repeat::{self, Test, Timed, ns_since, repeat};
use crate::sampler::Sampler;
use crate::serve::Worker;
use crate::served::Served;
use crate::settings::tokens_of_context;
use crate::text;

/// Serves the requests on the loaded model.
pub fn serve(worker: &mut Worker, asked: &Serve, request: u64) -> Result<Event, Stopped> {
    // One context at a time: what the request before served from is freed first.
    worker.served = None;
    let loaded = worker.loaded()?;
    check(&loaded, asked)?;
    let n_ctx = tokens_of_context(room(asked))?;
    let changed = asked.requests.iter().map(|ask| ask.changed as usize);
    let prompts = Prompts::new(
        loaded.model.vocabulary(),
        text::bundled(),
        asked.n_prompt as usize,
        changed,
    )
    .ok_or_else(|| {
        loaded.not_able(&format!(
            "makes no prompt of {} tokens of the bundled text",
            asked.n_prompt
        ))
    })?;
    let context = worker.make_context(&loaded, &asked.settings, n_ctx, request)?;
    let mut requests = Requests {
        loaded: &loaded,
        served: Served::new(context, asked.settings.clone()),
        prompts,
        sampler: Sampler::new(0.0, 0),
        asked,
    };
    repeat(
        worker,
        &loaded,
        &mut requests,
        asked.repetitions,
        asked.warmup,
    )
}

/// Tokens that the longest request leaves in the cache.
fn room(asked: &Serve) -> u64 {
    u64::from(asked.n_prompt) + u64::from(asked.n_gen)
}

/// Refuses what cannot be served before anything is computed.
fn check(loaded: &LoadedModel, asked: &Serve) -> Result<(), Stopped> {
    load::check_same_load(loaded, &asked.settings)?;
    load::check_writes(loaded, &asked.settings)?;
    load::check_reads(loaded)?;
    load::check_vocabulary(loaded)?;
    repeat::check(asked.repetitions)?;
    if asked.n_prompt == 0 {
        return Err(Stopped::bad_setting(
            "n_prompt is 0: a prompt needs at least 1 token.",
        ));
    }
    if asked.n_gen == 0 {
        return Err(Stopped::bad_setting(
            "n_gen is 0: ask for at least 1 token, the first one.",
        ));
    }
    if asked.requests.is_empty() {
        return Err(Stopped::bad_setting(
            "There are no requests to serve: give at least one.",
        ));
    }
    let longest = asked.requests.iter().map(|ask| ask.changed).max();
    if let Some(changed) = longest.filter(|changed| *changed > asked.n_prompt) {
        return Err(Stopped::bad_setting(format!(
            "{changed} tokens of a prompt of {} cannot change: give {} at most.",
            asked.n_prompt, asked.n_prompt
        )));
    }
    load::check_positions(loaded, room(asked))
}

struct Requests<'a> {
    loaded: &'a LoadedModel,
    served: Served,
    prompts: Prompts,
    sampler: Sampler,
    asked: &'a Serve,
}

impl Test for Requests<'_> {
    fn name(&self) -> String {
        format!("a prompt of {} tokens", self.asked.n_prompt)
    }

    /// Every request once.
    fn warm_up(&mut self) -> Result<(), DecodeError> {
        self.served.start_anew();
        self.run().map(drop)
    }

    fn prepare(&mut self, _worker: &mut Worker) -> Result<(), DecodeError> {
        self.served.start_anew();
        Ok(())
    }

    fn run(&mut self) -> Result<Timed, DecodeError> {
        let asked = self.asked;
        let mut requests = Vec::with_capacity(asked.requests.len());
        for ask in &asked.requests {
            requests.push(self.answer(*ask)?);
        }
        let ns = |request: &ServedReading| request.ttft_ns + request.decode_ns;
        Ok(Timed {
            ns: requests.iter().map(ns).sum(),
            reading: Some(Reading::Served {
                load: None,
                requests,
            }),
        })
    }
}

impl Requests<'_> {
    /// One request, from its submission to its last token.
    fn answer(&mut self, ask: ServeAsk) -> Result<ServedReading, DecodeError> {
        let start = Instant::now();
        let prompt = self
            .prompts
            .tokenize(self.loaded.model.vocabulary(), ask.changed as usize);
        let tokenized_ns = ns_since(start);
        let n_shared = self.served.shares(&prompt) as u32;
        let n_reused = self.served.reuse(&prompt);
        self.served.prefill(&prompt[n_reused..])?;
        let prefilled_ns = ns_since(start);
        let mut token = self.served.sample(&mut self.sampler)?;
        let ttft_ns = ns_since(start);

        let mut last_ns = ttft_ns;
        let mut first_decode_ns = None;
        for _ in 1..self.asked.n_gen {
            self.served.decode(&[token])?;
            self.served.context().wait();
            token = self.served.sample(&mut self.sampler)?;
            last_ns = ns_since(start);
            first_decode_ns.get_or_insert(last_ns - ttft_ns);
        }
        Ok(ServedReading {
            n_prompt: prompt.len() as u32,
            n_reused: n_reused as u32,
            n_shared,
            tokenize_ns: tokenized_ns,
            prefill_ns: prefilled_ns - tokenized_ns,
            first_sample_ns: ttft_ns - prefilled_ns,
            ttft_ns,
            first_decode_ns,
            n_generated: self.asked.n_gen,
            decode_ns: last_ns - ttft_ns,
        })
    }
}
