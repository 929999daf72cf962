use super::*;
use crate::model::tests::model;
use twospeed_engine::protocol::Ability;

fn plan() -> Plan {
    Plan::of(&presets::quick(), &[model("Small")], &Settings::default())
}

fn after(change: impl FnOnce(&mut Plan)) -> Result<(), PlanError> {
    let mut plan = plan();
    change(&mut plan);
    plan.check()
}

#[test]
fn a_preset_measures_prefill_and_decode_of_each_model_in_turn() {
    let models = [model("A"), model("B")];
    let plan = Plan::of(&presets::article(), &models, &Settings::default());
    let names: Vec<_> = plan.tests.iter().map(PlannedTest::name).collect();
    assert_eq!(
        names,
        ["pp512 of A", "tg128 of A", "pp512 of B", "tg128 of B"]
    );
    assert_eq!(plan.repetitions, 5);
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn settings_that_share_a_load_follow_each_other_within_a_model() {
    let threads = |n_threads| Settings {
        n_threads,
        ..Settings::default()
    };
    let tests = tests_of(
        &[model("A"), model("B")],
        &[threads(1), threads(2)],
        &presets::quick(),
    );
    let loads = tests
        .windows(2)
        .filter(|w| !w[0].shares_load(&w[1]))
        .count();
    assert_eq!(loads, 1, "eight tests, one change of the model");
}

#[test]
fn what_can_never_be_measured_is_refused_in_one_sentence() {
    let cases: [(PlanError, &str); 6] = [
        (
            after(|p| p.tests.clear()).unwrap_err(),
            "nothing to measure",
        ),
        (after(|p| p.repetitions = 0).unwrap_err(), "Repetitions"),
        (
            after(|p| p.tests[1].settings.n_threads = 0).unwrap_err(),
            "Threads must be at least 1.",
        ),
        (
            after(|p| p.tests[1].settings.n_threads = 513).unwrap_err(),
            "513 threads",
        ),
        (
            after(|p| p.tests[1].settings.n_batch = 0).unwrap_err(),
            "batch size (-b)",
        ),
        (
            after(|p| p.tests[1].settings.n_ubatch = 0).unwrap_err(),
            "(-ub)",
        ),
    ];
    for (error, part) in cases {
        let sentence = error.to_string();
        assert!(sentence.contains(part), "{sentence}");
        assert!(sentence.ends_with('.') && !sentence.contains('\n'));
    }
}

#[test]
fn a_test_without_tokens_is_refused_even_at_a_depth() {
    let result = after(|p| {
        p.tests[0].spec = TestSpec {
            n_prompt: 0,
            n_gen: 0,
            n_depth: 4096,
        }
    });
    assert!(matches!(result, Err(PlanError::NothingTimed { model }) if model == "Small"));
}

#[test]
fn a_context_beyond_32_bits_is_refused_without_overflow() {
    let result = after(|p| {
        p.tests[0].spec = TestSpec {
            n_prompt: u32::MAX,
            n_gen: u32::MAX,
            n_depth: u32::MAX,
        }
    });
    assert!(
        matches!(result, Err(PlanError::ContextTooLong { tokens, .. }) if tokens == 12_884_901_885)
    );
}

#[test]
fn an_embedding_model_may_prefill_and_not_decode() {
    let mut plan = plan();
    for test in &mut plan.tests {
        test.model.ability = Some(Ability::Embeds);
    }
    assert_eq!(plan.check(), Ok(()), "the rest of a plan is still measured");
    assert_eq!(plan.tests[0].refusal(None, None), None);
    let refusal = plan.tests[1].refusal(None, None).unwrap();
    assert_eq!(refusal.code(), "not_able");
    let sentence = refusal.to_string();
    assert!(
        sentence.contains("Small is an embedding model"),
        "{sentence}"
    );
    assert!(sentence.contains("tg128"), "{sentence}");
}

#[test]
fn a_context_that_cannot_fit_is_refused_with_both_sizes() {
    let mut test = plan().tests.remove(1);
    test.spec.n_depth = 2_000_000_000;
    // Two layers of 64 KV values each way in f16: 2 * 2 * 64 * 2 bytes a token.
    let needs = 512 * test.spec.context();
    let refusal = test.refusal(Some(needs.into()), Some(20 << 30)).unwrap();
    assert_eq!(refusal.code(), "too_little_memory");
    let sentence = refusal.to_string();
    assert!(sentence.contains("2000000128 tokens"), "{sentence}");
    assert!(sentence.contains("953.7 GiB"), "{sentence}");
    assert!(sentence.contains("20.0 GiB is free"), "{sentence}");
    assert!(sentence.contains("Try a shorter context"), "{sentence}");
    // Where it is known what would fit, the sentence says that instead.
    let knows = Need {
        bytes: needs,
        instead: Some(Box::new(|free| format!("{free} would hold 7 tokens."))),
    };
    let sentence = test
        .refusal(Some(knows), Some(20 << 30))
        .unwrap()
        .to_string();
    assert!(
        sentence.ends_with("is free. 21474836480 would hold 7 tokens."),
        "{sentence}"
    );
}

#[test]
fn what_exactly_fits_or_is_unknown_is_tried() {
    let test = plan().tests.remove(0);
    assert_eq!(test.refusal(Some(100.into()), Some(100)), None);
    assert_eq!(test.refusal(None, Some(0)), None);
    assert_eq!(test.refusal(Some(u64::MAX.into()), None), None);
}

#[test]
fn a_plan_survives_being_stored() {
    let plan = plan();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

/// A plan of one test of this kind, with a prompt and an answer.
fn of_kind(kind: Kind, change: impl FnOnce(&mut PlannedTest)) -> Result<(), PlanError> {
    let mut plan = plan();
    plan.tests.truncate(1);
    plan.tests[0].kind = kind;
    plan.tests[0].spec = TestSpec {
        n_prompt: 512,
        n_gen: 32,
        n_depth: 0,
    };
    change(&mut plan.tests[0]);
    plan.check()
}

fn users(users: u32) -> Kind {
    Kind::Users {
        users,
        split_kv: false,
        shared_prompt: false,
    }
}

fn quality(n_ctx: u32) -> Kind {
    Kind::Quality {
        n_ctx,
        text: None,
        base: None,
    }
}

const WARM: Kind = Kind::FirstToken {
    page_cache: PageCache::Warm,
};

#[test]
fn each_kind_is_checked_by_what_it_needs() {
    let prefix = |changed| Kind::PrefixCache { changed };
    for kind in [WARM, prefix(1), prefix(511), users(1), users(256)] {
        assert_eq!(of_kind(kind.clone(), |_| {}), Ok(()), "{kind:?}");
    }
    for tokens in [0, 512, 8192] {
        let read = |test: &mut PlannedTest| test.spec.n_prompt = tokens;
        assert_eq!(of_kind(quality(512), read), Ok(()), "{tokens}");
    }
    let refused = [
        (
            of_kind(WARM, |test| test.spec.n_gen = 0),
            "at least 1 of each",
        ),
        (
            of_kind(WARM, |test| test.spec.n_prompt = 0),
            "at least 1 of each",
        ),
        (of_kind(users(2), |test| test.spec.n_gen = 0), "(-n)"),
        (
            of_kind(WARM, |test| test.spec.n_depth = 8),
            "leave out the depth",
        ),
        (of_kind(prefix(0), |_| {}), "change at least 1"),
        (of_kind(prefix(512), |_| {}), "leave at least 1"),
        (of_kind(users(0), |_| {}), "0 users cannot"),
        (of_kind(users(257), |_| {}), "take 1 to 256"),
        (of_kind(quality(7), |_| {}), "at least 8"),
        (of_kind(quality(100), |_| {}), "a multiple of 100"),
        (
            of_kind(quality(1024), |test| test.spec.n_gen = 0),
            "512 tokens in chunks of 1024",
        ),
    ];
    for (result, part) in refused {
        let sentence = result.unwrap_err().to_string();
        assert!(sentence.contains(part), "{sentence}");
        assert!(sentence.ends_with('.') && !sentence.contains('\n'));
    }
}

#[test]
fn a_target_must_be_one_that_can_be_reached() {
    let with = |relative, at_most| after(|p| p.until = Some(Until { relative, at_most }));
    assert_eq!(with(0.02, 3), Ok(()));
    for relative in [0.0, -0.01, 1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(with(relative, 20), Err(PlanError::ImpossibleTarget));
    }
    assert_eq!(
        with(0.02, 2),
        Err(PlanError::TooFewAtMost {
            at_most: 2,
            fewest: 3
        })
    );
    let sustained = after(|p| {
        p.order = Order::Sustained { seconds: 600 };
        p.until = Some(Until {
            relative: 0.02,
            at_most: 20,
        });
    });
    assert_eq!(sustained, Err(PlanError::TwoEnds));
    let no_time = after(|p| p.order = Order::Sustained { seconds: 0 });
    assert_eq!(no_time, Err(PlanError::NoTime));
}

#[test]
fn how_often_a_test_is_made_depends_on_what_ends_it() {
    let mut plan = plan();
    let test = plan.tests[0].clone();
    assert_eq!(plan.most(&test), Some(3));
    plan.until = Some(Until {
        relative: 0.02,
        at_most: 20,
    });
    assert_eq!((plan.most(&test), plan.fewest()), (Some(20), 3));
    let judged = PlannedTest {
        kind: quality(512),
        ..test.clone()
    };
    assert_eq!(plan.most(&judged), Some(1));
    plan.order = Order::Sustained { seconds: 1 };
    assert_eq!(plan.most(&test), None);
}
