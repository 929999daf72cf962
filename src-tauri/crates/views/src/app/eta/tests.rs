use twospeed_engine::{Settings, TestSpec};
use twospeed_history::Test;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Kind, Plan, PlannedTest};

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
        kind: Kind::Speed,
        variant: None,
    }
}

fn near(found: Option<f64>, wanted: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() < 0.02, "{found} is not {wanted}");
}

fn plan(tests: Vec<PlannedTest>, repetitions: u32) -> Plan {
    Plan {
        repetitions,
        ..Plan::new("own", tests)
    }
}

/// Seconds foreseen of one test.
fn expected(test: PlannedTest, repetitions: u32, earlier: &[Test]) -> Option<f64> {
    Forecast::new(&plan(vec![test], repetitions), &|_| None, earlier, 0.0).whole(0)
}

/// A file of no size is loaded in no time, which keeps the sums of these tests short.
fn small() -> MeasuredModel {
    MeasuredModel {
        file_bytes: 0,
        ..model("A", "Q4_0", 92_000_000)
    }
}

#[test]
fn the_same_test_takes_what_it_took() {
    let old = test(&run(0), &small(), (0, 128, 0), &[64.0, 64.0]);
    // 10 s in all, 2 x 2 s of them samples: 6 s beside them.
    near(expected(planned(&small(), (0, 128, 0)), 5, &[old]), 16.0);
}

#[test]
fn a_page_that_comes_to_rest_takes_its_time_before_each_sample() {
    let old = test(&run(0), &small(), (0, 128, 0), &[64.0, 64.0]);
    let plan = plan(vec![planned(&small(), (0, 128, 0))], 5);
    // 10 s in all: two samples of 2 s, a pause of 1 s before each, and 4 s beside them.
    let forecast = Forecast::new(&plan, &|_| None, std::slice::from_ref(&old), 1.0);
    near(forecast.whole(0), 4.0 + 5.0 * 3.0);
    // Samples of 20 ms follow each other at once.
    let short = test(&run(0), &small(), (0, 128, 0), &[6400.0, 6400.0]);
    let forecast = Forecast::new(&plan, &|_| None, &[short], 1.0);
    near(forecast.whole(0), 9.96 + 5.0 * 0.02);
}

#[test]
fn what_passed_while_others_had_their_turns_is_not_taken_for_its_own() {
    let mut in_turn = test(&run(100), &small(), (0, 128, 0), &[64.0, 64.0]);
    if let Some(end) = &mut in_turn.end {
        end.ended_at += jiff::SignedDuration::from_secs(300);
    }
    let alone = test(&run(0), &small(), (0, 128, 0), &[64.0, 64.0]);
    let found = expected(planned(&small(), (0, 128, 0)), 5, &[in_turn, alone]);
    near(found, 16.0);
}

#[test]
fn another_length_goes_by_the_rate() {
    let old = test(&run(0), &small(), (512, 0, 0), &[512.0, 512.0]);
    let expected = |spec, count| {
        let earlier = std::slice::from_ref(&old);
        expected(planned(&small(), spec), count, earlier)
    };
    // 8 s beside, 1 s of them the warm-up; now samples and warm-up take 2 s.
    near(expected((1024, 0, 0), 3), 7.0 + 2.0 + 3.0 * 2.0);
    // The cache is filled once: 2,048 tokens at 512 a second.
    near(expected((512, 0, 2048), 2), 8.0 + 4.0 + 2.0);
    assert_eq!(
        expected((0, 128, 0), 3),
        None,
        "prefill says nothing of decode before a run"
    );
}

#[test]
fn a_depth_cannot_be_told_without_a_prefill_speed() {
    let old = test(&run(0), &small(), (0, 128, 0), &[64.0]);
    let deep = planned(&small(), (0, 128, 4096));
    assert_eq!(expected(deep, 3, &[old]), None);
}

#[test]
fn the_newest_and_nearest_decides() {
    let newest = test(&run(200), &small(), (0, 128, 0), &[128.0]);
    let older = test(&run(100), &small(), (0, 128, 0), &[64.0]);
    let mut one_thread = test(&run(300), &small(), (0, 128, 0), &[12.8]);
    one_thread.record.settings.n_threads = 1;
    let earlier = [one_thread, newest, older];
    // 9 s beside, 1 s a sample.
    near(expected(planned(&small(), (0, 128, 0)), 2, &earlier), 11.0);
    // Another length goes by the newest rate, 2 s a sample, and by the least that passed beside, 8 s.
    near(expected(planned(&small(), (0, 256, 0)), 2, &earlier), 12.0);
}

