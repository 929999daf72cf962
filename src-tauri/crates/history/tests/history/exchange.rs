use serde_json::{Value, json};
use twospeed_history::{Origin, Outcome, RunFilter, RunStatus};
use twospeed_measure::{Recorder, TestStatus};
use uuid::Uuid;

use crate::{open, record, records, usual_run};

async fn exported(history: &twospeed_history::History, runs: &[Uuid]) -> Vec<u8> {
    let mut file = Vec::new();
    history
        .export(runs, records::at(5000), &mut file)
        .await
        .unwrap();
    file
}

fn outcomes(imported: &twospeed_history::Imported) -> Vec<Outcome> {
    imported.runs.iter().map(|run| run.outcome).collect()
}

#[tokio::test]
async fn an_export_imported_and_exported_again_is_the_same_file() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let history = open(here.path()).await;
    let (first, tests) = usual_run(&history).await;
    history.set_note(first.id, "on the train").await.unwrap();
    let second = records::run();
    let model = records::model("bb", "Other");
    let test = records::test(second.id, 0, model, records::spec(512, 128));
    history.run_started(&second).await.unwrap();
    history.test_started(&test).await.unwrap();
    let status = TestStatus::Failed {
        code: "out_of_memory".into(),
        message: "It needs more.".into(),
        log: vec!["last line".into()],
    };
    history
        .test_ended(&records::end(&test, status))
        .await
        .unwrap();
    history
        .run_ended(second.id, records::at(99), false)
        .await
        .unwrap();
    let file = exported(&history, &[first.id, second.id]).await;

    let other = open(there.path()).await;
    let imported = other.import(file.clone(), records::at(6000)).await.unwrap();
    assert_eq!(outcomes(&imported), [Outcome::Added; 2]);
    assert!(imported.rejected.is_empty(), "{:?}", imported.rejected);
    let again = exported(&other, &[first.id, second.id]).await;
    assert_eq!(
        String::from_utf8(again).unwrap(),
        String::from_utf8(file).unwrap()
    );

    let (mine, theirs) = (
        history.run(first.id).await.unwrap().unwrap(),
        other.run(first.id).await.unwrap().unwrap(),
    );
    assert_eq!(theirs.tests, mine.tests);
    assert_eq!(theirs.tests.len(), tests.len());
    assert_eq!(theirs.run.origin, Origin::Imported);
    assert_eq!(theirs.run.imported_at, Some(records::at(6000)));
}

#[tokio::test]
async fn importing_the_same_file_twice_adds_nothing() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let history = open(here.path()).await;
    let (run, _) = usual_run(&history).await;
    let file = exported(&history, &[run.id]).await;
    let other = open(there.path()).await;
    other.import(file.clone(), records::at(0)).await.unwrap();
    let before = other.run(run.id).await.unwrap();
    for target in [&other, &history] {
        let imported = target.import(file.clone(), records::at(9)).await.unwrap();
        assert_eq!(outcomes(&imported), [Outcome::AlreadyThere]);
    }
    assert_eq!(other.run(run.id).await.unwrap(), before);
    let own = history.run(run.id).await.unwrap().unwrap();
    assert_eq!(
        own.run.origin,
        Origin::Measured,
        "its own run stays its own"
    );
}

