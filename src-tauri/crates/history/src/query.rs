//! Asking the history. Each question sees one moment: it reads inside one transaction.

use std::collections::HashMap;

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use twospeed_measure::RunRecord;
use uuid::Uuid;

use crate::History;
use crate::columns::Cells;
use crate::error::{Fault, HistoryError};
use crate::read::{self, Extra};
use crate::run::{ModelName, RunFilter, RunOverview, TestCounts, Unreadable, WholeRun};
use crate::test::Test;

impl History {
    /// Runs as lines of a list, newest first.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunOverview>, HistoryError> {
        let mut reading = self.reading().await?;
        overviews(&mut reading, filter)
            .await
            .map_err(|fault| self.explain(fault))
    }

    /// One run with everything known of it, deleted or not; `None` when there is no such run.
    pub async fn run(&self, id: Uuid) -> Result<Option<WholeRun>, HistoryError> {
        let mut reading = self.reading().await?;
        whole(&mut reading, id)
            .await
            .map(|found| found.map(|(run, _)| run))
            .map_err(|fault| self.explain(fault))
    }

    /// Runs with everything known of them, newest first.
    pub async fn whole_runs(&self, filter: &RunFilter) -> Result<Vec<WholeRun>, HistoryError> {
        let mut reading = self.reading().await?;
        whole_runs(&mut reading, filter)
            .await
            .map_err(|fault| self.explain(fault))
    }

    /// The run that a person means: its id, or a part of it (ids of one minute begin alike, so lists
    /// show the end, of which people write the beginning).
    pub async fn find_run(&self, wanted: &str) -> Result<Uuid, HistoryError> {
        let mut reading = self.reading().await?;
        let found = find_run(&mut reading, wanted)
            .await
            .map_err(|fault| self.explain(fault))?;
        let wanted = wanted.to_owned();
        match found[..] {
            [one] => Ok(one),
            [] => Err(HistoryError::UnknownRun { wanted }),
            _ => Err(HistoryError::AmbiguousRun {
                wanted,
                count: found.len(),
            }),
        }
    }
}

/// A list to bind: SQLite reads it with `json_each`, so that the statement stays one text.
pub(crate) fn list<T: ToString>(values: &[T]) -> String {
    serde_json::Value::from_iter(values.iter().map(ToString::to_string)).to_string()
}

async fn overviews(
    connection: &mut SqliteConnection,
    filter: &RunFilter,
) -> Result<Vec<RunOverview>, Fault> {
    const WHICH: &str = " WHERE (run.deleted_at IS NOT NULL) = ?1
         AND (?2 IS NULL OR run.id IN (SELECT value FROM json_each(?2)))
         AND (?3 IS NULL OR EXISTS (SELECT 1 FROM test WHERE test.run = run.id
              AND test.model IN (SELECT value FROM json_each(?3))))
         ORDER BY coalesce(run.started_at, run.imported_at) DESC, run.id DESC";
    let rows = sqlx::query(sqlx::AssertSqlSafe(format!("{}{WHICH}", read::RUN)))
        .bind(filter.deleted)
        .bind(filter.ids.as_deref().map(list))
        .bind(filter.models.as_deref().map(list))
        .fetch_all(&mut *connection)
        .await?;
    let runs: Vec<_> = rows.iter().map(read::run).collect::<Result<_, _>>()?;
    let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
    let mut models = models(connection, &ids).await?;
    let mut counts = counts(connection, &ids).await?;
    let mut suspect = suspect(connection, &ids).await?;
    Ok(runs
        .into_iter()
        .map(|run| {
            let (tests, samples) = counts.remove(&run.id).unwrap_or_default();
            RunOverview {
                models: models.remove(&run.id).unwrap_or_default(),
                tests,
                samples,
                suspect: suspect.remove(&run.id).unwrap_or_default(),
                run,
            }
        })
        .collect())
}

