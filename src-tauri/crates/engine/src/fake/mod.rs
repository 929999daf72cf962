//! An engine that plays scripts: everything that measures or shows can be tried without a model.
//!
//! A fake session goes over the same wire as a real one (the same lines, limits and patience), so a
//! scripted death, silence or line of noise is met by the code that meets the real one. It has no
//! process and no clock of its own: under tokio's paused time, slow scripts take no time.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use twospeed_engine::fake::FakeEngine;
//! use twospeed_engine::{Engine, How, Incoming, Start};
//! use twospeed_engine::protocol::{AnchorRequest, Request};
//!
//! let engine = FakeEngine::new().dies_on(1, How::OutOfMemory);
//! let mut session = engine.start(&Start::default()).await.unwrap();
//!
//! session.send(Request::Anchor(AnchorRequest { n_threads: 2 })).unwrap();
//! assert!(matches!(session.next().await, Incoming::Event(_)));
//! session.send(Request::Anchor(AnchorRequest { n_threads: 2 })).unwrap();
//! let Incoming::Ended(end) = session.next().await else { panic!() };
//! assert_eq!(end.code(), "engine_out_of_memory");
//! # });
//! ```

mod kinds;
mod model;
mod play;
mod script;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::io::duplex;
use tokio::task::JoinHandle;

use crate::end::How;
use crate::engine::{Engine, Session, Start, StartError};
use crate::link::{Patience, Pipes, connect};
use crate::protocol::{Event, Failure, FailureCode, Hello, Request, Variant};
use crate::supervise::Body;

pub use model::{FakeModel, hello};
pub use script::Script;

/// Bytes that a fake pipe holds, as many as a pipe of Linux.
const PIPE_BYTES: usize = 64 << 10;

/// An engine that answers from scripts; as it comes, like a small model on a laptop, without delay.
///
/// Requests are counted from 0 over all sessions, so that a test can name the one it means.
/// Build it whole before it is started.
#[derive(Debug, Clone)]
pub struct FakeEngine {
    cast: Arc<Cast>,
}

/// A request as a rule sees it.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The request; never one that only steers another.
    pub request: &'a Request,
    /// Which request it is, from 0, over all sessions.
    pub number: usize,
    /// Which session it belongs to, from 0.
    pub session: usize,
    /// The CPU variant that this session runs.
    pub variant: &'a str,
    usual: &'a Script,
}

impl Asked<'_> {
    /// What would be answered without any rule.
    pub fn usual(&self) -> Script {
        self.usual.clone()
    }
}

