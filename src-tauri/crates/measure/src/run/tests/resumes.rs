//! Runs that go on after they were stopped or cut off.

use std::collections::BTreeSet;

use tokio::sync::Notify;
use twospeed_engine::fake::Script;

use super::*;
use crate::plan::Order;
use crate::resume::missing;

impl Scene {
    async fn resume(
        &mut self,
        run: RunRecord,
        missing: &BTreeSet<u32>,
    ) -> Result<RunOutcome, PlanError> {
        let lease = lease();
        let bench = self.bench(&lease);
        let mut probe = FakeProbe::default();
        let mut heard = Vec::new();
        let mut progress = |step: Progress| heard.push(step);
        bench
            .resume(run, missing, &mut probe, &self.stop, &mut progress)
            .await
    }

    /// Positions that what is kept leaves to be measured.
    fn missing(&self) -> BTreeSet<u32> {
        let kept = self.kept();
        let plan = kept.runs[0].plan.clone().unwrap();
        let status = |id| {
            let end = kept.test_ends.iter().find(|end| end.test == id);
            end.map(|end| &end.status)
        };
        let tests = kept.tests.iter().map(|t| (t.position, status(t.id)));
        missing(&plan, tests)
    }
}

/// Six models, two tests each: B aborts in its first test, C's first is killed, D's second does
/// not fit.
fn three_that_fail() -> Scene {
    let engine = FakeEngine::new().answers(|asked| match asked.request {
        Request::Measure(measure) if measure.spec.n_prompt > 0 => match asked.number {
            // Seven requests a model: load, then anchor, measure, anchor for each test.
            9 => Some(Script::new().die(abort())),
            _ => None,
        },
        _ => None,
    });
    let engine = engine.dies_after_samples(10, signal(9, "SIGKILL"));
    let mut scene = Scene::of(engine);
    scene.needs = Box::new(|test| {
        let refused = test.model.name == "D" && test.spec.n_gen > 0;
        Some(if refused { u64::MAX } else { 1 }.into())
    });
    scene
}

#[tokio::test(start_paused = true)]
async fn after_the_app_was_killed_only_what_was_missing_is_measured() {
    let mut scene = three_that_fail();
    let plan = quick(&["A", "B", "C", "D", "E", "F"]);
    let gone = Notify::new();
    {
        let lease = lease();
        let bench = scene.bench(&lease);
        let mut probe = FakeProbe {
            state: MachineState {
                memory_available_bytes: Some(1 << 30),
                ..MachineState::default()
            },
            ..FakeProbe::default()
        };
        let mut samples_of_e = 0;
        let mut e = None;
        let mut progress = |step: Progress| match step {
            Progress::TestStarted { test } if test.position == 8 => e = Some(test.id),
            Progress::Sample { sample, .. } if Some(sample.test) == e => {
                samples_of_e += 1;
                if samples_of_e == 2 {
                    gone.notify_one();
                }
            }
            _ => {}
        };
        tokio::select! {
            _ = bench.run(&plan, &mut probe, &scene.stop, &mut progress) => panic!("it was cut off"),
            () = gone.notified() => {}
        }
    }
    let before = scene.kept();
    assert_eq!(before.tests.len(), 9, "the ninth was being measured");
    assert_eq!(before.test_ends.len(), 8);
    assert_eq!(before.run_ends, []);

    let todo = scene.missing();
    assert_eq!(todo, BTreeSet::from([8, 9, 10, 11]));
    // The app that goes on is another process.
    let run = RunRecord {
        owner_pid: 1,
        ..before.runs[0].clone()
    };
    let outcome = scene.resume(run.clone(), &todo).await.unwrap();
    assert_eq!(
        story(&outcome),
        [
            "pp512 of E: done",
            "tg128 of E: done",
            "pp512 of F: done",
            "tg128 of F: done"
        ]
    );
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(outcome.run.id, run.id);
    assert_eq!(outcome.run.started_at, run.started_at);

    let kept = scene.kept();
    assert_eq!(kept.runs.len(), 1, "no other run");
    let [resumed] = kept.resumed.as_slice() else {
        panic!("it went on once");
    };
    assert_eq!(resumed.owner_pid, std::process::id());
    assert!(kept.tests.iter().all(|test| test.run == run.id));
    assert!(scene.missing().is_empty(), "nothing is left");
    let done = kept
        .test_ends
        .iter()
        .filter(|end| end.status == TestStatus::Done);
    assert_eq!(
        done.count(),
        9,
        "nine of twelve; three failed in three ways"
    );
    let (_, _, complete) = kept.run_ends[0];
    assert!(complete);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_stopped_goes_on_behind_its_last_test() {
    let mut scene = Scene::of(FakeEngine::new());
    let plan = quick(&["A", "B"]);
    let stop = scene.stop.clone();
    scene
        .run_with(&plan, &mut FakeProbe::default(), |step, _| {
            if matches!(step, Progress::TestStarted { test } if test.position == 1) {
                stop.after_test();
            }
        })
        .await;
    let todo = scene.missing();
    assert_eq!(todo, BTreeSet::from([2, 3]));
    scene.stop = Stop::new();
    let run = scene.kept().runs[0].clone();
    let outcome = scene.resume(run, &todo).await.unwrap();
    assert_eq!(story(&outcome), ["pp512 of B: done", "tg128 of B: done"]);
    let positions: Vec<_> = outcome.tests.iter().map(|t| t.test.position).collect();
    assert_eq!(positions, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn tests_that_took_turns_go_on_in_turn() {
    let mut scene = Scene::of(FakeEngine::new());
    let plan = Plan {
        order: Order::Interleaved,
        ..quick(&["A", "B"])
    };
    scene.run(&plan).await;
    let run = scene.kept().runs[0].clone();
    let before = scene.kept().samples.len();
    let outcome = scene.resume(run, &BTreeSet::from([0, 3])).await.unwrap();
    assert_eq!(story(&outcome), ["pp512 of A: done", "tg128 of B: done"]);
    let after: Vec<_> = scene.kept().samples[before..]
        .iter()
        .map(|sample| sample.test == outcome.tests[0].test.id)
        .collect();
    assert_eq!(after, [true, false, true, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lacks_nothing_starts_no_engine() {
    let mut scene = Scene::of(FakeEngine::new());
    scene.run(&quick(&["A"])).await;
    let run = scene.kept().runs[0].clone();
    let starts = scene.engine.starts().len();
    let outcome = scene.resume(run, &BTreeSet::new()).await.unwrap();
    assert_eq!((outcome.tests.len(), outcome.end), (0, RunEnd::Complete));
    assert_eq!(scene.engine.starts().len(), starts);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_go_on_here_is_refused_and_nothing_is_stored() {
    let mut scene = Scene::of(FakeEngine::new());
    scene.run(&quick(&["A"])).await;
    let run = scene.kept().runs[0].clone();
    let todo = BTreeSet::from([0]);
    let without = RunRecord {
        plan: None,
        ..run.clone()
    };
    let refused = scene.resume(without, &todo).await.unwrap_err();
    assert_eq!(refused, PlanError::NoPlan);
    let elsewhere = RunRecord {
        machine: Machine {
            id: "elsewhere".into(),
            ..machine()
        },
        ..run
    };
    let refused = scene.resume(elsewhere, &todo).await.unwrap_err();
    assert!(refused.to_string().contains("Scripted CPU"), "{refused}");
    assert_eq!(scene.kept().resumed, []);
}
