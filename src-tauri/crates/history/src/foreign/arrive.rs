//! Rows into runs: those of one program on one machine with one build are one.

use jiff::Timestamp;
use sqlx::SqliteConnection;
use uuid::Uuid;

use super::{Foreign, Row, identity};
use crate::History;
use crate::error::{Fault, HistoryError};
use crate::import::{Arriving, Form, Imported, ImportedRun, Outcome};
use crate::query;
use crate::read::Extra;
use crate::run::{Origin, Run, RunStatus};
use crate::test::{Test, Told};

impl History {
    pub(crate) async fn import_foreign(
        &self,
        foreign: Foreign,
        at: Timestamp,
    ) -> Result<Imported, HistoryError> {
        let Foreign {
            form,
            rows,
            rejected,
            notes,
        } = foreign;
        let mut imported = Imported {
            rejected,
            notes,
            ..Imported::of(form)
        };
        let (rows, own) = self.without_own(rows).await?;
        imported.runs.extend(own);
        for rows in groups(rows) {
            let lines: Vec<(Uuid, usize)> = rows
                .iter()
                .map(|row| (row.test.record.id, row.line))
                .collect();
            let line = |test: &Test| {
                let found = lines.iter().find(|(id, _)| *id == test.record.id);
                found.map(|(_, line)| *line)
            };
            let known = self.known_run(&lines).await?;
            let run = arriving(form, rows, known, at);
            imported.runs.push(self.import_run(&run).await?);
            imported.flag(&run, line);
        }
        Ok(imported)
    }

    /// The rows without those that Twospeed measured and wrote in this form: their samples are
    /// here to the nanosecond. Gives the runs that have them.
    async fn without_own(
        &self,
        rows: Vec<Row>,
    ) -> Result<(Vec<Row>, Vec<ImportedRun>), HistoryError> {
        let mut reading = self.reading().await?;
        let mut others = Vec::new();
        let mut own: Vec<(ImportedRun, bool)> = Vec::new();
        for row in rows {
            let found = own_run(&mut reading, &row.test)
                .await
                .map_err(|fault| self.explain(fault))?;
            let Some((id, deleted)) = found else {
                others.push(row);
                continue;
            };
            match own.iter_mut().find(|(run, _)| run.id == id) {
                Some((run, _)) => run.known += 1,
                None => {
                    let run = ImportedRun {
                        id,
                        outcome: match deleted {
                            true => Outcome::Restored,
                            false => Outcome::AlreadyThere,
                        },
                        taken: 0,
                        known: 1,
                    };
                    own.push((run, deleted));
                }
            }
        }
        drop(reading);
        let deleted = own.iter().filter(|(_, deleted)| *deleted);
        let deleted: Vec<Uuid> = deleted.map(|(run, _)| run.id).collect();
        if !deleted.is_empty() {
            self.restore_runs(&deleted).await?;
        }
        Ok((others, own.into_iter().map(|(run, _)| run).collect()))
    }

    /// The run that already has one of these tests, and how many tests it has.
    async fn known_run(
        &self,
        tests: &[(Uuid, usize)],
    ) -> Result<Option<(Uuid, u32)>, HistoryError> {
        let mut reading = self.reading().await?;
        known_run(&mut reading, tests)
            .await
            .map_err(|fault| self.explain(fault))
    }
}

/// The run of Twospeed's own that has a test with these very samples, and whether it is deleted.
async fn own_run(
    connection: &mut SqliteConnection,
    test: &Test,
) -> Result<Option<(Uuid, bool)>, Fault> {
    if test.samples.is_empty() || !test.record.kind.is_speed() {
        return Ok(None);
    }
    let samples = test
        .samples
        .iter()
        .map(|record| record.sample.ns.to_string());
    let spec = test.record.spec;
    let found: Option<(String, bool)> = sqlx::query_as(
        "SELECT run.id, run.deleted_at IS NOT NULL FROM test JOIN run ON run.id = test.run
         WHERE run.origin IN ('measured', 'imported') AND test.kind = 'speed'
           AND test.n_prompt = ?1 AND test.n_gen = ?2 AND test.n_depth = ?3
           AND (SELECT group_concat(ns) FROM (SELECT ns FROM sample WHERE sample.test = test.id
                                              ORDER BY sample_index)) = ?4
         LIMIT 1",
    )
    .bind(spec.n_prompt)
    .bind(spec.n_gen)
    .bind(spec.n_depth)
    .bind(samples.collect::<Vec<_>>().join(","))
    .fetch_optional(connection)
    .await?;
    found
        .map(|(run, deleted)| Ok((query::uuid(&run)?, deleted)))
        .transpose()
}

