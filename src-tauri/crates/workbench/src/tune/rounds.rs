//! Rounds of measurements: the same tests with several choices.

use std::convert::Infallible;

use tokio::time::Instant;
use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{Hello, Loaded, Placement};
use twospeed_measure::plan::Order;
use twospeed_measure::platform::Host;
use twospeed_measure::stats::{median, tokens_per_second};
use twospeed_measure::tune::{Choice, Speeds, Target, TuneProgress};
use twospeed_measure::{
    Bench, Kind, Plan, PlannedTest, Progress, RunEnd, RunOutcome, Stop, TestStatus,
};

use super::{PRESET, TuneRequest};
use crate::Problem;

/// What is measured how often.
pub(super) struct Rounds<'a> {
    /// The choices.
    pub(super) choices: &'a [Choice],
    /// The tests of each.
    pub(super) tests: &'a [TestSpec],
    /// Repetitions of each test.
    pub(super) rounds: u32,
    /// All choices in each round, or all rounds of a choice.
    pub(super) order: Order,
    /// Each test is measured with all choices before the next, there and back again, so that the
    /// parts of a pair stand next to each other.
    pub(super) paired: bool,
    /// Seconds since the beginning after which no section begins.
    pub(super) limit: Option<f64>,
}

/// What came of one choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Its speeds in each round that was measured whole.
    pub(super) rounds: Vec<Speeds>,
    /// Why it cannot be measured, one sentence.
    pub(super) failure: Option<String>,
    /// The worker that ran it last.
    pub(super) worker: Option<Hello>,
    /// The model as the engine loaded it last.
    pub(super) loaded: Option<Loaded>,
    /// What lay where.
    pub(super) placement: Option<Placement>,
}

impl Found {
    /// Seconds of the target's work, round by round.
    pub(super) fn seconds(&self, target: Target) -> Vec<f64> {
        let seconds = |speeds: &Speeds| target.seconds(*speeds);
        self.rounds.iter().filter_map(seconds).collect()
    }

    /// Medians over the rounds.
    pub(super) fn speeds(&self) -> Speeds {
        let middle = |of: fn(&Speeds) -> Option<f64>| {
            median(&self.rounds.iter().filter_map(of).collect::<Vec<_>>())
        };
        Speeds {
            prefill: middle(|speeds| speeds.prefill),
            decode: middle(|speeds| speeds.decode),
        }
    }
}

