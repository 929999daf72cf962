//! [`Request::Foresee`]: what contexts of a model would take, without reading its weights.
//!
//! The engine goes through loading and making the context as always, but for the weights, the
//! caches and the working buffers it only counts (`no_alloc`). What it allocates all the same is
//! held against the free memory first.
//!
//! [`Request::Foresee`]: twospeed_engine::protocol::Request::Foresee

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Instant, SystemTime};

use llama_cpp_sys_2 as sys;
use twospeed_engine::Settings;
use twospeed_engine::protocol::{Event, FailureCode, Foresee, ForeseeContext, Foreseen, Placement};

use crate::context::Context;
use crate::failure::Stopped;
use crate::log::{self, Line};
use crate::model::Model;
use crate::model_params::ModelParams;
use crate::placement::{Told, placement};
use crate::serve::Worker;
use crate::settings::{self, Room};
use crate::wire;
use crate::{breakdown, files, foresee, load, os};

/// Asks the engine for each context. What is loaded stays loaded, and the header that was read is
/// kept for the next question: a large vocabulary takes most of the time.
///
/// Errors: a file that cannot be read. What the engine refuses is an answer, one sentence.
pub fn foresee(worker: &mut Worker, asked: &Foresee, request: u64) -> Result<Event, Stopped> {
    let files = files::parts(&worker.resolve(&asked.model.0));
    files::check(&files)?;
    let facts = facts(&files);
    let kept = worker.foreseen.take();
    let mut file = match kept.filter(|kept| kept.facts == facts) {
        Some(kept) => kept,
        None => File::of(facts)?,
    };
    let mut contexts = Vec::new();
    for context in &asked.contexts {
        if wire::is_cancelled(request) {
            return Err(Stopped::Cancelled);
        }
        contexts.push(match file.place(context, request) {
            Ok(placement) => Foreseen::Placed(placement),
            Err(Stopped::Cancelled) => return Err(Stopped::Cancelled),
            Err(Stopped::Failed(failure)) => Foreseen::Refused {
                message: failure.message,
            },
        });
    }
    worker.foreseen = Some(file);
    Ok(Event::Foreseen { contexts })
}

/// Files with what shows that they are the same ones: size and time of change.
type Facts = Vec<(PathBuf, Option<(u64, SystemTime)>)>;

fn facts(files: &[PathBuf]) -> Facts {
    let of = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.len(), meta.modified().ok()?))
    };
    files.iter().map(|path| (path.clone(), of(path))).collect()
}

/// The file that is asked about.
pub struct File {
    facts: Facts,
    first: PathBuf,
    path: CString,
    /// Its header as it was loaded last: contexts of the same settings share it.
    header: Option<(Settings, Result<Header, Stopped>)>,
}

/// A model without its weights.
struct Header {
    model: Rc<Model>,
    lines: Vec<Line>,
}

impl File {
    fn of(facts: Facts) -> Result<Self, Stopped> {
        let (first, _) = facts.first().expect("BUG: a model has at least one file");
        let first = first.clone();
        let path = os::engine_path(first.as_os_str()).ok_or_else(|| {
            Stopped::because(
                FailureCode::FileUnreadable,
                format!(
                    "{} has a name the engine cannot open: rename it.",
                    first.display()
                ),
            )
        })?;
        Ok(Self {
            facts,
            first,
            path,
            header: None,
        })
    }

    fn place(&mut self, asked: &ForeseeContext, request: u64) -> Result<Placement, Stopped> {
        let name = load::name(&self.first);
        let header = self.header(&asked.settings)?;
        let room = room(asked, &header.model)?;
        let params = settings::context_params(&asked.settings, room, header.model.has_encoder())?;
        check_outputs(&params)?;
        foresee::check_bare(&name, &header.model, &params)?;
        let start = Instant::now();
        let (context, lines) = log::capture(|| Context::new(&header.model, params, None, request));
        let context_ns = start.elapsed().as_nanos() as u64;
        let context = context.ok_or_else(|| load::context_refused(&name, room.n_ctx, &lines))?;
        let told = Told::read(header.lines.iter().chain(&lines));
        let states = if told.keeps_both() {
            foresee::states(&header.model, &params, &told, request)
        } else {
            Vec::new()
        };
        Ok(placement(
            &told,
            &breakdown::of(&context),
            &states,
            context_ns,
            context.n_ctx(),
            header.model.output_bytes(&params),
        ))
    }

    fn header(&mut self, settings: &Settings) -> Result<&Header, Stopped> {
        let same = |(loaded, _): &(Settings, _)| loaded.same_load(settings);
        if !self.header.as_ref().is_some_and(same) {
            // The one before is freed first.
            self.header = None;
            let read = read(&self.first, &self.path, settings);
            self.header = Some((settings.clone(), read));
        }
        match &self.header {
            Some((_, Ok(header))) => Ok(header),
            Some((_, Err(stopped))) => Err(stopped.clone()),
            None => unreachable!("BUG: it was set right above"),
        }
    }
}

fn read(first: &Path, path: &std::ffi::CStr, settings: &Settings) -> Result<Header, Stopped> {
    let params = ModelParams::new(settings)?;
    // SAFETY: `params` lives until the model is loaded.
    let (model, lines) = log::capture(|| unsafe { foresee::load_bare(path, &params) });
    match model {
        Some(model) => Ok(Header {
            model: Rc::new(model),
            lines,
        }),
        None => Err(load::refused(first, &lines)),
    }
}

/// What the context is to have room for; 0 tokens are as many as the model was trained for.
fn room(asked: &ForeseeContext, model: &Model) -> Result<Room, Stopped> {
    let tokens = match asked.n_ctx {
        0 => model.n_ctx_train(),
        tokens => tokens,
    };
    if asked.n_seq == 0 {
        return Err(Stopped::bad_setting(
            "A context of no sequences was asked for: give at least 1.",
        ));
    }
    Ok(Room {
        n_ctx: settings::tokens_of_context(tokens.into())?,
        sequences: asked.n_seq,
        // For one sequence both are the same, and a measurement's context is this one.
        split: asked.split_kv || asked.n_seq == 1,
    })
}

/// The engine asserts room for one row of logits of each sequence.
fn check_outputs(params: &sys::llama_context_params) -> Result<(), Stopped> {
    if params.n_batch >= params.n_seq_max {
        return Ok(());
    }
    Err(Stopped::bad_setting(format!(
        "n_batch is {} for {} sequences: give at least 1 token a batch for each.",
        params.n_batch, params.n_seq_max
    )))
}