async fn known_run(
    connection: &mut SqliteConnection,
    tests: &[(Uuid, usize)],
) -> Result<Option<(Uuid, u32)>, Fault> {
    let ids = serde_json::Value::from_iter(tests.iter().map(|(id, _)| id.to_string()));
    let found: Option<(String, u32)> = sqlx::query_as(
        "SELECT run, (SELECT count(*) FROM test AS other WHERE other.run = test.run)
         FROM test WHERE id IN (SELECT value FROM json_each(?)) ORDER BY run LIMIT 1",
    )
    .bind(ids.to_string())
    .fetch_optional(connection)
    .await?;
    found
        .map(|(run, tests)| Ok((query::uuid(&run)?, tests)))
        .transpose()
}

/// Rows that belong together, each row once: the first of those that say the same.
fn groups(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| belongs(&row, &group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Whether both ran on one machine with one build, as far as is told. Where no machine is told, the
/// rows of one table did.
fn belongs(row: &Row, other: &Row) -> bool {
    let told = |row: &Row| {
        let Told {
            build_commit,
            build_number,
            cpu_info,
            gpu_info,
            backends,
            ..
        } = row.test.told.clone().unwrap_or_default();
        let table = (cpu_info.is_none() && gpu_info.is_none()).then_some(row.table);
        (
            build_commit,
            build_number,
            cpu_info,
            gpu_info,
            backends,
            table,
        )
    };
    told(row) == told(other)
}

/// The run of these rows: the one that is known, or one that is named by the earliest of them.
fn arriving(form: Form, rows: Vec<Row>, known: Option<(Uuid, u32)>, at: Timestamp) -> Arriving {
    let mut tests: Vec<Test> = rows.into_iter().map(|row| row.test).collect();
    let earliest = tests
        .iter()
        .map(|test| test.record.id)
        .min()
        .unwrap_or_default();
    let started_at = tests
        .iter()
        .filter(|test| test.knows("started_at"))
        .map(|test| test.record.started_at)
        .min();
    let (id, first) =
        known.unwrap_or_else(|| (identity::id(started_at, &["run", &earliest.to_string()]), 0));
    for (test, position) in tests.iter_mut().zip(first..) {
        place(test, id, position, at);
    }
    let told = tests
        .first()
        .and_then(|test| test.told.clone())
        .unwrap_or_default();
    let (origin, preset) = match form {
        Form::Batched => (Origin::LlamaBatchedBench, "llama-batched-bench"),
        _ => (Origin::LlamaBench, "llama-bench"),
    };
    Arriving {
        run: Run {
            id,
            origin,
            imported_at: Some(at),
            started_at: started_at.unwrap_or(at),
            ended_at: None,
            status: RunStatus::Complete,
            machine: identity::machine(&told, id),
            app_version: build(&told),
            preset: preset.to_owned(),
            note: None,
            deleted_at: None,
        },
        tests,
        extra: Extra::default(),
    }
}

/// Puts a test into its run.
fn place(test: &mut Test, run: Uuid, position: u32, at: Timestamp) {
    let record = &mut test.record;
    record.run = run;
    record.position = position;
    if test
        .told
        .as_ref()
        .is_none_or(|told| told.model_type.is_none())
        && record.model.path.0.as_os_str().is_empty()
    {
        // Of a model nothing is told of, nobody knows whether it is that of another run.
        record.model.fingerprint = identity::name(&["model of", &run.to_string()]);
    }
    if !test.unknown.iter().any(|name| name == "started_at") {
        return;
    }
    let offset = at.duration_since(record.started_at);
    record.started_at = at;
    for sample in &mut test.samples {
        sample.at = sample.at.checked_add(offset).unwrap_or(at);
    }
    if let Some(end) = &mut test.end {
        end.ended_at = at;
    }
}

/// The build as it is written in short: `b11434 (0104b151)`.
fn build(told: &Told) -> String {
    let commit = told
        .build_commit
        .as_deref()
        .filter(|commit| *commit != "unknown");
    let number = told.build_number.filter(|number| *number > 0);
    match (number, commit) {
        (Some(number), Some(commit)) => format!("b{number} ({commit})"),
        (Some(number), None) => format!("b{number}"),
        (None, Some(commit)) => commit.to_owned(),
        (None, None) => String::new(),
    }
}
