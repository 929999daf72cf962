//! The steps of the newest run, kept from its start, and those who follow them.
//!
//! Steps go out at the moments the run says, and at no other: a step that nobody needs to see
//! before the next one waits for it, and inside a timed section nothing is sent at all, whoever
//! begins to follow meanwhile.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::Tell;
use crate::desk::locked;
use crate::measure::RunEvent;

/// What a web view goes on doing behind a picture: WebKitGTK follows the screen's refresh for some
/// 0.4 s, and its allocator returns memory in steps of an eighth of a second for a whole one. A
/// section that is timed meanwhile would be timed beside that.
pub(super) const STILL: Duration = Duration::from_millis(1000);

/// Between two messages of a kind that may be left out.
const PACE: Duration = Duration::from_millis(100);

/// Pages that were loaded anew follow anew and their old selves say no farewell.
const MOST_FOLLOWERS: usize = 4;

/// How a step is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Now.
    Now,
    /// With the next one that goes out.
    WithNext,
    /// Now, unless something was sent a moment ago; left out where another step follows before.
    Loose,
    /// With the next one; left out of what is told, since its time is over by then.
    LeftOut,
}

/// The steps of a run.
#[derive(Default)]
pub(super) struct RunLog {
    inner: Mutex<Inner>,
    ended: watch::Sender<bool>,
}

#[derive(Default)]
struct Inner {
    steps: Vec<(RunEvent, Pass)>,
    /// Steps before this one may go out.
    released: usize,
    /// A section is timed.
    still: bool,
    followers: Vec<Follower>,
    next_id: u64,
}

struct Follower {
    id: u64,
    tell: Tell<RunEvent>,
    /// The first step it has not been told.
    next: usize,
    told_at: Option<Instant>,
    /// Dropped with the follower: its wait then ends.
    _let_go: oneshot::Sender<()>,
}

impl RunLog {
    /// Keeps a step and passes it on.
    pub(super) fn push(&self, step: RunEvent, pass: Pass) {
        let mut inner = locked(&self.inner);
        inner.steps.push((step, pass));
        if matches!(pass, Pass::Now | Pass::Loose) {
            inner.released = inner.steps.len();
        }
        inner.pass_on();
    }

    /// The last step: everybody is told all that is left.
    pub(super) fn end(&self, step: RunEvent) {
        self.set_still(false);
        self.push(step, Pass::Now);
        self.ended.send_replace(true);
    }

    /// Nothing is sent from now on, or something may be again.
    pub(super) fn set_still(&self, still: bool) {
        locked(&self.inner).still = still;
    }

    /// Somebody follows.
    pub(super) fn is_followed(&self) -> bool {
        !locked(&self.inner).followers.is_empty()
    }

    /// Tells the steps from the first to the last, then ends; also when the future is dropped.
    pub(super) async fn follow(&self, tell: Tell<RunEvent>) {
        let (let_go, until) = oneshot::channel();
        let mut ended = self.ended.subscribe();
        let id = {
            let mut inner = locked(&self.inner);
            inner.next_id += 1;
            let id = inner.next_id;
            inner.followers.push(Follower {
                id,
                tell,
                next: 0,
                told_at: None,
                _let_go: let_go,
            });
            if inner.followers.len() > MOST_FOLLOWERS {
                inner.followers.remove(0);
            }
            inner.pass_on();
            id
        };
        let _leave = Leave { log: self, id };
        tokio::select! {
            _ = until => {}
            _ = ended.wait_for(|ended| *ended) => {}
        }
    }
}

impl Inner {
    /// Under the lock, so that steps arrive in order; a follower only puts them on a wire.
    fn pass_on(&mut self) {
        if self.still {
            return;
        }
        let Self {
            steps, released, ..
        } = self;
        for follower in &mut self.followers {
            while follower.next < *released {
                let (step, pass) = &steps[follower.next];
                let is_last = follower.next + 1 == *released;
                match pass {
                    Pass::Loose if !is_last => {}
                    Pass::Loose if follower.told_at.is_some_and(|at| at.elapsed() < PACE) => break,
                    Pass::LeftOut => {}
                    _ => {
                        (follower.tell)(step.clone());
                        follower.told_at = Some(Instant::now());
                    }
                }
                follower.next += 1;
            }
        }
    }
}

struct Leave<'a> {
    log: &'a RunLog,
    id: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        locked(&self.log.inner)
            .followers
            .retain(|follower| follower.id != self.id);
    }
}

