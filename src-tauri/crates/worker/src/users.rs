//! [`Request::Users`]: sequences side by side, by llama-batched-bench's conventions.
//!
//! The prompts of all are handed over together, one after the other in batches of `n_batch`; then
//! each decode call computes one token of every sequence and is waited for. Tokens are random. A
//! shared prompt is computed once and copied to the other sequences between the two timed parts.
//! Other than there, each batch of the prompts is waited for, to know when a user's is done.
//!
//! [`Request::Users`]: twospeed_engine::protocol::Request::Users

use std::time::Instant;

use llama_cpp_sys_2 as sys;
use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{Event, Reading, Users, UsersReading};

use crate::context::{Context, DecodeError, Entry};
use crate::failure::Stopped;
use crate::load::{self, LoadedModel};
use crate::random::Random;
use crate::repeat::{self, Test, Timed, ns_since, repeat};
use crate::serve::Worker;
use crate::settings::{CONTEXT_STEP, Room, tokens_of_context};

/// Runs the test on the loaded model.
pub fn users(worker: &mut Worker, asked: &Users, request: u64) -> Result<Event, Stopped> {
    // One context at a time: what the request before served from is freed first.
    worker.served = None;
    let loaded = worker.loaded()?;
    check(&loaded, asked)?;
    let context = worker.make_context(&loaded, &asked.settings, room(asked)?, request)?;
    if !context.remembers() {
        return Err(loaded.not_able("keeps no cache, so it serves no users side by side"));
    }
    let mut crowd = Crowd {
        random: Random::new(asked.seed),
        n_vocab: loaded.model.vocabulary().len(),
        n_batch: context.n_batch().min(asked.settings.n_batch as usize),
        copies_by_decode: asked.split_kv && loaded.model.keeps_cells(),
        prompts: Vec::new(),
        steps: Vec::new(),
        context,
        asked,
    };
    repeat(worker, &loaded, &mut crowd, asked.repetitions, asked.warmup)
}

/// Room as llama-batched-bench counts it; a part of the cache is a multiple of the engine's step.
fn room(asked: &Users) -> Result<Room, Stopped> {
    let users = u64::from(asked.users);
    let (prompt, answer) = (u64::from(asked.n_prompt), u64::from(asked.n_gen));
    let tokens = if asked.split_kv {
        users * (prompt + answer).next_multiple_of(u64::from(CONTEXT_STEP))
    } else if asked.shared_prompt {
        prompt + users * answer
    } else {
        users * (prompt + answer)
    };
    Ok(Room {
        n_ctx: tokens_of_context(tokens)?,
        sequences: asked.users,
        split: asked.split_kv,
    })
}

/// Refuses what cannot be measured before anything is computed.
fn check(loaded: &LoadedModel, asked: &Users) -> Result<(), Stopped> {
    load::check_same_load(loaded, &asked.settings)?;
    load::check_writes(loaded, &asked.settings)?;
    load::check_vocabulary(loaded)?;
    repeat::check(asked.repetitions)?;
    // SAFETY: a function without preconditions.
    let most = unsafe { sys::llama_max_parallel_sequences() };
    if asked.users == 0 {
        return Err(Stopped::bad_setting(
            "0 users measure nothing: ask for at least 1.",
        ));
    }
    if asked.users as usize > most {
        return Err(Stopped::bad_setting(format!(
            "{} users are more than the engine's {most} sequences side by side: ask for fewer.",
            asked.users
        )));
    }
    if asked.n_prompt == 0 || asked.n_gen == 0 {
        return Err(Stopped::bad_setting(format!(
            "Users with {} prompt tokens and {} tokens to write: each needs at least 1 of both.",
            asked.n_prompt, asked.n_gen
        )));
    }
    // The engine makes its buffers for a token of every sequence in one batch, and aborts where
    // that is more than it may compute or keep the logits of.
    let settings = &asked.settings;
    for (name, limit, limits) in [
        ("n_batch", settings.n_batch, true),
        (
            "n_outputs",
            settings.n_outputs,
            settings.n_outputs < settings.n_ubatch,
        ),
    ] {
        if limits && limit < asked.users {
            return Err(Stopped::bad_setting(format!(
                "{name} is {limit}, and a token of each of {} users is computed at once: raise it to {}.",
                asked.users, asked.users
            )));
        }
    }
    let is_hybrid = loaded.model.is_recurrent() && loaded.model.keeps_cells();
    if asked.shared_prompt && asked.split_kv && asked.users > 1 && is_hybrid {
        return Err(loaded.not_able(
            "has recurrent state beside its cache, and a shared prompt cannot be copied into a split one without changing that state: share the cache too, or give each user a prompt",
        ));
    }
    load::check_positions(loaded, u64::from(asked.n_prompt) + u64::from(asked.n_gen))
}

