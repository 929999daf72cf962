use std::time::Duration;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("lease");
    (folder, place)
}

fn noon() -> Timestamp {
    "2026-05-20T12:00:00Z".parse().unwrap()
}

fn take(place: &Path, what: &str) -> Attempt {
    Lease::try_acquire(place, what, noon()).unwrap()
}

#[test]
fn the_second_is_told_who_has_it() {
    let (_folder, place) = folder();
    let Attempt::Held(lease) = take(&place, "bench") else {
        panic!("nobody has it");
    };
    let Attempt::Busy(Some(holder)) = take(&place, "scan") else {
        panic!("the first still has it");
    };
    assert_eq!(holder.what, "bench");
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(holder.since, noon());
    drop(lease);
    assert!(matches!(take(&place, "scan"), Attempt::Held(_)));
}

#[tokio::test]
async fn who_waits_gets_it_when_it_is_free() {
    let (_folder, place) = folder();
    let Attempt::Held(lease) = take(&place, "bench") else {
        panic!("nobody has it");
    };
    let (told, mut hears) = oneshot::channel();
    let waits = tokio::spawn({
        let place = place.clone();
        async move {
            Lease::acquire(&place, "scan", noon, |holder| {
                told.send(holder.map(|holder| holder.what)).unwrap();
            })
            .await
        }
    });
    assert_eq!((&mut hears).await.unwrap().as_deref(), Some("bench"));
    assert!(!waits.is_finished());
    drop(lease);
    let held = waits.await.unwrap().unwrap();
    let Attempt::Busy(Some(holder)) = take(&place, "other") else {
        panic!("it was handed on");
    };
    assert_eq!(holder.what, "scan");
    drop(held);
}

#[tokio::test]
async fn who_gives_up_waiting_does_not_keep_it() {
    let (_folder, place) = folder();
    let Attempt::Held(lease) = take(&place, "bench") else {
        panic!("nobody has it");
    };
    let wait = Lease::acquire(&place, "scan", noon, |_| {});
    assert!(
        tokio::time::timeout(Duration::from_millis(50), wait)
            .await
            .is_err()
    );
    drop(lease);
    let next = Lease::acquire(&place, "next", noon, |_| {});
    let next = tokio::time::timeout(Duration::from_secs(5), next).await;
    assert!(next.is_ok(), "the thread that waited gave it back");
}

/// Runs in the process that the next test starts and kills.
#[test]
#[ignore = "the other process of a_process_that_is_killed_lets_go"]
fn hold_the_lease_until_killed() {
    let place = PathBuf::from(std::env::var_os("LEASE_OF_A_TEST").unwrap());
    let _lease = take(&place, "other");
    println!("held");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_process_that_is_killed_lets_go() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let (_folder, place) = folder();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lease::tests::hold_the_lease_until_killed"])
        .args(["--ignored", "--nocapture"])
        .env("LEASE_OF_A_TEST", &place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("held")));
    let Attempt::Busy(holder) = take(&place, "bench") else {
        panic!("the other process has it");
    };
    if cfg!(unix) {
        let holder = holder.expect("it said who it is");
        assert_eq!((holder.pid, holder.what.as_str()), (other.id(), "other"));
    }
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(matches!(take(&place, "bench"), Attempt::Held(_)));
}

#[cfg(unix)]
#[test]
fn every_user_can_open_what_the_first_one_made() {
    use std::os::unix::fs::PermissionsExt;

    let (_folder, place) = folder();
    let _lease = take(&place, "bench");
    let mode = std::fs::metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
}

#[cfg(unix)]
#[test]
fn a_link_or_a_folder_or_a_pipe_in_its_place_is_refused() {
    let (folder, place) = folder();
    let target = folder.path().join("target");
    std::fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, &place).unwrap();
    let refuse = || Lease::try_acquire(&place, "bench", noon()).unwrap_err();
    assert!(matches!(refuse(), LeaseError::NotAFile { .. }));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");

    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    assert!(matches!(refuse(), LeaseError::NotAFile { .. }));

    std::fs::remove_dir(&place).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = refuse();
    assert!(matches!(error, LeaseError::NotAFile { .. }));
    assert!(error.to_string().ends_with("Remove it."));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let (folder, _) = folder();
    let place = folder.path().join("missing/lease");
    let sentence = Lease::try_acquire(&place, "bench", noon())
        .unwrap_err()
        .to_string();
    assert!(sentence.contains("missing"), "{sentence}");
}

#[test]
fn a_file_that_was_swept_away_is_made_again() {
    let (_folder, place) = folder();
    let Attempt::Held(lease) = take(&place, "bench") else {
        panic!("nobody has it");
    };
    drop(lease);
    std::fs::remove_file(&place).unwrap();
    assert!(matches!(take(&place, "bench"), Attempt::Held(_)));
}

#[test]
fn nonsense_in_the_file_is_an_unknown_holder() {
    let (_folder, place) = folder();
    std::fs::write(&place, "not json").unwrap();
    let file = File::open(&place).unwrap();
    file.lock().unwrap();
    assert!(matches!(take(&place, "bench"), Attempt::Busy(None)));
}

#[test]
fn every_process_of_the_machine_looks_in_the_same_place() {
    assert_eq!(place(), place());
    assert!(place().is_absolute());
}
