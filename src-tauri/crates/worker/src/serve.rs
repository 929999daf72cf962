//! The worker's loop: one request at a time, each in a file of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use twospeed_engine::Settings;
use twospeed_engine::protocol::{Event, Failure, FailureCode, Phase, Request};

use crate::backend::Backend;
use crate::context::Context;
use crate::depth::DepthState;
use crate::failure::Stopped;
use crate::load::LoadedModel;
use crate::placement::{Told, placement};
use crate::served::Served;
use crate::settings::Room;
use crate::threads::ThreadPool;
use crate::wire::{self, Message, Wire};
use crate::{
    allocations, anchor, bandwidth, breakdown, calibrate, foresee, generate, load, log, measure,
    os, quality, quantize, requests, settings, users,
};

/// What the worker has, between requests.
pub struct Worker {
    /// The way to the app.
    pub wire: Wire,
    /// Context and tokens of the last request served, where the next may build on it.
    pub served: Option<Served>,
    /// State of the cache at the depth filled last.
    pub depth: DepthState,
    /// The header that was asked about last; any other request forgets it.
    pub foreseen: Option<allocations::File>,
    loaded: Option<Rc<LoadedModel>>,
    started_in: Option<PathBuf>,
    allowed_cpus: Option<Vec<usize>>,
    numa: Option<String>,
    _backend: Backend,
}

/// The app's answer before a timed section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Start.
    Go,
    /// No more repetitions.
    Enough,
}

impl Worker {
    /// A worker with nothing loaded. `started_in` is the directory that relative paths mean.
    pub fn new(wire: Wire, backend: Backend, started_in: Option<PathBuf>) -> Self {
        Self {
            wire,
            served: None,
            depth: DepthState::default(),
            foreseen: None,
            loaded: None,
            started_in,
            allowed_cpus: os::allowed_cpus(),
            numa: None,
            _backend: backend,
        }
    }

    /// Serves until standard input ends, which ends the process.
    pub fn serve(&mut self) -> ! {
        loop {
            match self.wire.wait() {
                Message::Serve(number, request) => {
                    let event = self.answer(*request, number);
                    self.wire.say(&event);
                }
                Message::Unreadable(error) => self.wire.say(&Event::Failed(Failure {
                    code: FailureCode::Internal,
                    message: format!("The worker could not read what it was asked: {error}."),
                    log: Vec::new(),
                })),
                // Too late for what it was meant for.
                Message::Go | Message::Enough | Message::Cancel => {}
            }
        }
    }

    fn answer(&mut self, request: Request, number: u64) -> Event {
        let answer = catch_unwind(AssertUnwindSafe(|| self.dispatch(request, number)));
        log::release();
        match answer {
            Ok(Ok(event)) => event,
            Ok(Err(Stopped::Cancelled)) => Event::Cancelled,
            Ok(Err(Stopped::Failed(failure))) => Event::Failed(failure),
            Err(_) => {
                // What it was doing is in an unknown state; nothing of it is used again.
                self.unload();
                Event::Failed(Failure {
                    code: FailureCode::Internal,
                    message: "The worker stumbled over a fault of its own: load the model again, and please report this.".into(),
                    log: log::tail(),
                })
            }
        }
    }

    fn dispatch(&mut self, request: Request, number: u64) -> Result<Event, Stopped> {
        if !matches!(request, Request::Foresee(_)) {
            self.foreseen = None;
        }
        match request {
            Request::Load(load) => load::load(self, load, number),
            Request::Measure(test) => measure::measure(self, &test, number),
            Request::Serve(asked) => requests::serve(self, &asked, number),
            Request::Users(asked) => users::users(self, &asked, number),
            Request::Quality(asked) => quality::quality(self, &asked, number),
            Request::Generate(prompt) => generate::generate(self, &prompt, number),
            Request::ReadBandwidth(probe) => bandwidth::read_bandwidth(&probe, number),
            Request::Foresee(asked) => allocations::foresee(self, &asked, number),
            Request::Calibrate(asked) => calibrate::calibrate(self, &asked, number),
            Request::Anchor(anchor) => anchor::anchor(&anchor),
            Request::Quantize(asked) => quantize::quantize(self, &asked),
            Request::Go | Request::Enough | Request::Cancel => {
                unreachable!("BUG: the reading thread hands these on as messages of their own")
            }
        }
    }

