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

#[cfg(test)]
mod tests {
    use twospeed_engine::{Settings, TestSpec};
    use twospeed_measure::model::MeasuredModel;

    use super::super::results_fixture::{model, run, test};
    use super::*;

    fn planned(model: &MeasuredModel, (n_prompt, n_gen, n_depth): (u32, u32, u32)) -> PlannedTest {
        PlannedTest {
            model: model.clone(),
            settings: Settings {
                n_threads: 2,
                ..Settings::default()
            },
            spec: TestSpec {
                n_prompt,
                n_gen,
                n_depth,
            },
            kind: twospeed_measure::Kind::Speed,
            variant: None,
        }
    }

    fn near(found: Option<f64>, wanted: f64) {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-3, "{found} is not {wanted}");
    }

    #[test]
    fn the_same_test_takes_what_it_took() {
        let small = model("A", "Q4_0", 92_000_000);
        let old = test(&run(0), &small, (0, 128, 0), &[64.0, 64.0]);
        // 10 s in all, 2 x 2 s of them samples: 6 s beside them.
        near(expected(&planned(&small, (0, 128, 0)), 5, &[old]), 16.0);
    }

    #[test]
    fn another_length_goes_by_the_rate() {
        let small = model("A", "Q4_0", 92_000_000);
        let old = test(&run(0), &small, (512, 0, 0), &[512.0, 512.0]);
        // 8 s beside, 1 s of them the warm-up; now samples and warm-up take 2 s.
        near(
            expected(
                &planned(&small, (1024, 0, 0)),
                3,
                std::slice::from_ref(&old),
            ),
            7.0 + 2.0 + 3.0 * 2.0,
        );
        // The cache is filled once: 2,048 tokens at 512 a second.
        near(
            expected(
                &planned(&small, (512, 0, 2048)),
                2,
                std::slice::from_ref(&old),
            ),
            8.0 + 4.0 + 2.0,
        );
        assert_eq!(
            expected(&planned(&small, (0, 128, 0)), 3, std::slice::from_ref(&old)),
            None,
            "prefill says nothing of decode"
        );
        let other = model("A", "Q8_0", 145_000_000);
        assert_eq!(expected(&planned(&other, (512, 0, 0)), 3, &[old]), None);
    }

    #[test]
    fn a_depth_cannot_be_told_without_a_prefill_speed() {
        let small = model("A", "Q4_0", 92_000_000);
        let old = test(&run(0), &small, (0, 128, 0), &[64.0]);
        assert_eq!(expected(&planned(&small, (0, 128, 4096)), 3, &[old]), None);
    }

    #[test]
    fn the_newest_and_nearest_decides() {
        let small = model("A", "Q4_0", 92_000_000);
        let newest = test(&run(200), &small, (0, 128, 0), &[128.0]);
        let older = test(&run(100), &small, (0, 128, 0), &[64.0]);
        let mut one_thread = test(&run(300), &small, (0, 128, 0), &[12.8]);
        one_thread.record.settings.n_threads = 1;
        let earlier = [one_thread, newest, older];
        // 9 s beside, 1 s a sample.
        near(expected(&planned(&small, (0, 128, 0)), 2, &earlier), 11.0);
        near(expected(&planned(&small, (0, 256, 0)), 2, &earlier), 13.0);
    }

    fn plan(models: &[&MeasuredModel]) -> Plan {
        let tests = models
            .iter()
            .flat_map(|model| [(512, 0, 0), (0, 128, 0)].map(|spec| planned(model, spec)));
        Plan {
            repetitions: 3,
            ..Plan::new("own", tests.collect())
        }
    }

    #[test]
    fn what_is_left_falls_as_tests_and_samples_are_made() {
        let small = model("A", "Q4_0", 92_000_000);
        let plan = plan(&[&small]);
        let mut eta = Eta::new(&plan, [Some(10.0), Some(20.0)].into_iter());
        near(eta.left(0.0), 30.0);
        eta.begins(0, 1.0);
        near(eta.left(5.0), 6.0 + 20.0);
        near(eta.left(99.0), 20.0);
        eta.times(6.0);
        eta.sampled(7.5);
        // Two more of 1.5 s.
        near(eta.left(7.5), 3.0 + 20.0);
        near(eta.left(8.5), 2.0 + 20.0);
        eta.ends(12.0, true);
        near(eta.left(12.0), 20.0);
        eta.begins(1, 12.0);
        eta.ends(12.0, false);
        near(eta.left(12.0), 0.0);
    }

    #[test]
    fn a_model_that_was_never_measured_is_told_from_one_that_was() {
        let small = model("A", "Q4_0", 100_000_000);
        let large = model("A", "Q8_0", 200_000_000);
        let plan = plan(&[&small, &large]);
        let mut eta = Eta::new(&plan, std::iter::repeat(None));
        assert_eq!(eta.left(0.0), None);
        for (position, began, ended) in [(0, 0.0, 4.0), (1, 4.0, 9.0)] {
            eta.begins(position, began);
            eta.ends(ended, true);
        }
        // As many parameters: 4 s again; twice the weights: 10 s.
        near(eta.left(9.0), 14.0);
    }
}
