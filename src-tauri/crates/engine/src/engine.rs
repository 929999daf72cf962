//! The engine seen from outside: something that starts sessions, and what a session says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::end::{Doing, WorkerEnd};
use crate::link::{Serving, abandoned};
use crate::protocol::{Event, Hello, PROTOCOL, Request};
use crate::supervise::Order;

/// Runs models: the worker process ([`crate::process`]) or a script ([`crate::fake`]).
#[async_trait]
pub trait Engine: Send + Sync {
    /// Starts a fresh worker and waits for its hello.
    ///
    /// One worker serves one plan; nothing is restarted here. Must be called inside a tokio
    /// runtime, which then keeps the session's tasks.
    async fn start(&self, start: &Start) -> Result<Session, StartError>;
}

/// How to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// The CPU variant to run; `None` = the best that is not set aside.
    pub variant: Option<String>,
    /// CPU variants not to run, since they died on this machine.
    pub set_aside: Vec<String>,
}

/// A worker that said hello. Dropping it ends the worker.
///
/// Nothing here wakes up on a clock while a request is served: between two lines of the worker
/// this process sleeps.
#[derive(Debug)]
pub struct Session {
    hello: Hello,
    pid: Option<u32>,
    serving: Arc<Serving>,
    input: mpsc::UnboundedSender<Request>,
    orders: mpsc::UnboundedSender<Order>,
    events: mpsc::Receiver<Event>,
    end: oneshot::Receiver<WorkerEnd>,
    ended: Option<WorkerEnd>,
}

/// What a session hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The worker said something about the request it serves.
    Event(Event),
    /// The worker is no more. All that it said has been heard before.
    Ended(WorkerEnd),
}

impl Session {
    /// Puts the ends of the wires together, for [`crate::link`].
    pub(crate) fn new(
        hello: Hello,
        pid: Option<u32>,
        serving: Arc<Serving>,
        input: mpsc::UnboundedSender<Request>,
        orders: mpsc::UnboundedSender<Order>,
        events: mpsc::Receiver<Event>,
        end: oneshot::Receiver<WorkerEnd>,
    ) -> Self {
        Self {
            hello,
            pid,
            serving,
            input,
            orders,
            events,
            end,
            ended: None,
        }
    }

    /// Who answers.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Process id of the worker; `None` where there is no process.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Hands a request to the worker; never waits for it.
    ///
    /// [`Request::Go`] and [`Request::Enough`] go to the request that is served and are dropped
    /// when it has closed meanwhile; [`Request::Cancel`] is [`Session::cancel`].
    ///
    /// Errors: [`SendError::Busy`] while another request is served, [`SendError::Ended`] when the
    /// worker is no more ([`Session::next`] says how it ended).
    pub fn send(&self, request: Request) -> Result<(), SendError> {
        if self.orders.is_closed() {
            return Err(SendError::Ended);
        }
        match Doing::after(&request) {
            Some(doing) => {
                if !self.serving.begin(doing) {
                    return Err(SendError::Busy);
                }
                self.input.send(request).map_err(|_| SendError::Ended)
            }
            None if request == Request::Cancel => {
                self.cancel();
                Ok(())
            }
            None if self.serving.ticket().is_none() => Ok(()),
            None => self.input.send(request).map_err(|_| SendError::Ended),
        }
    }

    /// Asks the worker to stop what it serves. Nothing happens when it serves nothing.
    ///
    /// [`Session::next`] goes on to give what is said, until the closing event (mostly
    /// [`Event::Cancelled`]); a worker that does not close within its grace is killed
    /// ([`crate::How::Killed`]).
    pub fn cancel(&self) {
        let Some(ticket) = self.serving.ticket() else {
            return;
        };
        // Both fail only when the worker is no more, and then `next` says so.
        let _ = self.input.send(Request::Cancel);
        let _ = self.orders.send(Order::Cancel(ticket));
    }

    /// The next event, or how the worker ended; after that always the same end.
    ///
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Incoming {
        if let Some(end) = &self.ended {
            return Incoming::Ended(end.clone());
        }
        if let Some(event) = self.events.recv().await {
            return Incoming::Event(event);
        }
        Incoming::Ended(self.wait_for_end().await)
    }

    /// Ends the worker: closes its input, waits its grace for it to leave, then kills it.
    ///
    /// What it still says is dropped.
    pub async fn stop(self) -> WorkerEnd {
        let Self {
            serving,
            input,
            orders,
            events,
            mut end,
            ended,
            ..
        } = self;
        if let Some(end) = ended {
            return end;
        }
        let _ = orders.send(Order::Stop);
        drop((input, events));
        (&mut end).await.unwrap_or_else(|_| abandoned(&serving))
    }

    async fn wait_for_end(&mut self) -> WorkerEnd {
        let end = match (&mut self.end).await {
            Ok(end) => end,
            Err(_) => abandoned(&self.serving),
        };
        self.ended = Some(end.clone());
        end
    }
}

/// Why a request could not be handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// One request is served at a time.
    #[error("The engine is still at work on the request before. Wait for it or cancel it.")]
    Busy,
    /// The worker is no more.
    #[error("The engine has ended. Start it again.")]
    Ended,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No worker was found.
    #[error(
        "Twospeed's engine is missing: it is not at {}. Reinstall Twospeed.",
        list(looked_at)
    )]
    NotFound {
        /// Where it was looked for.
        looked_at: Vec<PathBuf>,
    },
    /// The worker was found and the system does not run it.
    #[error(
        "Twospeed's engine {} cannot be started ({source}). Check that it may be executed and that the system has processes and memory left, or reinstall Twospeed.",
        program.display()
    )]
    CannotRun {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The worker comes from another build.
    #[error(
        "Twospeed and its engine come from different versions (protocol {PROTOCOL} and {theirs}). Reinstall Twospeed."
    )]
    Version {
        /// The worker's protocol.
        theirs: u32,
    },
    /// The worker said a hello that cannot be understood.
    #[error(
        "Twospeed's engine introduced itself in a way that cannot be understood ({fault}). Reinstall Twospeed."
    )]
    BadHello {
        /// What is wrong with it.
        fault: String,
    },
    /// The worker lives and said no hello in time.
    #[error(
        "Twospeed's engine did not answer within {} s. The disk may be very slow: try again; if it happens again, reinstall Twospeed.",
        waited.as_secs()
    )]
    NoHello {
        /// How long it was waited for.
        waited: Duration,
        /// Its last lines.
        log: Vec<String>,
    },
    /// The worker ended before it said hello.
    #[error("{}", .0.sentence(None))]
    Ended(Box<WorkerEnd>),
}

impl StartError {
    /// The key of this error for those who branch on it.
    ///
    /// One of `engine_missing`, `engine_not_runnable`, `engine_version`, `engine_silent`, or the
    /// [`WorkerEnd::code`] of a worker that ended before its hello.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "engine_missing",
            Self::CannotRun { .. } => "engine_not_runnable",
            Self::Version { .. } | Self::BadHello { .. } => "engine_version",
            Self::NoHello { .. } => "engine_silent",
            Self::Ended(end) => end.code(),
        }
    }

    /// Last lines of the worker, where it said any.
    pub fn log(&self) -> &[String] {
        match self {
            Self::NoHello { log, .. } => log,
            Self::Ended(end) => &end.log,
            _ => &[],
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(" or ")
}