#[test]
fn a_model_that_was_never_measured_is_told_from_another() {
    let small = model("A", "Q4_0", 100_000_000);
    let mut large = model("B", "Q8_0", 200_000_000);
    large.active_parameters = small.active_parameters.map(|active| 3 * active);
    let earlier = [
        test(&run(0), &small, (512, 0, 0), &[512.0, 512.0]),
        test(&run(0), &small, (0, 128, 0), &[128.0, 128.0]),
    ];
    // Three times the arithmetic: 3 s a sample and as warm-up, as much beside as the newest had
    // (10 - 2 - 1), and 200 MB loaded at 1 GB/s.
    near(
        expected(planned(&large, (512, 0, 0)), 3, &earlier),
        7.0 + 4.0 * 3.0 + 0.2,
    );
    // Twice the bytes: 2 s a sample, and a token of warm-up.
    near(
        expected(planned(&large, (0, 128, 0)), 3, &earlier),
        7.0 + 3.0 * 2.0 + 0.2,
    );
}

#[test]
fn kinds_without_a_result_are_told_from_both_speeds() {
    // 512 tok/s and 128 tok/s of 92 MB and 269 M operations a token.
    let earlier = [
        test(&run(0), &small(), (512, 0, 0), &[512.0]),
        test(&run(20), &small(), (0, 128, 0), &[128.0]),
    ];
    let of = |kind, spec, count| {
        let test = PlannedTest {
            kind,
            ..planned(&small(), spec)
        };
        expected(test, count, &earlier)
    };
    // Beside the newest, the prefill, passed 10 - 1 - 1 = 8 s.
    let users = Kind::Users {
        users: 4,
        split_kv: false,
        shared_prompt: false,
    };
    // 4 x 128 tokens are read in 1 s; 32 steps take 0.25 s and 32 x 3 tokens of arithmetic 0.19 s;
    // 16 tokens warm up in 0.03 s.
    near(of(users, (128, 32, 0), 2), 8.0 + 0.03 + 2.0 * 1.4375);
    let quality = Kind::Quality {
        n_ctx: 512,
        text: None,
        base: None,
    };
    // 5,120 tokens, once, whatever the repetitions.
    near(of(quality, (5120, 0, 0), 5), 8.0 + 10.0);
}

fn two(model: &MeasuredModel) -> Plan {
    let tests = [(512, 0, 0), (0, 128, 0)].map(|spec| planned(model, spec));
    plan(tests.into(), 3)
}

fn eta(plan: &Plan, earlier: &[Test]) -> Eta {
    Eta::new(plan, Forecast::new(plan, &|_| None, earlier, 0.0))
}

fn samples(seconds: &[f64]) -> Vec<Sample> {
    let sample = |(index, seconds): (usize, &f64)| Sample {
        index: index as u32,
        ns: (seconds * 1e9) as u64,
        involuntary_switches: None,
        major_faults: None,
        reading: None,
    };
    seconds.iter().enumerate().map(sample).collect()
}

#[test]
fn what_is_left_falls_as_tests_and_samples_are_made() {
    let earlier = [
        // 10 s in all: 9 beside and 1 for a sample of 512; 12 s with three.
        test(&run(0), &small(), (512, 0, 0), &[512.0]),
        test(&run(20), &small(), (0, 128, 0), &[128.0]),
    ];
    let plan = two(&small());
    let mut eta = eta(&plan, &earlier);
    near(eta.left(0.0), 12.0 + 12.0);
    eta.begins(0, 1.0);
    near(eta.left(5.0), 8.0 + 12.0);
    // It takes longer than foreseen: its samples are still to come.
    near(eta.left(99.0), 3.0 + 12.0);
    eta.times(6.0);
    eta.sampled(340.0, 7.5);
    // Two more of 1.5 s.
    near(eta.left(7.5), 3.0 + 12.0);
    near(eta.left(8.5), 2.0 + 12.0);
    eta.ends(0, 13.0, &samples(&[1.5, 1.5, 1.5]), true);
    // All as it was foreseen: 12 s.
    near(eta.left(13.0), 12.0);
    eta.begins(1, 13.0);
    eta.ends(1, 13.0, &[], false);
    near(eta.left(13.0), 0.0);
}

#[test]
fn a_machine_that_is_slower_today_is_so_for_all_tests() {
    let earlier = [
        test(&run(0), &small(), (512, 0, 0), &[512.0]),
        test(&run(20), &small(), (0, 128, 0), &[128.0]),
    ];
    let plan = two(&small());
    let mut eta = eta(&plan, &earlier);
    eta.begins(0, 0.0);
    eta.ends(0, 24.0, &samples(&[2.0, 2.0, 2.0]), true);
    near(eta.left(24.0), 24.0);
}

#[test]
fn after_the_first_test_of_all_the_whole_is_known_to_a_quarter() {
    // Nothing was ever measured. What comes: SmolLM2's 350 and 138 tok/s with 98 MB, as its README
    // has them: a warm-up and three samples of 512 tokens take 5.85 s, three of 128 2.78 s; 0.7 s
    // pass beside each, and the load takes 0.1 s.
    let smol = model("SmolLM2", "Q4_1", 98_000_000);
    let plan = two(&smol);
    let mut eta = eta(&plan, &[]);
    assert_eq!(eta.left(0.0), None);
    eta.begins(0, 0.0);
    eta.loads(0.0);
    eta.loads(0.1);
    eta.ends(0, 6.65, &samples(&[1.463, 1.463, 1.463]), true);
    let whole = 6.65 + eta.left(6.65).unwrap();
    let really = 6.65 + 0.7 + 2.78;
    assert!((whole / really - 1.0).abs() < 0.25, "{whole}, {really}");
}

