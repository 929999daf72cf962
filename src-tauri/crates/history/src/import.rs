//! Importing `twospeed.results/1`.
//!
//! A run is known by its id, so a file may come twice, or first cut short and then whole: an
//! import adds what is missing and never changes or removes what is there. Each run is one
//! transaction; what cannot be read or cannot be true is named, and the rest is kept.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use twospeed_measure::{SampleRecord, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

use crate::History;
use crate::columns::{Existing, time_text};
use crate::error::{Fault, HistoryError};
use crate::export::{ExportedRun, ExportedTest};
use crate::results_file::{self, ResultsFile};
use crate::run::RunStatus;
use crate::write::{self, Facts};

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// The runs of the file that could be read, in its order.
    pub runs: Vec<ImportedRun>,
    /// What could not be kept.
    pub rejected: Vec<Rejected>,
}

/// One run of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// The run.
    pub id: Uuid,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is new.
    Added,
    /// It was there; tests, samples or its end were missing and are there now.
    Completed,
    /// It was there, deleted, and is back.
    Restored,
    /// It was there with all that the file holds.
    AlreadyThere,
}

/// A part of the file that was not kept, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Which run of the file, counted from 1; `None` when it is the file's end that is missing.
    pub run: Option<usize>,
    /// Line of the file, where it is known.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

impl History {
    /// Imports the runs of a file that [`History::export`] wrote.
    ///
    /// Errors: [`HistoryError::NotAnExport`] and [`HistoryError::NewerExport`] before anything is
    /// stored. A disk that fills up ends the import; the runs before are kept whole.
    pub async fn import(&self, file: Vec<u8>, at: Timestamp) -> Result<Imported, HistoryError> {
        let file = tokio::task::spawn_blocking(move || results_file::read(&file))
            .await
            .expect("BUG: reading JSON does not panic")?;
        let ResultsFile { runs, cut_short } = file;
        let mut imported = Imported::default();
        for (number, run) in runs.into_iter().enumerate() {
            let reject = |reason| Rejected {
                run: Some(number + 1),
                line: None,
                reason,
            };
            let run: ExportedRun = match serde_json::from_value(run) {
                Ok(run) => run,
                Err(error) => {
                    imported.rejected.push(reject(error.to_string()));
                    continue;
                }
            };
            let id = run.id;
            match self.import_run(run, at).await {
                Ok(outcome) => imported.runs.push(ImportedRun { id, outcome }),
                Err(HistoryError::Impossible { reason }) => {
                    imported
                        .rejected
                        .push(reject(format!("run {id}: {reason}")));
                }
                Err(error) => return Err(error),
            }
        }
        imported.rejected.extend(cut_short);
        Ok(imported)
    }

    async fn import_run(&self, run: ExportedRun, at: Timestamp) -> Result<Outcome, HistoryError> {
        let mut writing = self.writing().await?;
        let written = store(&mut writing, run, at).await;
        self.finish(writing, written).await
    }
}

async fn store(
    connection: &mut SqliteConnection,
    run: ExportedRun,
    at: Timestamp,
) -> Result<Outcome, Fault> {
    write::machine(connection, &run.machine).await?;
    let added = write::run_columns(
        run.id,
        run.started_at,
        &run.machine,
        &run.app_version,
        &run.preset,
    )
    .set("origin", "imported")
    .time("imported_at", at)
    .word("status", Some(&settled(run.status)))
    .time("ended_at", run.ended_at)
    .set("note", run.note.as_deref())
    .json("extra", Some(&run.extra).filter(|extra| !extra.is_empty()))
    .insert(connection, "run", Existing::Keep)
    .await?;
    let mut changed = false;
    for test in run.tests {
        changed |= store_test(connection, run.id, test).await?;
    }
    if added {
        return Ok(Outcome::Added);
    }
    changed |= complete_run(connection, run.id, run.status, run.ended_at).await?;
    Ok(match undelete(connection, run.id).await? {
        true => Outcome::Restored,
        false if changed => Outcome::Completed,
        false => Outcome::AlreadyThere,
    })
}

/// A run that was exported while it ran is here as one that was cut off: nothing more comes of
/// it, unless a later export brings its end.
fn settled(status: RunStatus) -> RunStatus {
    match status {
        RunStatus::Running => RunStatus::Interrupted,
        ended => ended,
    }
}

/// Adds what is missing of a test; `true` when something was.
async fn store_test(
    connection: &mut SqliteConnection,
    run: Uuid,
    test: ExportedTest,
) -> Result<bool, Fault> {
    let (test, extra) = test.into_records(run);
    let id = test.record.id;
    let inserted = write::test(
        connection,
        &test.record,
        Facts::Secondhand,
        Some(&extra),
        Existing::Keep,
    )
    .await?;
    let (owner, status) = owner_and_status(connection, id).await?;
    if owner != run.to_string() {
        return Err(Fault::Impossible(format!(
            "test {id} belongs to run {owner}"
        )));
    }
    let mut changed = inserted;
    for sample in &test.samples {
        changed |= write::sample(connection, sample, Existing::Keep).await?;
    }
    let end = match test.end {
        Some(end) if inserted || says_more(&end.status, &status) => Some(end),
        None if inserted => Some(cut_off(&test.record, &test.samples)),
        _ => None,
    };
    if let Some(end) = end {
        write::test_end(connection, &end).await?;
        changed = true;
    }
    Ok(changed)
}

async fn owner_and_status(
    connection: &mut SqliteConnection,
    test: Uuid,
) -> Result<(String, String), Fault> {
    Ok(sqlx::query_as("SELECT run, status FROM test WHERE id = ?")
        .bind(test.to_string())
        .fetch_one(connection)
        .await?)
}

/// Whether an end in the file says more than what stands here: nothing, or that the test was cut
/// off.
fn says_more(end: &TestStatus, stored: &str) -> bool {
    match stored {
        "running" => true,
        "interrupted" => *end != TestStatus::Interrupted,
        _ => false,
    }
}

/// The end of a test that has none in the file: its last sign of life.
fn cut_off(test: &TestRecord, samples: &[SampleRecord]) -> TestEnd {
    TestEnd {
        test: test.id,
        status: TestStatus::Interrupted,
        ended_at: samples.last().map_or(test.started_at, |sample| sample.at),
        worker: None,
        loaded: None,
        placement: None,
        anchor_before_ns: None,
        anchor_after_ns: None,
        state_before: None,
        state_after: None,
        peak_rss_bytes: None,
        warnings: Vec::new(),
    }
}

/// Stores the end of a run that had none; `true` when it did.
async fn complete_run(
    connection: &mut SqliteConnection,
    run: Uuid,
    status: RunStatus,
    ended_at: Option<Timestamp>,
) -> Result<bool, Fault> {
    let word = match status {
        RunStatus::Running | RunStatus::Interrupted => return Ok(false),
        RunStatus::Complete => "complete",
        RunStatus::Stopped => "stopped",
    };
    let done = sqlx::query(
        "UPDATE run SET status = ?, ended_at = ?
         WHERE id = ? AND status IN ('running', 'interrupted')",
    )
    .bind(word)
    .bind(ended_at.map(time_text))
    .bind(run.to_string())
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Brings a deleted run back: whoever imports it wants it. `true` when it was deleted.
async fn undelete(connection: &mut SqliteConnection, run: Uuid) -> Result<bool, Fault> {
    let done =
        sqlx::query("UPDATE run SET deleted_at = NULL WHERE id = ? AND deleted_at IS NOT NULL")
            .bind(run.to_string())
            .execute(connection)
            .await?;
    Ok(done.rows_affected() > 0)
}
