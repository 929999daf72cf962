#[cfg(unix)]
mod read_only;

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions, Connection, SqliteConnection};
use twospeed_history::{History, Notice, RunFilter, RunStatus};
use twospeed_measure::platform;
use twospeed_measure::{Recorder, RunRecord, TestStatus};

use crate::{open, record, records, usual_run};

fn file(folder: &Path) -> PathBuf {
    folder.join("history.sqlite")
}

async fn refused(folder: &Path) -> twospeed_history::HistoryError {
    History::open(folder).await.unwrap_err()
}

/// A connection past the history, as another program would make.
async fn raw(path: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap()
}

async fn count_runs(history: &History) -> usize {
    history.runs(&RunFilter::default()).await.unwrap().len()
}

#[tokio::test]
async fn the_folder_is_made_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a/b/c", "with space %20 ?mode=ro#x 'q' \u{fc}\u{1f680}"] {
        let folder = folder.path().join(name);
        let history = open(&folder).await;
        usual_run(&history).await;
        assert_eq!(history.path(), file(&folder));
        assert!(file(&folder).is_file());
        assert_eq!(count_runs(&open(&folder).await).await, 1);
    }
}

#[tokio::test]
async fn a_file_in_the_place_of_the_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("data");
    fs::write(&in_the_way, "mine").unwrap();
    for folder in [in_the_way.clone(), in_the_way.join("deeper")] {
        let error = refused(&folder).await;
        assert_eq!(error.code(), "folder_is_file", "{error}");
        assert!(error.to_string().contains("data"), "{error}");
    }
    assert_eq!(fs::read_to_string(&in_the_way).unwrap(), "mine");
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_history_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(file(folder.path())).unwrap();
    assert_eq!(refused(folder.path()).await.code(), "not_a_file");
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_whose_name_is_no_unicode_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"\xff");
    assert_eq!(
        refused(&folder.path().join(name)).await.code(),
        "folder_name"
    );
}

#[tokio::test]
async fn a_history_of_a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    usual_run(&history).await;
    history.close().await;
    let mut newer = raw(&file(folder.path())).await;
    sqlx::raw_sql("PRAGMA user_version = 99; CREATE TABLE of_the_future (x);")
        .execute(&mut newer)
        .await
        .unwrap();
    newer.close().await.unwrap();
    let before = fs::read(file(folder.path())).unwrap();

    let error = refused(folder.path()).await;
    assert_eq!(error.code(), "newer");
    assert!(error.to_string().contains("99"), "{error}");
    assert!(error.to_string().contains("Update Twospeed"), "{error}");
    assert!(
        fs::read(file(folder.path())).unwrap() == before,
        "not a byte changed"
    );
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = raw(&file(folder.path())).await;
    sqlx::raw_sql("CREATE TABLE moz_places (url TEXT);")
        .execute(&mut other)
        .await
        .unwrap();
    other.close().await.unwrap();
    let before = fs::read(file(folder.path())).unwrap();
    assert_eq!(refused(folder.path()).await.code(), "not_ours");
    assert!(
        fs::read(file(folder.path())).unwrap() == before,
        "not a byte changed"
    );
}

#[tokio::test]
async fn an_empty_file_is_where_a_history_begins() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(file(folder.path()), "").unwrap();
    let history = open(folder.path()).await;
    assert!(history.notices().is_empty());
    usual_run(&history).await;
}

/// Opens a damaged history: it must lie under another name, byte for byte, and the fresh one work.
async fn is_set_aside(folder: &Path, damaged: &[u8]) {
    let history = open(folder).await;
    let [
        Notice::SetAside {
            path,
            kept_as,
            reason,
        },
    ] = history.notices()
    else {
        panic!("{:?}", history.notices());
    };
    assert_eq!(path, &file(folder));
    assert!(fs::read(kept_as).unwrap() == damaged, "kept as it was");
    let name = kept_as.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("history.damaged-2"), "{name}");
    assert!(!reason.is_empty());
    let sentence = history.notices()[0].to_string();
    assert!(sentence.contains(name), "{sentence}");
    assert_eq!(count_runs(&history).await, 0);
    usual_run(&history).await;
    history.close().await;
    assert!(open(folder).await.notices().is_empty(), "told once");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_set_aside() {
    for garbage in [&b"<!DOCTYPE html><html>"[..], &[0; 8192], &[0xff; 100]] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(file(folder.path()), garbage).unwrap();
        is_set_aside(folder.path(), garbage).await;
    }
}

#[tokio::test]
async fn a_truncated_history_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    usual_run(&history).await;
    history.close().await;
    let whole = fs::read(file(folder.path())).unwrap();
    for length in [whole.len() / 2, 4096, 100, 20] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(file(folder.path()), &whole[..length]).unwrap();
        is_set_aside(folder.path(), &whole[..length]).await;
    }
}

