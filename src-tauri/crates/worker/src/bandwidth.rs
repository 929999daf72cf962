//! [`Request::ReadBandwidth`]: how fast all threads together read memory.
//!
//! Each thread reads a stretch of one buffer, pass after pass, as the engine's threads share the
//! rows of a matrix. A buffer that fits a cache is read from there: that is what its size asks.
//!
//! [`Request::ReadBandwidth`]: twospeed_engine::protocol::Request::ReadBandwidth

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use twospeed_engine::protocol::{BandwidthReading, Event, FailureCode, ReadBandwidth};

use crate::failure::Stopped;
use crate::settings::MAX_THREADS;
use crate::team::{self, Meeting};
use crate::{kernels, os, wire};

/// Bytes one timing covers at least: a short buffer is read several times for it, so that meeting
/// the other threads weighs nothing.
const PASS: usize = 64 << 20;
/// Timings for a median.
const FEWEST: usize = 5;
const WORD: usize = size_of::<u64>();

/// Reads each size asked for.
pub fn read_bandwidth(probe: &ReadBandwidth, request: u64) -> Result<Event, Stopped> {
    let threads = probe.n_threads as usize;
    if threads == 0 || threads > MAX_THREADS {
        return Err(Stopped::bad_setting(format!(
            "n_threads is {threads}: give 1 to {MAX_THREADS}."
        )));
    }
    let duration = Duration::from_nanos(probe.duration_ns);
    let mut readings = Vec::with_capacity(probe.buffer_bytes.len());
    for &bytes in &probe.buffer_bytes {
        readings.push(read(bytes, threads, duration, request)?);
    }
    Ok(Event::Bandwidth { readings })
}

fn read(
    bytes: u64,
    threads: usize,
    duration: Duration,
    request: u64,
) -> Result<BandwidthReading, Stopped> {
    let mut buffer = room(bytes)?;
    let words = buffer.len();
    if words < threads {
        return Err(Stopped::bad_setting(format!(
            "A buffer of {bytes} bytes is too small for {threads} threads."
        )));
    }
    let repeats = PASS.div_ceil(words * WORD);
    let shares: Vec<_> = buffer
        .chunks_mut(words.div_ceil(threads))
        .map(Mutex::new)
        .collect();
    let meeting = Meeting::new(threads);
    let over = AtomicBool::new(false);

    let rates = team::run(threads, |number| {
        let mut share = shares.get(number).and_then(|share| share.try_lock().ok());
        // Each thread writes its own stretch first, so that it lies in memory near its core and is
        // no shared page of zeros.
        let stretch = share.as_deref_mut().map_or(&[][..], |share| written(share));
        let mut rates = Vec::new();
        let begun = Instant::now();
        loop {
            meeting.meet();
            let start = Instant::now();
            for _ in 0..repeats {
                black_box(kernels::sum(black_box(stretch)));
            }
            meeting.meet();
            if number == 0 {
                let seconds = start.elapsed().as_secs_f64();
                rates.push((words * WORD * repeats) as f64 / seconds);
                let enough = rates.len() > FEWEST && begun.elapsed() >= duration;
                over.store(enough || wire::is_cancelled(request), Ordering::Release);
            }
            meeting.meet();
            if over.load(Ordering::Acquire) {
                return rates;
            }
        }
    })
    .map_err(|error| {
        Stopped::because(
            FailureCode::Internal,
            format!("{threads} threads could not be made: {error}."),
        )
    })?;
    if wire::is_cancelled(request) {
        return Err(Stopped::Cancelled);
    }
    Ok(BandwidthReading {
        buffer_bytes: (words * WORD) as u64,
        // The first pass brings the buffer into the caches it fits.
        bytes_per_second: median(&rates[1..]),
    })
}

/// Memory for `bytes`, not written yet; refused where it would push other memory out.
fn room(bytes: u64) -> Result<Vec<MaybeUninit<u64>>, Stopped> {
    let too_large = || {
        Stopped::bad_setting(format!(
            "A buffer of {bytes} bytes does not fit the free memory: ask for a smaller one."
        ))
    };
    if os::memory_available().is_some_and(|free| bytes > free - free / 8) {
        return Err(too_large());
    }
    let words = usize::try_from(bytes).map_err(|_| too_large())? / WORD;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(words).map_err(|_| too_large())?;
    buffer.resize_with(words, MaybeUninit::uninit);
    os::ask_for_large_pages(&mut buffer);
    Ok(buffer)
}

fn written(stretch: &mut [MaybeUninit<u64>]) -> &[u64] {
    for (index, word) in stretch.iter_mut().enumerate() {
        word.write(index as u64 | 1);
    }
    // SAFETY: every word was just written.
    unsafe { &*(std::ptr::from_ref(stretch) as *const [u64]) }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twospeed_engine::protocol::FailureCode;

    fn probe(buffer_bytes: Vec<u64>, n_threads: u32) -> Result<Event, Stopped> {
        let probe = ReadBandwidth {
            buffer_bytes,
            n_threads,
            duration_ns: 1_000_000,
        };
        // No request has this number, so none cancels it.
        read_bandwidth(&probe, u64::MAX)
    }

    #[test]
    fn each_size_has_its_reading_in_the_order_asked() {
        let Ok(Event::Bandwidth { readings }) = probe(vec![1 << 20, 4 << 20], 2) else {
            panic!("no reading");
        };
        let sizes: Vec<u64> = readings
            .iter()
            .map(|reading| reading.buffer_bytes)
            .collect();
        assert_eq!(sizes, [1 << 20, 4 << 20]);
        // Between the slowest memory there is and the fastest cache.
        assert!(
            readings
                .iter()
                .all(|reading| (1e8..1e13).contains(&reading.bytes_per_second))
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let code = |result: Result<Event, Stopped>| match result {
            Err(Stopped::Failed(failure)) => failure.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(probe(vec![0], 1)), FailureCode::BadSetting);
        assert_eq!(code(probe(vec![1 << 20], 0)), FailureCode::BadSetting);
        assert_eq!(code(probe(vec![u64::MAX], 1)), FailureCode::BadSetting);
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
