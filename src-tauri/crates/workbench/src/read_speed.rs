//! How fast this machine reads memory: measured in the worker, kept in the history.

use jiff::Timestamp;
use twospeed_engine::protocol::{Event, ReadBandwidth, Request};
use twospeed_engine::{Engine, Incoming, Start};
use twospeed_estimate::{Bandwidth, BandwidthFrom, BandwidthReading, Bytes, BytesPerSecond};
use twospeed_history::{History, HistoryError, ReadReading};
use twospeed_measure::machine::{Machine, Probe};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::platform::{self, Host};
use twospeed_measure::{Lease, Plan};

use crate::Problem;

/// Time for each buffer size: long enough for many passes, short enough that nobody waits.
const DURATION_NS: u64 = 500_000_000;

/// A buffer that no cache holds: this many times the last-level cache, within these bounds.
const BEYOND: u64 = 4;
const LEAST_BEYOND: u64 = 512 << 20;
const MOST_BEYOND: u64 = 4 << 30;

/// Sizes nearer to each other than this are one.
const SAME_SIZE: f64 = 1.1;

/// What is known of a machine's read speed.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadSpeed {
    machine: Machine,
    readings: Vec<ReadReading>,
}

impl ReadSpeed {
    /// What the history has of this machine, the newest reading of each size.
    pub async fn load(history: &History, machine: &Machine) -> Result<Self, HistoryError> {
        Ok(Self {
            machine: machine.clone(),
            readings: history.read_speeds(&machine.id).await?,
        })
    }

    /// Where an estimate on this machine takes its bandwidth from.
    pub fn bandwidth(&self) -> BandwidthFrom {
        if self.readings.is_empty() {
            return BandwidthFrom::Unknown;
        }
        BandwidthFrom::Probe {
            readings: self.in_its_words(),
            last_level_cache: self.last_level_cache(),
        }
    }

    /// The bandwidth that stands for reading `working_set` bytes once per token; `None` when it was
    /// never measured here.
    pub fn for_working_set(&self, working_set: Bytes) -> Option<Bandwidth> {
        Bandwidth::measured(&self.in_its_words(), working_set, self.last_level_cache())
    }

    /// The readings in the estimator's words.
    fn in_its_words(&self) -> Vec<BandwidthReading> {
        self.readings
            .iter()
            .map(|reading| BandwidthReading {
                buffer: Bytes(reading.buffer_bytes),
                rate: BytesPerSecond(reading.bytes_per_second),
            })
            .collect()
    }

    fn last_level_cache(&self) -> Option<Bytes> {
        self.machine.last_level_cache_bytes.map(Bytes)
    }

    /// What decode of a model cannot exceed on a machine: read speed / weights read for a token.
    ///
    /// `None` on any other machine than the one that was measured, and for a model whose weights
    /// per token are not known.
    pub fn decode_ceiling(&self, machine: &Machine, model: &MeasuredModel) -> Option<f64> {
        if machine.id != self.machine.id {
            return None;
        }
        let weights = Bytes(model.weight_bytes_per_token?);
        let bandwidth = self.for_working_set(weights)?;
        Some(bandwidth.rate.reads_of(weights)?.0)
    }

    /// Where the ceilings of these models come from, a statement; `None` when none was measured.
    ///
    /// Small models are read from caches and large ones from memory, so one figure may stand on
    /// several speeds.
    pub fn source(&self, models: &[&MeasuredModel]) -> Option<String> {
        let rates = || {
            models
                .iter()
                .filter_map(|model| model.weight_bytes_per_token)
                .filter_map(|weights| self.for_working_set(Bytes(weights)))
                .map(|bandwidth| bandwidth.rate)
        };
        let (slowest, fastest) = (rates().min()?, rates().max()?);
        let speed = match (slowest.to_string(), fastest.to_string()) {
            (slow, fast) if slow == fast => slow,
            (slow, fast) => format!("{slow} to {fast}, by their size"),
        };
        Some(format!(
            "Ceiling: weights of a token read at the speed measured here, {speed}."
        ))
    }

    /// Every reading, by size.
    pub fn readings(&self) -> &[ReadReading] {
        &self.readings
    }
}

/// Buffer sizes to read that are not known yet: one for each working set, and one far beyond the
/// last-level cache.
pub fn missing_sizes(
    known: &ReadSpeed,
    working_sets: &[Bytes],
    available: Option<u64>,
) -> Vec<u64> {
    let beyond = beyond_the_cache(&known.machine, available);
    let mut have: Vec<u64> = known
        .readings
        .iter()
        .map(|reading| reading.buffer_bytes)
        .collect();
    let mut missing = Vec::new();
    let sets = working_sets.iter().map(|set| set.0.min(beyond));
    for size in sets.chain([beyond]).filter(|size| *size > 0) {
        if !have.iter().any(|other| alike(*other, size)) {
            have.push(size);
            missing.push(size);
        }
    }
    missing
}

