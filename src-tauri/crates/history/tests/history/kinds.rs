//! Tests that are more than one speed.

use std::path::Path;

use sqlx::{Connection, SqliteConnection};
use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{PageCache, QualityReading, Reading, ServedReading, UsersReading};
use twospeed_history::tables::{self, TableForm};
use twospeed_history::{HistoryError, LatestFilter, TunedRecord};
use twospeed_measure::{Conditions, Kind, Recorder, RunRecord, TestRecord, TestStatus};
use uuid::Uuid;

use crate::{open, records, usual_run};

fn served(n_reused: u32) -> ServedReading {
    ServedReading {
        n_prompt: 512,
        n_reused,
        n_shared: 511,
        tokenize_ns: 1,
        prefill_ns: 2,
        first_sample_ns: 3,
        ttft_ns: 6,
        first_decode_ns: None,
        n_generated: 1,
        decode_ns: 0,
    }
}

fn kinds() -> Vec<(Kind, TestSpec, Reading)> {
    let spec = |n_prompt, n_gen| TestSpec {
        n_prompt,
        n_gen,
        n_depth: 0,
    };
    let users = |users| Kind::Users {
        users,
        split_kv: true,
        shared_prompt: false,
    };
    let side_by_side = Reading::Users(UsersReading {
        prefill_ns: 10,
        decode_ns: 2_000_000_000,
        ttft_ns: vec![4, 6, 9],
    });
    vec![
        (
            Kind::FirstToken {
                page_cache: PageCache::Drop,
            },
            spec(512, 1),
            Reading::Served {
                load: None,
                requests: vec![served(0)],
            },
        ),
        (
            Kind::PrefixCache { changed: 16 },
            spec(512, 1),
            Reading::Served {
                load: None,
                requests: vec![served(0), served(511), served(496)],
            },
        ),
        (users(2), spec(32, 8), side_by_side.clone()),
        (users(4), spec(32, 8), side_by_side),
        (
            Kind::Quality {
                n_ctx: 512,
                text: None,
                base: Some(Box::new(records::model("bb", "Base"))),
            },
            // The whole text, however long.
            spec(0, 0),
            Reading::Quality(QualityReading {
                n_ctx: 512,
                chunks: 3,
                n_scored: 765,
                perplexity: 12.5,
                perplexity_error: 0.25,
                against_base: None,
            }),
        ),
    ]
}

/// A run with a speed and a test of each kind, all done.
async fn every_kind(folder: &Path) -> (twospeed_history::History, RunRecord, Vec<TestRecord>) {
    let history = open(folder).await;
    let run = records::run();
    history.run_started(&run).await.unwrap();
    let mut tests = vec![records::test(
        run.id,
        0,
        records::model("aa", "Smol"),
        records::spec(512, 0),
    )];
    let mut readings = vec![None];
    for (kind, spec, reading) in kinds() {
        let position = u32::try_from(tests.len()).unwrap();
        tests.push(TestRecord {
            kind,
            ..records::test(run.id, position, records::model("aa", "Smol"), spec)
        });
        readings.push(Some(reading));
    }
    for (test, reading) in tests.iter().zip(readings) {
        history.test_started(test).await.unwrap();
        let mut sample = records::sample(test, 0);
        sample.sample.reading = reading;
        sample.conditions = Conditions {
            energy_j: Some(1.5),
            ..Conditions::default()
        };
        history.sample(&sample).await.unwrap();
        history
            .test_ended(&records::end(test, TestStatus::Done))
            .await
            .unwrap();
    }
    history
        .run_ended(run.id, records::at(600), true)
        .await
        .unwrap();
    (history, run, tests)
}