/// Pages say here that they have painted.
#[derive(Default)]
pub(super) struct Painting {
    painted: Mutex<u32>,
    said: Condvar,
    given: Mutex<u32>,
}

impl Painting {
    /// A ticket that no page has seen.
    pub(super) fn ticket(&self) -> u32 {
        let mut given = locked(&self.given);
        *given = given.wrapping_add(1);
        *given
    }

    /// A page has painted what came with the ticket.
    pub(super) fn painted(&self, ticket: u32) {
        // A ticket that was never given comes of no picture.
        if ticket > *locked(&self.given) {
            return;
        }
        let mut painted = locked(&self.painted);
        *painted = ticket.max(*painted);
        self.said.notify_all();
    }

    /// Blocks until a page has painted and its web view has come to rest, but does not wait for
    /// longer than `patience` for the painting; whether it has painted.
    pub(super) fn wait(&self, ticket: u32, patience: Duration) -> bool {
        let painted = locked(&self.painted);
        let waited = self
            .said
            .wait_timeout_while(painted, patience, |painted| *painted < ticket);
        let painted = !waited
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .1
            .timed_out();
        if painted {
            std::thread::sleep(STILL);
        }
        painted
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::measure::{Doing, RunStep};

    fn step(position: u32, what: Doing) -> RunEvent {
        RunEvent {
            at_s: 0.0,
            left_s: None,
            step: RunStep::Doing { position, what },
        }
    }

    fn loading(fraction: f64) -> RunEvent {
        step(0, Doing::Loading { fraction })
    }

    fn ear() -> (Tell<RunEvent>, Arc<Mutex<Vec<RunEvent>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        (Arc::new(move |event| locked(&ear).push(event)), heard)
    }

    async fn following(log: &Arc<RunLog>, tell: Tell<RunEvent>) -> tokio::task::JoinHandle<()> {
        let before = locked(&log.inner).next_id;
        let task = tokio::spawn({
            let log = log.clone();
            async move { log.follow(tell).await }
        });
        while locked(&log.inner).next_id == before {
            tokio::task::yield_now().await;
        }
        task
    }

    #[tokio::test]
    async fn of_many_loading_steps_the_first_and_the_last_arrive_always() {
        let log = Arc::new(RunLog::default());
        let (tell, heard) = ear();
        let task = following(&log, tell).await;
        log.push(loading(0.0), Pass::Now);
        for part in 1..50 {
            log.push(loading(f64::from(part) / 50.0), Pass::Loose);
        }
        log.push(loading(1.0), Pass::WithNext);
        assert_eq!(locked(&heard).len(), 1, "less than 0.1 s have passed");
        log.push(step(0, Doing::Warmup), Pass::Now);
        assert_eq!(
            *locked(&heard),
            [loading(0.0), loading(1.0), step(0, Doing::Warmup)]
        );
        std::thread::sleep(PACE);
        log.push(loading(0.5), Pass::Loose);
        assert_eq!(locked(&heard).len(), 4, "nothing was sent for 0.1 s");
        task.abort();
    }

    #[tokio::test]
    async fn who_comes_inside_a_timed_section_is_told_after_it() {
        let log = Arc::new(RunLog::default());
        log.push(loading(0.0), Pass::Now);
        log.set_still(true);
        let (tell, heard) = ear();
        let task = following(&log, tell).await;
        assert!(locked(&heard).is_empty());
        log.set_still(false);
        log.push(step(0, Doing::Warmup), Pass::Now);
        assert_eq!(locked(&heard).len(), 2);
        let (tell, second) = ear();
        let other = following(&log, tell).await;
        assert_eq!(*locked(&second), *locked(&heard), "from the start");
        log.end(step(1, Doing::Warmup));
        task.await.unwrap();
        other.await.unwrap();
        assert_eq!(locked(&second).len(), 3);
        let (tell, late) = ear();
        log.follow(tell).await;
        assert_eq!(locked(&late).len(), 3, "a run that is over is told too");
        assert!(!log.is_followed());
    }

    #[test]
    fn a_picture_is_waited_for_but_not_for_long() {
        let painting = Arc::new(Painting::default());
        let ticket = painting.ticket();
        assert!(!painting.wait(ticket, Duration::from_millis(1)));
        painting.painted(ticket + 5);
        assert!(
            !painting.wait(ticket, Duration::ZERO),
            "a ticket that was never given says nothing"
        );
        let page = painting.clone();
        let paints = std::thread::spawn(move || page.painted(ticket));
        assert!(painting.wait(ticket, Duration::from_secs(10)));
        paints.join().unwrap();
    }
}