type Rule = Box<dyn Fn(&Asked<'_>) -> Option<Script> + Send + Sync>;
type StartRule = Box<dyn Fn(&Start, usize) -> Option<Script> + Send + Sync>;

/// What all sessions of an engine share.
struct Cast {
    hello: Hello,
    model: FakeModel,
    models: Vec<(String, FakeModel)>,
    pace: f64,
    deaf: bool,
    patience: Patience,
    rules: Vec<Rule>,
    start_rules: Vec<StartRule>,
    sample_deaths: Vec<(usize, How)>,
    seen: Mutex<Seen>,
}

/// What was asked of an engine so far.
#[derive(Debug, Default)]
struct Seen {
    starts: Vec<Start>,
    requests: Vec<Request>,
    served: usize,
    samples: usize,
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cast")
            .field("hello", &self.hello)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Default for FakeEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeEngine {
    /// An engine that does what it is asked.
    pub fn new() -> Self {
        Self {
            cast: Arc::new(Cast {
                hello: hello(),
                model: FakeModel::default(),
                models: Vec::new(),
                pace: 0.0,
                deaf: false,
                patience: Patience::default(),
                rules: Vec::new(),
                start_rules: Vec::new(),
                sample_deaths: Vec::new(),
                seen: Mutex::default(),
            }),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Cast)) -> Self {
        change(Arc::get_mut(&mut self.cast).expect("BUG: a fake engine is built before it starts"));
        self
    }

    /// Says another hello.
    pub fn with_hello(self, change: impl FnOnce(&mut Hello)) -> Self {
        self.with(|cast| change(&mut cast.hello))
    }

    /// Runs one of these CPU variants, best first: the one asked for, or the first not set aside.
    pub fn with_variants(self, names: &[&str]) -> Self {
        let variants: Vec<Variant> = names
            .iter()
            .zip((1..).map(|place| 1 << (12 - place.min(12))))
            .map(|(name, score)| Variant {
                name: (*name).to_owned(),
                score,
            })
            .collect();
        self.with_hello(|hello| hello.variants = variants)
    }

    /// Answers for files whose name contains `name` like this model.
    pub fn with_model(self, name: &str, model: FakeModel) -> Self {
        self.with(|cast| cast.models.push((name.to_owned(), model)))
    }

    /// Takes its time: 1 as long as the durations it reports, 0.1 a tenth, 0 none (as it comes).
    pub fn with_pace(self, pace: f64) -> Self {
        self.with(|cast| cast.pace = pace)
    }

    /// Is supervised with another patience.
    pub fn with_patience(self, patience: Patience) -> Self {
        self.with(|cast| cast.patience = patience)
    }

    /// Hears no cancel and no end of its input.
    pub fn deaf(self) -> Self {
        self.with(|cast| cast.deaf = true)
    }

    /// Answers by this rule where it gives a script; the rule added last is asked first.
    pub fn answers(
        self,
        rule: impl Fn(&Asked<'_>) -> Option<Script> + Send + Sync + 'static,
    ) -> Self {
        self.with(|cast| cast.rules.push(Box::new(rule)))
    }

    /// Plays this instead of saying hello, where the rule gives a script for this start (counted
    /// from 0).
    pub fn starts_with(
        self,
        rule: impl Fn(&Start, usize) -> Option<Script> + Send + Sync + 'static,
    ) -> Self {
        self.with(|cast| cast.start_rules.push(Box::new(rule)))
    }

    /// Dies when it gets this request.
    pub fn dies_on(self, number: usize, how: How) -> Self {
        self.answers(move |asked| (asked.number == number).then(|| Script::new().die(how.clone())))
    }

    /// Dies right after it said this many samples, over all sessions.
    pub fn dies_after_samples(self, samples: usize, how: How) -> Self {
        self.with(|cast| cast.sample_deaths.push((samples, how)))
    }

    /// Dies of an illegal instruction when this CPU variant computes for the first time.
    pub fn variant_dies(self, variant: &str) -> Self {
        let variant = variant.to_owned();
        self.answers(move |asked| {
            let computes = matches!(
                asked.request,
                Request::Measure(_)
                    | Request::Generate(_)
                    | Request::Serve(_)
                    | Request::Users(_)
                    | Request::Quality(_)
            );
            (computes && asked.variant == variant).then(|| {
                Script::new().die(How::Signal {
                    number: 4,
                    name: "SIGILL".into(),
                })
            })
        })
    }

    /// Never answers this request.
    pub fn hangs_on(self, number: usize) -> Self {
        self.answers(move |asked| (asked.number == number).then(|| Script::new().hang()))
    }

    /// Fails this request and lives.
    pub fn fails_on(self, number: usize, code: FailureCode, message: &str) -> Self {
        let failure = Failure {
            code,
            message: message.to_owned(),
            log: vec![format!("fake: {message}")],
        };
        self.answers(move |asked| {
            (asked.number == number).then(|| Script::new().say(Event::Failed(failure.clone())))
        })
    }

    /// All requests so far in the order they were heard, those that only steer among them.
    pub fn requests(&self) -> Vec<Request> {
        self.cast.seen(|seen| seen.requests.clone())
    }

    /// How it was started so far.
    pub fn starts(&self) -> Vec<Start> {
        self.cast.seen(|seen| seen.starts.clone())
    }
}

impl Cast {
    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn model(&self, path: &Path) -> &FakeModel {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        self.models
            .iter()
            .find(|(name, _)| file.contains(name.as_str()))
            .map_or(&self.model, |(_, model)| model)
    }

    /// How to die after one more sample, if it is time.
    fn count_sample(&self) -> Option<How> {
        let said = self.seen(|seen| {
            seen.samples += 1;
            seen.samples
        });
        let death = self.sample_deaths.iter().find(|(after, _)| *after == said);
        death.map(|(_, how)| how.clone())
    }

    /// The CPU variant for this start, or `None` when all are set aside.
    fn variant(&self, start: &Start) -> Option<Variant> {
        let variants = &self.hello.variants;
        match &start.variant {
            Some(name) => variants.iter().find(|variant| variant.name == *name),
            None => variants
                .iter()
                .find(|variant| !start.set_aside.contains(&variant.name)),
        }
        .cloned()
    }
}

#[async_trait]
impl Engine for FakeEngine {
    async fn start(&self, start: &Start) -> Result<Session, StartError> {
        let session = self.cast.seen(|seen| {
            seen.starts.push(start.clone());
            seen.starts.len() - 1
        });
        let (input, their_input) = duplex(PIPE_BYTES);
        let (their_output, output) = duplex(PIPE_BYTES);
        let (their_log, log) = duplex(PIPE_BYTES);
        let player = play::Player::new(
            self.cast.clone(),
            session,
            their_input,
            their_output,
            their_log,
        );
        let body = Fake(tokio::spawn(player.perform(start.clone())));
        let pipes = Pipes {
            input,
            output,
            log,
            log_told: false,
        };
        connect(body, None, pipes, self.cast.patience, start.variant.clone()).await
    }
}

/// A script that is being played.
struct Fake(JoinHandle<How>);

impl Body for Fake {
    async fn ended(&mut self) -> How {
        // A task that was aborted stands for a process that was killed.
        (&mut self.0).await.unwrap_or_else(|_| How::Signal {
            number: 9,
            name: "SIGKILL".into(),
        })
    }

    fn kill(&mut self) {
        self.0.abort();
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.0.abort();
    }
}
