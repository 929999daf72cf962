//! Patience: another try after a break, and a wait while something else has to come first.

use std::time::{Duration, Instant};

use super::GoOn;
use super::error::DownloadError;
use super::wire::{Fault, LOOK};

/// Tries without any progress between them.
const TRIES: u32 = 5;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Waits as long as it is not to go on now.
pub(super) fn stand_by(
    go_on: &dyn Fn() -> GoOn,
    paused: &mut dyn FnMut(),
) -> Result<(), DownloadError> {
    loop {
        match go_on() {
            GoOn::Yes => return Ok(()),
            GoOn::Pause => paused(),
            GoOn::No => return Err(DownloadError::Cancelled),
        }
        std::thread::sleep(LOOK);
    }
}

/// Does something until it works, a few times; `pause` before the second time, doubling.
pub(super) fn patiently<T>(
    pause: Duration,
    go_on: &dyn Fn() -> GoOn,
    mut attempt: impl FnMut(&dyn Fn() -> GoOn) -> Result<T, Fault>,
) -> Result<T, DownloadError> {
    let mut tries = Tries::new(pause);
    loop {
        match attempt(go_on) {
            Ok(done) => return Ok(done),
            Err(Fault::Final(error)) => return Err(error),
            Err(Fault::Passing { error, after }) => tries.wait(error, after, go_on)?,
        }
    }
}

/// Counts tries that brought nothing.
pub(super) struct Tries {
    pause: Duration,
    made: u32,
}

impl Tries {
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, made: 0 }
    }

    /// Something came: the next fault is the first again.
    pub(super) fn reset(&mut self) {
        self.made = 0;
    }

    /// Waits before the next try; the error when there is none.
    pub(super) fn wait(
        &mut self,
        error: DownloadError,
        after: Option<Duration>,
        go_on: &dyn Fn() -> GoOn,
    ) -> Result<(), DownloadError> {
        self.made += 1;
        if self.made >= TRIES {
            return Err(error);
        }
        let pause = self.pause * 2u32.pow(self.made - 1);
        let until = Instant::now() + pause.max(after.unwrap_or_default()).min(LONGEST_PAUSE);
        while Instant::now() < until {
            if go_on() == GoOn::No {
                return Err(DownloadError::Cancelled);
            }
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}
