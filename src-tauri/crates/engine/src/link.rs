//! The wire between a session and its worker, and the one who watches over both.
//!
//! Three tasks carry a session: one reads what the worker says, one writes what it is asked, one
//! waits for its death, for orders and for what is due. None of them wakes up on a clock unless
//! something is due: a hello, a cancel, a stop.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::end::{Doing, How, ProtocolFault, WorkerEnd};
use crate::engine::{Session, StartError};
use crate::heard::Heard;
use crate::lines::{Lines, Log};
use crate::protocol::Request;

/// Events that may wait for a slow listener before the worker is made to wait.
const EVENTS_AHEAD: usize = 1024;

/// A worker that closed a pipe is about to end: this long it may take.
const FAULT_GRACE: Duration = Duration::from_millis(500);

/// A killed worker may hang in the kernel (a driver, a network disk): the answer does not wait longer.
const KILL_PATIENCE: Duration = Duration::from_millis(500);

/// A dead worker's pipes may be held open by a child of its: what came before the death is there
/// already, so this long is waited for more.
const DRAIN_PATIENCE: Duration = Duration::from_millis(200);

/// And this much is read: more than any pipe holds.
const DRAIN_BYTES: usize = 2 << 20;

/// The living thing at the other end: a process, or a script.
pub(crate) trait Body: Send + 'static {
    /// Waits for its end; may be dropped and called again.
    fn ended(&mut self) -> impl Future<Output = How> + Send;

    /// Ends it; `ended` follows.
    fn kill(&mut self);
}

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

/// What a session asks of its supervisor. A closed channel says: kill it, nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// A cancel was sent for this request: give it its grace, then kill.
    Cancel(Ticket),
    /// The input was closed: give it its grace to leave, then kill.
    Stop,
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

/// What the reading and the writing task tell the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The request that was served has closed.
    Closed,
    /// A pipe has ended.
    Fault(ProtocolFault),
}

/// The three streams of a worker.
pub(crate) struct Pipes<I, O, L> {
    /// What it is asked.
    pub(crate) input: I,
    /// What it says.
    pub(crate) output: O,
    /// What it prints.
    pub(crate) log: L,
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
    let log = Arc::new(Log::default());
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

/// A pipe of the worker, read until it ends or its owner is dead and it runs dry.
struct Tap<R> {
    from: R,
    dead: watch::Receiver<bool>,
    buffer: Box<[u8]>,
    wait_left: Duration,
    bytes_left: usize,
}

impl<R: AsyncRead + Unpin> Tap<R> {
    fn new(from: R, dead: watch::Receiver<bool>) -> Self {
        Self {
            from,
            dead,
            buffer: vec![0; 64 << 10].into(),
            wait_left: DRAIN_PATIENCE,
            bytes_left: DRAIN_BYTES,
        }
    }

    /// The next bytes, never none; `None` at the end.
    async fn read(&mut self) -> Option<&[u8]> {
        let alive = if *self.dead.borrow() {
            None
        } else {
            tokio::select! {
                biased;
                got = self.from.read(&mut self.buffer) => Some(got.unwrap_or(0)),
                () = death(&mut self.dead) => None,
            }
        };
        let got = match alive {
            Some(got) => got,
            None => self.drain().await,
        };
        (got > 0).then(|| &self.buffer[..got])
    }

