//! The one who watches over a worker: orders, what is due, and its death.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::end::{How, ProtocolFault, WorkerEnd};
use crate::lines::Log;
use crate::link::{Patience, Serving, Ticket};
use crate::tap::DRAIN_PATIENCE;

/// A worker that closed a pipe is mostly about to end, and then how it ends is worth waiting for: a
/// GPU's driver takes its time to let a dead process go.
const FAULT_GRACE: Duration = Duration::from_secs(2);

/// A killed worker may hang in the kernel (a driver, a network disk): the answer does not wait longer.
const KILL_PATIENCE: Duration = Duration::from_millis(500);

/// The living thing at the other end: a process, or a script.
pub(crate) trait Body: Send + 'static {
    /// Waits for its end; may be dropped and called again.
    fn ended(&mut self) -> impl Future<Output = How> + Send;

    /// Ends it; `ended` follows.
    fn kill(&mut self);
}

/// What a session asks of its supervisor. A closed channel says: kill it, nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// A cancel was sent for this request: give it its grace, then kill.
    Cancel(Ticket),
    /// The input was closed: give it its grace to leave, then kill.
    Stop,
}

/// What the reading and the writing task tell the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The request that was served has closed.
    Closed,
    /// A pipe has ended.
    Fault(ProtocolFault),
}

/// Watches over one worker, from its first breath until it is gone.
pub(crate) struct Supervisor<B> {
    pub(crate) body: B,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    pub(crate) notes: mpsc::UnboundedReceiver<Note>,
    pub(crate) patience: Patience,
    pub(crate) serving: Arc<Serving>,
    pub(crate) dead: watch::Sender<bool>,
    pub(crate) readers: [JoinHandle<()>; 2],
    pub(crate) log: Arc<Log>,
    pub(crate) variant: Arc<Mutex<Option<String>>>,
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
    /// Watches until it is gone; says how it ended as soon as that is known.
    pub(crate) async fn watch(mut self, end: oneshot::Sender<WorkerEnd>) {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex, empty, sink};

    use super::*;
    use crate::engine::{Session, StartError};
    use crate::fake::hello;
    use crate::link::{Pipes, connect};
    use crate::protocol::Event;

    /// A process that hangs in the kernel: a kill reaches it late.
    struct Stuck {
        dies: Option<Duration>,
        killed: Option<Instant>,
    }

    impl Body for Stuck {
        async fn ended(&mut self) -> How {
            match (self.killed, self.dies) {
                (Some(killed), Some(after)) => sleep_until(killed + after).await,
                _ => std::future::pending().await,
            }
            How::Signal {
                number: 9,
                name: "SIGKILL".into(),
            }
        }

        fn kill(&mut self) {
            self.killed = Some(Instant::now());
        }
    }

    /// A session with such a process, which has said hello.
    async fn session(dies: Option<Duration>) -> Result<Session, StartError> {
        let (mut said, output) = duplex(64 << 10);
        let line = serde_json::to_string(&Event::Hello(hello())).unwrap();
        said.write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        // Its output stays open as long as this test lives.
        std::mem::forget(said);
        let body = Stuck { dies, killed: None };
        let pipes = Pipes {
            input: sink(),
            output,
            log: empty(),
            log_told: false,
        };
        connect(body, None, pipes, Patience::default(), None).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_hangs_in_the_kernel_is_not_waited_for() {
        let session = session(None).await.unwrap();
        let before = Instant::now();
        let end = session.stop().await;
        assert_eq!(end.how, How::Killed);
        let told = before.elapsed();
        let soon = Patience::default().stop + Duration::from_millis(950);
        assert!(told < soon, "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_in_a_kill_when_its_grace_is_over() {
        let session = session(Some(Duration::ZERO)).await.unwrap();
        let before = Instant::now();
        assert_eq!(session.stop().await.how, How::Killed);
        assert!(before.elapsed() >= Patience::default().stop);
    }
}
