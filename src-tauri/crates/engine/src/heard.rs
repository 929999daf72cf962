//! What a line of the worker comes to: a hello, an event of the request that is served, or noise.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use crate::end::Doing;
use crate::engine::StartError;
use crate::lines::{Line, Log};
use crate::link::Serving;
use crate::protocol::{Event, Hello, PROTOCOL};
use crate::supervise::Note;

/// Where the lines of a worker go.
pub(crate) struct Heard {
    serving: Arc<Serving>,
    log: Arc<Log>,
    variant: Arc<Mutex<Option<String>>>,
    hello: Option<oneshot::Sender<Result<Hello, StartError>>>,
    events: mpsc::Sender<Event>,
    notes: mpsc::UnboundedSender<Note>,
}

/// What a hello has in every version of the protocol.
#[derive(Deserialize)]
struct AnyHello {
    event: String,
    protocol: u32,
}

impl Heard {
    pub(crate) fn new(
        serving: Arc<Serving>,
        log: Arc<Log>,
        variant: Arc<Mutex<Option<String>>>,
        hello: oneshot::Sender<Result<Hello, StartError>>,
        events: mpsc::Sender<Event>,
        notes: mpsc::UnboundedSender<Note>,
    ) -> Self {
        Self {
            serving,
            log,
            variant,
            hello: Some(hello),
            events,
            notes,
        }
    }

    /// Takes a line; waits only where the listener is a thousand events behind.
    pub(crate) async fn line(&mut self, line: Line) {
        let message = !line.cut && line.bytes.first() == Some(&b'{');
        if message && self.hello.is_some() && self.greeted(&line.bytes) {
            return;
        }
        match serde_json::from_slice::<Event>(&line.bytes) {
            Ok(event) if message && self.is_awaited(&event) => {
                if event.is_closing() {
                    self.serving.free();
                    let _ = self.notes.send(Note::Closed);
                }
                // Nobody may listen any more: then a stop or a kill is on its way.
                let _ = self.events.send(event).await;
            }
            _ => self.log.push(&line),
        }
    }

    /// Whether the line was a hello, of this version or another.
    fn greeted(&mut self, bytes: &[u8]) -> bool {
        let Ok(any) = serde_json::from_slice::<AnyHello>(bytes) else {
            return false;
        };
        if any.event != "hello" {
            return false;
        }
        let greeting = if any.protocol != PROTOCOL {
            Err(StartError::Version {
                theirs: any.protocol,
            })
        } else {
            match serde_json::from_slice(bytes) {
                Ok(Event::Hello(hello)) => {
                    *self.variant.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(hello.variant.name.clone());
                    self.serving.free();
                    Ok(hello)
                }
                Ok(_) => return false,
                Err(fault) => Err(StartError::BadHello {
                    fault: fault.to_string(),
                }),
            }
        };
        if let Some(hello) = self.hello.take() {
            let _ = hello.send(greeting);
        }
        true
    }

    /// Whether a request is served that this event can belong to.
    fn is_awaited(&self, event: &Event) -> bool {
        !matches!(self.serving.doing(), Doing::Starting | Doing::Waiting)
            && !matches!(event, Event::Hello(_))
    }
}
