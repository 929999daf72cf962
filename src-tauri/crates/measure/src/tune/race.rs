//! Several choices measured in turn; what is slower beyond doubt falls out.

use serde::{Deserialize, Serialize};

use crate::stats::{median, spread};

/// A change must be worth this much: what gains less is not preferred to what stood before.
pub const MINIMUM_GAIN: f64 = 1.01;

/// Rounds without which nobody is called slower: two have a spread, but no useful bound.
const FEWEST_ROUNDS: usize = 3;

/// How a choice fares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It may still win.
    InRace,
    /// It is slower beyond doubt.
    Slower {
        /// Its speed as a share of the leader's, geometric mean over the rounds.
        speed: f64,
        /// Upper 95 % bound of that share: below 1.
        at_most: f64,
    },
    /// It cannot be measured.
    Failed,
}

/// A race of choices, numbered as they were given; 0 is what stood before.
///
/// Times of one round were measured right after each other, so a machine that changes meets all
/// alike: choices are compared within rounds only.
#[derive(Debug, Clone, PartialEq)]
pub struct Race {
    runners: Vec<Runner>,
}

#[derive(Debug, Clone, PartialEq)]
struct Runner {
    /// Seconds, one a round.
    times: Vec<f64>,
    fate: Fate,
}

impl Race {
    /// A race of so many choices.
    pub fn new(choices: usize) -> Self {
        let runner = Runner {
            times: Vec::new(),
            fate: Fate::InRace,
        };
        Self {
            runners: vec![runner; choices],
        }
    }

    /// Those that may still win.
    pub fn in_race(&self) -> Vec<usize> {
        self.numbers(|runner| runner.fate == Fate::InRace)
    }

    /// How a choice fares.
    pub fn fate(&self, choice: usize) -> Option<Fate> {
        self.runners.get(choice).map(|runner| runner.fate)
    }

    /// Adds the times of a choice, in seconds, one for each round it took part in.
    pub fn add(&mut self, choice: usize, seconds: &[f64]) {
        if let Some(runner) = self.runners.get_mut(choice) {
            runner.times.extend(seconds);
        }
    }

    /// Takes a choice out that cannot be measured.
    pub fn fail(&mut self, choice: usize) {
        if let Some(runner) = self.runners.get_mut(choice) {
            runner.fate = Fate::Failed;
        }
    }

    /// Takes out what is slower than the leader beyond doubt, and says which.
    ///
    /// Beyond doubt: over the rounds of both, the upper bound of the mean of the logarithm of
    /// (leader's time / its time) is below 0. The bound is mean + t(0.975, n - 1) * s / sqrt(n).
    pub fn judge(&mut self) -> Vec<usize> {
        let Some(leader) = self.leader() else {
            return Vec::new();
        };
        let mut dropped = Vec::new();
        for choice in self.in_race() {
            if choice == leader {
                continue;
            }
            let Some((speed, at_most)) = self.share_of(choice, leader) else {
                continue;
            };
            if at_most < 1.0 {
                self.runners[choice].fate = Fate::Slower { speed, at_most };
                dropped.push(choice);
            }
        }
        dropped
    }

    /// Speed of a choice as a share of another's, with its upper bound; `None` below three rounds.
    fn share_of(&self, choice: usize, other: usize) -> Option<(f64, f64)> {
        let logs = self.log_ratios(choice, other);
        if logs.len() < FEWEST_ROUNDS {
            return None;
        }
        let spread = spread(&logs)?;
        let upper = spread.mean + spread.half_width_95?;
        Some((spread.mean.exp(), upper.exp()))
    }

    /// ln(time of the other / time of the choice), round by round.
    fn log_ratios(&self, choice: usize, other: usize) -> Vec<f64> {
        let (choice, other) = (&self.runners[choice].times, &self.runners[other].times);
        choice
            .iter()
            .zip(other)
            .map(|(a, b)| (b / a).ln())
            .collect()
    }