#[tokio::test]
async fn each_kind_is_found_by_itself_and_speeds_are_speeds_only() {
    let folder = tempfile::tempdir().unwrap();
    let (history, run, tests) = every_kind(folder.path()).await;
    let filter = LatestFilter::default();
    let latest = history.latest(&filter).await.unwrap();
    assert_eq!(latest[0].tests.len(), 1);
    assert_eq!(latest[0].tests[0].record, tests[0]);
    assert_eq!(history.finished_tests(&filter).await.unwrap().len(), 1);
    for (kind, count) in [
        ("first_token", 1),
        ("prefix_cache", 1),
        ("users", 2),
        ("quality", 1),
    ] {
        let found = history.latest_of(kind, &filter).await.unwrap();
        assert_eq!(
            found.iter().map(|run| run.tests.len()).sum::<usize>(),
            count,
            "{kind}"
        );
        assert_eq!(
            history.finished_of(kind, &filter).await.unwrap().len(),
            count,
            "{kind}"
        );
    }
    let whole = history.run(run.id).await.unwrap().unwrap();
    assert_eq!(
        whole
            .tests
            .iter()
            .map(|test| test.record.clone())
            .collect::<Vec<_>>(),
        tests
    );
    assert!(whole.tests[4].samples[0].sample.reading.is_some());
    assert_eq!(whole.tests[4].samples[0].conditions.energy_j, Some(1.5));
}

#[tokio::test]
async fn every_kind_survives_an_export() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (history, run, _) = every_kind(here.path()).await;
    let mut file = Vec::new();
    let left_out = history
        .export(&[run.id], records::at(0), &mut file)
        .await
        .unwrap();
    assert!(left_out.is_empty());
    let other = open(there.path()).await;
    let imported = other.import(file, records::at(1)).await.unwrap();
    assert!(imported.rejected.is_empty(), "{:?}", imported.rejected);
    let (mine, theirs) = (
        history.run(run.id).await.unwrap().unwrap(),
        other.run(run.id).await.unwrap().unwrap(),
    );
    assert_eq!(theirs.tests, mine.tests);
}

#[tokio::test]
async fn tables_name_what_they_hold() {
    let folder = tempfile::tempdir().unwrap();
    let (history, run, _) = every_kind(folder.path()).await;
    let runs = [history.run(run.id).await.unwrap().unwrap()];
    let csv = |kind: &str| {
        let mut out = Vec::new();
        let tests = tables::write(kind, TableForm::Csv, &runs, &mut out).unwrap();
        assert!(tests > 0, "{kind}");
        String::from_utf8(out).unwrap()
    };
    let cell = |text: &str, line: usize, name: &str| {
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let at = names
            .iter()
            .position(|other| *other == name)
            .unwrap_or_else(|| panic!("{name}: {names:?}"));
        lines.nth(line).unwrap()[at].trim_matches('"').to_owned()
    };
    let prefix = csv("prefix_cache");
    assert_eq!(prefix.lines().count(), 4);
    assert_eq!(cell(&prefix, 1, "request"), "repeated");
    assert_eq!(cell(&prefix, 1, "reused_tokens"), "511");
    let users = csv("users");
    // 4 users with 8 tokens each in 2 s.
    assert_eq!(cell(&users, 1, "decode_tok_s"), "16.000000");
    assert_eq!(cell(&users, 1, "decode_tok_s_per_user"), "4.000000");
    assert_eq!(cell(&users, 0, "ttft_worst_ns"), "9");
    assert_eq!(cell(&csv("first_token"), 0, "ttft_ns"), "6");
    assert_eq!(cell(&csv("quality"), 0, "perplexity"), "12.5");
    assert_eq!(cell(&csv("quality"), 0, "kl_mean"), "", "unknown is empty");
    let mut table = Vec::new();
    tables::write("quality", TableForm::Markdown, &runs, &mut table).unwrap();
    assert_eq!(String::from_utf8(table).unwrap().lines().count(), 3);
}

/// Changes the file as a newer version might have written it.
async fn change(folder: &Path, sql: &'static str) {
    let path = folder.join("history.sqlite");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display()))
        .await
        .unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_test_of_a_newer_kind_is_named_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (history, run, tests) = every_kind(folder.path()).await;
    history.close().await;
    change(
        folder.path(),
        r#"UPDATE test SET kind = 'dreams', kind_detail = '{"name":"dreams"}' WHERE position = 1;
           UPDATE run SET plan = '{"tests":[{"kind":{"name":"dreams"}}]}'"#,
    )
    .await;
    let history = open(folder.path()).await;
    let whole = history.run(run.id).await.unwrap().unwrap();
    assert_eq!(whole.tests.len(), tests.len() - 1);
    let reasons: Vec<_> = whole
        .unreadable
        .iter()
        .map(|part| part.reason.as_str())
        .collect();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("test 1") && reason.contains("dreams")),
        "{reasons:?}"
    );
    assert!(
        whole.plan.is_none() && reasons.iter().any(|reason| reason.contains("plan")),
        "{reasons:?}"
    );
    assert_eq!(
        history
            .latest(&LatestFilter::default())
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        history.whole_runs(&Default::default()).await.unwrap()[0]
            .unreadable
            .len(),
        2
    );
    assert!(history.resumable().await.unwrap().is_empty());
    let mut file = Vec::new();
    let left_out = history
        .export(&[run.id], records::at(0), &mut file)
        .await
        .unwrap();
    assert_eq!(left_out.len(), 2);
}

