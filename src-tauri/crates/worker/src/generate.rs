//! [`Request::Generate`]: one real request, each part timed.
//!
//! The clock starts with the submission and runs through tokenizing, prefill and sampling. It stands
//! still while a context is made: that belongs to loading, and [`Event::Placed`] tells how long it
//! took.
//!
//! [`Request::Generate`]: twospeed_engine::protocol::Request::Generate
//! [`Event::Placed`]: twospeed_engine::protocol::Event::Placed

use std::time::{Duration, Instant};

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::{Event, FailureCode, Generate, Generated, Stop, Token};

use crate::context::DecodeError;
use crate::failure::Stopped;
use crate::load::{LoadedModel, check_positions, check_reads, check_same_load, check_writes};
use crate::pieces::Pieces;
use crate::sampler::Sampler;
use crate::serve::Worker;
use crate::served::Served;
use crate::settings::{CONTEXT_STEP, tokens_of_context};

/// What fails where decoding does, for sentences.
const WHAT: &str = "the answer";

/// Serves one request on the loaded model.
///
/// Cancelled before its first token it ends with [`Event::Cancelled`], later with what was written
/// until then and [`Stop::Cancelled`].
pub fn generate(worker: &mut Worker, ask: &Generate, request: u64) -> Result<Event, Stopped> {
    let mut clock = Clock::start();
    let loaded = worker.loaded()?;
    check(&loaded, ask)?;
    let prompt = tokenize(&loaded, ask)?;
    let tokenized = clock.now();

    clock.stop();
    let room = room(&loaded, ask, prompt.len())?;
    let mut served = match worker.served.take() {
        Some(served) if ask.reuse_prefix && served.fits(&ask.settings, room) => served,
        _ => {
            // A context's batches are no longer than the context: a short prompt's would slow the
            // longer one down that is served from it next.
            let n_ctx = room.next_multiple_of(CONTEXT_STEP);
            let context = worker.make_context(&loaded, &ask.settings, n_ctx, request)?;
            Served::new(context, ask.settings.clone())
        }
    };
    served.context().serve(request);
    clock.go_on();

    let reused = if ask.reuse_prefix {
        served.reuse(&prompt)
    } else {
        served.start_anew()
    };
    served
        .prefill(&prompt[reused..])
        .map_err(|error| loaded.stopped(WHAT, error))?;
    let prefilled = clock.now();
    let written = write(worker, &loaded, ask, &mut served, room, &clock)?;

    // After a cancel nobody knows what the context remembers.
    if written.stop != Stop::Cancelled {
        worker.served = Some(served);
    }
    let nanoseconds = |duration: Duration| duration.as_nanos() as u64;
    Ok(Event::Generated(Generated {
        n_prompt: prompt.len() as u32,
        n_reused: reused as u32,
        n_generated: written.token_at.len() as u32,
        stop: written.stop,
        tokenize_ns: nanoseconds(tokenized),
        prefill_ns: nanoseconds(prefilled - tokenized),
        first_sample_ns: nanoseconds(written.first_sampled - prefilled),
        ttft_ns: nanoseconds(written.first_sampled),
        decode_ns: match (written.token_at.first(), written.token_at.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0,
        },
        token_at_ns: written.token_at,
    }))
}

/// Time since the submission, without what [`Clock::stop`] leaves out.
struct Clock {
    running_since: Instant,
    before: Duration,
}

impl Clock {
    fn start() -> Self {
        Self {
            running_since: Instant::now(),
            before: Duration::ZERO,
        }
    }

    fn now(&self) -> Duration {
        self.before + self.running_since.elapsed()
    }

    fn stop(&mut self) {
        self.before = self.now();
    }

    fn go_on(&mut self) {
        self.running_since = Instant::now();
    }
}

