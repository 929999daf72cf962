//! Finished tests by kind: what figures show and what times are told from.

use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::History;
use crate::error::{Fault, HistoryError};
use crate::query;
use crate::run::{LatestFilter, WholeRun};
use crate::test::Test;

/// The kind whose samples are llama-bench speeds.
const SPEED: &str = "speed";

impl History {
    /// The finished speed tests of each model for each prompt, generation and depth in the newest
    /// run that has any, so that a sweep over settings stays whole; newest runs first. What a chart
    /// shows when no run was chosen. Suspect results that were not allowed are left out.
    pub async fn latest(&self, filter: &LatestFilter) -> Result<Vec<WholeRun>, HistoryError> {
        self.latest_of(SPEED, filter).await
    }

    /// As [`History::latest`], for the tests of a kind by its [key](twospeed_measure::Kind::key):
    /// `users`, `first_token`, `prefix_cache`, `quality`. A kind's own numbers (how many users, which
    /// base) tell tests apart like prompt and generation do.
    pub async fn latest_of(
        &self,
        kind: &str,
        filter: &LatestFilter,
    ) -> Result<Vec<WholeRun>, HistoryError> {
        let mut reading = self.reading().await?;
        latest(&mut reading, kind, filter)
            .await
            .map_err(|fault| self.explain(fault))
    }

    /// Every finished speed test of these models on this machine that is not deleted, newest first:
    /// what the time of a plan is told from. Suspect results that were not allowed are left out.
    pub async fn finished_tests(&self, filter: &LatestFilter) -> Result<Vec<Test>, HistoryError> {
        self.finished_of(SPEED, filter).await
    }

    /// As [`History::finished_tests`], for the tests of a kind by its key.
    pub async fn finished_of(
        &self,
        kind: &str,
        filter: &LatestFilter,
    ) -> Result<Vec<Test>, HistoryError> {
        let mut reading = self.reading().await?;
        finished(&mut reading, kind, filter)
            .await
            .map_err(|fault| self.explain(fault))
    }
}

async fn latest(
    connection: &mut SqliteConnection,
    kind: &str,
    filter: &LatestFilter,
) -> Result<Vec<WholeRun>, Fault> {
    let ids = sqlx::query_scalar::<_, String>(
        "SELECT id FROM (
             SELECT test.id, dense_rank() OVER (
                        PARTITION BY test.model, test.kind_detail, test.n_prompt, test.n_gen,
                                     test.n_depth
                        ORDER BY coalesce(run.started_at, run.imported_at) DESC, run.id DESC) AS age
             FROM test JOIN run ON run.id = test.run
             WHERE test.status = 'done' AND test.kind = ?3 AND run.deleted_at IS NULL
               AND (test.suspect IS NULL OR test.allowed_at IS NOT NULL)
               AND (?1 IS NULL OR run.machine = ?1)
               AND (?2 IS NULL OR test.model IN (SELECT value FROM json_each(?2))))
         WHERE age = 1",
    )
    .bind(filter.machine.as_deref())
    .bind(filter.models.as_deref().map(query::list))
    .bind(kind)
    .fetch_all(&mut *connection)
    .await?;
    let found = query::tests(connection, &query::uuids(&ids)?).await?;
    let mut ids: Vec<Uuid> = found.tests.iter().map(|test| test.record.run).collect();
    ids.extend(found.unreadable.iter().map(|(run, _)| *run));
    ids.sort();
    ids.dedup();
    let mut runs = query::with_runs(connection, found, ids).await?;
    runs.sort_by_key(|run| std::cmp::Reverse((run.run.started_at, run.run.id)));
    Ok(runs)
}

async fn finished(
    connection: &mut SqliteConnection,
    kind: &str,
    filter: &LatestFilter,
) -> Result<Vec<Test>, Fault> {
    let ids = sqlx::query_scalar::<_, String>(
        "SELECT test.id FROM test JOIN run ON run.id = test.run
         WHERE test.status = 'done' AND test.kind = ?3 AND run.deleted_at IS NULL
           AND (test.suspect IS NULL OR test.allowed_at IS NOT NULL)
           AND (?1 IS NULL OR run.machine = ?1)
           AND (?2 IS NULL OR test.model IN (SELECT value FROM json_each(?2)))",
    )
    .bind(filter.machine.as_deref())
    .bind(filter.models.as_deref().map(query::list))
    .bind(kind)
    .fetch_all(&mut *connection)
    .await?;
    let mut tests = query::tests(connection, &query::uuids(&ids)?).await?.tests;
    tests.sort_by_key(|test| std::cmp::Reverse((test.record.started_at, test.record.id)));
    Ok(tests)
}