#[tokio::test]
async fn a_newer_kind_in_an_export_is_named_and_the_rest_of_its_run_comes_in() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (history, run, tests) = every_kind(here.path()).await;
    let mut file = Vec::new();
    history
        .export(&[run.id], records::at(0), &mut file)
        .await
        .unwrap();
    let mut file: serde_json::Value = serde_json::from_slice(&file).unwrap();
    file["runs"][0]["tests"][2]["kind"] = serde_json::json!({"name": "dreams"});
    let other = open(there.path()).await;
    let imported = other
        .import(serde_json::to_vec(&file).unwrap(), records::at(1))
        .await
        .unwrap();
    assert_eq!(imported.runs[0].taken, tests.len() - 1);
    let reason = &imported.rejected[0].reason;
    assert!(
        reason.contains("test 2") && reason.contains("dreams"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_run_that_was_stopped_can_be_found_with_what_it_tried() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (complete, _) = usual_run(&history).await;
    let stopped = records::run();
    history.run_started(&stopped).await.unwrap();
    let test = records::test(
        stopped.id,
        0,
        records::model("aa", "Smol"),
        records::spec(512, 0),
    );
    history.test_started(&test).await.unwrap();
    history
        .test_ended(&records::end(&test, TestStatus::Cancelled))
        .await
        .unwrap();
    assert!(history.resumable().await.unwrap().is_empty(), "it runs");
    history
        .run_ended(stopped.id, records::at(99), false)
        .await
        .unwrap();

    let found = history.resume_of(None).await.unwrap();
    assert_eq!(found.record, stopped);
    let tried: Vec<_> = found
        .tests
        .iter()
        .map(|test| (test.position, test.status.clone()))
        .collect();
    assert_eq!(tried, [(0, Some(TestStatus::Cancelled))]);
    let tail = stopped.id.to_string()[24..].to_owned();
    assert_eq!(history.resume_of(Some(&tail)).await.unwrap(), found);

    let error = history
        .resume_of(Some(&complete.id.to_string()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("it is complete"), "{error}");
    history
        .delete_runs(&[stopped.id], records::at(100))
        .await
        .unwrap();
    let error = history.resume_of(None).await.unwrap_err();
    assert!(matches!(error, HistoryError::NothingToResume));
}

#[tokio::test]
async fn of_tuned_settings_the_newest_count() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let tuned = |target: &str, at: i64, gain: f64| TunedRecord {
        id: Uuid::now_v7(),
        at: records::at(at),
        machine: run.machine.id.clone(),
        model: "aa".into(),
        target: target.into(),
        variant: Some("icelake".into()),
        settings: records::settings(),
        gain,
        gain_low: None,
        run: Some(run.id),
    };
    let (old, new, other) = (
        tuned("decode", 1, 1.1),
        tuned("decode", 2, 1.2),
        tuned("mix:512,128", 3, 1.3),
    );
    for record in [&new, &old, &other] {
        history.keep_tuned(record).await.unwrap();
    }
    let machine = &run.machine.id;
    assert_eq!(
        history.tuned(machine, "aa", "decode").await.unwrap(),
        Some(new.clone())
    );
    assert_eq!(history.tuned(machine, "aa", "prefill").await.unwrap(), None);
    assert_eq!(
        history.tuned_for(machine, "aa").await.unwrap(),
        [other.clone(), new.clone()]
    );
    assert_eq!(history.tuned_on(machine).await.unwrap(), [other, new]);
    let stranger = TunedRecord {
        model: "zz".into(),
        ..tuned("decode", 4, 1.0)
    };
    let error = history.keep_tuned(&stranger).await.unwrap_err();
    assert_eq!(error.code(), "impossible");
}
