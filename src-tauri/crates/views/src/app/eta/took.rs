//! What tests took, and what that says.

use twospeed_engine::protocol::{Reading, Sample};
use twospeed_history::Test;
use twospeed_measure::{Kind, PlannedTest};

use super::super::found;
use super::effort::Costs;

/// Anchors before and after, and making a context: what passes beside the samples of a test where
/// none was seen yet, seconds.
pub(super) const BESIDE: f64 = 0.8;
/// Samples shorter than this follow each other without a pause, seconds.
pub(super) const UNSEEN: f64 = 0.1;

/// A test that came to its end.
pub(super) struct Took<'a> {
    pub(super) samples: &'a [Sample],
    /// Seconds from its start to its end.
    pub(super) whole: f64,
    /// Seconds that loading its model took; whether that was in this test may not be known.
    pub(super) load: Option<f64>,
}

impl Took<'_> {
    pub(super) fn timed(&self) -> f64 {
        self.samples
            .iter()
            .map(|sample| sample.ns as f64 / 1e9)
            .sum()
    }

    /// Seconds of pauses before samples, as far as there was room for them: whether a page followed
    /// is not stored.
    pub(super) fn paused(&self, pause: f64) -> f64 {
        let seen = self.sample().is_some_and(|sample| sample >= UNSEEN);
        let all = pause * self.samples.len() as f64;
        let room = self.whole - self.timed() - BESIDE / 2.0;
        if seen && all <= room { all } else { 0.0 }
    }

    /// Mean seconds of a sample; `None` without samples that took time.
    pub(super) fn sample(&self) -> Option<f64> {
        let timed = self.timed();
        (timed > 0.0).then(|| timed / self.samples.len() as f64)
    }
}

/// The same test under the same settings, as it went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Same {
    pub(super) sample: f64,
    pub(super) beside: f64,
    /// Deviation over mean of its main figure.
    pub(super) variation: Option<f64>,
}

impl Same {
    pub(super) fn of(old: &Test, pause: f64) -> Option<Self> {
        let (whole, samples) = whole_of(old)?;
        let took = Took {
            samples: &samples,
            whole,
            load: None,
        };
        let record = &old.record;
        let spread = found::values(&record.kind, record.spec, &samples);
        Some(Self {
            sample: took.sample()?,
            beside: (whole - took.timed() - took.paused(pause)).max(0.0),
            variation: spread.and_then(|spread| Some(spread.standard_deviation? / spread.mean)),
        })
    }
}

pub(super) fn is_same(old: &Test, planned: &PlannedTest) -> bool {
    let record = &old.record;
    let ran = || Some(&old.end.as_ref()?.worker.as_ref()?.variant.name);
    let variant = planned.variant.as_ref();
    record.model.fingerprint == planned.model.fingerprint
        && variant.is_none_or(|wanted| ran() == Some(wanted))
        && record.spec == planned.spec
        && record.kind == planned.kind
        && record.settings == planned.settings
}

/// Seconds from the start of a test to its end, and its samples.
pub(super) fn whole_of(old: &Test) -> Option<(f64, Vec<Sample>)> {
    let end = old.end.as_ref()?.ended_at;
    let whole = end.duration_since(old.record.started_at).as_secs_f64();
    let samples = old.samples.iter().map(|kept| kept.sample.clone());
    Some((whole, samples.collect()))
}

/// Something that takes time, as fast as it was once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pace {
    /// Operations a second.
    Prefill(f64),
    /// Bytes a second.
    Decode(f64),
    /// Bytes a second.
    Load(f64),
    /// Seconds beside samples, warm-up, filling and load.
    Beside(f64),
}

/// What a test that came to its end says of the speeds of its model.
pub(super) fn paces(costs: &Costs, planned: &PlannedTest, took: &Took<'_>) -> Vec<Pace> {
    let (kind, spec, settings) = (&planned.kind, planned.spec, &planned.settings);
    let (prompt, answer) = (f64::from(spec.n_prompt), f64::from(spec.n_gen));
    let depth = f64::from(spec.n_depth);
    let count = took.samples.len() as f64;
    let mut paces = Vec::new();
    let mut note = |pace: fn(f64) -> Pace, work: Option<f64>, ns: u64| {
        let work = work.filter(|work| *work > 0.0 && ns > 0);
        paces.extend(work.map(|work| pace(1e9 * work / ns as f64)));
    };
    let prefill = |tokens| Some(costs.prefill(settings, tokens, depth)?.prefill);
    let decode = |tokens| Some(costs.decode(settings, tokens, depth + prompt, 1.0)?.decode);
    let timed: u64 = took.samples.iter().map(|sample| sample.ns).sum();
    match (kind, spec.n_prompt, spec.n_gen) {
        (Kind::Speed, 0, _) => note(Pace::Decode, decode(count * answer), timed),
        (Kind::Speed, _, 0) => note(Pace::Prefill, prefill(prompt).map(|one| one * count), timed),
        (Kind::Quality { base: None, .. }, ..) => {
            let one = costs.sample(kind, spec, settings).map(|work| work.prefill);
            note(Pace::Prefill, one.map(|one| one * count), timed);
        }
        _ => {}
    }
    for reading in took
        .samples
        .iter()
        .filter_map(|sample| sample.reading.as_ref())
    {
        match (kind, reading) {
            (
                Kind::Users {
                    users,
                    shared_prompt,
                    ..
                },
                Reading::Users(reading),
            ) => {
                let prompts = if *shared_prompt {
                    1.0
                } else {
                    f64::from(*users)
                };
                let all = prefill(prompt).map(|one| one * prompts);
                note(Pace::Prefill, all, reading.prefill_ns);
                if *users == 1 {
                    note(Pace::Decode, decode(answer), reading.decode_ns);
                }
            }
            (_, Reading::Served { requests, .. }) => {
                let Some(cold) = requests.first() else {
                    continue;
                };
                note(Pace::Prefill, prefill(prompt), cold.prefill_ns);
                note(Pace::Decode, decode(answer - 1.0), cold.decode_ns);
            }
            _ => {}
        }
    }
    paces
}
