//! [`Request::Quality`]: how well a text is predicted, by llama-perplexity's conventions.
//!
//! The text is cut into chunks; from the middle of each on, the prediction of every token is judged
//! by the token that came. A base model reads the same tokens beside it, batch by batch, so that
//! predictions are compared in memory and no file of them is written.
//!
//! [`Request::Quality`]: twospeed_engine::protocol::Request::Quality

mod base;
mod chunks;
mod score;
mod tally;

use std::sync::OnceLock;
use std::time::Instant;

use llama_cpp_sys_2 as sys;
use twospeed_engine::Settings;
use twospeed_engine::protocol::{
    Event, FailureCode, Measured, Phase, Quality, QualityReading, Reading, Sample,
};

use crate::context::{Context, Entry};
use crate::failure::Stopped;
use crate::load::{self, LoadedModel};
use crate::quality::chunks::{Chunks, is_scored};
use crate::quality::score::{Scored, score};
use crate::repeat::ns_since;
use crate::serve::Worker;
use crate::settings::tokens_of_context;
use crate::{os, team, text, wire};

/// What is computed, for sentences.
const WHAT: &str = "the text";

/// Shortest chunk: of 8 tokens 3 are scored.
const LEAST: u32 = 8;

/// Judges the loaded model's predictions.
pub fn quality(worker: &mut Worker, asked: &Quality, request: u64) -> Result<Event, Stopped> {
    // One context at a time: what the request before served from is freed first.
    worker.served = None;
    let loaded = worker.loaded()?;
    check(&loaded, asked)?;
    let chunks = chunks(worker, &loaded, asked)?;
    let settings = settings(asked);
    let base = match &asked.base {
        Some(path) => {
            let rows = settings.n_outputs as usize;
            Some(base::load(worker, &loaded, path, &settings, rows, request)?)
        }
        None => None,
    };
    let n_ctx = tokens_of_context(asked.n_ctx.into())?;
    let mut open = |model| Reader::open(worker, model, &settings, n_ctx, request);
    let base = base.as_ref().map(&mut open).transpose()?;
    let mut judge = Judge {
        own: open(&loaded)?,
        base,
        n_batch: settings.n_outputs as usize,
        n_threads: settings.n_threads as usize,
        request,
        scored: Vec::new(),
    };

    let total = chunks.len();
    worker.say_phase(Phase::Text {
        done: 0,
        chunks: total,
    });
    let before = os::usage();
    let start = Instant::now();
    for (done, chunk) in (1..).zip(chunks.iter()) {
        judge.read(chunk)?;
        let phase = Phase::Text {
            done,
            chunks: total,
        };
        worker
            .wire
            .say_at_times(&Event::Phase(phase), done == total);
    }
    let ns = ns_since(start);
    let during = os::usage().since(before);
    let reading = judge.reading(asked.n_ctx, total)?;
    worker.wire.say(&Event::Sample(Sample {
        index: 0,
        ns,
        involuntary_switches: during.involuntary_switches,
        major_faults: during.major_faults,
        reading: Some(Reading::Quality(reading)),
    }));
    Ok(Event::Measured(Measured {
        repetitions: 1,
        peak_rss_bytes: os::peak_rss_bytes(),
    }))
}

/// Refuses what cannot be judged before anything is computed.
fn check(loaded: &LoadedModel, asked: &Quality) -> Result<(), Stopped> {
    load::check_same_load(loaded, &asked.settings)?;
    load::check_writes(loaded, &asked.settings)?;
    load::check_reads(loaded)?;
    load::check_vocabulary(loaded)?;
    if asked.n_ctx < LEAST {
        return Err(Stopped::bad_setting(format!(
            "n_ctx is {}: a chunk needs at least {LEAST} tokens.",
            asked.n_ctx
        )));
    }
    load::check_positions(loaded, asked.n_ctx.into())
}

fn chunks(worker: &Worker, loaded: &LoadedModel, asked: &Quality) -> Result<Chunks, Stopped> {
    let own;
    let text = match &asked.text {
        Some(path) => {
            own = chunks::read(&worker.resolve(&path.0))?;
            &own
        }
        None => text::bundled(),
    };
    Chunks::new(loaded.model.vocabulary(), text, asked.n_ctx, asked.chunks)
}

