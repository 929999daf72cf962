use twospeed_history::{LatestFilter, ModelName, RunFilter, TestCounts};
use twospeed_measure::{Recorder, TestStatus};
use uuid::Uuid;

use crate::{open, record, records, usual_run};

#[tokio::test]
async fn a_list_shows_the_newest_run_first_with_its_models_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (older, _) = usual_run(&history).await;
    let mut newer = records::run();
    newer.started_at = records::at(1000);
    history.run_started(&newer).await.unwrap();
    for (position, fingerprint) in ["bb", "aa"].into_iter().enumerate() {
        let model = records::model(fingerprint, &format!("Model {fingerprint}"));
        let test = records::test(newer.id, position as u32, model, records::spec(512, 0));
        history.test_started(&test).await.unwrap();
        history.sample(&records::sample(&test, 0)).await.unwrap();
        if position == 0 {
            let end = records::end(&test, TestStatus::Cancelled);
            history.test_ended(&end).await.unwrap();
        }
    }

    let runs = history.runs(&RunFilter::default()).await.unwrap();
    let ids: Vec<_> = runs.iter().map(|overview| overview.run.id).collect();
    assert_eq!(ids, [newer.id, older.id]);
    let name = |fingerprint: &str| ModelName {
        fingerprint: fingerprint.into(),
        name: format!("Model {fingerprint}"),
        quantization: Some("Q4_1".into()),
    };
    assert_eq!(runs[0].models, [name("bb"), name("aa")], "in their order");
    let expected = TestCounts {
        running: 1,
        cancelled: 1,
        ..TestCounts::default()
    };
    assert_eq!((runs[0].tests, runs[0].samples), (expected, 2));
    assert_eq!((runs[1].tests.done, runs[1].samples), (2, 4));
    assert_eq!(runs[1].tests.total(), 2);
}

#[tokio::test]
async fn a_list_is_narrowed_by_runs_and_by_models() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (first, _) = usual_run(&history).await;
    let second = records::run();
    let model = records::model("bb", "Other");
    let test = records::test(second.id, 0, model, records::spec(512, 0));
    record(&history, &second, &[test], 1).await;

    let ids = async |filter: RunFilter| {
        let runs = history.whole_runs(&filter).await.unwrap();
        runs.into_iter()
            .map(|whole| whole.run.id)
            .collect::<Vec<_>>()
    };
    let by_id = |id| RunFilter {
        ids: Some(vec![id]),
        ..RunFilter::default()
    };
    let by_model = |fingerprint: &str| RunFilter {
        models: Some(vec![fingerprint.into()]),
        ..RunFilter::default()
    };
    assert_eq!(ids(by_id(first.id)).await, [first.id]);
    assert_eq!(ids(by_model("bb")).await, [second.id]);
    assert!(ids(by_id(Uuid::nil())).await.is_empty());
    assert!(ids(by_model("b")).await.is_empty());
}

