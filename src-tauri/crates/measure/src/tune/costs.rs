//! Time: what the full grid would take, and what racing and the last check may.

use serde::{Deserialize, Serialize};
use twospeed_engine::TestSpec;

use super::space::Space;
use super::target::Target;

/// Repetitions of each test in the grid: llama-bench's.
const REPETITIONS: f64 = 5.0;

/// The most pairs of the last check.
pub const MOST_PAIRS: u32 = 15;

/// Pairs that are worth planning, most first: at these numbers the bound moves inwards by a rank.
const PAIRS: [u32; 3] = [MOST_PAIRS, 12, 9];

/// How often the tests of the last check may be halved to fit.
const HALVINGS: u32 = 3;

/// Answers are not checked with fewer tokens than this.
const LEAST_GENERATED: u32 = 16;

/// The part of the full grid's time that tuning may take, the last check included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share(pub f64);

impl Share {
    /// A quarter.
    pub const QUARTER: Self = Self(0.25);
    /// An eighth, for who is in a hurry.
    pub const QUICK: Self = Self(0.125);
}

/// Every combination of a space, each with llama-bench's repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Combinations that differ.
    pub combinations: u32,
    /// Prefill tests among them.
    pub prefill_tests: u32,
    /// Decode tests among them: micro-batches do not matter there and are not counted.
    pub decode_tests: u32,
    /// Times the model is loaded when those that share a load stand together.
    pub loads: u32,
}

impl Grid {
    /// The grid of a space for a target.
    pub fn of(space: &Space, target: Target) -> Self {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let loads = count(space.variants.len() * space.repack.len());
        let without_ubatch = loads * count(space.threads.len() * space.flash.len());
        let all = without_ubatch * count(space.micro_batches.len());
        Self {
            combinations: all,
            prefill_tests: target.prefill().map_or(0, |_| all),
            decode_tests: target.decode().map_or(0, |_| without_ubatch),
            loads,
        }
    }

    /// Seconds that it takes at the speed of the defaults: an estimate from below, since most
    /// combinations are slower.
    ///
    /// Each test has llama-bench's repetitions and its warm-up, which for prefill is the whole
    /// prompt and for decode one token.
    pub fn seconds(self, costs: &Costs) -> f64 {
        let prefill = costs.whole_prefill * (REPETITIONS + 1.0);
        let decode = costs.whole_decode * REPETITIONS;
        f64::from(self.loads) * costs.load
            + f64::from(self.prefill_tests) * prefill
            + f64::from(self.decode_tests) * decode
    }
}

/// What things take, in seconds, found with the defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// What is to be fast.
    pub target: Target,
    /// Loading the model from the page cache; 0 where it was found elsewhere, so that the grid is
    /// not overestimated.
    pub load: f64,
    /// All of a change of engine or model that is not timed: start, load, context.
    pub change: f64,
    /// One timed section of the target's prefill test; 0 where there is none.
    pub whole_prefill: f64,
    /// One timed section of the target's decode test; 0 where there is none.
    pub whole_decode: f64,
}

impl Costs {
    /// One repetition of these tests with its warm-up.
    pub fn round(&self, tests: &[TestSpec]) -> f64 {
        let share = |part: u32, whole: Option<u32>| match whole {
            Some(whole) if whole > 0 => f64::from(part) / f64::from(whole),
            _ => 0.0,
        };
        let prompt = self.target.prefill().map(|test| test.n_prompt);
        let generated = self.target.decode().map(|test| test.n_gen);
        tests
            .iter()
            .map(|test| {
                2.0 * self.whole_prefill * share(test.n_prompt, prompt)
                    + self.whole_decode * share(test.n_gen, generated)
            })
            .sum()
    }

    /// `rounds` rounds of `choices` choices, with so many changes of engine or model in each.
    pub fn rounds(&self, tests: &[TestSpec], choices: usize, rounds: u32, changes: usize) -> f64 {
        let once = choices as f64 * self.round(tests) + changes as f64 * self.change;
        self.change + f64::from(rounds) * once
    }

    /// Seconds after which racing has to end, of `budget` for everything: the last check gets what
    /// it needs in full or half of all, and never less than its least.
    pub fn racing(&self, budget: f64) -> f64 {
        let full = FinalPlan::new(self, 0, PAIRS[PAIRS.len() - 1], 0, true).seconds;
        let least = FinalPlan::new(self, HALVINGS, PAIRS[PAIRS.len() - 1], 0, true).seconds;
        (budget - full).max(budget / 2.0).min(budget - least)
    }
}

/// The last check: alternating pairs of the defaults and the winner.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalPlan {
    /// What is measured in each pair on both sides.
    pub tests: Vec<TestSpec>,
    /// Pairs, decided before the first is measured.
    pub pairs: u32,
    /// Seconds it will take.
    pub seconds: f64,
}

impl FinalPlan {
    /// The longest tests of which enough pairs fit into `seconds`, and as many of them as fit; where
    /// nothing fits the least there is.
    ///
    /// A prompt is not shortened below `prompt` tokens; `reloads` where the two sides cannot share a
    /// loaded model.
    pub fn within(costs: &Costs, prompt: u32, reloads: bool, seconds: f64) -> Self {
        for halvings in 0..=HALVINGS {
            for pairs in PAIRS {
                let plan = Self::new(costs, halvings, pairs, prompt, reloads);
                if plan.seconds <= seconds {
                    return plan;
                }
            }
        }
        Self::new(costs, HALVINGS, PAIRS[PAIRS.len() - 1], prompt, reloads)
    }

