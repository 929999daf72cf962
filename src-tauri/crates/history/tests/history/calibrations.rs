//! Calibrations, and the results that belong beside them.

use std::path::Path;

use sqlx::{Connection, SqliteConnection};
use twospeed_estimate::{Bytes, Calibration, KernelReading};
use twospeed_history::{AlikeFilter, History, HistoryError};
use twospeed_measure::{Recorder, TestRecord, TestStatus};
use uuid::Uuid;

use crate::{open, records};

fn calibration(variant: &str, threads: u32, seconds: i64) -> Calibration {
    Calibration {
        id: Uuid::now_v7().to_string(),
        at: records::at(seconds).to_string(),
        backend: "CPU".into(),
        variant: variant.into(),
        threads,
        build: 11434,
        ubatch: 512,
        last_level_cache: Some(Bytes::mib(300)),
        reads: Vec::new(),
        kernels: vec![KernelReading {
            kernel: serde_json::from_value(serde_json::json!({
                "kernel": "matrix", "tensor_type": "Q4_K", "inner": 2048, "rows": 1024,
                "columns": 1, "set_bytes": 1 << 30,
            }))
            .unwrap(),
            // A number that needs all its digits.
            ns: 93_701.1 + 1.0 / 3.0,
            spread_ns: 0.0,
            repacked: true,
        }],
        step_ns: Some(4_000.25),
    }
}

async fn keep(history: &History, calibration: &Calibration) {
    history
        .keep_calibration(&records::machine(), calibration)
        .await
        .unwrap();
}

async fn known(history: &History) -> Vec<Calibration> {
    history.calibrations(&records::machine().id).await.unwrap()
}

#[tokio::test]
async fn of_each_key_the_newest_counts_and_nothing_of_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    assert_eq!(known(&history).await, []);
    let old = calibration("icelake", 2, 0);
    let new = calibration("icelake", 2, 10);
    let other = calibration("icelake", 4, 5);
    for one in [&new, &old, &other] {
        keep(&history, one).await;
    }
    assert_eq!(known(&history).await, [new.clone(), other.clone()]);
    assert_eq!(history.calibrations("another").await.unwrap(), []);
    let mut wide = calibration("icelake", 2, 20);
    wide.ubatch = 1024;
    keep(&history, &wide).await;
    assert_eq!(known(&history).await, [wide, new, other]);
}

#[tokio::test]
async fn what_a_variant_took_is_void_once_it_died() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (dies, lives) = (calibration("icelake", 2, 1), calibration("haswell", 2, 0));
    keep(&history, &dies).await;
    keep(&history, &lives).await;
    let aside = |variant| {
        let (machine, engine) = (records::machine(), records::engine());
        let history = history.clone();
        async move {
            history
                .set_variant_aside(&machine, &engine, variant, "SIGILL")
                .await
                .unwrap();
        }
    };
    aside("sapphirerapids").await;
    assert_eq!(known(&history).await.len(), 2);
    aside("icelake").await;
    assert_eq!(known(&history).await, [lives]);
}

#[tokio::test]
async fn what_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let machine = records::machine();
    let whole = calibration("icelake", 2, 0);
    let refused = |change: fn(&mut Calibration)| {
        let mut broken = whole.clone();
        change(&mut broken);
        broken
    };
    for broken in [
        refused(|one| one.id = "seven".into()),
        refused(|one| one.at = "yesterday".into()),
        refused(|one| one.kernels[0].ns = f64::NAN),
        refused(|one| one.threads = 0),
        refused(|one| one.variant.clear()),
    ] {
        let error = history.keep_calibration(&machine, &broken).await;
        assert!(error.is_err(), "{broken:?}");
    }
    assert!(matches!(
        history
            .keep_calibration(&machine, &refused(|one| one.id = "seven".into()))
            .await,
        Err(HistoryError::Impossible { .. })
    ));
    assert_eq!(known(&history).await, []);
}

