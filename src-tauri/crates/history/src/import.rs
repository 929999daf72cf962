//! Importing results: `twospeed.results/1`, and the output of other tools (see [`crate::foreign`]).
//!
//! A run is known by its id, so a file may come twice, or first cut short and then whole: an
//! import adds what is missing and never changes or removes what is there. Each run is one
//! transaction; what cannot be read or cannot be true is named, and the rest is kept.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::SqliteConnection;
use twospeed_measure::{Kind, SampleRecord, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

use crate::History;
use crate::columns::{Existing, time_text};
use crate::error::{Fault, HistoryError};
use crate::export::ExportedRun;
use crate::foreign::Foreign;
use crate::read::{self, Extra};
use crate::results_file::{self, ResultsFile};
use crate::run::{Origin, Run, RunStatus};
use crate::test::Test;
use crate::write::{self, Facts};

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// What the file is.
    pub form: Form,
    /// The runs of the file that could be read, in its order.
    pub runs: Vec<ImportedRun>,
    /// What could not be kept.
    pub rejected: Vec<Rejected>,
    /// Results that cannot be right: kept, and out of figures until they are allowed.
    pub flagged: Vec<Flagged>,
    /// What else a reader should know of it, a sentence each.
    pub notes: Vec<String>,
}

/// What an imported file is, told by what stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `twospeed.results/1`.
    Results,
    /// llama-bench's JSON: an array of objects.
    Json,
    /// llama-bench's JSON lines.
    JsonLines,
    /// llama-bench's CSV.
    Csv,
    /// llama-bench's Markdown table.
    Markdown,
    /// llama-bench's SQL.
    Sql,
    /// llama-batched-bench's JSON lines.
    Batched,
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Results => crate::export::FORMAT,
            Self::Json => "llama-bench json",
            Self::JsonLines => "llama-bench jsonl",
            Self::Csv => "llama-bench csv",
            Self::Markdown => "llama-bench md",
            Self::Sql => "llama-bench sql",
            Self::Batched => "llama-batched-bench jsonl",
        })
    }
}

/// One run of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// The run.
    pub id: Uuid,
    /// What came of it.
    pub outcome: Outcome,
    /// Tests that are new, or of which something was missing.
    pub taken: usize,
    /// Tests that were there with all that the file holds of them.
    pub known: usize,
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
    /// Which run of the file, counted from 1; `None` when it is the file's end that is missing, and
    /// for files that have rows and no runs.
    pub run: Option<usize>,
    /// Line of the file, where it is known.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

/// A result that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flagged {
    /// Its run.
    pub run: Uuid,
    /// The test.
    pub test: Uuid,
    /// Line of the file, where it is known.
    pub line: Option<usize>,
    /// `pp512 of Qwen3-8B`.
    pub name: String,
    /// Why it cannot be right.
    pub reason: String,
}

/// A run on its way into the history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arriving {
    pub(crate) run: Run,
    pub(crate) tests: Vec<Test>,
    pub(crate) extra: Extra,
}

impl History {
    /// Imports results: a file that [`History::export`] wrote, or the output of llama-bench or
    /// llama-batched-bench. What it is, is told by what stands in it.
    ///
    /// Errors: [`HistoryError::NothingFound`], [`HistoryError::NotAnExport`] and
    /// [`HistoryError::NewerExport`] before anything is stored. A disk that fills up ends the
    /// import; the runs before are kept whole.
    pub async fn import(&self, file: Vec<u8>, at: Timestamp) -> Result<Imported, HistoryError> {
        let read = tokio::task::spawn_blocking(move || match results_file::is_one(&file) {
            true => results_file::read(&file).map(Content::Results),
            false => Foreign::read(&file).map(Content::Foreign),
        })
        .await
        .expect("BUG: reading a file's text does not panic")?;
        match read {
            Content::Results(file) => self.import_results(file, at).await,
            Content::Foreign(foreign) => self.import_foreign(foreign, at).await,
        }
    }

    async fn import_results(
        &self,
        file: ResultsFile,
        at: Timestamp,
    ) -> Result<Imported, HistoryError> {
        let mut imported = Imported::of(Form::Results);
        for (number, run) in file.runs.into_iter().enumerate() {
            let reject = |reason| Rejected {
                run: Some(number + 1),
                line: None,
                reason,
            };
            let (run, strange) = without_strange_kinds(run);
            imported.rejected.extend(strange.into_iter().map(reject));
            let run =
                serde_json::from_value::<ExportedRun>(run).and_then(|run| Arriving::of(run, at));
            let run = match run {
                Ok(run) => run,
                Err(error) => {
                    imported.rejected.push(reject(error.to_string()));
                    continue;
                }
            };
            let id = run.run.id;
            match self.import_run(&run).await {
                Ok(done) => {
                    imported.runs.push(done);
                    imported.flag(&run, |_| None);
                }
                Err(HistoryError::Impossible { reason }) => {
                    imported
                        .rejected
                        .push(reject(format!("run {id}: {reason}")));
                }
                Err(error) => return Err(error),
            }
        }
        imported.rejected.extend(file.cut_short);
        Ok(imported)
    }