impl Rounds<'_> {
    /// Which choice is measured in which test, in the order of the plan.
    fn layout(&self) -> Vec<(usize, TestSpec)> {
        let choices = 0..self.choices.len();
        if !self.paired {
            return choices
                .flat_map(|choice| self.tests.iter().map(move |test| (choice, *test)))
                .collect();
        }
        let mut layout = Vec::new();
        for (number, test) in self.tests.iter().enumerate() {
            let there = choices.clone().map(|choice| (choice, *test));
            match number % 2 {
                0 => layout.extend(there),
                _ => layout.extend(there.rev()),
            }
        }
        layout
    }

    /// Times that engine or model are changed in a round, the way back to its beginning included.
    pub(super) fn changes(&self) -> usize {
        let layout = self.layout();
        let next = layout.iter().cycle().skip(1);
        layout
            .iter()
            .zip(next)
            .filter(|((a, _), (b, _))| !self.choices[*a].shares_load(&self.choices[*b]))
            .count()
    }

    /// Measures; one entry for each choice comes back.
    ///
    /// What is stopped, by the person or because time is up, is there as far as it came. Errors:
    /// there is no engine, or something could not be stored.
    pub(super) async fn measure(
        &self,
        request: &TuneRequest<'_>,
        bench: Bench<'_>,
        began: Instant,
        progress: &mut (dyn FnMut(TuneProgress) + Send),
    ) -> Result<Vec<Found>, Problem> {
        let layout = self.layout();
        let plan = Plan {
            repetitions: self.rounds,
            order: self.order,
            // Choices are compared within rounds, so drift needs no anchor.
            anchor: false,
            ..Plan::new(PRESET, self.planned(&layout, request))
        };
        let inner = Stop::new();
        let is_late = || {
            self.limit
                .is_some_and(|limit| began.elapsed().as_secs_f64() >= limit)
        };
        let mut tell = |step: Progress| match step {
            Progress::TestStarted { test } => {
                let started = layout.get(test.position as usize);
                if let Some((choice, spec)) = started {
                    progress(TuneProgress::Testing {
                        choice: self.choices[*choice].clone(),
                        spec: *spec,
                    });
                }
            }
            // Said right before a section and right after one.
            Progress::Phase { .. } | Progress::Sample { .. } if is_late() => inner.now(),
            _ => {}
        };
        let mut host = Host::new();
        let outcome = tokio::select! {
            biased;
            outcome = bench.run(&plan, &mut host, &inner, &mut tell) => outcome,
            never = hand_on(request.stop, &inner) => match never {},
        };
        let outcome = outcome.map_err(|error| Problem::new("plan_impossible", error))?;
        match &outcome.end {
            RunEnd::Complete | RunEnd::Stopped => Ok(self.found(&layout, outcome)),
            RunEnd::NoEngine { code, message } => Err(Problem::new(code, message)),
            RunEnd::NotKept(error) => Err(Problem::new("not_stored", error)),
        }
    }

    fn planned(&self, layout: &[(usize, TestSpec)], request: &TuneRequest<'_>) -> Vec<PlannedTest> {
        let test = |(choice, spec): &(usize, TestSpec)| {
            let choice = &self.choices[*choice];
            PlannedTest {
                model: request.model.clone(),
                settings: choice.settings.clone(),
                spec: *spec,
                kind: Kind::Speed,
                variant: choice.variant.clone(),
            }
        };
        layout.iter().map(test).collect()
    }

    fn found(&self, layout: &[(usize, TestSpec)], outcome: RunOutcome) -> Vec<Found> {
        let mut found = vec![Found::default(); self.choices.len()];
        let mut prefill = vec![Vec::new(); self.choices.len()];
        let mut decode = prefill.clone();
        for test in outcome.tests {
            let Some((choice, spec)) = layout.get(test.test.position as usize) else {
                continue;
            };
            let its = &mut found[*choice];
            let speeds = match spec.n_prompt {
                0 => &mut decode[*choice],
                _ => &mut prefill[*choice],
            };
            // A test that was run again, since a CPU variant died under it, counts as it ended.
            *speeds = test
                .samples
                .iter()
                .filter_map(|kept| tokens_per_second(spec.tokens(), kept.sample.ns))
                .collect();
            match test.end.status {
                TestStatus::Failed { message, .. } => its.failure = Some(message),
                TestStatus::Done => its.failure = None,
                _ => {}
            }
            its.worker = test.end.worker.or(its.worker.take());
            its.loaded = test.end.loaded.or(its.loaded.take());
            its.placement = test.end.placement.or(its.placement.take());
        }
        let has = |prompt: bool| self.tests.iter().any(|test| (test.n_prompt > 0) == prompt);
        let (reads, writes) = (has(true), has(false));
        for (its, (prefill, decode)) in found.iter_mut().zip(prefill.into_iter().zip(decode)) {
            let whole = match (reads, writes) {
                (true, true) => prefill.len().min(decode.len()),
                (true, false) => prefill.len(),
                _ => decode.len(),
            };
            its.rounds = (0..whole)
                .map(|round| Speeds {
                    prefill: prefill.get(round).copied(),
                    decode: decode.get(round).copied(),
                })
                .collect();
        }
        found
    }
}

/// Hands the person's stop on, when it comes; sleeps until then.
async fn hand_on(from: &Stop, to: &Stop) -> Infallible {
    from.asked().await;
    to.after_test();
    from.asked_now().await;
    to.now();
    std::future::pending().await
}
