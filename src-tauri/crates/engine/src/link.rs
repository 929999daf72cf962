//! The wire between a session and its worker.

use std::sync::{Mutex, PoisonError};

use crate::end::Doing;

/// What a session asks of its supervisor. A closed channel says: kill it, nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// A cancel was sent: give it its grace, then kill.
    Cancel,
    /// The input was closed: give it its grace to leave, then kill.
    Stop,
}

/// What a worker serves right now, known to both ends of the wire.
#[derive(Debug)]
pub(crate) struct Serving(Mutex<Doing>);

impl Serving {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Doing::Starting))
    }

    pub(crate) fn doing(&self) -> Doing {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the worker for a request; `false` when it serves another.
    pub(crate) fn begin(&self, doing: Doing) -> bool {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = *now == Doing::Waiting;
        if free {
            *now = doing;
        }
        free
    }

    /// The worker said hello, or closed its request.
    pub(crate) fn wait(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Doing::Waiting;
    }
}
