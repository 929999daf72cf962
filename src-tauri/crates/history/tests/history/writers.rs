use std::collections::HashSet;

use twospeed_history::RunFilter;
use twospeed_measure::Recorder;

use crate::{open, record, records};

/// Each of these has connections of its own, as separate processes have.
const WRITERS: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn writers_wait_for_each_other_and_none_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let folder = folder.path().to_owned();
        writers.push(tokio::spawn(async move {
            let history = open(&folder).await;
            let run = records::run();
            let tests: Vec<_> = (0..5)
                .map(|position| {
                    let model = records::model("aa", "Smol");
                    records::test(run.id, position, model, records::spec(512, 0))
                })
                .collect();
            record(&history, &run, &tests, 20).await;
            run.id
        }));
    }
    let mut expected = HashSet::new();
    for writer in writers {
        expected.insert(writer.await.unwrap());
    }
    let history = open(folder.path()).await;
    let runs = history.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(
        runs.iter()
            .map(|overview| overview.run.id)
            .collect::<HashSet<_>>(),
        expected
    );
    assert!(runs.iter().all(|overview| overview.samples == 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_import_and_a_rescan_do_not_stop_a_measurement() {
    let source = tempfile::tempdir().unwrap();
    let exporting = open(source.path()).await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        let run = records::run();
        let model = records::model("aa", "Smol");
        let tests: Vec<_> = (0..5)
            .map(|position| records::test(run.id, position, model.clone(), records::spec(512, 0)))
            .collect();
        record(&exporting, &run, &tests, 1).await;
        ids.push(run.id);
    }
    let mut file = Vec::new();
    exporting
        .export(&ids, records::at(0), &mut file)
        .await
        .unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (importing, measuring) = (open(folder.path()).await, open(folder.path()).await);
    let import = tokio::spawn(async move { importing.import(file, records::at(1)).await });
    let run = records::run();
    let model = records::model("aa", "Smol");
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    measuring.run_started(&run).await.unwrap();
    measuring.test_started(&test).await.unwrap();
    for index in 0..50 {
        measuring
            .sample(&records::sample(&test, index))
            .await
            .unwrap();
        measuring.runs(&RunFilter::default()).await.unwrap();
    }
    let imported = import.await.unwrap().unwrap();
    assert_eq!((imported.runs.len(), imported.rejected.len()), (100, 0));
    let runs = measuring.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_start_together_begin_one_history() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let starting: Vec<_> = (0..WRITERS)
            .map(|_| {
                let folder = folder.path().to_owned();
                tokio::spawn(async move {
                    let history = open(&folder).await;
                    let run = records::run();
                    history.run_started(&run).await.unwrap();
                    assert!(history.notices().is_empty(), "{:?}", history.notices());
                })
            })
            .collect();
        for start in starting {
            start.await.unwrap();
        }
        let history = open(folder.path()).await;
        let runs = history.runs(&RunFilter::default()).await.unwrap();
        assert_eq!(runs.len() as u32, WRITERS);
    }
}
