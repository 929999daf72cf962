//! How long a plan takes: from earlier results before a run, and from its own samples in it.

mod effort;
mod forecast;
mod took;

use twospeed_engine::protocol::Sample;
use twospeed_measure::Plan;
use twospeed_measure::plan::{Order, Until};
use twospeed_measure::stats::spread;

pub(super) use self::forecast::Forecast;
use self::forecast::{Foreseen, needed};
use self::took::Took;

/// How much of a run is left. Times are seconds since the run was asked for.
pub(super) struct Eta {
    forecast: Forecast,
    order: Order,
    until: Option<Until>,
    fewest: u32,
    most: Vec<Option<u32>>,
    tests: Vec<Now>,
    /// The test that runs.
    running: Option<usize>,
    /// When the first sample of the run was about to be timed.
    first_timing: Option<f64>,
    /// When the last sample of any test came.
    last_sample: Option<f64>,
    /// A run that ends at a time of its own, and when that is; the inner `None` = not known.
    deadline: Option<Option<f64>>,
}

/// A test of the plan as it goes.
#[derive(Debug, Clone, Default)]
struct Now {
    /// When it began.
    began: Option<f64>,
    is_over: bool,
    /// Main figures of its samples.
    values: Vec<f64>,
    /// Seconds from one sample to the next, all together, the first from when it was about to be timed.
    spent: f64,
    /// When its last sample came, or its first was about to be timed.
    since: Option<f64>,
    /// When its model began to be loaded, and until when that went on.
    load: Option<(f64, f64)>,
    /// Of a text: how much of it is done, and when it began.
    text: Option<(f64, f64)>,
}

impl Eta {
    /// Of a plan.
    pub(super) fn new(plan: &Plan, forecast: Forecast) -> Self {
        Self {
            forecast,
            order: plan.order,
            until: plan.until,
            fewest: plan.fewest(),
            most: plan.tests.iter().map(|test| plan.most(test)).collect(),
            tests: vec![Now::default(); plan.tests.len()],
            running: None,
            first_timing: None,
            last_sample: None,
            deadline: None,
        }
    }

    /// The run ends then, whatever its tests are; `None` = not known.
    pub(super) fn ends_at(&mut self, at: Option<f64>) {
        self.deadline = Some(at);
    }

    fn now(&mut self) -> Option<&mut Now> {
        self.tests.get_mut(self.running?)
    }

    /// A test begins (again, where its CPU variant died).
    pub(super) fn begins(&mut self, position: u32, at: f64) {
        self.running = Some(position as usize);
        if let Some(now) = self.now() {
            *now = Now {
                began: Some(at),
                ..Now::default()
            };
        }
    }

    /// It is the turn of a test that has begun.
    pub(super) fn turns(&mut self, position: u32) {
        self.running = Some(position as usize);
    }

    /// Its model is being loaded.
    pub(super) fn loads(&mut self, at: f64) {
        if let Some(now) = self.now() {
            let from = now.load.map_or(at, |(from, _)| from);
            now.load = Some((from, at));
        }
    }

    /// It judges a text, of which this share is done.
    pub(super) fn reads(&mut self, share: f64, at: f64) {
        if let Some(now) = self.now() {
            let from = now.text.map_or(at, |(_, from)| from);
            now.text = Some((share, from));
        }
    }

    /// A sample is about to be timed.
    pub(super) fn times(&mut self, at: f64) {
        self.first_timing.get_or_insert(at);
        // A turn begins where the one before ended: its load and its warm-up are made anew.
        let turn = self.last_sample.filter(|_| self.order != Order::OneByOne);
        if let Some(now) = self.now() {
            match turn {
                Some(turn) => now.since = Some(now.began.map_or(turn, |began| began.max(turn))),
                None => {
                    now.since.get_or_insert(at);
                }
            }
        }
    }

    /// A sample was made; `value` is its main figure.
    pub(super) fn sampled(&mut self, value: f64, at: f64) {
        if let Some(now) = self.now() {
            now.values.push(value);
            now.spent += at - now.since.unwrap_or(at);
            now.since = Some(at);
        }
        self.last_sample = Some(at);
    }

    /// A test has ended, measured to its end or not.
    pub(super) fn ends(&mut self, position: u32, at: f64, samples: &[Sample], measured: bool) {
        let position = position as usize;
        let Some(now) = self.tests.get_mut(position) else {
            return;
        };
        now.is_over = true;
        if self.running == Some(position) {
            self.running = None;
        }
        // Where tests take turns, what passed between its start and its end was not its own.
        if let (true, Some(began), Order::OneByOne) = (measured, now.began, self.order) {
            let took = Took {
                samples,
                whole: at - began,
                load: now.load.map(|(from, to)| to - from),
            };
            self.forecast.learn(position, &took);
        }
    }

    /// Seconds that the rest takes; `None` where any of it is not known.
    pub(super) fn left(&self, at: f64) -> Option<f64> {
        if let Some(deadline) = self.deadline {
            return Some((deadline? - at).max(0.0));
        }
        if let Order::Sustained { seconds } = self.order {
            let seconds = f64::from(seconds);
            return match self.first_timing {
                Some(first) => Some((first + seconds - at).max(0.0)),
                None => Some(seconds + self.forecast.of(0).map_or(0.0, |test| test.beside)),
            };
        }
        (0..self.tests.len())
            .map(|position| self.left_of(position, at))
            .sum()
    }

    fn left_of(&self, position: usize, at: f64) -> Option<f64> {
        let now = &self.tests[position];
        let runs = self.running == Some(position);
        let foreseen = || self.forecast.of(position);
        if now.is_over {
            return Some(0.0);
        }
        let Some(began) = now.began else {
            return Some(foreseen()?.whole());
        };
        let here = if runs { at } else { now.since.unwrap_or(at) };
        if let Some((share, from)) = now
            .text
            .filter(|(share, from)| *share > 0.0 && here > *from)
        {
            return Some((here - from) * (1.0 - share) / share);
        }
        let made = now.values.len() as f64;
        if now.spent > 0.0 {
            let missing = f64::from(self.count(position)) - made;
            let since = now.since.filter(|_| runs).map_or(0.0, |since| here - since);
            return Some((missing * now.spent / made - since).max(0.0));
        }
        let Foreseen {
            sample,
            beside,
            count,
        } = foreseen()?;
        let whole = beside + f64::from(count) * sample;
        let gone = if runs { at - began } else { beside };
        // What takes longer than was foreseen has its samples still before it.
        let least = match now.since {
            Some(_) => (f64::from(count) - 1.0) * sample,
            None => f64::from(count) * sample,
        };
        Some((whole - gone).max(least.max(0.0)))
    }

    /// Repetitions that a test which has samples will have.
    fn count(&self, position: usize) -> u32 {
        let most = self.most[position].unwrap_or(u32::MAX);
        let values = &self.tests[position].values;
        let made = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let Some(until) = self.until else {
            return self.fewest.min(most);
        };
        let variation =
            spread(values).and_then(|spread| Some(spread.standard_deviation? / spread.mean));
        // Of two samples a deviation says next to nothing.
        let count = match variation.filter(|_| made >= self.fewest.min(most)) {
            Some(variation) => needed(variation, until.relative, self.fewest, most),
            None => self
                .forecast
                .of(position)
                .map_or(self.fewest, |it| it.count),
        };
        count.max(made)
    }
}

#[cfg(test)]
mod tests;