    fn new(costs: &Costs, halvings: u32, pairs: u32, prompt: u32, reloads: bool) -> Self {
        let shorter = |whole: u32, least: u32| (whole >> halvings).max(least.min(whole)).max(1);
        let tests: Vec<TestSpec> = costs
            .target
            .tests()
            .into_iter()
            .map(|test| TestSpec {
                n_prompt: match test.n_prompt {
                    0 => 0,
                    whole => shorter(whole, prompt),
                },
                n_gen: match test.n_gen {
                    0 => 0,
                    whole => shorter(whole, LEAST_GENERATED),
                },
                ..test
            })
            .collect();
        let changes = if reloads { 2 } else { 0 };
        let seconds = costs.rounds(&tests, 2, pairs, changes);
        Self {
            tests,
            pairs,
            seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use twospeed_engine::{FlashAttention, Settings};

    use super::*;
    use crate::tune::pairs::lower_rank;

    fn space() -> Space {
        Space {
            variants: vec![None, Some("haswell".into()), Some("sse42".into())],
            threads: vec![2, 1],
            flash: vec![FlashAttention::Auto, FlashAttention::Off],
            repack: vec![true, false],
            micro_batches: vec![Settings::default().n_ubatch, 128, 256],
        }
    }

    fn costs(target: Target) -> Costs {
        Costs {
            target,
            load: 0.5,
            change: 1.0,
            whole_prefill: target.prefill().map_or(0.0, |_| 2.0),
            whole_decode: target.decode().map_or(0.0, |_| 1.0),
        }
    }

    #[test]
    fn the_grid_is_every_combination_and_decode_only_once_for_all_micro_batches() {
        // 3 variants * 2 threads * 2 flash * 2 repack = 24, times 3 micro-batches = 72; 6 loads.
        let grid = Grid::of(&space(), Target::BENCH);
        let expected = Grid {
            combinations: 72,
            prefill_tests: 72,
            decode_tests: 24,
            loads: 6,
        };
        assert_eq!(grid, expected);
        // 6 * 0.5 + 72 * 6 * 2 + 24 * 5 * 1 = 3 + 864 + 120.
        assert_eq!(grid.seconds(&costs(Target::BENCH)), 987.0);
        let grid = Grid::of(&space(), Target::Decode);
        assert_eq!((grid.prefill_tests, grid.decode_tests), (0, 24));
    }

    #[test]
    fn a_round_is_its_tests_with_their_warm_ups() {
        // pp128 is a quarter of pp512, warmed up and timed: 2 * 2 / 4 = 1; tg16: 1 / 8.
        let costs = costs(Target::BENCH);
        assert_eq!(costs.round(&Target::BENCH.screening(false, 0)), 1.125);
        // 1 to start, then 3 * (2 * 1.125 + 2 * 1).
        let rounds = costs.rounds(&Target::BENCH.screening(false, 0), 2, 3, 2);
        assert_eq!(rounds, 13.75);
    }

    #[test]
    fn the_last_check_is_as_long_as_its_time_allows() {
        let costs = costs(Target::BENCH);
        let plan = |seconds| FinalPlan::within(&costs, 0, false, seconds);
        // A pair: 2 sides * (2 * 2 + 1) = 10 s; 1 s to start.
        assert_eq!((plan(151.0).pairs, plan(151.0).seconds), (15, 151.0));
        assert_eq!(plan(150.0).pairs, 12);
        assert_eq!(plan(91.0).pairs, 9);
        let halved = plan(90.0);
        assert_eq!(halved.pairs, 15, "15 pairs of half the length take 76 s");
        assert_eq!(
            halved
                .tests
                .iter()
                .map(TestSpec::to_string)
                .collect::<Vec<_>>(),
            ["pp256", "tg64"]
        );
        let least = plan(0.0);
        assert_eq!(least.pairs, 9);
        assert_eq!(least.tests[0].n_prompt, 64);
    }

    #[test]
    fn a_prompt_is_not_shortened_below_what_makes_the_difference() {
        let plan = FinalPlan::within(&costs(Target::BENCH), 512, false, 0.0);
        assert_eq!((plan.tests[0].n_prompt, plan.tests[1].n_gen), (512, 16));
    }

    #[test]
    fn planned_pairs_are_those_where_the_bound_moves() {
        for pairs in PAIRS {
            assert!(lower_rank(pairs) > lower_rank(pairs - 1), "{pairs}");
        }
    }

    #[test]
    fn racing_leaves_the_last_check_its_time() {
        let costs = costs(Target::BENCH);
        // In full with reloads: 1 + 9 * (10 + 2) = 109 s, within a large budget.
        assert_eq!(costs.racing(400.0), 291.0);
        assert_eq!(
            costs.racing(150.0),
            75.0,
            "half where all would be too much"
        );
        // Least: pp64 2 * 2 / 8 = 0.5, tg16 0.125: 1 + 9 * (1.25 + 2) = 30.25 s.
        assert_eq!(costs.racing(40.0), 9.75);
    }
}