#[tokio::test]
async fn a_run_exported_while_it_ran_is_completed_by_a_later_export() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let history = open(here.path()).await;
    let other = open(there.path()).await;
    let run = records::run();
    let model = records::model("aa", "Smol");
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    history.run_started(&run).await.unwrap();
    history.test_started(&test).await.unwrap();
    history.sample(&records::sample(&test, 0)).await.unwrap();
    let early = exported(&history, &[run.id]).await;
    let imported = other.import(early.clone(), records::at(0)).await.unwrap();
    assert_eq!(outcomes(&imported), [Outcome::Added]);
    let whole = other.run(run.id).await.unwrap().unwrap();
    assert_eq!(
        whole.run.status,
        RunStatus::Interrupted,
        "nothing runs there"
    );
    let end = whole.tests[0].end.as_ref().unwrap();
    assert_eq!(end.status, TestStatus::Interrupted);

    history.sample(&records::sample(&test, 1)).await.unwrap();
    let done = records::end(&test, TestStatus::Done);
    history.test_ended(&done).await.unwrap();
    history
        .run_ended(run.id, records::at(600), true)
        .await
        .unwrap();
    let late = exported(&history, &[run.id]).await;
    let imported = other.import(late, records::at(1)).await.unwrap();
    assert_eq!(outcomes(&imported), [Outcome::Completed]);
    let imported = other.import(early, records::at(2)).await.unwrap();
    assert_eq!(
        outcomes(&imported),
        [Outcome::AlreadyThere],
        "nothing is taken back"
    );
    let whole = other.run(run.id).await.unwrap().unwrap();
    assert_eq!(whole.run.status, RunStatus::Complete);
    assert_eq!(whole.run.ended_at, Some(records::at(600)));
    assert_eq!(whole.tests[0].samples.len(), 2);
    assert_eq!(whole.tests[0].end, Some(done));
}

#[tokio::test]
async fn a_deleted_run_comes_back_when_it_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let file = exported(&history, &[run.id]).await;
    history
        .delete_runs(&[run.id], records::at(0))
        .await
        .unwrap();
    let imported = history.import(file, records::at(1)).await.unwrap();
    assert_eq!(outcomes(&imported), [Outcome::Restored]);
    assert_eq!(history.runs(&RunFilter::default()).await.unwrap().len(), 1);
}

/// Two runs as a JSON value to be damaged.
async fn two_runs() -> (Value, [Uuid; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let mut ids = [Uuid::nil(); 2];
    for id in &mut ids {
        let run = records::run();
        let model = records::model("aa", "Smol");
        let test = records::test(run.id, 0, model, records::spec(512, 0));
        record(&history, &run, &[test], 3).await;
        *id = run.id;
    }
    let file = exported(&history, &ids).await;
    (serde_json::from_slice(&file).unwrap(), ids)
}

#[tokio::test]
async fn a_run_that_cannot_be_true_is_rejected_whole_and_named_and_the_others_are_kept() {
    let impossible: [(&str, Value); 4] = [
        ("/runs/0/tests/0/samples/2/ns", json!(0)),
        ("/runs/0/tests/0/samples/1/ns", json!("fast")),
        ("/runs/0/tests/0/spec/n_prompt", json!(0)),
        ("/runs/0/started_at", json!("yesterday")),
    ];
    for (place, value) in impossible {
        let (mut file, ids) = two_runs().await;
        *file.pointer_mut(place).unwrap() = value;
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path()).await;
        let file = serde_json::to_vec(&file).unwrap();
        let imported = history.import(file, records::at(0)).await.unwrap();
        assert_eq!(imported.runs.len(), 1, "{place}");
        assert_eq!(imported.runs[0].id, ids[1]);
        assert_eq!(imported.rejected.len(), 1);
        assert_eq!(imported.rejected[0].run, Some(1));
        assert!(!imported.rejected[0].reason.is_empty());
        assert!(
            history.run(ids[0]).await.unwrap().is_none(),
            "no half of it: {place}"
        );
    }
}

#[tokio::test]
async fn a_test_that_belongs_to_another_run_is_not_taken_over() {
    let (mut file, ids) = two_runs().await;
    let test = file.pointer("/runs/0/tests/0/id").unwrap().clone();
    *file.pointer_mut("/runs/1/tests/0/id").unwrap() = test;
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let file = serde_json::to_vec(&file).unwrap();
    let imported = history.import(file, records::at(0)).await.unwrap();
    assert_eq!(imported.runs.len(), 1);
    let reason = &imported.rejected[0].reason;
    assert!(reason.contains(&ids[0].to_string()), "{reason}");
}

