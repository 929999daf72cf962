//! Threads of our own that start and finish together: for the bandwidth probe and the anchor.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A meeting point for a fixed number of threads, which wait for each other busily: to be woken by
/// the kernel takes longer than what is measured between two meetings may differ by.
#[derive(Debug)]
pub struct Meeting {
    members: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

impl Meeting {
    /// A meeting of `members` threads.
    pub fn new(members: usize) -> Self {
        Self {
            members,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
        }
    }

    /// Waits until every member is here.
    pub fn meet(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
            return;
        }
        let mut turns = 0_u32;
        while self.round.load(Ordering::Acquire) == round {
            turns += 1;
            // More threads than cores: the one that is waited for needs this core.
            if turns.is_multiple_of(10_000) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// Runs `work` on `threads` threads, the caller's own among them, each with its number; returns what
/// the caller's (number 0) gave.
///
/// Errors: the system's, when a thread cannot be made; then no work has begun.
pub fn run<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> std::io::Result<T> {
    let complete = OnceLock::new();
    let (complete, work) = (&complete, &work);
    std::thread::scope(|scope| {
        for number in 1..threads {
            let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                if *complete.wait() {
                    work(number);
                }
            });
            if let Err(error) = spawned {
                // Nothing else sets it: the ones made so far go home.
                let _ = complete.set(false);
                return Err(error);
            }
        }
        let _ = complete.set(true);
        Ok(work(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_on_before_everybody_has_come() {
        const THREADS: usize = 4;
        let meeting = Meeting::new(THREADS);
        let came = AtomicUsize::new(0);
        let seen = run(THREADS, |_| {
            let mut seen = Vec::new();
            for _ in 0..50 {
                came.fetch_add(1, Ordering::Relaxed);
                meeting.meet();
                seen.push(came.load(Ordering::Relaxed));
                meeting.meet();
            }
            seen
        })
        .unwrap();
        let expected: Vec<usize> = (1..=50).map(|round| round * THREADS).collect();
        assert_eq!(seen, expected);
    }
}