    pub(crate) async fn import_run(&self, run: &Arriving) -> Result<ImportedRun, HistoryError> {
        let mut writing = self.writing().await?;
        let written = store(&mut writing, run).await;
        self.finish(writing, written).await
    }
}

/// What a file holds.
enum Content {
    Results(ResultsFile),
    Foreign(Foreign),
}

impl Imported {
    pub(crate) fn of(form: Form) -> Self {
        Self {
            form,
            runs: Vec::new(),
            rejected: Vec::new(),
            flagged: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Tells of the tests of a run that cannot be right and were not allowed where they come from.
    pub(crate) fn flag(&mut self, run: &Arriving, line: impl Fn(&Test) -> Option<usize>) {
        for test in run.tests.iter().filter(|test| !test.counts()) {
            let record = &test.record;
            self.flagged
                .extend(test.suspect.iter().map(|suspect| Flagged {
                    run: run.run.id,
                    test: record.id,
                    line: line(test),
                    name: format!("{} of {}", record.kind.name(record.spec), record.model.name),
                    reason: suspect.reason.clone(),
                }));
        }
    }
}

/// The run without tests of a kind that only a newer version knows, and what is to be said of each.
fn without_strange_kinds(mut run: Value) -> (Value, Vec<String>) {
    let mut strange = Vec::new();
    if let Some(Value::Array(tests)) = run.get_mut("tests") {
        tests.retain(|test| {
            let Some(kind) = test.get("kind") else {
                return true;
            };
            let error = match serde_json::from_value::<Kind>(kind.clone()) {
                Ok(_) => return true,
                Err(error) => error,
            };
            let name = kind.get("name").and_then(Value::as_str).unwrap_or("?");
            let position = test.get("position").unwrap_or(&Value::Null);
            strange.push(format!(
                "test {position} is of the kind {name} in a form that is not known here ({error}); a newer Twospeed may read it"
            ));
            false
        });
    }
    (run, strange)
}

impl Arriving {
    fn of(run: ExportedRun, at: Timestamp) -> Result<Self, serde_json::Error> {
        let id = run.id;
        let tests = run.tests.into_iter().map(|test| test.into_test(id));
        Ok(Self {
            tests: tests.collect::<Result<_, _>>()?,
            run: Run {
                id,
                origin: run.origin.unwrap_or(Origin::Imported),
                imported_at: Some(at),
                started_at: run.started_at,
                ended_at: run.ended_at,
                status: settled(run.status),
                machine: run.machine,
                app_version: run.app_version,
                preset: run.preset,
                note: run.note,
                deleted_at: None,
            },
            extra: run.extra,
        })
    }

    /// When it started, where any of its tests tells.
    fn started_at(&self) -> Option<Timestamp> {
        let told = self.tests.is_empty() || self.tests.iter().any(|test| test.knows("started_at"));
        told.then_some(self.run.started_at)
    }
}

async fn store(
    connection: &mut SqliteConnection,
    arriving: &Arriving,
) -> Result<ImportedRun, Fault> {
    let run = &arriving.run;
    write::machine(connection, &run.machine).await?;
    let added = write::run_columns(
        run.id,
        arriving.started_at(),
        &run.machine,
        &run.app_version,
        &run.preset,
    )
    .set("origin", read::origin_word(run.origin))
    .time("imported_at", run.imported_at)
    .word("status", Some(&run.status))
    .time("ended_at", run.ended_at)
    .set("note", run.note.as_deref())
    .json(
        "extra",
        Some(&arriving.extra).filter(|extra| !extra.is_empty()),
    )
    .insert(connection, "run", Existing::Keep)
    .await?;
    let (mut taken, mut known) = (0, 0);
    for test in &arriving.tests {
        match store_test(connection, run, test).await? {
            true => taken += 1,
            false => known += 1,
        }
    }
    let ended = !added && complete_run(connection, run.id, run.status, run.ended_at).await?;
    let outcome = if added {
        Outcome::Added
    } else if undelete(connection, run.id).await? {
        Outcome::Restored
    } else if taken > 0 || ended {
        Outcome::Completed
    } else {
        Outcome::AlreadyThere
    };
    Ok(ImportedRun {
        id: run.id,
        outcome,
        taken,
        known,
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
    run: &Run,
    test: &Test,
) -> Result<bool, Fault> {
    let id = test.record.id;
    let inserted = write::test(connection, test, Facts::Secondhand, Existing::Keep).await?;
    let (owner, status) = owner_and_status(connection, id).await?;
    if owner != run.id.to_string() {
        return match run.origin {
            // The id of another tool's row is made of what it says: it is there already.
            Origin::LlamaBench | Origin::LlamaBatchedBench => Ok(false),
            Origin::Measured | Origin::Imported => Err(Fault::Impossible(format!(
                "test {id} belongs to run {owner}"
            ))),
        };
    }
    let mut changed = inserted;
    for sample in &test.samples {
        changed |= write::sample(connection, sample, Existing::Keep).await?;
    }
    let end = match &test.end {
        Some(end) if inserted || says_more(&end.status, &status) => Some(end.clone()),
        None if inserted => Some(cut_off(&test.record, &test.samples)),
        _ => None,
    };
    if let Some(end) = end {
        write::test_end(connection, &end, &test.unknown).await?;
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