/// Every size that is known, to read them anew, and the one far beyond the last-level cache.
pub fn all_sizes(known: &ReadSpeed, available: Option<u64>) -> Vec<u64> {
    let beyond = beyond_the_cache(&known.machine, available);
    let mut sizes: Vec<u64> = known
        .readings
        .iter()
        .map(|reading| reading.buffer_bytes)
        .collect();
    if !sizes.iter().any(|size| alike(*size, beyond)) {
        sizes.push(beyond);
    }
    sizes
}

/// Sizes that a calibration reads: a quarter of the last-level cache, all of it, twice and four times
/// as much, and every size that is known, to read them anew; the smallest first.
pub(crate) fn calibration_sizes(known: &ReadSpeed, available: Option<u64>) -> Vec<u64> {
    let beyond = beyond_the_cache(&known.machine, available);
    let mut sizes = all_sizes(known, available);
    if let Some(cache) = known.machine.last_level_cache_bytes {
        for size in [cache / 4, cache, cache.saturating_mul(2)] {
            let is_new = !sizes.iter().any(|other| alike(*other, size));
            if is_new && (1..=beyond).contains(&size) {
                sizes.push(size);
            }
        }
    }
    // What was read once may be more than is free now.
    sizes.retain(|size| available.is_none_or(|free| *size <= free / 2));
    sizes.sort_unstable();
    sizes
}

/// A buffer that no cache holds, within the memory there is.
fn beyond_the_cache(machine: &Machine, available: Option<u64>) -> u64 {
    let cache = machine.last_level_cache_bytes.unwrap_or(0);
    let room = available.map_or(MOST_BEYOND, |bytes| bytes / 2);
    cache
        .saturating_mul(BEYOND)
        .clamp(LEAST_BEYOND, MOST_BEYOND)
        .min(room)
}

fn alike(a: u64, b: u64) -> bool {
    let (small, large) = (a.min(b).max(1), a.max(b));
    large as f64 / small as f64 <= SAME_SIZE
}

/// Measures the read speed at the sizes of the plan's models where it is not known here yet: the
/// ceilings need it. After the tests, so that it disturbs none. `begins` is called where there is
/// something to measure.
///
/// Errors: as [`measure_read_speed`]; the tests stand without it, and ceilings stay unknown.
pub async fn know_read_speed(
    engine: &dyn Engine,
    history: &History,
    plan: &Plan,
    lease: &Lease,
    begins: impl FnOnce(),
) -> Result<(), Problem> {
    let machine = platform::machine();
    let working_sets: Vec<Bytes> = plan
        .tests
        .iter()
        .filter_map(|test| test.model.weight_bytes_per_token.map(Bytes))
        .collect();
    let known = ReadSpeed::load(history, &machine)
        .await
        .map_err(|error| Problem::new(error.code(), &error))?;
    let available = Host::new().state(None).memory_available_bytes;
    let sizes = missing_sizes(&known, &working_sets, available);
    if sizes.is_empty() {
        return Ok(());
    }
    begins();
    let threads = platform::default_threads();
    measure_read_speed(engine, history, &machine, lease, &sizes, threads).await
}

/// Reads buffers of these sizes with all allowed cores, in a worker, and keeps what it finds.
///
/// Errors: the worker's end or failure as a sentence; the history's.
pub async fn measure_read_speed(
    engine: &dyn Engine,
    history: &History,
    machine: &Machine,
    _lease: &Lease,
    sizes: &[u64],
    threads: u32,
) -> Result<(), Problem> {
    if sizes.is_empty() {
        return Ok(());
    }
    let mut session = engine
        .start(&Start::default())
        .await
        .map_err(|error| Problem::new(error.code(), &error))?;
    let request = Request::ReadBandwidth(ReadBandwidth {
        buffer_bytes: sizes.to_vec(),
        n_threads: threads,
        duration_ns: DURATION_NS,
    });
    session
        .send(request)
        .map_err(|error| Problem::new("engine", error))?;
    let readings = loop {
        match session.next().await {
            Incoming::Event(Event::Bandwidth { readings }) => break readings,
            Incoming::Event(Event::Failed(failure)) => {
                return Err(Problem::new("read_speed_failed", failure.message));
            }
            Incoming::Event(_) => {}
            Incoming::Ended(end) => return Err(Problem::new(end.code(), end.sentence(None))),
        }
    };
    session.stop().await;
    let kept: Vec<_> = readings
        .iter()
        .map(|reading| ReadReading {
            buffer_bytes: reading.buffer_bytes,
            bytes_per_second: reading.bytes_per_second.round() as u64,
            threads,
            at: Timestamp::now(),
        })
        .collect();
    history
        .keep_read_speeds(machine, &kept)
        .await
        .map_err(|error| Problem::new("not_stored", error))
}