/// The settings with batches of one micro-batch: all their logits are held at once, and more tokens
/// a call would be computed in the same pieces.
fn settings(asked: &Quality) -> Settings {
    let n_batch = asked.settings.n_batch.min(asked.n_ctx);
    let n_ubatch = match asked.settings.n_ubatch {
        0 => n_batch,
        n_ubatch => n_ubatch.min(n_batch),
    };
    Settings {
        n_batch: n_ubatch,
        n_ubatch,
        n_outputs: n_ubatch,
        ..asked.settings.clone()
    }
}

/// A model that reads the text.
struct Reader<'a> {
    model: &'a LoadedModel,
    context: Context,
}

impl<'a> Reader<'a> {
    fn open(
        worker: &mut Worker,
        model: &'a LoadedModel,
        settings: &Settings,
        n_ctx: u32,
        request: u64,
    ) -> Result<Self, Stopped> {
        let context = worker.make_context(model, settings, n_ctx, request)?;
        Ok(Self { model, context })
    }

    fn decode(&mut self, entries: impl IntoIterator<Item = Entry>) -> Result<(), Stopped> {
        self.context
            .decode_batch(entries)
            .map_err(|error| self.model.stopped(WHAT, error))
    }

    /// Logits of these tokens of the last batch.
    fn logits(&self, indices: &[i32]) -> Result<Vec<&[f32]>, Stopped> {
        let rows = indices.iter().map(|index| self.context.logits_of(*index));
        rows.collect::<Option<_>>().ok_or_else(|| {
            Stopped::by_engine(
                FailureCode::DecodeFailed,
                format!("The engine gave no predictions of {}.", self.model.name()),
            )
        })
    }
}

/// The models and what was judged so far.
struct Judge<'a> {
    own: Reader<'a>,
    base: Option<Reader<'a>>,
    n_batch: usize,
    n_threads: usize,
    request: u64,
    scored: Vec<Scored>,
}

impl Judge<'_> {
    /// Reads a chunk and judges the predictions in its second half.
    fn read(&mut self, chunk: &[sys::llama_token]) -> Result<(), Stopped> {
        self.own.context.forget();
        if let Some(base) = &mut self.base {
            base.context.forget();
        }
        for start in (0..chunk.len()).step_by(self.n_batch) {
            let end = (start + self.n_batch).min(chunk.len());
            let entries = (start..end).map(|place| Entry {
                token: chunk[place],
                sequence: 0,
                position: place as i32,
                output: is_scored(place, chunk.len()),
            });
            if let Some(base) = &mut self.base {
                base.decode(entries.clone())?;
            }
            self.own.decode(entries)?;
            let places = (start..end).filter(|place| is_scored(*place, chunk.len()));
            let (indices, came): (Vec<i32>, Vec<usize>) = places
                .map(|place| ((place - start) as i32, chunk[place + 1] as usize))
                .unzip();
            self.judge(&indices, &came)?;
        }
        Ok(())
    }

    /// Judges the predictions at these indices of the last batch by the tokens that came.
    fn judge(&mut self, indices: &[i32], came: &[usize]) -> Result<(), Stopped> {
        let own = self.own.logits(indices)?;
        let base = match &self.base {
            Some(base) => Some(base.logits(indices)?),
            None => None,
        };
        let scored: Vec<OnceLock<Scored>> = came.iter().map(|_| OnceLock::new()).collect();
        let (n_threads, request) = (self.n_threads, self.request);
        team::run(n_threads, |number| {
            for row in (number..came.len()).step_by(n_threads) {
                if wire::is_cancelled(request) {
                    return;
                }
                let base = base.as_ref().map(|rows| rows[row]);
                // Nobody else writes it.
                let _ = scored[row].set(score(own[row], base, came[row]));
            }
        })
        .map_err(|error| {
            Stopped::because(
                FailureCode::Internal,
                format!("{n_threads} threads could not be made: {error}."),
            )
        })?;
        if wire::is_cancelled(request) {
            return Err(Stopped::Cancelled);
        }
        let scored = scored.into_iter().filter_map(OnceLock::into_inner);
        self.scored.extend(scored);
        Ok(())
    }

    fn reading(&self, n_ctx: u32, chunks: u32) -> Result<QualityReading, Stopped> {
        tally::reading(n_ctx, chunks, &self.scored).ok_or_else(|| {
            let names: Vec<String> = [Some(&self.own), self.base.as_ref()]
                .into_iter()
                .flatten()
                .map(|reader| reader.model.name())
                .collect();
            Stopped::because(
                FailureCode::DecodeFailed,
                format!(
                    "Predictions of {} are no numbers: the file may be damaged, fetch or make it again.",
                    names.join(" or ")
                ),
            )
        })
    }
}
