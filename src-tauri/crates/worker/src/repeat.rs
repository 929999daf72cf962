//! What every repeated test has in common: the warm-up, the wait for "go", the timed section.

use std::time::{Duration, Instant};

use twospeed_engine::protocol::{Event, Measured, Phase, Reading, Sample};

use crate::context::DecodeError;
use crate::failure::Stopped;
use crate::load::LoadedModel;
use crate::serve::{Answer, Worker};
use crate::{log, os};

/// How long the worker stays busy between "go" and the start of the clock: by then the app sleeps
/// again and so does the thread that read the message. Busy, so that the core does not clock down.
const SETTLE: Duration = Duration::from_millis(2);

/// A test that is repeated.
pub trait Test {
    /// Its name, for sentences: `pp512 @ d4096`.
    fn name(&self) -> String;

    /// Once, untimed, before the first repetition.
    fn warm_up(&mut self) -> Result<(), DecodeError>;

    /// Everything a repetition needs before its clock starts.
    fn prepare(&mut self, worker: &mut Worker) -> Result<(), DecodeError>;

    /// The timed section: nothing but what is measured, and nothing is said in it.
    fn run(&mut self) -> Result<Timed, DecodeError>;
}

/// What a timed section took.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Nanoseconds of the monotonic clock.
    pub ns: u64,
    /// What it consists of, where it is not one speed.
    pub reading: Option<Reading>,
}

/// Refuses to repeat nothing.
pub fn check(repetitions: u32) -> Result<(), Stopped> {
    if repetitions > 0 {
        return Ok(());
    }
    Err(Stopped::bad_setting(
        "0 repetitions measure nothing: ask for at least 1.",
    ))
}

/// Warms up where asked to, repeats the test, and says a sample after each repetition, until there
/// are as many as were asked for or the app has enough.
pub fn repeat(
    worker: &mut Worker,
    loaded: &LoadedModel,
    test: &mut impl Test,
    repetitions: u32,
    warmup: bool,
) -> Result<Event, Stopped> {
    let name = test.name();
    let failed = |error| loaded.stopped(&name, error);
    if warmup {
        worker.say_phase(Phase::Warmup);
        test.warm_up().map_err(failed)?;
    }
    let mut done = 0;
    while done < repetitions {
        test.prepare(worker).map_err(failed)?;
        worker.say_phase(Phase::Repetition { number: done + 1 });
        match worker.wait_for_go()? {
            Answer::Go => {}
            Answer::Enough => break,
        }
        let sample = sample(test, done).map_err(failed)?;
        worker.wire.say(&Event::Sample(sample));
        done += 1;
    }
    Ok(Event::Measured(Measured {
        repetitions: done,
        peak_rss_bytes: os::peak_rss_bytes(),
    }))
}

fn sample(test: &mut impl Test, index: u32) -> Result<Sample, DecodeError> {
    log::hush();
    let settle = Instant::now();
    while settle.elapsed() < SETTLE {
        std::hint::spin_loop();
    }
    let before = os::usage();
    let result = test.run();
    let during = os::usage().since(before);
    log::release();
    result.map(|timed| Sample {
        index,
        ns: timed.ns,
        involuntary_switches: during.involuntary_switches,
        major_faults: during.major_faults,
        reading: timed.reading,
    })
}

/// Nanoseconds since `start`.
pub fn ns_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