#[test]
fn a_second_model_is_told_from_the_first_of_the_run() {
    let small = model("A", "Q4_0", 100_000_000);
    let large = model("A", "Q8_0", 200_000_000);
    let mut tests = two(&small).tests;
    tests.extend(two(&large).tests);
    let plan = plan(tests, 3);
    let mut eta = eta(&plan, &[]);
    for (position, began, took, sample) in [(0, 0.0, 5.0, 1.0), (1, 5.0, 4.0, 1.0)] {
        eta.begins(position, began);
        eta.ends(position, began + took, &samples(&[sample; 3]), true);
    }
    // As many parameters: the same 4 s for warm-up and samples; twice the bytes: 6 s. Beside them
    // passed 1 s each, and 200 MB are loaded at 1 GB/s.
    near(eta.left(9.0), 4.0 + 6.0 + 2.0 * 1.0 + 0.2);
}

#[test]
fn repeating_until_the_mean_is_known_is_foreseen_from_the_spread() {
    // A deviation of 2 % and a target of 2 %: t(5) x 2 / sqrt(6) = 2.10 %, t(6) x 2 / sqrt(7) =
    // 1.85 %: seven samples.
    assert_eq!(needed(0.02, 0.02, 3, 50), 7);
    assert_eq!(needed(0.5, 0.02, 3, 50), 50, "given up");
    assert_eq!(needed(0.0, 0.02, 3, 50), 3, "never fewer");
    let until = Until {
        relative: 0.02,
        at_most: 50,
    };
    let plan = Plan {
        until: Some(until),
        ..plan(vec![planned(&small(), (512, 0, 0))], 3)
    };
    let mut eta = eta(&plan, &[]);
    eta.begins(0, 0.0);
    eta.times(1.0);
    // 98, 100, 102: a deviation of 2 %.
    for (value, at) in [(98.0, 2.0), (100.0, 3.0), (102.0, 4.0)] {
        eta.sampled(value, at);
    }
    near(eta.left(4.0), 4.0);
}

#[test]
fn a_sustained_run_ends_by_the_clock() {
    let plan = Plan {
        order: Order::Sustained { seconds: 600 },
        ..two(&small())
    };
    let mut eta = eta(&plan, &[]);
    assert!(eta.left(0.0).unwrap() >= 600.0);
    eta.begins(0, 0.0);
    eta.times(5.0);
    near(eta.left(105.0), 500.0);
    near(eta.left(999.0), 0.0);
}

#[test]
fn tests_that_take_turns_are_told_from_their_own_samples() {
    let plan = Plan {
        order: Order::Interleaved,
        ..two(&small())
    };
    let earlier = [
        test(&run(0), &small(), (512, 0, 0), &[512.0]),
        test(&run(20), &small(), (0, 128, 0), &[128.0]),
    ];
    let mut eta = eta(&plan, &earlier);
    eta.begins(0, 0.0);
    eta.times(1.0);
    eta.sampled(256.0, 3.0);
    eta.begins(1, 3.0);
    eta.times(4.0);
    eta.sampled(128.0, 5.0);
    // The first was timed from 1 s to 3 s; the second began at 3 s and took 2 s with its warm-up.
    // Two more of each.
    near(eta.left(5.0), 4.0 + 4.0);
    eta.turns(0);
    eta.times(5.5);
    near(eta.left(6.5), 2.5 + 4.0);
}

#[test]
fn a_turn_loads_and_warms_up_anew_where_another_model_had_its_turn() {
    // 100 MB load in 0.1 s; 512 tokens take 1 s, and as long to warm up.
    let one = model("A", "Q4_0", 100_000_000);
    let other = model("B", "Q4_0", 100_000_000);
    let tests = vec![planned(&one, (512, 0, 0)), planned(&other, (512, 0, 0))];
    let earlier = [test(&run(0), &one, (512, 0, 0), &[512.0])];
    let plan = Plan {
        order: Order::Interleaved,
        ..plan(tests, 3)
    };
    // Beside it passed 10 - 1 - 1 s.
    let whole = Forecast::new(&plan, &|_| None, &earlier, 0.0).whole(1);
    near(whole, 8.0 + 3.0 * (1.0 + 1.0 + 0.1));
}

#[test]
fn a_text_is_told_from_its_chunks() {
    let quality = PlannedTest {
        kind: Kind::Quality {
            n_ctx: 512,
            text: None,
            base: None,
        },
        ..planned(&small(), (8192, 0, 0))
    };
    let plan = plan(vec![quality], 3);
    let mut eta = eta(&plan, &[]);
    eta.begins(0, 0.0);
    eta.reads(0.0, 2.0);
    eta.reads(0.25, 5.0);
    near(eta.left(5.0), 9.0);
}