    /// The fastest of those in the race by the median of its times.
    pub fn leader(&self) -> Option<usize> {
        self.in_race()
            .into_iter()
            .filter_map(|choice| Some((choice, median(&self.runners[choice].times)?)))
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(choice, _)| choice)
    }

    /// Speed of a choice as a share of what stood before, median over the rounds of both; `None`
    /// where one of them was not measured.
    pub fn gain(&self, choice: usize) -> Option<f64> {
        let logs = self.log_ratios(choice, 0);
        median(&logs).map(f64::exp)
    }

    /// Who wins: the leader, unless what stood before is as good within [`MINIMUM_GAIN`].
    pub fn winner(&self) -> Option<usize> {
        let leader = self.leader()?;
        let stands = self.fate(0) == Some(Fate::InRace);
        let gains = self.gain(leader).is_none_or(|gain| gain >= MINIMUM_GAIN);
        Some(if stands && !gains { 0 } else { leader })
    }

    fn numbers(&self, wanted: impl Fn(&Runner) -> bool) -> Vec<usize> {
        (0..self.runners.len())
            .filter(|choice| wanted(&self.runners[*choice]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(times: &[&[f64]]) -> Race {
        let mut race = Race::new(times.len());
        for (choice, times) in times.iter().enumerate() {
            race.add(choice, times);
        }
        race
    }

    #[test]
    fn what_is_slower_beyond_doubt_falls_out_and_says_by_how_much() {
        let mut race = race(&[
            &[1.00, 1.02, 0.98],
            &[2.00, 2.04, 1.96],
            &[1.01, 1.00, 1.00],
        ]);
        assert_eq!(race.judge(), [1]);
        let Some(Fate::Slower { speed, at_most }) = race.fate(1) else {
            panic!("it takes twice the time");
        };
        // The leader is choice 2 or 0 by their medians of 1.00; both take half the time of 1.
        assert!((speed - 0.5).abs() < 0.01, "{speed}");
        assert!(at_most < 0.6, "{at_most}");
        assert_eq!(race.in_race(), [0, 2]);
    }

    #[test]
    fn a_machine_that_slows_down_for_all_drops_nobody_by_itself() {
        // Twice as slow in the third round, for both alike: by plain means nothing could be said,
        // within rounds the second is 10 % slower each time.
        let mut drifting = race(&[&[1.0, 1.0, 2.0], &[1.1, 1.1, 2.2]]);
        assert_eq!(drifting.judge(), [1]);
        let mut equal = race(&[&[1.0, 1.5, 2.0], &[1.0, 1.5, 2.0]]);
        assert_eq!(equal.judge(), [0usize; 0]);
    }

    #[test]
    fn noise_and_too_few_rounds_leave_it_open() {
        let mut noisy = race(&[&[1.0, 1.0, 1.0], &[1.3, 0.9, 1.2]]);
        assert_eq!(noisy.judge(), [0usize; 0]);
        let mut two = race(&[&[1.0, 1.0], &[2.0, 2.0]]);
        assert_eq!(two.judge(), [0usize; 0]);
        assert_eq!(two.leader(), Some(0));
    }

    #[test]
    fn what_stood_before_stays_where_another_gains_too_little() {
        assert_eq!(race(&[&[1.000], &[0.995]]).winner(), Some(0));
        assert_eq!(race(&[&[1.000], &[0.980]]).winner(), Some(1));
        assert_eq!(race(&[&[1.02, 1.0], &[1.0, 0.99]]).gain(0), Some(1.0));
    }

    #[test]
    fn what_failed_never_wins() {
        let mut race = race(&[&[1.0], &[0.5], &[0.9]]);
        race.fail(1);
        assert_eq!(race.winner(), Some(2));
        race.fail(0);
        race.fail(2);
        assert_eq!((race.leader(), race.winner()), (None, None));
    }

    #[test]
    fn what_was_not_measured_neither_leads_nor_falls_out() {
        let mut race = race(&[&[1.0, 1.0, 1.0], &[]]);
        assert_eq!(race.judge(), [0usize; 0]);
        assert_eq!(race.winner(), Some(0));
        assert_eq!(race.gain(1), None);
    }
}
