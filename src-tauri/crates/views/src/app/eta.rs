//! How long tests take: from earlier results before a run, and from its own samples in it.

use twospeed_history::Test;
use twospeed_measure::{Plan, PlannedTest};

use super::plan::phase_of;
use crate::measure::PhaseName;

/// Seconds that a test will take, from earlier tests of the same model here (newest first);
/// `None` where there is none to tell from.
///
/// The same test under the same settings took what it took; else the speed of the model's nearest
/// test is taken for this one's.
pub(super) fn expected(test: &PlannedTest, repetitions: u32, earlier: &[Test]) -> Option<f64> {
    let own = || {
        earlier
            .iter()
            .filter(|old| old.record.model.fingerprint == test.model.fingerprint)
            .filter_map(Took::of)
    };
    let same = |old: &Took<'_>| {
        old.test.record.spec == test.spec && old.test.record.settings == test.settings
    };
    if let Some(old) = own().find(same) {
        return Some(old.beside + f64::from(repetitions) * old.sample);
    }
    let phase = phase_of(test.spec);
    let near = |old: &Took<'_>| {
        let record = &old.test.record;
        (
            record.settings.n_threads == test.settings.n_threads,
            record.spec.n_depth == test.spec.n_depth,
        )
    };
    // Of equals the last wins: the newest.
    let of_phase = |phase| {
        let all = own().filter(move |old| phase_of(old.test.record.spec) == phase);
        let mut all: Vec<_> = all.collect();
        all.reverse();
        all.into_iter().max_by_key(near)
    };
    let old = of_phase(phase)?;
    let sample = test.spec.tokens() as f64 / old.rate();
    // What stood beside the old samples (loading, anchors) stands beside these too; its warm-up
    // and its filling of the cache were of other lengths.
    let warm_up = |sample: f64| match phase {
        PhaseName::Prefill => sample,
        PhaseName::Decode => 0.0,
    };
    let (had, has) = (old.test.record.spec.n_depth, test.spec.n_depth);
    let filling = match (had, has) {
        (had, has) if had == has => 0.0,
        (had, has) => (f64::from(has) - f64::from(had)) / of_phase(PhaseName::Prefill)?.rate(),
    };
    let beside = (old.beside + warm_up(sample) - warm_up(old.sample) + filling).max(0.0);
    Some(beside + f64::from(repetitions) * sample)
}

/// What an earlier test took.
struct Took<'a> {
    test: &'a Test,
    /// Mean seconds of a sample.
    sample: f64,
    /// Seconds beside the samples: loading, warm-up, anchors.
    beside: f64,
}

impl<'a> Took<'a> {
    fn of(test: &'a Test) -> Option<Self> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let samples: f64 = test
            .samples
            .iter()
            .map(|record| seconds(record.sample.ns))
            .sum();
        if samples <= 0.0 {
            return None;
        }
        let end = test.end.as_ref()?.ended_at;
        let whole = end.duration_since(test.record.started_at).as_secs_f64();
        Some(Self {
            test,
            sample: samples / test.samples.len() as f64,
            beside: (whole - samples).max(0.0),
        })
    }

    fn rate(&self) -> f64 {
        self.test.record.spec.tokens() as f64 / self.sample
    }
}

/// How much of a run is left.
pub(super) struct Eta {
    tests: Vec<Ahead>,
    repetitions: u32,
    running: Option<Running>,
}

/// A test of the plan.
struct Ahead {
    phase: PhaseName,
    tokens: f64,
    /// What the work of a token grows with: parameters for prefill, weights read for decode.
    weight: Option<f64>,
    /// Seconds it takes: foreseen, then measured.
    seconds: Option<f64>,
    is_over: bool,
    was_measured: bool,
}

/// The test that runs. Times are seconds since the run was asked for.
struct Running {
    position: usize,
    began: f64,
    first_timing: Option<f64>,
    /// How many samples there are, and when the last one came.
    samples: Option<(u32, f64)>,
}

impl Eta {
    /// Of a plan whose tests are foreseen to take so many seconds each.
    pub(super) fn new(plan: &Plan, seconds: impl Iterator<Item = Option<f64>>) -> Self {
        let ahead = |(test, seconds): (&PlannedTest, _)| {
            let phase = phase_of(test.spec);
            let weight = match phase {
                PhaseName::Prefill => test.model.active_parameters,
                PhaseName::Decode => test.model.weight_bytes_per_token,
            };
            Ahead {
                phase,
                tokens: test.spec.tokens() as f64,
                weight: weight.map(|weight| weight as f64),
                seconds,
                is_over: false,
                was_measured: false,
            }
        };
        Self {
            tests: plan.tests.iter().zip(seconds).map(ahead).collect(),
            repetitions: plan.repetitions,
            running: None,
        }
    }

    /// A test begins (again, where its CPU variant died).
    pub(super) fn begins(&mut self, position: u32, at: f64) {
        self.running = Some(Running {
            position: position as usize,
            began: at,
            first_timing: None,
            samples: None,
        });
    }

    /// A sample is about to be timed.
    pub(super) fn times(&mut self, at: f64) {
        if let Some(running) = &mut self.running {
            running.first_timing.get_or_insert(at);
        }
    }

    /// A sample was made.
    pub(super) fn sampled(&mut self, at: f64) {
        if let Some(running) = &mut self.running {
            let count = running.samples.map_or(0, |(count, _)| count);
            running.samples = Some((count + 1, at));
        }
    }

    /// The test that runs has ended, measured to its end or not.
    pub(super) fn ends(&mut self, at: f64, measured: bool) {
        let Some(running) = self.running.take() else {
            return;
        };
        if let Some(test) = self.tests.get_mut(running.position) {
            test.is_over = true;
            test.was_measured = measured;
            if measured {
                test.seconds = Some(at - running.began);
            }
        }
    }

    /// Seconds that the rest takes; `None` where any of it is not known.
    pub(super) fn left(&self, at: f64) -> Option<f64> {
        let left = |(position, test): (usize, &Ahead)| match &self.running {
            Some(running) if running.position == position => self.left_of(running, test, at),
            _ if test.is_over => Some(0.0),
            _ => self.foreseen(test),
        };
        self.tests.iter().enumerate().map(left).sum()
    }

    fn left_of(&self, running: &Running, test: &Ahead, at: f64) -> Option<f64> {
        let made = running
            .samples
            .zip(running.first_timing)
            .filter(|((_, last), first)| last > first);
        match made {
            Some(((count, last), first)) => {
                let each = (last - first) / f64::from(count);
                let missing = self.repetitions.saturating_sub(count);
                Some((f64::from(missing) * each - (at - last)).max(0.0))
            }
            None => Some((self.foreseen(test)? - (at - running.began)).max(0.0)),
        }
    }

    /// What was foreseen, or what a measured test of the same phase says of a model this large.
    fn foreseen(&self, test: &Ahead) -> Option<f64> {
        if test.seconds.is_some() {
            return test.seconds;
        }
        let like = |other: &&Ahead| other.was_measured && other.phase == test.phase;
        let other = self.tests.iter().rev().find(like)?;
        let larger = test.weight? / other.weight.filter(|weight| *weight > 0.0)?;
        Some(other.seconds? * larger * test.tokens / other.tokens)
    }
}