#[tokio::test]
async fn damage_that_a_read_meets_is_set_aside_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    let model = records::model("aa", "Smol");
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    record(&history, &run, &[test], 500).await;
    history.close().await;
    let mut bytes = fs::read(file(folder.path())).unwrap();
    let end = bytes.len() - 4096 * 3;
    bytes[end..].fill(0xa5);
    fs::write(file(folder.path()), &bytes).unwrap();

    let history = open(folder.path()).await;
    assert!(
        history.notices().is_empty(),
        "the start does not read so far"
    );
    let error = history.run(run.id).await.unwrap_err();
    assert_eq!(error.code(), "damaged", "{error}");
    history.close().await;
    is_set_aside(folder.path(), &bytes).await;
}

#[tokio::test]
async fn a_mark_of_damage_on_a_sound_history_costs_nothing_but_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    usual_run(&history).await;
    history.close().await;
    let mark = folder.path().join("history.sqlite-damaged");
    fs::write(&mark, "").unwrap();
    let history = open(folder.path()).await;
    assert!(history.notices().is_empty());
    assert_eq!(count_runs(&history).await, 1);
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_log_whose_history_is_gone_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("history.sqlite-wal");
    fs::write(&log, "what was committed last").unwrap();
    let history = open(folder.path()).await;
    let [Notice::SetAside { kept_as, .. }] = history.notices() else {
        panic!("{:?}", history.notices());
    };
    let mut kept_log = kept_as.clone().into_os_string();
    kept_log.push("-wal");
    let kept_log = fs::read_to_string(kept_log).unwrap();
    assert_eq!(kept_log, "what was committed last");
    usual_run(&history).await;
}

#[tokio::test]
async fn a_start_waits_for_another_that_is_at_work() {
    let folder = tempfile::tempdir().unwrap();
    let lock = fs::File::create(folder.path().join("history.lock")).unwrap();
    lock.lock().unwrap();
    let opening = tokio::spawn({
        let folder = folder.path().to_owned();
        async move { open(&folder).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!opening.is_finished());
    lock.unlock().unwrap();
    opening.await.unwrap();
}

/// Leaves a history as a killed process leaves it: what was committed lies in its log.
async fn leave_in_use(folder: &Path) -> (RunRecord, History) {
    let history = open(folder).await;
    let (run, _) = usual_run(&history).await;
    let log = fs::metadata(folder.join("history.sqlite-wal")).unwrap();
    assert!(log.len() > 0, "or this tests nothing");
    (run, history)
}

#[tokio::test]
async fn a_run_whose_process_is_gone_is_marked_interrupted_with_all_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let mut run = records::run();
    run.machine = platform::machine();
    let mut gone = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("--list")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    run.owner_pid = gone.id();
    gone.wait().unwrap();
    let model = records::model("aa", "Smol");
    let spec = records::spec(512, 0);
    let finished = records::test(run.id, 0, model.clone(), spec);
    let cut = records::test(run.id, 1, model, spec);
    history.run_started(&run).await.unwrap();
    history.test_started(&finished).await.unwrap();
    let done = records::end(&finished, TestStatus::Done);
    history.test_ended(&done).await.unwrap();
    history.test_started(&cut).await.unwrap();
    history.sample(&records::sample(&cut, 0)).await.unwrap();

    let history = open(folder.path()).await;
    let expected = Notice::Interrupted { runs: vec![run.id] };
    assert_eq!(history.notices(), [expected]);
    let whole = history.run(run.id).await.unwrap().unwrap();
    let last_sign_of_life = records::sample(&cut, 0).at;
    assert_eq!(whole.run.status, RunStatus::Interrupted);
    assert_eq!(whole.run.ended_at, Some(last_sign_of_life));
    assert_eq!(
        whole.tests[0].end,
        Some(done),
        "what had ended stays as it was"
    );
    let end = whole.tests[1].end.clone().unwrap();
    assert_eq!(end.status, TestStatus::Interrupted);
    assert_eq!(end.ended_at, last_sign_of_life);
    assert_eq!(whole.tests[1].samples, [records::sample(&cut, 0)]);
    assert!(open(folder.path()).await.notices().is_empty(), "told once");
}

#[tokio::test]
async fn a_run_that_goes_on_elsewhere_is_left_running() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let mut ours = records::run();
    ours.machine = platform::machine();
    history.run_started(&ours).await.unwrap();
    // Of another machine: its process ids say nothing here.
    let mut theirs = records::run();
    theirs.owner_pid = u32::MAX >> 2;
    history.run_started(&theirs).await.unwrap();
    let again = open(folder.path()).await;
    assert!(again.notices().is_empty(), "{:?}", again.notices());
    let runs = again.runs(&RunFilter::default()).await.unwrap();
    assert!(
        runs.iter()
            .all(|overview| overview.run.status == RunStatus::Running)
    );
}
