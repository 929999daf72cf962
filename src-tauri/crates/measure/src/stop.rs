//! Stopping a run, from another task.

use tokio_util::sync::CancellationToken;

/// Two ways to stop a run; both keep what is done. Clones stop the same run.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    now: CancellationToken,
    after_test: CancellationToken,
}

impl Stop {
    /// Nothing is stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops now: the test that runs is cancelled, its samples stay.
    pub fn now(&self) {
        self.now.cancel();
    }

    /// Stops after the test that runs; where tests take turns, when each has had its turn.
    pub fn after_test(&self) {
        self.after_test.cancel();
    }

    /// Whether no other test is to begin.
    pub fn is_asked(&self) -> bool {
        self.is_now() || self.after_test.is_cancelled()
    }

    /// Whether everything is to stop now.
    pub fn is_now(&self) -> bool {
        self.now.is_cancelled()
    }

    /// Waits until a stop of either kind is asked for: for who has not begun a test.
    pub async fn asked(&self) {
        tokio::select! {
            biased;
            () = self.now.cancelled() => {}
            () = self.after_test.cancelled() => {}
        }
    }

    /// Waits until everything is to stop now. Nothing wakes up before.
    pub async fn asked_now(&self) {
        self.now.cancelled().await;
    }
}
