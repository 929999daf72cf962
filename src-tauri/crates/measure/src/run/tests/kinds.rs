//! Tests that are more than one speed.

use twospeed_engine::protocol::{
    Ability, Load, PageCache, Phase, Quality, Reading, Serve, ServeAsk, Users,
};
use twospeed_engine::settings::ModelPath;

use super::*;
use crate::kind::Kind;

const SPEC: twospeed_engine::TestSpec = twospeed_engine::TestSpec {
    n_prompt: 512,
    n_gen: 16,
    n_depth: 0,
};

const COLD: Kind = Kind::FirstToken {
    page_cache: PageCache::Drop,
};

const PREFIX: Kind = Kind::PrefixCache { changed: 64 };

const FOUR_USERS: Kind = Kind::Users {
    users: 4,
    split_kv: true,
    shared_prompt: false,
};

fn quality() -> Kind {
    Kind::Quality {
        n_ctx: 256,
        text: None,
        base: Some(Box::new(model("Best"))),
    }
}

fn planned(kind: Kind) -> PlannedTest {
    let is_quality = matches!(kind, Kind::Quality { .. });
    PlannedTest {
        model: model("A"),
        settings: Settings::default(),
        spec: twospeed_engine::TestSpec {
            n_gen: if is_quality { 0 } else { SPEC.n_gen },
            ..SPEC
        },
        kind,
        variant: None,
    }
}

fn plan_of(kinds: impl IntoIterator<Item = Kind>) -> Plan {
    Plan {
        repetitions: 3,
        ..Plan::new("bench", kinds.into_iter().map(planned).collect())
    }
}

fn of_kind(scene: &Scene, kind: fn(&Request) -> bool) -> Vec<Request> {
    let requests = scene.engine.requests();
    requests.into_iter().filter(kind).collect()
}

#[tokio::test(start_paused = true)]
async fn each_kind_asks_for_its_own() {
    let mut scene = Scene::of(FakeEngine::new());
    let plan = plan_of([PREFIX, FOUR_USERS, quality()]);
    let outcome = scene.run(&plan).await;
    let asked = of_kind(&scene, |request| {
        matches!(
            request,
            Request::Serve(_) | Request::Users(_) | Request::Quality(_) | Request::Measure(_)
        )
    });
    let settings = Settings::default();
    let ask = |changed| ServeAsk { changed };
    assert_eq!(
        asked,
        [
            Request::Serve(Serve {
                n_prompt: 512,
                n_gen: 16,
                requests: vec![ask(0), ask(0), ask(64)],
                settings: settings.clone(),
                repetitions: 3,
                warmup: true,
            }),
            Request::Users(Users {
                users: 4,
                n_prompt: 512,
                n_gen: 16,
                split_kv: true,
                shared_prompt: false,
                settings: settings.clone(),
                repetitions: 3,
                warmup: true,
                seed: crate::plan::DEFAULT_SEED,
            }),
            Request::Quality(Quality {
                n_ctx: 256,
                chunks: 2,
                text: None,
                base: Some(ModelPath("/models/Best.gguf".into())),
                settings,
            }),
        ]
    );
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["done", "done", "done"]);
    assert_eq!(scene.count(is_load), 1);
}

#[tokio::test(start_paused = true)]
async fn a_first_token_loads_anew_for_each_repetition_and_keeps_what_that_took() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = plan_of([Kind::Speed, COLD]);
    plan.tests[0].spec.n_gen = 0;
    let outcome = scene.run(&plan).await;
    let loads: Vec<_> = scene
        .engine
        .requests()
        .into_iter()
        .filter_map(|request| match request {
            Request::Load(Load { page_cache, .. }) => Some(page_cache),
            _ => None,
        })
        .collect();
    use PageCache::{AsIs, Drop};
    assert_eq!(loads, [AsIs, Drop, Drop, Drop], "though it was loaded");

    let test = &outcome.tests[1];
    assert_eq!(ended(test), "done");
    let indices: Vec<_> = test.samples.iter().map(|s| s.sample.index).collect();
    assert_eq!(indices, [0, 1, 2]);
    for kept in &test.samples {
        let Some(Reading::Served {
            load: Some(load),
            requests,
        }) = &kept.sample.reading
        else {
            panic!("{kept:?}");
        };
        assert_eq!((load.load_ns, load.context_ns), (90_000_000, 4_000_000));
        assert_eq!((load.page_cache, load.resident_before), (Drop, Some(0.0)));
        assert_eq!(requests.len(), 1);
    }
    let serves = of_kind(&scene, |request| matches!(request, Request::Serve(_)));
    for request in serves {
        let Request::Serve(serve) = request else {
            unreachable!()
        };
        assert_eq!((serve.repetitions, serve.warmup), (1, false));
    }
    assert!(
        !test.test.warmup,
        "what is measured comes with a fresh load"
    );
}