#[tokio::test]
async fn latest_takes_the_newest_finished_test_of_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let model = || records::model("aa", "Smol");
    let (older, old_tests) = usual_run(&history).await;
    let mut newer = records::run();
    newer.started_at = records::at(1000);
    newer.machine.id = "other machine".into();
    let mut prefill = records::test(newer.id, 0, model(), records::spec(512, 0));
    prefill.started_at = records::at(1001);
    record(&history, &newer, &[prefill.clone()], 1).await;
    // A decode that failed is newer still, and no result.
    let mut failed = records::test(newer.id, 1, model(), records::spec(0, 128));
    failed.started_at = records::at(1002);
    history.test_started(&failed).await.unwrap();
    let status = TestStatus::Failed {
        code: "signal".into(),
        message: "It died.".into(),
        log: vec![],
    };
    history
        .test_ended(&records::end(&failed, status))
        .await
        .unwrap();

    let found = async |filter: LatestFilter| {
        let runs = history.latest(&filter).await.unwrap();
        runs.into_iter()
            .map(|run| {
                let tests: Vec<_> = run.tests.iter().map(|test| test.record.id).collect();
                (run.run.id, tests)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(LatestFilter::default()).await,
        [
            (newer.id, vec![prefill.id]),
            (older.id, vec![old_tests[1].id])
        ]
    );
    let here = LatestFilter {
        machine: Some(older.machine.id.clone()),
        ..LatestFilter::default()
    };
    let both = old_tests.iter().map(|test| test.id).collect();
    assert_eq!(found(here).await, [(older.id, both)]);
    let other_model = LatestFilter {
        models: Some(vec!["bb".into()]),
        ..LatestFilter::default()
    };
    assert!(found(other_model).await.is_empty());

    history
        .delete_runs(&[newer.id], records::at(2000))
        .await
        .unwrap();
    assert_eq!(
        found(LatestFilter::default()).await.len(),
        1,
        "deleted runs are out"
    );
}

#[tokio::test]
async fn a_run_is_found_by_either_end_of_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let mut ids = Vec::new();
    for id in [
        "019ad000-0000-7000-8000-0000000000aa",
        "019ad000-0000-7000-8000-0000000000bb",
    ] {
        let mut run = records::run();
        run.id = id.parse().unwrap();
        history.run_started(&run).await.unwrap();
        ids.push(run.id);
    }
    let found = async |wanted: &str| match history.find_run(wanted).await {
        Ok(id) => Ok(id),
        Err(error) => Err(error.code()),
    };
    assert_eq!(found("00AA").await, Ok(ids[0]));
    assert_eq!(found(&ids[1].to_string()).await, Ok(ids[1]));
    assert_eq!(found("8000-0000000000a").await, Ok(ids[0]));
    assert_eq!(found("019ad000").await, Err("ambiguous_run"));
    for stranger in [
        "ffff",
        "",
        "%",
        "_______",
        "latest",
        "'; DROP TABLE run; --",
    ] {
        assert_eq!(found(stranger).await, Err("unknown_run"), "{stranger:?}");
    }
}

#[tokio::test]
async fn a_run_that_is_not_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    assert!(history.run(Uuid::nil()).await.unwrap().is_none());
}

#[tokio::test]
async fn finished_tests_are_those_of_the_models_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (first, _) = usual_run(&history).await;
    let mut second = records::run();
    second.started_at = records::at(1000);
    let mut later = records::test(
        second.id,
        0,
        records::model("aa", "A"),
        records::spec(64, 0),
    );
    later.started_at = records::at(1001);
    record(&history, &second, &[later.clone()], 1).await;
    let unfinished = records::test(second.id, 1, records::model("aa", "A"), records::spec(1, 0));
    history.test_started(&unfinished).await.unwrap();

    let all = async |filter: LatestFilter| history.finished_tests(&filter).await.unwrap();
    let tests = all(LatestFilter::default()).await;
    assert_eq!(tests.len(), 3);
    assert_eq!(tests[0].record, later);
    assert_eq!(tests[0].samples.len(), 1);
    assert!(tests[1..].iter().all(|test| test.record.run == first.id));
    let of = |models: &[&str], machine: &str| LatestFilter {
        machine: Some(machine.into()),
        models: Some(models.iter().map(|model| (*model).to_owned()).collect()),
    };
    let here = records::machine().id;
    assert!(!all(of(&["aa"], &here)).await.is_empty());
    assert!(all(of(&["nobody"], &here)).await.is_empty());
    assert!(all(of(&["aa"], "elsewhere")).await.is_empty());
    history
        .delete_runs(&[second.id], records::at(2000))
        .await
        .unwrap();
    assert_eq!(all(LatestFilter::default()).await.len(), 2);
}

#[tokio::test]
async fn whole_runs_are_each_the_run_that_is_asked_for_alone() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    usual_run(&history).await;
    let second = records::run();
    let test = records::test(
        second.id,
        0,
        records::model("bb", "B"),
        records::spec(512, 0),
    );
    record(&history, &second, &[test], 2).await;
    history.run_started(&records::run()).await.unwrap();
    let runs = history.whole_runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 3);
    for whole in runs {
        let alone = history.run(whole.run.id).await.unwrap().unwrap();
        assert_eq!(whole, alone);
    }
}
