//! Folders and files that may not be written.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// Runs work as a person without a superuser's power over permissions, also when the tests
/// run as root (containers do).
fn as_anyone<T: Send>(work: impl AsyncFnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            give_up_powers();
            // The threads of this runtime and of SQLite inherit what is left.
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(work())
        });
        thread.join().unwrap()
    })
}

#[cfg(target_os = "linux")]
fn give_up_powers() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut powers = capabilities(None).unwrap();
    let over_files = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    powers.effective -= over_files;
    set_capabilities(None, powers).unwrap();
}

#[cfg(not(target_os = "linux"))]
fn give_up_powers() {}

/// Takes the right to write from a folder and all in it, until dropped.
struct WithoutWriting<'f>(&'f Path);

impl<'f> WithoutWriting<'f> {
    fn new(folder: &'f Path) -> Self {
        set_modes(folder, 0o555, 0o444);
        Self(folder)
    }
}

impl Drop for WithoutWriting<'_> {
    fn drop(&mut self) {
        set_modes(self.0, 0o755, 0o644);
    }
}

fn set_modes(folder: &Path, of_folder: u32, of_files: u32) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        fs::set_permissions(path, PermissionsExt::from_mode(of_files)).unwrap();
    }
    fs::set_permissions(folder, PermissionsExt::from_mode(of_folder)).unwrap();
}

async fn is_read_but_not_written(folder: &Path, run: &RunRecord) {
    let history = open(folder).await;
    let expected = Notice::ReadOnly { path: file(folder) };
    assert_eq!(history.notices(), [expected]);
    assert!(history.is_read_only());
    let whole = history.run(run.id).await.unwrap().unwrap();
    let samples: usize = whole.tests.iter().map(|test| test.samples.len()).sum();
    assert_eq!(samples, 4, "what lies in the log is seen too");
    let mut file = Vec::new();
    history
        .export(&[run.id], records::at(0), &mut file)
        .await
        .unwrap();
    let sentence = history
        .run_started(&records::run())
        .await
        .unwrap_err()
        .message;
    assert!(sentence.contains("read-only"), "{sentence}");
    let error = history.set_note(run.id, "x").await.unwrap_err();
    assert_eq!(error.code(), "read_only");
}

#[test]
fn a_history_in_a_read_only_folder_can_be_read() {
    as_anyone(async || {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path()).await;
        let (run, _) = usual_run(&history).await;
        history.close().await;
        let _locked = WithoutWriting::new(folder.path());
        is_read_but_not_written(folder.path(), &run).await;
    });
}

#[test]
fn a_read_only_history_is_read_with_what_a_killed_process_left_in_its_log() {
    as_anyone(async || {
        let source = tempfile::tempdir().unwrap();
        let (run, _in_use) = leave_in_use(source.path()).await;
        for with_index in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            for entry in fs::read_dir(source.path()).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name();
                if with_index || name != "history.sqlite-shm" {
                    fs::copy(entry.path(), folder.path().join(name)).unwrap();
                }
            }
            let _locked = WithoutWriting::new(folder.path());
            is_read_but_not_written(folder.path(), &run).await;
        }
    });
}

#[test]
fn a_history_that_alone_is_read_only_can_be_read() {
    as_anyone(async || {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path()).await;
        let (run, _) = usual_run(&history).await;
        history.close().await;
        let mode = PermissionsExt::from_mode(0o444);
        fs::set_permissions(file(folder.path()), mode).unwrap();
        is_read_but_not_written(folder.path(), &run).await;
    });
}

#[test]
fn a_read_only_folder_without_a_history_is_named() {
    as_anyone(async || {
        let folder = tempfile::tempdir().unwrap();
        let _locked = WithoutWriting::new(folder.path());
        let error = refused(folder.path()).await;
        assert_eq!(error.code(), "nothing_to_read", "{error}");
        let error = refused(&folder.path().join("deeper")).await;
        assert_eq!(error.code(), "folder_not_made", "{error}");
    });
}

#[test]
fn a_damaged_history_in_a_read_only_folder_is_left_where_it_is() {
    as_anyone(async || {
        let folder = tempfile::tempdir().unwrap();
        fs::write(file(folder.path()), "garbage, garbage").unwrap();
        let _locked = WithoutWriting::new(folder.path());
        let error = refused(folder.path()).await;
        assert_eq!(error.code(), "damaged_read_only", "{error}");
        assert_eq!(fs::read(file(folder.path())).unwrap(), b"garbage, garbage");
    });
}
