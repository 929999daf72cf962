use twospeed_history::RunFilter;
use uuid::Uuid;

use crate::{open, records, usual_run};

#[tokio::test]
async fn deleting_is_undone_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let before = history.run(run.id).await.unwrap();

    history
        .delete_runs(&[run.id], records::at(700))
        .await
        .unwrap();
    assert!(
        history
            .runs(&RunFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
    let deleted = RunFilter {
        deleted: true,
        ..RunFilter::default()
    };
    assert_eq!(history.runs(&deleted).await.unwrap()[0].run.id, run.id);

    history.restore_runs(&[run.id]).await.unwrap();
    assert_eq!(history.run(run.id).await.unwrap(), before);
    assert!(history.runs(&deleted).await.unwrap().is_empty());
}

#[tokio::test]
async fn deleting_a_list_with_a_stranger_deletes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let refused = history
        .delete_runs(&[run.id, Uuid::nil()], records::at(700))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "unknown_run");
    assert_eq!(history.runs(&RunFilter::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_note_is_kept_as_written_and_an_empty_one_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, _) = usual_run(&history).await;
    let note = async || history.run(run.id).await.unwrap().unwrap().run.note;
    assert_eq!(note().await, None);
    let words = "with the fan on\n<b>\u{202e}\u{0} 'quoted' \u{1f680}";
    history.set_note(run.id, words).await.unwrap();
    assert_eq!(note().await.as_deref(), Some(words));
    history.set_note(run.id, "  \n").await.unwrap();
    assert_eq!(note().await, None);
}