fn check(loaded: &LoadedModel, ask: &Generate) -> Result<(), Stopped> {
    check_same_load(loaded, &ask.settings)?;
    check_writes(loaded, &ask.settings)?;
    check_reads(loaded)?;
    if ask.n_predict == 0 {
        return Err(Stopped::bad_setting(
            "n_predict is 0: ask for at least 1 token.",
        ));
    }
    if !(ask.temperature >= 0.0 && ask.temperature.is_finite()) {
        return Err(Stopped::bad_setting(format!(
            "temperature is {}: give 0 (greedy) or more.",
            ask.temperature
        )));
    }
    Ok(())
}

fn tokenize(loaded: &LoadedModel, ask: &Generate) -> Result<Vec<sys::llama_token>, Stopped> {
    match loaded.model.vocabulary().tokenize(&ask.prompt) {
        Some(tokens) if !tokens.is_empty() => Ok(tokens),
        Some(_) => Err(Stopped::bad_setting(format!(
            "The prompt is empty and {} begins with no token of its own: give it some text.",
            loaded.name()
        ))),
        None => Err(Stopped::because(
            FailureCode::ContextTooSmall,
            "The prompt has more tokens than the engine can count: shorten it.",
        )),
    }
}

/// Tokens the context needs: as asked for, or as much as prompt and answer take.
fn room(loaded: &LoadedModel, ask: &Generate, n_prompt: usize) -> Result<u32, Stopped> {
    let too_small = |message| Stopped::because(FailureCode::ContextTooSmall, message);
    let n_prompt = n_prompt as u64;
    let room = match ask.n_ctx {
        0 => n_prompt + u64::from(ask.n_predict),
        n_ctx => u64::from(n_ctx),
    };
    if n_prompt >= room {
        return Err(too_small(format!(
            "The prompt has {n_prompt} tokens for {} and the context holds {room}: shorten the prompt or ask for a larger context.",
            loaded.name()
        )));
    }
    check_positions(loaded, room)?;
    tokens_of_context(room)
}

struct Written {
    stop: Stop,
    first_sampled: Duration,
    token_at: Vec<u64>,
}

/// Writes tokens until something ends the answer, telling each as it is sampled.
fn write(
    worker: &mut Worker,
    loaded: &LoadedModel,
    ask: &Generate,
    served: &mut Served,
    room: u32,
    clock: &Clock,
) -> Result<Written, Stopped> {
    let vocabulary = loaded.model.vocabulary();
    let mut sampler = Sampler::new(ask.temperature, ask.seed);
    let mut pieces = Pieces::default();
    let mut token_at = Vec::new();
    let mut first_sampled = None;
    let stop = loop {
        let token = served
            .sample(&mut sampler)
            .map_err(|error| loaded.stopped(WHAT, error))?;
        let at = clock.now();
        first_sampled.get_or_insert(at);
        if vocabulary.ends(token) && !ask.ignore_eos {
            break Stop::EndOfText;
        }
        let at_ns = at.as_nanos() as u64;
        token_at.push(at_ns);
        let text = pieces.push(&vocabulary.bytes(token));
        worker.wire.say(&Event::Token(Token { text, at_ns }));
        if token_at.len() == ask.n_predict as usize {
            break Stop::Length;
        }
        if served.remembered() >= room as usize {
            break Stop::ContextFull;
        }
        match served.decode(&[token]) {
            Ok(()) => served.context().wait(),
            Err(DecodeError::Cancelled) => break Stop::Cancelled,
            Err(DecodeError::NoRoom) => break Stop::ContextFull,
            Err(error) => return Err(loaded.stopped(WHAT, error)),
        }
    };
    // What completed no character by the end is said with the last token's time.
    let rest = pieces.finish();
    if let (false, Some(at_ns)) = (rest.is_empty(), token_at.last().copied()) {
        worker.wire.say(&Event::Token(Token { text: rest, at_ns }));
    }
    Ok(Written {
        stop,
        first_sampled: first_sampled.expect("BUG: every way out of the loop has sampled"),
        token_at,
    })
}