#[tokio::test(start_paused = true)]
async fn repetitions_of_several_requests_are_counted_through() {
    let mut scene = Scene::of(FakeEngine::new());
    scene.run(&plan_of([COLD])).await;
    let numbers: Vec<_> = scene
        .heard
        .iter()
        .filter_map(|step| match step {
            Progress::Phase {
                phase: Phase::Repetition { number },
                ..
            } => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(
        !scene
            .heard
            .iter()
            .any(|step| matches!(step, Progress::Loading { .. })),
        "its loads are timed"
    );
}

#[tokio::test(start_paused = true)]
async fn quality_is_judged_once_and_waits_for_nobody() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&plan_of([quality()])).await;
    let test = &outcome.tests[0];
    assert_eq!(ended(test), "done");
    assert_eq!(test.test.repetitions, 1);
    assert!(!test.test.warmup);
    let [kept] = test.samples.as_slice() else {
        panic!("one sample");
    };
    assert!(matches!(kept.sample.reading, Some(Reading::Quality(_))));
    assert_eq!(scene.count(|request| *request == Request::Go), 0);
    assert!(scene.heard.iter().any(|step| matches!(
        step,
        Progress::Phase {
            phase: Phase::Text { done: 2, chunks: 2 },
            ..
        }
    )));
}

#[tokio::test(start_paused = true)]
async fn only_a_speed_is_told_in_tokens_per_second() {
    let mut scene = Scene::of(FakeEngine::new());
    scene
        .run(&plan_of([Kind::Speed, COLD, PREFIX, FOUR_USERS, quality()]))
        .await;
    let told: Vec<_> = scene
        .heard
        .iter()
        .filter_map(|step| match step {
            Progress::Sample {
                sample,
                tokens_per_second,
            } => Some((sample.sample.reading.is_none(), tokens_per_second.is_some())),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 4 * 3 + 1);
    assert!(told.iter().all(|(speed, told)| speed == told), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_machine_around_a_section_stands_with_its_sample() {
    let mut scene = Scene::of(FakeEngine::new());
    let outcome = scene.run(&plan_of([PREFIX, COLD])).await;
    let energy: Vec<_> = outcome
        .tests
        .iter()
        .flat_map(|test| &test.samples)
        .map(|kept| kept.conditions.energy_j)
        .collect();
    // The probe tells which section it was.
    assert_eq!(energy, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Some));
    let kept: Vec<_> = scene.kept().samples;
    assert!(kept.iter().all(|kept| !kept.conditions.is_unknown()));
}

#[tokio::test(start_paused = true)]
async fn what_needs_a_decode_is_refused_to_a_model_that_has_none() {
    let mut scene = Scene::of(FakeEngine::new());
    let mut plan = plan_of([Kind::Speed, COLD, PREFIX, FOUR_USERS, quality()]);
    plan.tests[0].spec.n_gen = 0;
    for test in &mut plan.tests {
        test.model.ability = Some(Ability::Embeds);
    }
    let outcome = scene.run(&plan).await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(
        ends,
        ["done", "not_able", "not_able", "not_able", "not_able"]
    );
    let TestStatus::Failed { message, .. } = &outcome.tests[3].end.status else {
        panic!("it was refused");
    };
    assert!(message.contains("users4 pp512+tg16 split"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn users_that_do_not_fit_are_refused_by_the_context_of_all() {
    let mut scene = Scene::of(FakeEngine::new());
    // A kilobyte for each token of the context.
    scene.needs = Box::new(|test| Some((test.context() << 10).into()));
    let one = Kind::Users {
        users: 1,
        split_kv: false,
        shared_prompt: false,
    };
    let mut probe = FakeProbe {
        state: MachineState {
            memory_available_bytes: Some(2 << 20),
            ..MachineState::default()
        },
        ..FakeProbe::default()
    };
    let plan = plan_of([one, FOUR_USERS]);
    let outcome = scene.run_with(&plan, &mut probe, |_, _| {}).await;
    let ends: Vec<_> = outcome.tests.iter().map(ended).collect();
    assert_eq!(ends, ["done", "too_little_memory"]);
    let TestStatus::Failed { message, .. } = &outcome.tests[1].end.status else {
        panic!("it was refused");
    };
    // 4 * (512 + 16).
    assert!(message.contains("2112 tokens"), "{message}");
}
