//! What tests will take, from what others took.

use std::collections::HashMap;

use twospeed_gguf::Model;
use twospeed_history::Test;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::{Order, Until};
use twospeed_measure::stats::t_975;
use twospeed_measure::{Kind, Plan, PlannedTest};

use super::effort::{Costs, Effort, Work};
use super::took::{BESIDE, Pace, Same, Took, UNSEEN, is_same, paces, whole_of};

/// How fast a file is loaded where no load was seen yet, bytes per second.
const LOADED: f64 = 1e9;
/// Earlier tests that are looked at: the newest say enough.
const LOOKED_BACK: usize = 300;
/// So many times what is usual beside the samples of a test was not its own.
const OTHERS_TURNS: f64 = 3.0;
/// Of so many tests the one with the least beside its samples is taken for usual.
const NEWEST: usize = 6;
/// Operations of prefill in the time in which decode reads a byte: 7 to 13 for small models on a
/// processor, 8 for most. Stands in where only prefill was seen.
const OPERATIONS_PER_BYTE: f64 = 8.0;

/// A pace, and with what it was seen.
#[derive(Debug, Clone)]
struct Seen {
    place: Place,
    pace: Pace,
}

/// What a pace depends on.
#[derive(Debug, Clone)]
struct Place {
    fingerprint: String,
    file_bytes: f64,
    threads: u32,
    depth: u32,
}

impl Place {
    fn of(model: &MeasuredModel, threads: u32, depth: u32) -> Self {
        Self {
            fingerprint: model.fingerprint.clone(),
            file_bytes: model.file_bytes as f64,
            threads,
            depth,
        }
    }

    /// How far another is: its content first, then threads, depth and size.
    fn far(&self, other: &Self) -> (bool, bool, u32, f64) {
        (
            self.fingerprint != other.fingerprint,
            self.threads != other.threads,
            self.depth.abs_diff(other.depth),
            (self.file_bytes / other.file_bytes).ln().abs(),
        )
    }
}

/// What is foreseen of a test, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Foreseen {
    pub(super) sample: f64,
    pub(super) beside: f64,
    /// Repetitions it will have.
    pub(super) count: u32,
}

impl Foreseen {
    pub(super) fn whole(self) -> f64 {
        self.beside + f64::from(self.count) * self.sample
    }
}

struct Ahead {
    planned: PlannedTest,
    costs: Costs,
    work: Work,
    same: Option<Same>,
    most: Option<u32>,
}

/// What each test of a plan will take.
pub(in super::super) struct Forecast {
    tests: Vec<Ahead>,
    /// Newest last.
    seen: Vec<Seen>,
    fewest: u32,
    until: Option<Until>,
    /// Repetitions of the tests of this plan that are over.
    counts: Vec<u32>,
    /// What the tests of this run took, over what was foreseen from the same tests before.
    against_same: (f64, f64),
    /// Tests take turns, so each repetition is loaded and warmed up for anew.
    in_turn: bool,
    /// Seconds that a page is left to come to rest before a sample.
    pause: f64,
    /// A test of this run is over: decode that was never seen may be told from prefill.
    may_guess: bool,
}

