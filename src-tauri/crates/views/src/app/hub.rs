//! Events on their way to whoever follows the app.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::Tell;
use super::quiet::Quiet;
use crate::desk::locked;
use crate::frame::AppEvent;

/// A page that was loaded anew follows anew and its old self says no farewell: the oldest of more
/// than this many are let go.
const MOST_FOLLOWERS: usize = 4;

/// Events kept for a time without followers or inside a timed section. Those that say "ask again"
/// or tell of one job are kept once, so what grows is only notices.
const MOST_HELD: usize = 200;

/// Hands events to followers, never inside a timed section.
pub(crate) struct Hub {
    quiet: Arc<Quiet>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    followers: VecDeque<Follower>,
    held: VecDeque<AppEvent>,
}

struct Follower {
    id: u64,
    tell: Tell<AppEvent>,
    /// Dropped with the follower: its wait then ends.
    _let_go: oneshot::Sender<()>,
}

impl Hub {
    pub(crate) fn new(quiet: Arc<Quiet>) -> Arc<Self> {
        let hub = Arc::new(Self {
            quiet: quiet.clone(),
            inner: Mutex::default(),
        });
        let flush = Arc::downgrade(&hub);
        quiet.on_end(move || {
            if let Some(hub) = flush.upgrade() {
                hub.flush();
            }
        });
        hub
    }

    /// Tells everybody, or keeps it until there is somebody and nothing is timed.
    pub(crate) fn tell(&self, event: AppEvent) {
        let mut inner = locked(&self.inner);
        hold(&mut inner.held, event);
        self.pass_on(inner);
    }

    /// Follows until let go, or until the future is dropped.
    pub(crate) async fn follow(self: &Arc<Self>, tell: Tell<AppEvent>) {
        let (let_go, until) = oneshot::channel();
        let id = {
            let mut inner = locked(&self.inner);
            inner.next += 1;
            let id = inner.next;
            inner.followers.push_back(Follower {
                id,
                tell,
                _let_go: let_go,
            });
            while inner.followers.len() > MOST_FOLLOWERS {
                inner.followers.pop_front();
            }
            self.pass_on(inner);
            id
        };
        let _leave = Leave {
            hub: self.clone(),
            id,
        };
        // It only ever ends by the other half going away.
        let _ = until.await;
    }

    fn flush(&self) {
        self.pass_on(locked(&self.inner));
    }

    /// Under the lock, so that events arrive in order; a follower only puts them on a wire.
    fn pass_on(&self, mut inner: std::sync::MutexGuard<'_, Inner>) {
        if inner.followers.is_empty() || self.quiet.is_timed() {
            return;
        }
        let events: Vec<_> = inner.held.drain(..).collect();
        for event in events {
            for follower in &inner.followers {
                (follower.tell)(event.clone());
            }
        }
    }
}

/// Keeps an event; what it makes stale goes.
fn hold(held: &mut VecDeque<AppEvent>, event: AppEvent) {
    held.retain(|old| !replaces(&event, old));
    held.push_back(event);
    while held.len() > MOST_HELD {
        held.pop_front();
    }
}

/// Whether who hears `new` need not hear `old` before it.
fn replaces(new: &AppEvent, old: &AppEvent) -> bool {
    match (new, old) {
        (AppEvent::ModelsChanged, AppEvent::ModelsChanged)
        | (AppEvent::ResultsChanged, AppEvent::ResultsChanged)
        | (AppEvent::DropHover { .. }, AppEvent::DropHover { .. })
        | (AppEvent::Machine { .. }, AppEvent::Machine { .. }) => true,
        (AppEvent::Job { job: new }, AppEvent::Job { job: old }) => new.id == old.id,
        _ => false,
    }
}

struct Leave {
    hub: Arc<Hub>,
    id: u64,
}

impl Drop for Leave {
    fn drop(&mut self) {
        locked(&self.hub.inner)
            .followers
            .retain(|follower| follower.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ear() -> (Tell<AppEvent>, Arc<Mutex<Vec<AppEvent>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        (Arc::new(move |event| locked(&ear).push(event)), heard)
    }

    fn notice(text: &str) -> AppEvent {
        AppEvent::Notice {
            message: text.into(),
            failed: false,
        }
    }

    #[tokio::test]
    async fn nothing_is_said_inside_a_timed_section_and_all_of_it_after() {
        let quiet = Arc::new(Quiet::default());
        let hub = Hub::new(quiet.clone());
        let (tell, heard) = ear();
        let follower = tokio::spawn({
            let hub = hub.clone();
            async move { hub.follow(tell).await }
        });
        tokio::task::yield_now().await;
        let timed = quiet.begin();
        hub.tell(AppEvent::ModelsChanged);
        hub.tell(notice("a"));
        hub.tell(AppEvent::ModelsChanged);
        assert!(locked(&heard).is_empty());
        drop(timed);
        assert_eq!(*locked(&heard), [notice("a"), AppEvent::ModelsChanged]);
        follower.abort();
    }

    #[tokio::test]
    async fn what_happens_before_anybody_follows_is_told_to_the_first() {
        let hub = Hub::new(Arc::default());
        hub.tell(notice("early"));
        let (tell, heard) = ear();
        let following = hub.follow(tell);
        tokio::pin!(following);
        assert!(futures_poll(following.as_mut()).await);
        assert_eq!(*locked(&heard), [notice("early")]);
    }

    /// Polls once; true while it goes on.
    async fn futures_poll(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
        })
        .await
    }

    #[tokio::test]
    async fn pages_that_were_loaded_anew_do_not_pile_up() {
        let hub = Hub::new(Arc::default());
        let mut tasks = Vec::new();
        for _ in 0..10 {
            let hub = hub.clone();
            let (tell, _) = ear();
            tasks.push(tokio::spawn(async move { hub.follow(tell).await }));
            tokio::task::yield_now().await;
        }
        assert_eq!(locked(&hub.inner).followers.len(), MOST_FOLLOWERS);
        tasks.remove(0).await.unwrap();
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
        assert!(locked(&hub.inner).followers.is_empty());
    }
}