#[tokio::test]
async fn a_file_cut_in_half_gives_what_is_whole_and_says_where_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (first, _) = usual_run(&history).await;
    let (second, _) = usual_run(&history).await;
    let mut file = exported(&history, &[first.id, second.id]).await;
    file.truncate(file.len() - 100);

    let there = tempfile::tempdir().unwrap();
    let other = open(there.path()).await;
    let imported = other.import(file, records::at(0)).await.unwrap();
    assert_eq!(imported.runs.len(), 1);
    assert_eq!(imported.runs[0].id, first.id);
    assert_eq!(
        (imported.rejected[0].run, imported.rejected[0].line),
        (None, Some(3))
    );
}

#[tokio::test]
async fn fields_that_are_not_known_survive_a_round_trip() {
    let (mut file, ids) = two_runs().await;
    file["runs"][0]["weather"] = json!({"rain": true});
    file["runs"][0]["tests"][0]["fan_rpm"] = json!([1200, 1300.5, null]);
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let bytes = serde_json::to_vec(&file).unwrap();
    history.import(bytes, records::at(0)).await.unwrap();
    let again: Value = serde_json::from_slice(&exported(&history, &ids).await).unwrap();
    assert_eq!(again["runs"], file["runs"]);
}

#[tokio::test]
async fn an_export_of_a_stranger_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let mut file = Vec::new();
    let ids = [run.id, Uuid::nil()];
    let error = history
        .export(&ids, records::at(0), &mut file)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "unknown_run");
    assert!(file.is_empty());
}

#[tokio::test]
async fn an_export_to_a_full_disk_says_so() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let error = history
        .export(&[run.id], records::at(0), &mut Full)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "export_not_written");
}

#[tokio::test]
async fn an_export_without_runs_is_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let file = exported(&history, &[]).await;
    let value: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(value["format"], "twospeed.results/1");
    assert_eq!(value["runs"], json!([]));
    let imported = history.import(file, records::at(0)).await.unwrap();
    assert_eq!((imported.runs.len(), imported.rejected.len()), (0, 0));
}

/// A file of the first version of the format, as it was written then.
const FIRST: &str = include_str!("results-1.json");

/// Whether `value` holds all that `part` holds; it may hold more.
fn holds(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => (part.iter())
            .all(|(name, part)| value.get(name).is_some_and(|value| holds(value, part))),
        (Value::Array(value), Value::Array(part)) => {
            value.len() == part.len() && value.iter().zip(part).all(|(v, p)| holds(v, p))
        }
        _ => value == part,
    }
}

#[tokio::test]
async fn a_file_of_the_first_version_is_read_forever() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let imported = history.import(FIRST.into(), records::at(0)).await.unwrap();
    assert!(imported.rejected.is_empty(), "{:?}", imported.rejected);
    let file = exported(&history, &[imported.runs[0].id]).await;
    let file: Value = serde_json::from_slice(&file).unwrap();
    let first: Value = serde_json::from_str(FIRST).unwrap();
    for part in ["format", "runs"] {
        assert!(holds(&file[part], &first[part]), "{part}: {file:#}");
    }
}

#[test]
fn a_test_that_did_not_come_to_its_end_is_no_row() {
    use twospeed_history::llama_bench::Row;
    let run = records::run();
    let test = records::test(run.id, 0, records::model("a", "A"), records::spec(512, 0));
    let samples = [records::sample(&test, 0).sample];
    let row = |status| Row::of(&test, &records::end(&test, status), &samples);
    assert!(row(TestStatus::Done).is_some());
    assert!(row(TestStatus::Cancelled).is_none());
    assert!(row(TestStatus::Interrupted).is_none());
    let failed = TestStatus::Failed {
        code: "engine_crashed".into(),
        message: "It crashed.".into(),
        log: vec![],
    };
    assert!(
        row(failed).is_none(),
        "its samples are kept, and are no result"
    );
}