async fn models(
    connection: &mut SqliteConnection,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, Vec<ModelName>>, Fault> {
    let rows = sqlx::query(
        "SELECT test.run, model.fingerprint, model.name, model.quantization
         FROM test JOIN model ON model.fingerprint = test.model
         WHERE test.run IN (SELECT value FROM json_each(?))
         GROUP BY test.run, model.fingerprint
         ORDER BY min(test.position), model.name",
    )
    .bind(list(runs))
    .fetch_all(connection)
    .await?;
    let mut models = HashMap::<_, Vec<_>>::new();
    for row in &rows {
        let cells = Cells(row);
        models.entry(cells.id("run")?).or_default().push(ModelName {
            fingerprint: cells.get("fingerprint")?,
            name: cells.get("name")?,
            quantization: cells.maybe("quantization")?,
        });
    }
    Ok(models)
}

async fn counts(
    connection: &mut SqliteConnection,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, (TestCounts, u64)>, Fault> {
    let rows = sqlx::query(
        "SELECT run, status, count(*) AS tests,
                sum((SELECT count(*) FROM sample WHERE sample.test = test.id)) AS samples
         FROM test WHERE run IN (SELECT value FROM json_each(?))
         GROUP BY run, status",
    )
    .bind(list(runs))
    .fetch_all(connection)
    .await?;
    let mut counts = HashMap::<_, (TestCounts, u64)>::new();
    for row in &rows {
        let cells = Cells(row);
        let (tests, samples) = counts.entry(cells.id("run")?).or_default();
        *samples += cells.count("samples")?;
        let count = match cells.get::<&str>("status")? {
            "running" => &mut tests.running,
            "done" => &mut tests.done,
            "failed" => &mut tests.failed,
            "cancelled" => &mut tests.cancelled,
            "interrupted" => &mut tests.interrupted,
            _ => &mut tests.skipped,
        };
        *count += cells.count("tests")?;
    }
    Ok(counts)
}

/// How many results of each run cannot be right and were not allowed.
async fn suspect(
    connection: &mut SqliteConnection,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, u64>, Fault> {
    let rows = sqlx::query(
        "SELECT run, count(*) AS tests FROM test
         WHERE suspect IS NOT NULL AND allowed_at IS NULL
           AND run IN (SELECT value FROM json_each(?))
         GROUP BY run",
    )
    .bind(list(runs))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| Ok((Cells(row).id("run")?, Cells(row).count("tests")?)))
        .collect()
}

/// Tests as far as this version can read them.
#[derive(Default)]
pub(crate) struct Tests {
    pub(crate) tests: Vec<Test>,
    /// Each with the run it belongs to.
    pub(crate) unreadable: Vec<(Uuid, Unreadable)>,
}

/// Tests with their samples, in the order they ran.
pub(crate) async fn tests(connection: &mut SqliteConnection, ids: &[Uuid]) -> Result<Tests, Fault> {
    const WHICH: &str = " WHERE test.id IN (SELECT value FROM json_each(?))
         ORDER BY test.run, test.position, test.started_at, test.id";
    let rows = sqlx::query(sqlx::AssertSqlSafe(format!("{}{WHICH}", read::TEST)))
        .bind(list(ids))
        .fetch_all(&mut *connection)
        .await?;
    let samples = sqlx::query(
        "SELECT * FROM sample WHERE test IN (SELECT value FROM json_each(?))
         ORDER BY test, sample_index",
    )
    .bind(list(ids))
    .fetch_all(connection)
    .await?;
    let mut by_test = HashMap::<Uuid, Vec<_>>::new();
    for row in &samples {
        by_test.entry(Cells(row).id("test")?).or_default().push(row);
    }
    let mut found = Tests::default();
    for row in &rows {
        let cells = Cells(row);
        let samples = by_test.remove(&cells.id("id")?).unwrap_or_default();
        let read = read::test(row).and_then(|test| {
            let samples = samples.into_iter().map(read::sample);
            Ok(Test {
                samples: samples.collect::<Result<_, _>>()?,
                ..test
            })
        });
        match read {
            Ok(test) => found.tests.push(test),
            // Another version's words must not hide the tests beside it.
            Err(Fault::Unreadable(reason)) => {
                let position = cells.get("position")?;
                let reason = format!("test {position} cannot be read: {reason}");
                found.unreadable.push((
                    cells.id("run")?,
                    Unreadable {
                        position: Some(position),
                        reason,
                    },
                ));
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

/// A run with everything, and the unknown fields an import brought with it.
pub(crate) async fn whole(
    connection: &mut SqliteConnection,
    id: Uuid,
) -> Result<Option<(WholeRun, Extra)>, Fault> {
    let Some(row) = run_row(connection, id).await? else {
        return Ok(None);
    };
    let ids = sqlx::query_scalar::<_, String>("SELECT id FROM test WHERE run = ?")
        .bind(id.to_string())
        .fetch_all(&mut *connection)
        .await?;
    let mut whole = without_tests(&row)?;
    let Tests { tests, unreadable } = tests(connection, &uuids(&ids)?).await?;
    whole.tests = tests;
    whole
        .unreadable
        .extend(unreadable.into_iter().map(|(_, part)| part));
    Ok(Some((whole, read::extra(&row)?)))
}

fn without_tests(row: &SqliteRow) -> Result<WholeRun, Fault> {
    let run = read::run(row)?;
    let (plan, unreadable) = match read::plan(row) {
        Ok(plan) => (plan, Vec::new()),
        Err(Fault::Unreadable(reason)) => (
            None,
            vec![Unreadable {
                position: None,
                reason: format!("the plan cannot be read: {reason}"),
            }],
        ),
        Err(fault) => return Err(fault),
    };
    Ok(WholeRun {
        run,
        plan,
        tests: Vec::new(),
        unreadable,
    })
}

pub(crate) async fn run_row(
    connection: &mut SqliteConnection,
    id: Uuid,
) -> Result<Option<SqliteRow>, Fault> {
    let sql = format!("{} WHERE run.id = ?", read::RUN);
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row)
}

pub(crate) fn uuids(texts: &[String]) -> Result<Vec<Uuid>, Fault> {
    texts.iter().map(|text| uuid(text)).collect()
}

pub(crate) fn uuid(text: &str) -> Result<Uuid, Fault> {
    text.parse()
        .map_err(|error| Fault::Unreadable(format!("id {text}, {error}")))
}

async fn whole_runs(
    connection: &mut SqliteConnection,
    filter: &RunFilter,
) -> Result<Vec<WholeRun>, Fault> {
    let runs = overviews(connection, filter).await?;
    let ids: Vec<Uuid> = runs.iter().map(|overview| overview.run.id).collect();
    let tests_of_them = sqlx::query_scalar::<_, String>(
        "SELECT id FROM test WHERE run IN (SELECT value FROM json_each(?))",
    )
    .bind(list(&ids))
    .fetch_all(&mut *connection)
    .await?;
    let found = tests(connection, &uuids(&tests_of_them)?).await?;
    with_runs(connection, found, ids).await
}

/// Puts tests into their runs: `ids` in that order, whether they have tests or not.
pub(crate) async fn with_runs(
    connection: &mut SqliteConnection,
    found: Tests,
    ids: Vec<Uuid>,
) -> Result<Vec<WholeRun>, Fault> {
    let sql = format!(
        "{} WHERE run.id IN (SELECT value FROM json_each(?))",
        read::RUN
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(list(&ids))
        .fetch_all(connection)
        .await?;
    let mut runs = HashMap::<Uuid, WholeRun>::new();
    for row in &rows {
        let whole = without_tests(row)?;
        runs.insert(whole.run.id, whole);
    }
    for test in found.tests {
        if let Some(whole) = runs.get_mut(&test.record.run) {
            whole.tests.push(test);
        }
    }
    for (run, part) in found.unreadable {
        if let Some(whole) = runs.get_mut(&run) {
            whole.unreadable.push(part);
        }
    }
    Ok(ids.iter().filter_map(|id| runs.remove(id)).collect())
}

async fn find_run(connection: &mut SqliteConnection, wanted: &str) -> Result<Vec<Uuid>, Fault> {
    let wanted = wanted.trim().to_ascii_lowercase();
    let like_an_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    if wanted.is_empty() || !wanted.chars().all(like_an_id) {
        return Ok(Vec::new());
    }
    // The text holds neither % nor _, so LIKE reads it as it stands.
    let ids = sqlx::query_scalar::<_, String>(
        "SELECT id FROM run WHERE deleted_at IS NULL
         AND id LIKE '%' || ?1 || '%' ORDER BY id",
    )
    .bind(wanted)
    .fetch_all(connection)
    .await?;
    uuids(&ids)
}

/// Runs measured here that have no end yet.
pub(crate) async fn running(connection: &mut SqliteConnection) -> Result<Vec<RunRecord>, Fault> {
    let sql = format!("{} WHERE run.status = 'running'", read::RUN);
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .fetch_all(connection)
        .await?;
    rows.iter().map(read::run_record).collect()
}

/// Whether there is such a run, deleted or not.
pub(crate) async fn knows(connection: &mut SqliteConnection, run: Uuid) -> Result<bool, Fault> {
    Ok(
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM run WHERE id = ?)")
            .bind(run.to_string())
            .fetch_one(connection)
            .await?,
    )
}