    /// The loaded model.
    pub fn loaded(&self) -> Result<Rc<LoadedModel>, Stopped> {
        self.loaded.clone().ok_or_else(|| {
            Stopped::because(
                FailureCode::NothingLoaded,
                "No model is loaded: load one first.",
            )
        })
    }

    /// Keeps a model that was just loaded.
    pub fn keep(&mut self, model: LoadedModel) {
        self.loaded = Some(Rc::new(model));
    }

    /// Frees the model and everything that was made with it.
    pub fn unload(&mut self) {
        self.served = None;
        self.depth = DepthState::default();
        self.loaded = None;
    }

    /// The CPUs this process had at first; `None` when they are not known.
    pub fn allowed_cpus(&self) -> Option<&[usize]> {
        self.allowed_cpus.as_deref()
    }

    /// A path as the app meant it: relative ones start where the worker was started.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        match &self.started_in {
            Some(start) => start.join(path),
            None => path.to_path_buf(),
        }
    }

    /// Sets the NUMA strategy, once.
    pub fn set_numa(&mut self, settings: &Settings) -> Result<(), Stopped> {
        load::set_numa(&mut self.numa, settings)
    }

    /// Makes a context with that room and says what lies where.
    pub fn make_context(
        &mut self,
        loaded: &LoadedModel,
        settings: &Settings,
        room: impl Into<Room>,
        request: u64,
    ) -> Result<Context, Stopped> {
        self.set_numa(settings)?;
        let room = room.into();
        let params = settings::context_params(settings, room, loaded.model.has_encoder())?;
        let threads = ThreadPool::new(settings, self.allowed_cpus.as_deref())?;
        foresee::check(loaded, &params, request)?;
        let start = Instant::now();
        let (context, lines) =
            log::capture(|| Context::new(&loaded.model, params, Some(threads), request));
        let context_ns = start.elapsed().as_nanos() as u64;
        let context =
            context.ok_or_else(|| load::context_refused(&loaded.name(), room.n_ctx, &lines))?;
        let told = Told::read(loaded.lines.iter().chain(&lines));
        let states = if told.keeps_both() {
            foresee::states_of(loaded, &params, &told, request)
        } else {
            Vec::new()
        };
        self.wire.say(&Event::Placed(placement(
            &told,
            &breakdown::of(&context),
            &states,
            context_ns,
            context.n_ctx(),
            loaded.model.output_bytes(&params),
        )));
        if wire::is_cancelled(request) {
            return Err(Stopped::Cancelled);
        }
        Ok(context)
    }

    /// Says what a test does next.
    pub fn say_phase(&mut self, phase: Phase) {
        self.wire.say(&Event::Phase(phase));
    }

    /// Waits for the app before a timed section.
    pub fn wait_for_go(&mut self) -> Result<Answer, Stopped> {
        match self.wire.wait() {
            Message::Go => Ok(Answer::Go),
            Message::Enough => Ok(Answer::Enough),
            Message::Cancel => Err(Stopped::Cancelled),
            Message::Serve(_, request) => Err(out_of_turn(&format!("{request:?}"))),
            Message::Unreadable(error) => Err(out_of_turn(&error)),
        }
    }
}

fn out_of_turn(what: &str) -> Stopped {
    let what: String = what.chars().take(80).collect();
    Stopped::because(
        FailureCode::Internal,
        format!("The worker waited for \"go\" and was told something else ({what})."),
    )
}
