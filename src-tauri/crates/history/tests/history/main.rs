//! The history as its users see it: several processes, killed processes, unwilling disks.
#![allow(clippy::unwrap_used, clippy::panic)]

mod calibrations;
mod edit;
mod exchange;
mod folders;
mod foreign;
mod foreign_faults;
mod kill;
mod kinds;
mod open;
mod queries;
mod record;
#[allow(dead_code)] // Each side of the crate uses some of it.
mod records;
mod writers;

use std::path::Path;

use twospeed_history::History;
use twospeed_measure::{Recorder, RunRecord, TestRecord, TestStatus};

async fn open(folder: &Path) -> History {
    History::open(folder).await.unwrap()
}

/// Records a run with one finished test of each spec, `repetitions` samples each.
async fn record(history: &History, run: &RunRecord, tests: &[TestRecord], repetitions: u32) {
    history.run_started(run).await.unwrap();
    for test in tests {
        history.test_started(test).await.unwrap();
        for index in 0..repetitions {
            history.sample(&records::sample(test, index)).await.unwrap();
        }
        let end = records::end(test, TestStatus::Done);
        history.test_ended(&end).await.unwrap();
    }
    history
        .run_ended(run.id, records::at(600), true)
        .await
        .unwrap();
}

/// The usual run: prefill and decode of one model, two samples each.
async fn usual_run(history: &History) -> (RunRecord, Vec<TestRecord>) {
    let run = records::run();
    let model = records::model("aa", "Smol");
    let tests = vec![
        records::test(run.id, 0, model.clone(), records::spec(512, 0)),
        records::test(run.id, 1, model, records::spec(0, 128)),
    ];
    record(history, &run, &tests, 2).await;
    (run, tests)
}
