//! Changing what is known of runs: notes, deleting and its undo, the mark of a run cut off.

use jiff::Timestamp;
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::History;
use crate::columns::Columns;
use crate::error::{Fault, HistoryError};

impl History {
    /// Deletes runs: they leave every list and figure, and [`History::restore_runs`] undoes it.
    ///
    /// All of them or none: [`HistoryError::UnknownRun`] names the first that is not there.
    pub async fn delete_runs(&self, runs: &[Uuid], at: Timestamp) -> Result<(), HistoryError> {
        self.edit_runs(runs, || Columns::default().time("deleted_at", at))
            .await
    }

    /// Brings deleted runs back as they were.
    pub async fn restore_runs(&self, runs: &[Uuid]) -> Result<(), HistoryError> {
        self.edit_runs(runs, || Columns::default().time("deleted_at", None))
            .await
    }

    /// Sets the note on a run; an empty one takes it away.
    pub async fn set_note(&self, run: Uuid, note: &str) -> Result<(), HistoryError> {
        let note = Some(note.trim()).filter(|note| !note.is_empty());
        self.edit_runs(&[run], || Columns::default().set("note", note))
            .await
    }

    /// Lets suspect results stand in figures all the same; `None` takes that back.
    ///
    /// Gives how many of these tests are suspect. All of them or none: [`HistoryError::UnknownTest`]
    /// names the first that is not there.
    pub async fn allow(
        &self,
        tests: &[Uuid],
        at: Option<Timestamp>,
    ) -> Result<usize, HistoryError> {
        let mut writing = self.writing().await?;
        let written = allow(&mut writing, tests, at).await;
        self.finish(writing, written).await
    }

    async fn edit_runs(
        &self,
        runs: &[Uuid],
        change: impl Fn() -> Columns,
    ) -> Result<(), HistoryError> {
        let mut writing = self.writing().await?;
        let written = async {
            for run in runs {
                if !change().update(&mut writing, "run", *run).await? {
                    return Err(Fault::NoRun(run.to_string()));
                }
            }
            Ok(())
        }
        .await;
        self.finish(writing, written).await
    }
}

async fn allow(
    connection: &mut SqliteConnection,
    tests: &[Uuid],
    at: Option<Timestamp>,
) -> Result<usize, Fault> {
    let mut suspect = 0;
    for test in tests {
        let is_suspect: Option<bool> =
            sqlx::query_scalar("SELECT suspect IS NOT NULL FROM test WHERE id = ?")
                .bind(test.to_string())
                .fetch_optional(&mut *connection)
                .await?;
        match is_suspect {
            None => return Err(Fault::NoTest(*test)),
            Some(false) => continue,
            Some(true) => suspect += 1,
        }
        Columns::default()
            .time("allowed_at", at)
            .update(connection, "test", *test)
            .await?;
    }
    Ok(suspect)
}

/// Marks runs that were cut off, and their running tests; gives those that still needed it.
///
/// When they were cut off is not known: they end with their last sign of life.
pub(crate) async fn mark_interrupted(
    history: &History,
    runs: &[Uuid],
) -> Result<Vec<Uuid>, HistoryError> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut writing = history.writing().await?;
    let written = async {
        let mut marked = Vec::new();
        for run in runs {
            if interrupt(&mut writing, *run).await? {
                marked.push(*run);
            }
        }
        Ok(marked)
    }
    .await;
    history.finish(writing, written).await
}

async fn interrupt(connection: &mut SqliteConnection, run: Uuid) -> Result<bool, Fault> {
    let run = run.to_string();
    sqlx::query(
        "UPDATE test SET status = 'interrupted', ended_at = coalesce(
             (SELECT max(sample.at) FROM sample WHERE sample.test = test.id), test.started_at)
         WHERE run = ? AND status = 'running'",
    )
    .bind(&run)
    .execute(&mut *connection)
    .await?;
    let marked = sqlx::query(
        "UPDATE run SET status = 'interrupted', ended_at =
             (SELECT max(test.ended_at) FROM test WHERE test.run = run.id)
         WHERE id = ? AND status = 'running'",
    )
    .bind(&run)
    .execute(connection)
    .await?;
    Ok(marked.rows_affected() > 0)
}