impl Forecast {
    /// `header` gives the header of a model where it was read; `earlier` are finished tests of this
    /// machine, newest first; `pause` is left before each sample for a page to come to rest, seconds.
    pub(in super::super) fn new<'a>(
        plan: &Plan,
        header: &dyn Fn(&MeasuredModel) -> Option<&'a Model>,
        earlier: &[Test],
        pause: f64,
    ) -> Self {
        // Where tests take turns, the last one ran before the first.
        let mut last = plan.tests.last().filter(|_| plan.order != Order::OneByOne);
        let mut tests = Vec::with_capacity(plan.tests.len());
        for planned in &plan.tests {
            let costs = Costs::of(&planned.model, header(&planned.model));
            let same = earlier
                .iter()
                .filter(|_| plan.order == Order::OneByOne)
                .find(|old| is_same(old, planned));
            tests.push(Ahead {
                planned: planned.clone(),
                work: Work::of(planned, &costs, last),
                same: same.and_then(|old| Same::of(old, pause)),
                most: plan.most(planned),
                costs,
            });
            last = Some(planned);
        }
        let mut forecast = Self {
            tests,
            seen: Vec::new(),
            fewest: plan.fewest(),
            until: plan.until,
            counts: Vec::new(),
            against_same: (0.0, 0.0),
            in_turn: plan.order != Order::OneByOne,
            pause,
            may_guess: false,
        };
        let mut costs: HashMap<&str, Costs> = HashMap::new();
        for old in earlier.iter().take(LOOKED_BACK).rev() {
            let model = &old.record.model;
            let costs = costs
                .entry(&model.fingerprint)
                .or_insert_with(|| Costs::of(model, header(model)));
            forecast.look_back(old, costs);
        }
        forecast
    }

    /// Seconds of the test at this place; `None` where something it does was never seen.
    pub(super) fn of(&self, position: usize) -> Option<Foreseen> {
        let ahead = self.tests.get(position)?;
        let count = self.count(ahead);
        let place = ahead.place();
        let before = ahead.work.before;
        let before = before.and_then(|before| self.seconds(&place, before));
        if let Some(same) = ahead.same {
            let (took, foreseen) = self.against_same;
            let factor = if foreseen > 0.0 { took / foreseen } else { 1.0 };
            // Where tests took turns, what passed beside its samples was not its own.
            let usual = before.map(|before| before + self.beside(&place));
            let beside = match usual {
                Some(usual) if same.beside > OTHERS_TURNS * usual => usual,
                _ => same.beside,
            };
            return Some(Foreseen {
                sample: self.paused(same.sample * factor),
                beside: beside * factor,
                count,
            });
        }
        let sample = self.seconds(&place, ahead.work.sample?)?;
        let before = before?;
        let (each, once) = match self.in_turn {
            true => (before, 0.0),
            false => (0.0, before),
        };
        Some(Foreseen {
            sample: self.paused(sample) + each,
            beside: self.beside(&place) + once,
            count,
        })
    }

    /// A sample with the pause before it.
    fn paused(&self, sample: f64) -> f64 {
        if sample >= UNSEEN {
            sample + self.pause
        } else {
            sample
        }
    }

    /// Seconds of one timed section of the test at this place.
    pub(in super::super) fn timed(&self, position: usize) -> Option<f64> {
        let ahead = self.tests.get(position)?;
        match ahead.same {
            Some(same) => Some(same.sample),
            None => self.seconds(&ahead.place(), ahead.work.sample?),
        }
    }

    /// Seconds of the test at this place in all.
    pub(in super::super) fn whole(&self, position: usize) -> Option<f64> {
        Some(self.of(position)?.whole())
    }

    /// A test of this run came to its end, and so tells of the others.
    pub(super) fn learn(&mut self, position: usize, took: &Took<'_>) {
        self.may_guess = true;
        let (Some(foreseen), Some(ahead)) = (self.of(position), self.tests.get(position)) else {
            return self.look_at(position, took);
        };
        if ahead.same.is_some() && !took.samples.is_empty() {
            let expected = foreseen.beside + took.samples.len() as f64 * foreseen.sample;
            let (all, before) = self.against_same;
            let factor = if before > 0.0 { all / before } else { 1.0 };
            self.against_same = (all + took.whole, before + expected / factor);
        }
        self.look_at(position, took);
    }

    fn look_at(&mut self, position: usize, took: &Took<'_>) {
        let Some(ahead) = self.tests.get(position) else {
            return;
        };
        let kind = &ahead.planned.kind;
        if !matches!(kind, Kind::Quality { .. }) {
            self.counts
                .push(u32::try_from(took.samples.len()).unwrap_or(u32::MAX));
        }
        let (place, costs) = (ahead.place(), &ahead.costs);
        let paces = paces(costs, &ahead.planned, took);
        let before = ahead.work.before.map(without_load);
        self.remember(&place, paces, before, took, took.load.unwrap_or(0.0));
    }

    fn look_back(&mut self, old: &Test, costs: &Costs) {
        let record = &old.record;
        let Some((whole, samples)) = whole_of(old) else {
            return;
        };
        let loaded = old.end.as_ref().and_then(|end| end.loaded.as_ref());
        let took = Took {
            samples: &samples,
            whole,
            load: loaded.map(|loaded| loaded.load_ns as f64 / 1e9),
        };
        let planned = PlannedTest {
            model: record.model.clone(),
            settings: record.settings.clone(),
            spec: record.spec,
            kind: record.kind.clone(),
            variant: None,
        };
        let place = Place::of(
            &record.model,
            record.settings.n_threads,
            record.spec.n_depth,
        );
        let paces = paces(costs, &planned, &took);
        let before = costs.before(&planned.kind, planned.spec, &planned.settings, 0);
        // It is not stored whether a test loaded its model: where there is room for it, it did.
        let spare = whole - took.timed() - BESIDE / 2.0;
        let load = took.load.filter(|load| *load <= spare).unwrap_or(0.0);
        self.remember(&place, paces, before, &took, load);
    }

    fn remember(
        &mut self,
        place: &Place,
        paces: Vec<Pace>,
        before: Option<Effort>,
        took: &Took<'_>,
        load: f64,
    ) {
        let note = |seen: &mut Vec<Seen>, pace| {
            let place = place.clone();
            seen.push(Seen { place, pace });
        };
        for pace in paces {
            note(&mut self.seen, pace);
        }
        if let Some(seconds) = took.load.filter(|seconds| *seconds > 0.0) {
            note(&mut self.seen, Pace::Load(place.file_bytes / seconds));
        }
        if let Some(before) = before.and_then(|before| self.seconds(place, before)) {
            let paused = took.paused(self.pause);
            let beside = (took.whole - took.timed() - paused - before - load).max(0.0);
            note(&mut self.seen, Pace::Beside(beside));
        }
    }

    /// Repetitions that a test will have.
    fn count(&self, ahead: &Ahead) -> u32 {
        let most = ahead.most.unwrap_or(u32::MAX);
        let Some(until) = self.until else {
            return self.fewest.min(most);
        };
        let variation = ahead.same.and_then(|same| same.variation);
        let count = match variation {
            Some(variation) => needed(variation, until.relative, self.fewest, most),
            None if self.counts.is_empty() => self.fewest,
            None => {
                let sum: u32 = self.counts.iter().sum();
                sum.div_ceil(u32::try_from(self.counts.len()).unwrap_or(1))
            }
        };
        count.clamp(self.fewest.min(most), most)
    }

    fn seconds(&self, place: &Place, effort: Effort) -> Option<f64> {
        let mut seconds = 0.0;
        if effort.prefill > 0.0 {
            seconds += effort.prefill / self.prefill(place)?;
        }
        if effort.decode > 0.0 {
            seconds += effort.decode / self.decode(place)?;
        }
        if effort.load > 0.0 {
            let load = |pace| matches!(pace, Pace::Load(_));
            seconds += effort.load / self.nearest(place, load).map_or(LOADED, rate);
        }
        Some(seconds)
    }

    fn prefill(&self, place: &Place) -> Option<f64> {
        let seen = self.nearest(place, |pace| matches!(pace, Pace::Prefill(_)))?;
        // Prefill is arithmetic, so it grows with the threads; decode waits for the memory.
        let threads = f64::from(place.threads) / f64::from(seen.place.threads.max(1));
        Some(rate(seen) * threads)
    }

    fn decode(&self, place: &Place) -> Option<f64> {
        match self.nearest(place, |pace| matches!(pace, Pace::Decode(_))) {
            Some(seen) => Some(rate(seen)),
            None if self.may_guess => Some(self.prefill(place)? / OPERATIONS_PER_BYTE),
            None => None,
        }
    }

    /// What passes beside the samples of a test: the least of the newest that were seen, since in
    /// the others there may have been turns of other tests.
    fn beside(&self, place: &Place) -> f64 {
        let of_model = |seen: &&Seen| {
            let (other_model, other_threads, ..) = place.far(&seen.place);
            !other_model && !other_threads
        };
        let least = |seen: &mut dyn Iterator<Item = &Seen>| {
            let beside = seen.filter_map(|seen| match seen.pace {
                Pace::Beside(seconds) => Some(seconds),
                _ => None,
            });
            beside.take(NEWEST).reduce(f64::min)
        };
        least(&mut self.seen.iter().rev().filter(of_model))
            .or_else(|| least(&mut self.seen.iter().rev()))
            .unwrap_or(BESIDE)
    }

    /// The nearest that was seen; of equally near ones the newest.
    fn nearest(&self, place: &Place, wanted: impl Fn(Pace) -> bool) -> Option<&Seen> {
        let wanted = self.seen.iter().rev().filter(|seen| wanted(seen.pace));
        wanted.min_by(|one, other| {
            let (one, other) = (place.far(&one.place), place.far(&other.place));
            one.partial_cmp(&other).unwrap_or(std::cmp::Ordering::Equal)
        })
    }
}

impl Ahead {
    fn place(&self) -> Place {
        let planned = &self.planned;
        Place::of(
            &planned.model,
            planned.settings.n_threads,
            planned.spec.n_depth,
        )
    }
}

fn rate(seen: &Seen) -> f64 {
    match seen.pace {
        Pace::Prefill(rate) | Pace::Decode(rate) | Pace::Load(rate) | Pace::Beside(rate) => rate,
    }
}

fn without_load(effort: Effort) -> Effort {
    Effort {
        load: 0.0,
        ..effort
    }
}

/// Repetitions after which the mean is likely known so well.
pub(super) fn needed(variation: f64, relative: f64, fewest: u32, most: u32) -> u32 {
    let enough = |count: u32| {
        let half = t_975(count.saturating_sub(1)) * variation / f64::from(count).sqrt();
        half <= relative
    };
    (fewest.max(2)..most)
        .find(|count| enough(*count))
        .unwrap_or(most)
}
