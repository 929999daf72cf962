//! The wire between a session and its worker.
//!
//! Three tasks carry a session: one reads what the worker says, one writes what it is asked, one
//! waits for its death, for orders and for what is due. None of them wakes up on a clock unless
//! something is due: a hello, a cancel, a stop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use crate::end::{Doing, How, WorkerEnd};
use crate::engine::{Session, StartError};
use crate::heard::Heard;
use crate::lines::Log;
use crate::supervise::{Body, Supervisor};
use crate::tap::{Tap, read_log, read_output, write_input};

/// Events that may wait for a slow listener before the worker is made to wait.
const EVENTS_AHEAD: usize = 1024;

/// How long each thing may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the start to the hello. A death is noticed at once, so this only catches a worker that
    /// hangs, and a slow disk takes its time to load the engine.
    pub hello: Duration,
    /// From a cancel to the closing event.
    pub cancel: Duration,
    /// From the end of its input to the worker's end.
    pub stop: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(30),
            cancel: Duration::from_secs(1),
            stop: Duration::from_secs(1),
        }
    }
}

/// Which request: the second one has another ticket than the first.
pub(crate) type Ticket = u64;

/// What a worker serves right now, known to both ends of the wire.
#[derive(Debug)]
pub(crate) struct Serving(Mutex<(Doing, Ticket)>);

impl Serving {
    fn new() -> Self {
        Self(Mutex::new((Doing::Starting, 0)))
    }

    pub(crate) fn doing(&self) -> Doing {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// The request that is served, if one is.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!matches!(now.0, Doing::Starting | Doing::Waiting)).then_some(now.1)
    }

    /// Takes the worker for a request; `false` when it is not free.
    pub(crate) fn begin(&self, doing: Doing) -> bool {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = now.0 == Doing::Waiting;
        if free {
            *now = (doing, now.1 + 1);
        }
        free
    }

    /// The worker is free: it said hello, or closed its request.
    pub(crate) fn free(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = Doing::Waiting;
    }
}

/// The three streams of a worker.
pub(crate) struct Pipes<I, O, L> {
    /// What it is asked.
    pub(crate) input: I,
    /// What it says.
    pub(crate) output: O,
    /// What it prints.
    pub(crate) log: L,
    /// What it prints goes to our standard error too.
    pub(crate) log_told: bool,
}

/// Waits for the hello of a worker and gives the session with it.
///
/// When there is no session, the worker is dead when this returns. `variant` is the one it was
/// told to run, if it was told.
pub(crate) async fn connect<B, I, O, L>(
    body: B,
    pid: Option<u32>,
    pipes: Pipes<I, O, L>,
    patience: Patience,
    variant: Option<String>,
) -> Result<Session, StartError>
where
    B: Body,
    I: AsyncWrite + Unpin + Send + 'static,
    O: AsyncRead + Unpin + Send + 'static,
    L: AsyncRead + Unpin + Send + 'static,
{
    let serving = Arc::new(Serving::new());
    let log = Arc::new(Log::new(pipes.log_told));
    let (dead_send, dead) = watch::channel(false);
    let (note, notes) = mpsc::unbounded_channel();
    let (hello_send, hello) = oneshot::channel();
    let (event_send, events) = mpsc::channel(EVENTS_AHEAD);
    let (input, requests) = mpsc::unbounded_channel();
    let (orders, orders_receive) = mpsc::unbounded_channel();
    let (end_send, end) = oneshot::channel();
    let variant = Arc::new(Mutex::new(variant));

    let heard = Heard::new(
        serving.clone(),
        log.clone(),
        variant.clone(),
        hello_send,
        event_send,
        note.clone(),
    );
    let reader = tokio::spawn(read_output(
        Tap::new(pipes.output, dead.clone()),
        heard,
        note.clone(),
    ));
    let printer = tokio::spawn(read_log(Tap::new(pipes.log, dead), log.clone()));
    tokio::spawn(write_input(pipes.input, requests, note));
    tokio::spawn(
        Supervisor {
            body,
            orders: orders_receive,
            notes,
            patience,
            serving: serving.clone(),
            dead: dead_send,
            readers: [reader, printer],
            log,
            variant,
        }
        .watch(end_send),
    );

    let refused = tokio::select! {
        biased;
        greeting = hello => match greeting {
            Ok(Ok(hello)) => {
                return Ok(Session::new(hello, pid, serving, input, orders, events, end));
            }
            Ok(Err(refused)) => Some(refused),
            // Its output has ended: it is about to end, or is ended for it.
            Err(_) => {
                let end = end.await.unwrap_or_else(|_| abandoned(&serving));
                drop((orders, input));
                return Err(StartError::Ended(Box::new(end)));
            }
        },
        () = sleep(patience.hello) => None,
    };
    drop((orders, input, events));
    let end = end.await.unwrap_or_else(|_| abandoned(&serving));
    Err(refused.unwrap_or(StartError::NoHello {
        waited: patience.hello,
        log: end.log,
    }))
}

/// The end of a session whose runtime was shut down: its worker was killed with it.
pub(crate) fn abandoned(serving: &Serving) -> WorkerEnd {
    WorkerEnd {
        how: How::Killed,
        doing: serving.doing(),
        variant: None,
        log: Vec::new(),
    }
}
