//! Runs that ended before their plan did.

use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::History;
use crate::columns::Cells;
use crate::error::{Fault, HistoryError};
use crate::query;
use crate::read;
use crate::run::{Resumable, RunStatus, TriedTest};

impl History {
    /// Runs measured here that were stopped or cut off and can go on, newest first.
    ///
    /// Runs whose plan a newer version wrote in a form that is not known here are left out.
    pub async fn resumable(&self) -> Result<Vec<Resumable>, HistoryError> {
        let mut reading = self.reading().await?;
        resumable(&mut reading)
            .await
            .map_err(|fault| self.explain(fault))
    }

    /// The run to go on with: the one that is meant (see [`History::find_run`]), or the newest of
    /// [`History::resumable`].
    ///
    /// Errors: [`HistoryError::NotResumable`] says why a run that was named cannot go on,
    /// [`HistoryError::NothingToResume`] that there is none.
    pub async fn resume_of(&self, wanted: Option<&str>) -> Result<Resumable, HistoryError> {
        let Some(wanted) = wanted else {
            let newest = self.resumable().await?.into_iter().next();
            return newest.ok_or(HistoryError::NothingToResume);
        };
        let id = self.find_run(wanted).await?;
        let mut reading = self.reading().await?;
        let found = one(&mut reading, id)
            .await
            .map_err(|fault| self.explain(fault))?;
        found.map_err(|why| HistoryError::NotResumable {
            wanted: wanted.to_owned(),
            why,
        })
    }
}

async fn resumable(connection: &mut SqliteConnection) -> Result<Vec<Resumable>, Fault> {
    let ids = sqlx::query_scalar::<_, String>(
        "SELECT id FROM run
         WHERE origin = 'measured' AND status IN ('stopped', 'interrupted')
           AND plan IS NOT NULL AND deleted_at IS NULL
         ORDER BY started_at DESC, id DESC",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut found = Vec::new();
    for id in query::uuids(&ids)? {
        found.extend(one(connection, id).await?);
    }
    Ok(found)
}

/// A run with what a resumption needs, or why it cannot go on.
async fn one(
    connection: &mut SqliteConnection,
    id: Uuid,
) -> Result<Result<Resumable, &'static str>, Fault> {
    let Some(row) = query::run_row(connection, id).await? else {
        return Err(Fault::NoRun(id.to_string()));
    };
    let cells = Cells(&row);
    if cells.get::<&str>("origin")? != "measured" {
        return Ok(Err("it was not measured here"));
    }
    let status: RunStatus = cells.word("status")?;
    match status {
        RunStatus::Complete => return Ok(Err("it is complete")),
        RunStatus::Running => return Ok(Err("it is running")),
        RunStatus::Stopped | RunStatus::Interrupted => {}
    }
    let mut record = read::run_record(&row)?;
    record.plan = match read::plan(&row) {
        Ok(Some(plan)) => Some(plan),
        Ok(None) => return Ok(Err("its plan was not kept")),
        Err(_) => return Ok(Err("a newer Twospeed planned it")),
    };
    Ok(Ok(Resumable {
        record,
        status,
        tests: tried(connection, id).await?,
    }))
}

async fn tried(connection: &mut SqliteConnection, run: Uuid) -> Result<Vec<TriedTest>, Fault> {
    let rows = sqlx::query(
        "SELECT id, position, status, failure_code, message, log FROM test
         WHERE run = ? ORDER BY position, started_at, id",
    )
    .bind(run.to_string())
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let cells = Cells(row);
            Ok(TriedTest {
                id: cells.id("id")?,
                position: cells.get("position")?,
                status: read::status(cells)?,
            })
        })
        .collect()
}
