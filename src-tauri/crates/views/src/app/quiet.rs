//! Quiet: while a section is timed, nothing of ours wakes up.
//!
//! The measuring half calls [`Quiet::begin`] before a timed section and drops the guard after it.
//! Background work makes way before each piece and sleeps meanwhile; events wait in
//! the hub and go out when the guard is dropped.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::desk::locked;

/// How long a piece of background work that has begun is waited for: a header takes
/// milliseconds, a disk that hangs must not hold a measurement up.
const PATIENCE: Duration = Duration::from_secs(2);

type Ended = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    timed: usize,
}

/// Whether something is being timed.
pub struct Quiet {
    state: Mutex<State>,
    ended: Condvar,
    /// Pieces of background work that have begun.
    working: watch::Sender<usize>,
    then: Mutex<Option<Ended>>,
}

impl Default for Quiet {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            ended: Condvar::new(),
            working: watch::Sender::new(0),
            then: Mutex::default(),
        }
    }
}

impl Quiet {
    /// Calls `then` whenever the last timed section has ended.
    pub(crate) fn on_end(&self, then: impl Fn() + Send + Sync + 'static) {
        *locked(&self.then) = Some(Box::new(then));
    }

    /// A timed section is about to begin; it lasts until the guard is dropped.
    pub fn begin(self: &Arc<Self>) -> Timed {
        locked(&self.state).timed += 1;
        Timed(self.clone())
    }

    /// Waits until background work that had begun stands still. After this and [`Quiet::begin`]
    /// nothing of the app wakes up.
    pub async fn settled(&self) {
        let mut working = self.working.subscribe();
        // Whether it took too long does not matter: a measurement does not wait for a dead disk.
        let _ = tokio::time::timeout(PATIENCE, working.wait_for(|working| *working == 0)).await;
    }

    /// As [`Quiet::settled`], for a thread that may block.
    pub(crate) fn settle(&self) {
        let until = Instant::now() + PATIENCE;
        while *self.working.borrow() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Something is being timed now.
    pub fn is_timed(&self) -> bool {
        locked(&self.state).timed > 0
    }

    /// Sleeps while something is timed. Blocks: for threads that may.
    fn wait(&self) {
        let state = locked(&self.state);
        drop(
            self.ended
                .wait_while(state, |state| state.timed > 0)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Background work that makes way for timed sections.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        let work = Work(self.clone());
        work.begin_piece();
        work
    }
}

/// A timed section.
pub struct Timed(Arc<Quiet>);

impl Drop for Timed {
    fn drop(&mut self) {
        let last = {
            let mut state = locked(&self.0.state);
            state.timed -= 1;
            state.timed == 0
        };
        if last {
            self.0.ended.notify_all();
            if let Some(then) = &*locked(&self.0.then) {
                then();
            }
        }
    }
}

/// Background work, in pieces.
pub(crate) struct Work(Arc<Quiet>);

impl Work {
    /// Between two pieces: sleeps while something is timed.
    pub(crate) fn make_way(&self) {
        if self.0.is_timed() {
            self.end_piece();
            self.begin_piece();
        }
    }

    fn begin_piece(&self) {
        loop {
            self.0.wait();
            self.0.working.send_modify(|working| *working += 1);
            // A section that began in between does not see this piece unless it looks now.
            if !self.0.is_timed() {
                return;
            }
            self.end_piece();
        }
    }

    fn end_piece(&self) {
        self.0.working.send_modify(|working| *working -= 1);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.end_piece();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn background_work_stands_still_while_something_is_timed() {
        let quiet = Arc::new(Quiet::default());
        let (said, heard) = std::sync::mpsc::channel();
        let worker = {
            let quiet = quiet.clone();
            std::thread::spawn(move || {
                let work = quiet.work();
                said.send("first").unwrap();
                while !quiet.is_timed() {
                    std::thread::yield_now();
                }
                work.make_way();
                assert!(!quiet.is_timed(), "woke up inside a timed section");
                said.send("second").unwrap();
            })
        };
        assert_eq!(heard.recv().unwrap(), "first");
        let timed = quiet.begin();
        quiet.settled().await;
        assert!(heard.try_recv().is_err());
        drop(timed);
        assert_eq!(heard.recv().unwrap(), "second");
        worker.join().unwrap();
        assert_eq!(*quiet.working.borrow(), 0);
    }
}