struct Crowd<'a> {
    context: Context,
    asked: &'a Users,
    random: Random,
    n_vocab: u32,
    n_batch: usize,
    /// Whether a copy of the cache is computed with the decode that follows it.
    copies_by_decode: bool,
    /// Tokens of the prompts that are computed, one user's after the other's.
    prompts: Vec<Entry>,
    /// For each token of the answers, that of every user.
    steps: Vec<Vec<Entry>>,
}

impl Test for Crowd<'_> {
    fn name(&self) -> String {
        let spec = TestSpec {
            n_prompt: self.asked.n_prompt,
            n_gen: self.asked.n_gen,
            n_depth: 0,
        };
        match self.asked.users {
            1 => format!("{spec} for 1 user"),
            users => format!("{spec} for {users} users"),
        }
    }

    /// One prompt, and one token of every user: every weight is read, and both sizes of a batch have
    /// been computed once.
    fn warm_up(&mut self) -> Result<(), DecodeError> {
        self.draw();
        self.context.forget();
        self.prompts.truncate(self.asked.n_prompt as usize);
        self.decode_prompts()?;
        self.share_prompt()?;
        self.steps.truncate(1);
        if !self.asked.shared_prompt {
            // The others have no prompt: their sequences begin here.
            let others = self.steps.iter_mut().flatten();
            for entry in others.filter(|entry| entry.sequence > 0) {
                entry.position = 0;
            }
        }
        self.decode_steps()
    }

    fn prepare(&mut self, _worker: &mut Worker) -> Result<(), DecodeError> {
        self.draw();
        self.context.forget();
        Ok(())
    }

    fn run(&mut self) -> Result<Timed, DecodeError> {
        let mut ttft_ns = self.decode_prompts()?;
        let prefill_ns = *ttft_ns.last().expect("BUG: a user has a prompt");
        self.share_prompt()?;
        let start = Instant::now();
        self.decode_steps()?;
        let decode_ns = ns_since(start);
        // Whose prompt was copied has waited for it as the first has.
        ttft_ns.resize(self.asked.users as usize, prefill_ns);
        Ok(Timed {
            ns: prefill_ns + decode_ns,
            reading: Some(Reading::Users(UsersReading {
                prefill_ns,
                decode_ns,
                ttft_ns,
            })),
        })
    }
}

impl Crowd<'_> {
    /// Random tokens for the next repetition.
    fn draw(&mut self) {
        let Users {
            users,
            n_prompt,
            n_gen,
            shared_prompt,
            ..
        } = *self.asked;
        let (random, n_vocab) = (&mut self.random, self.n_vocab);
        let mut entry = |user: u32, position: u32, output| Entry {
            token: random.token(n_vocab),
            sequence: user as sys::llama_seq_id,
            position: position as i32,
            output,
        };
        let computed = if shared_prompt { 1 } else { users };
        self.prompts.clear();
        for user in 0..computed {
            let prompt = (0..n_prompt).map(|place| entry(user, place, place + 1 == n_prompt));
            self.prompts.extend(prompt);
        }
        self.steps.clear();
        for position in n_prompt..n_prompt + n_gen {
            let step = (0..users).map(|user| entry(user, position, true));
            self.steps.push(step.collect());
        }
    }

    /// Computes the prompts, and tells for each how long it took until its last token was done.
    fn decode_prompts(&mut self) -> Result<Vec<u64>, DecodeError> {
        let start = Instant::now();
        let mut done_ns = Vec::with_capacity(self.asked.users as usize);
        for batch in self.prompts.chunks(self.n_batch) {
            self.context.decode_batch(batch.iter().copied())?;
            self.context.wait();
            let ns = ns_since(start);
            let ends = batch.iter().filter(|entry| entry.output);
            done_ns.extend(ends.map(|_| ns));
        }
        Ok(done_ns)
    }

    /// Gives the first user's prompt to the others, where it is shared.
    fn share_prompt(&mut self) -> Result<(), DecodeError> {
        if !self.asked.shared_prompt || self.asked.users == 1 {
            return Ok(());
        }
        for user in 1..self.asked.users {
            self.context.copy_sequence(0, user as sys::llama_seq_id);
        }
        if self.copies_by_decode {
            // A token that is taken back, so that the copying is not in the time of the answers.
            let position = self.asked.n_prompt as i32;
            let token = self.steps[0][0];
            self.context.decode_batch([token])?;
            self.context.wait();
            if !self.context.forget_from(position) {
                return Err(DecodeError::Failed(-1));
            }
        }
        Ok(())
    }

    /// Computes the answers, a token of every user at a time.
    fn decode_steps(&mut self) -> Result<(), DecodeError> {
        for step in &self.steps {
            self.context.decode_batch(step.iter().copied())?;
            self.context.wait();
        }
        Ok(())
    }
}
