//! [`Request::Anchor`]: a fixed short piece of work whose time tells whether the machine is still
//! the same.
//!
//! The work never changes, so its time does only when the clock, the memory or other programs do.
//! It has the two halves of what the engine does: arithmetic in registers, and reading memory that
//! lies beyond the caches of a core. About 0.3 s on the reference machine.
//!
//! [`Request::Anchor`]: twospeed_engine::protocol::Request::Anchor

use std::hint::black_box;
use std::time::Instant;

use twospeed_engine::protocol::{AnchorRequest, Event, FailureCode};

use crate::failure::Stopped;
use crate::kernels;
use crate::settings::MAX_THREADS;
use crate::team::{self, Meeting};

/// Rounds of multiplying and adding, by each thread.
const ROUNDS: u32 = 112_000_000;
/// Words each thread reads, 16 MiB.
const WORDS: usize = 2 << 20;
/// How often it reads them.
const PASSES: usize = 360;

/// Runs the fixed work on each thread and gives the time until the last is done.
pub fn anchor(ask: &AnchorRequest) -> Result<Event, Stopped> {
    let threads = ask.n_threads as usize;
    if threads == 0 || threads > MAX_THREADS {
        return Err(Stopped::bad_setting(format!(
            "n_threads is {threads}: give 1 to {MAX_THREADS}."
        )));
    }
    let meeting = Meeting::new(threads);
    let ns = team::run(threads, |_| {
        let memory: Vec<u64> = (0..WORDS as u64).collect();
        let mut values = [0.5_f32; kernels::VALUES];
        black_box(kernels::sum(&memory));
        meeting.meet();
        let start = Instant::now();
        kernels::multiply_add(black_box(&mut values), ROUNDS);
        black_box(values);
        for _ in 0..PASSES {
            black_box(kernels::sum(black_box(&memory)));
        }
        meeting.meet();
        start.elapsed().as_nanos() as u64
    })
    .map_err(|error| {
        Stopped::because(
            FailureCode::Internal,
            format!("{threads} threads could not be made: {error}."),
        )
    })?;
    Ok(Event::Anchor { ns })
}