/// Whatever it holds, as another program sees it.
async fn on(path: &Path, sql: &str) {
    let url = format!("sqlite:{}", path.display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_as_good_as_none_and_no_json_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (broken, whole) = (calibration("icelake", 2, 1), calibration("icelake", 4, 0));
    keep(&history, &broken).await;
    keep(&history, &whole).await;
    let path = history.path().to_owned();
    let id = &broken.id;
    on(
        &path,
        &format!("UPDATE calibration SET record = '{{}}' WHERE id = '{id}'"),
    )
    .await;
    assert_eq!(known(&history).await, [whole]);
    let url = format!("sqlite:{}", path.display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let no_json = sqlx::query("UPDATE calibration SET record = 'x'")
        .execute(&mut connection)
        .await;
    assert!(no_json.is_err(), "the table itself refuses it");
}

#[tokio::test]
async fn a_history_of_version_three_takes_calibrations_and_keeps_what_it_held() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    history.run_started(&run).await.unwrap();
    let path = history.path().to_owned();
    history.close().await;
    // As the version before left it.
    on(&path, "DROP TABLE calibration; PRAGMA user_version = 3").await;
    let history = open(folder.path()).await;
    let one = calibration("icelake", 2, 0);
    keep(&history, &one).await;
    assert_eq!(known(&history).await, [one]);
    assert!(history.run(run.id).await.unwrap().is_some());
}

fn filter() -> AlikeFilter {
    AlikeFilter {
        machine: records::machine().id,
        build: 11434,
        variant: "icelake".into(),
        backend: "CPU".into(),
        threads: records::settings().n_threads,
        limit: 3,
    }
}

async fn alike(history: &History, change: impl FnOnce(&mut AlikeFilter)) -> Vec<Uuid> {
    let mut filter = filter();
    change(&mut filter);
    history.tests_alike(&filter).await.unwrap()
}

/// A finished test in a run of its own.
async fn measured(history: &History, change: impl FnOnce(&mut TestRecord)) -> TestRecord {
    let run = records::run();
    history.run_started(&run).await.unwrap();
    let mut test = records::test(
        run.id,
        0,
        records::model("aa", "Smol"),
        records::spec(512, 0),
    );
    change(&mut test);
    history.test_started(&test).await.unwrap();
    history.sample(&records::sample(&test, 0)).await.unwrap();
    history
        .test_ended(&records::end(&test, TestStatus::Done))
        .await
        .unwrap();
    test
}

#[tokio::test]
async fn only_own_sound_results_of_the_same_conditions_stand_beside_a_calibration() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    assert_eq!(history.last_engine("5f2c").await.unwrap(), None);
    let first = measured(&history, |_| ()).await;
    let second = measured(&history, |test| test.started_at = records::at(100)).await;
    measured(&history, |test| {
        test.model = records::model("bb", "Made");
        test.model.synthetic = true;
    })
    .await;
    measured(&history, |test| {
        test.kind = twospeed_measure::Kind::FirstToken {
            page_cache: twospeed_engine::protocol::PageCache::Warm,
        };
    })
    .await;
    let ours = [second.id, first.id];
    assert_eq!(alike(&history, |_| ()).await, ours);
    assert_eq!(alike(&history, |filter| filter.limit = 1).await, ours[..1]);
    for other in [
        (|filter| filter.machine = "other".into()) as fn(&mut AlikeFilter),
        |filter| filter.build = 11435,
        |filter| filter.variant = "haswell".into(),
        |filter| filter.backend = "Vulkan".into(),
        |filter| filter.threads = 1,
    ] {
        let others = alike(&history, other).await;
        assert!(others.is_empty(), "another condition: {others:?}");
    }
    let tests = history.tests(&ours).await.unwrap();
    assert_eq!(tests.len(), 2);
    assert_eq!(tests[0].samples.len(), 1);
    // Suspect, even if allowed.
    let path = history.path().to_owned();
    let id = second.id;
    on(
        &path,
        &format!("UPDATE test SET suspect = 's', allowed_at = started_at WHERE id = '{id}'"),
    )
    .await;
    assert_eq!(alike(&history, |_| ()).await, [first.id]);
    let imported = format!(
        "UPDATE run SET origin = 'imported' WHERE id = '{}'",
        first.run
    );
    on(&path, &imported).await;
    assert!(alike(&history, |_| ()).await.is_empty());

    let last = history.last_engine("5f2c").await.unwrap().unwrap();
    assert_eq!(last.build, records::engine());
    assert_eq!(last.backend, "CPU");
    assert_eq!(last.variants[0].name, "icelake");
    assert_eq!(last.at, second.started_at);
}