    async fn drain(&mut self) -> usize {
        let before = Instant::now();
        let got = match timeout(self.wait_left, self.from.read(&mut self.buffer)).await {
            Ok(Ok(got)) => got.min(self.bytes_left),
            Ok(Err(_)) | Err(_) => 0,
        };
        self.wait_left = self.wait_left.saturating_sub(before.elapsed());
        self.bytes_left -= got;
        got
    }
}

/// Waits for the death of the worker.
async fn death(dead: &mut watch::Receiver<bool>) {
    // An error says that the supervisor is gone, and its worker with it.
    let _ = dead.wait_for(|dead| *dead).await;
}

async fn read_output<R: AsyncRead + Unpin>(
    mut tap: Tap<R>,
    mut heard: Heard,
    note: mpsc::UnboundedSender<Note>,
) {
    let mut lines = Lines::default();
    while let Some(mut bytes) = tap.read().await {
        while let Some(line) = lines.next(&mut bytes) {
            heard.line(line).await;
        }
    }
    if let Some(line) = lines.rest() {
        heard.line(line).await;
    }
    let _ = note.send(Note::Fault(ProtocolFault::OutputClosed));
}

async fn read_log<R: AsyncRead + Unpin>(mut tap: Tap<R>, log: Arc<Log>) {
    let mut lines = Lines::default();
    while let Some(mut bytes) = tap.read().await {
        while let Some(line) = lines.next(&mut bytes) {
            log.push(&line);
        }
    }
    if let Some(line) = lines.rest() {
        log.push(&line);
    }
}

async fn write_input<W: AsyncWrite + Unpin>(
    mut to: W,
    mut requests: mpsc::UnboundedReceiver<Request>,
    note: mpsc::UnboundedSender<Note>,
) {
    while let Some(request) = requests.recv().await {
        let mut line =
            serde_json::to_vec(&from_anywhere(request)).expect("BUG: a request has no map keys");
        line.push(b'\n');
        let written = async {
            to.write_all(&line).await?;
            to.flush().await
        };
        if written.await.is_err() {
            let _ = note.send(Note::Fault(ProtocolFault::InputClosed));
            return;
        }
    }
}

/// The worker has another working directory: a path relative to ours means nothing there.
fn from_anywhere(mut request: Request) -> Request {
    if let Request::Load(load) = &mut request
        && let Ok(path) = std::path::absolute(&load.model.0)
    {
        load.model.0 = path;
    }
    request
}

/// Watches over one worker, from its first breath until it is gone.
struct Supervisor<B> {
    body: B,
    orders: mpsc::UnboundedReceiver<Order>,
    notes: mpsc::UnboundedReceiver<Note>,
    patience: Patience,
    serving: Arc<Serving>,
    dead: watch::Sender<bool>,
    readers: [JoinHandle<()>; 2],
    log: Arc<Log>,
    variant: Arc<Mutex<Option<String>>>,
}

/// A kill that comes unless something happens first.
struct Due {
    at: Instant,
    why: Why,
}

/// Why a worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Cancel(Ticket),
    Stop,
    NobodyListens,
    Fault(ProtocolFault),
}

impl Why {
    fn how(self) -> How {
        match self {
            Self::Fault(fault) => How::Protocol { fault },
            Self::Cancel(_) | Self::Stop | Self::NobodyListens => How::Killed,
        }
    }
}

impl<B: Body> Supervisor<B> {
    async fn watch(mut self, end: oneshot::Sender<WorkerEnd>) {
        let (how, alive) = match self.wait().await {
            Ok(how) => (how, false),
            Err(why) => {
                self.body.kill();
                match timeout(KILL_PATIENCE, self.body.ended()).await {
                    // It may have died of something else just before.
                    Ok(how @ How::Signal { .. }) if !is_sigkill(&how) => (how, false),
                    Ok(_) => (why.how(), false),
                    Err(_) => (why.how(), true),
                }
            }
        };
        self.dead.send_replace(true);
        for reader in &mut self.readers {
            // Longer than it drains: only a listener that takes nothing holds it longer.
            let _ = timeout(2 * DRAIN_PATIENCE, reader).await;
        }
        // From here on a request is refused rather than taken by nobody.
        self.orders.close();
        let log = self.log.lines();
        let _ = end.send(WorkerEnd {
            how: how.with_last_words(&log),
            doing: self.serving.doing(),
            variant: self
                .variant
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
            log,
        });
        if alive {
            self.body.ended().await;
        }
    }

    /// Waits until the worker has ended (and how), or must be killed (and why).
    async fn wait(&mut self) -> Result<How, Why> {
        let mut due: Option<Due> = None;
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                how = self.body.ended() => return Ok(how),
                order = self.orders.recv() => match order {
                    Some(Order::Cancel(ticket)) => {
                        if self.serving.ticket() == Some(ticket) {
                            sooner(&mut due, self.patience.cancel, Why::Cancel(ticket));
                        }
                    }
                    Some(Order::Stop) => {
                        stopping = true;
                        sooner(&mut due, self.patience.stop, Why::Stop);
                    }
                    None => return Err(Why::NobodyListens),
                },
                Some(note) = self.notes.recv() => match note {
                    Note::Closed => {
                        due = due.filter(|due| !matches!(due.why, Why::Cancel(_)));
                    }
                    // A worker that was asked to leave closes its pipes; it has its grace already.
                    Note::Fault(fault) => {
                        if !stopping {
                            sooner(&mut due, FAULT_GRACE, Why::Fault(fault));
                        }
                    }
                },
                Some(why) = when(&due) => {
                    match why {
                        Why::Cancel(ticket) if self.serving.ticket() != Some(ticket) => due = None,
                        why => return Err(why),
                    }
                }
            }
        }
    }
}

/// Waits for what is due; `None` at once when nothing is.
async fn when(due: &Option<Due>) -> Option<Why> {
    let due = due.as_ref()?;
    sleep_until(due.at).await;
    Some(due.why)
}

/// Makes a kill due, unless an earlier one is.
fn sooner(due: &mut Option<Due>, after: Duration, why: Why) {
    let at = Instant::now() + after;
    if due.as_ref().is_none_or(|due| at < due.at) {
        *due = Some(Due { at, why });
    }
}

fn is_sigkill(how: &How) -> bool {
    matches!(how, How::Signal { name, .. } if name == "SIGKILL")
}
