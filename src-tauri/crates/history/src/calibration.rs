//! Calibrations: what the engine was measured to do on a machine, and the results that belong
//! beside it.

use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use twospeed_engine::protocol::{EngineBuild, Variant};
use twospeed_estimate::Calibration;
use twospeed_measure::machine::Machine;
use uuid::Uuid;

use crate::History;
use crate::columns::{Cells, Columns, Existing};
use crate::error::{Fault, HistoryError};
use crate::test::Test;
use crate::{query, write};

/// The engine that was started last on a machine, as a test of this history tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastEngine {
    /// When that test began.
    pub at: Timestamp,
    /// What the engine was built from.
    pub build: EngineBuild,
    /// Its backends: `CPU`, `Vulkan`, `CUDA,BLAS`.
    pub backend: String,
    /// Every CPU variant that claims to run there, best first.
    pub variants: Vec<Variant>,
}

/// Which results were made with what a calibration was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlikeFilter {
    /// The machine ([`Machine::id`]).
    pub machine: String,
    /// llama.cpp's build number.
    pub build: u32,
    /// The CPU variant.
    pub variant: String,
    /// Backends.
    pub backend: String,
    /// Threads that computed.
    pub threads: u32,
    /// The newest so many at most.
    pub limit: u32,
}

/// The newest of each key. A variant that died since is not run any more, so what it took is void.
const NEWEST: &str = "SELECT record FROM (SELECT calibration.*, row_number() OVER (
         PARTITION BY machine, backend, variant, threads, build, ubatch
         ORDER BY at DESC, id DESC) AS age FROM calibration) AS newest
     WHERE age = 1 AND machine = ?1 AND NOT EXISTS (
         SELECT 1 FROM variant_set_aside AS aside WHERE aside.machine = ?1
         AND aside.build_number = newest.build AND aside.variant = newest.variant)
     ORDER BY at DESC, id DESC";

impl History {
    /// Keeps a calibration of a machine; of its key the newest counts, older ones stay.
    ///
    /// Errors: [`HistoryError::Impossible`] where its id or its time is none.
    pub async fn keep_calibration(
        &self,
        machine: &Machine,
        calibration: &Calibration,
    ) -> Result<(), HistoryError> {
        let mut writing = self.writing().await?;
        let written = async {
            let id: Uuid = calibration
                .id
                .parse()
                .map_err(|error| Fault::Impossible(format!("id, {error}")))?;
            let at: Timestamp = calibration
                .at
                .parse()
                .map_err(|error| Fault::Impossible(format!("at, {error}")))?;
            write::machine(&mut writing, machine).await?;
            Columns::default()
                .id("id", id)
                .time("at", at)
                .set("machine", machine.id.as_str())
                .set("backend", calibration.backend.as_str())
                .set("variant", calibration.variant.as_str())
                .set("threads", calibration.threads)
                .set("build", calibration.build)
                .set("ubatch", calibration.ubatch)
                .json("record", Some(calibration))
                .insert(&mut writing, "calibration", Existing::Refuse)
                .await
        }
        .await;
        self.finish(writing, written).await?;
        Ok(())
    }

    /// The newest calibration of a machine for each backend, variant, number of threads, build and
    /// micro-batch, the newest first.
    ///
    /// Those of variants that died since are left out, and so are records that this version cannot
    /// read: they are as good as none, and calibrating anew replaces them.
    pub async fn calibrations(&self, machine: &str) -> Result<Vec<Calibration>, HistoryError> {
        let mut reading = self.reading().await?;
        let rows = sqlx::query(NEWEST)
            .bind(machine)
            .fetch_all(&mut *reading)
            .await
            .map_err(|error| self.explain(error.into()))?;
        let readable = |row: &SqliteRow| Cells(row).json("record").ok().flatten();
        Ok(rows.iter().filter_map(readable).collect())
    }

    /// The engine of the newest test that was measured on a machine; `None` before any.
    pub async fn last_engine(&self, machine: &str) -> Result<Option<LastEngine>, HistoryError> {
        let mut reading = self.reading().await?;
        let row = sqlx::query(
            "SELECT test.started_at, engine.build_number, engine.build_commit,
                    engine.crate_version, engine.backends, test.worker_variants
             FROM run JOIN test ON test.run = run.id JOIN engine ON engine.id = test.engine
             WHERE run.machine = ? AND run.origin = 'measured'
               AND test.worker_protocol IS NOT NULL
             ORDER BY test.started_at DESC, test.id DESC LIMIT 1",
        )
        .bind(machine)
        .fetch_optional(&mut *reading)
        .await
        .map_err(|error| self.explain(error.into()))?;
        row.as_ref()
            .map(last_engine)
            .transpose()
            .map_err(|fault| self.explain(fault))
    }

    /// Ids of the newest finished speed tests that were measured here under the same conditions,
    /// the newest first. Suspect results (allowed or not), those that were imported or deleted and
    /// those of models made here are left out.
    ///
    /// A cheap question: whoever worked something out of these tests knows by it whether that
    /// still holds.
    pub async fn tests_alike(&self, filter: &AlikeFilter) -> Result<Vec<Uuid>, HistoryError> {
        let mut reading = self.reading().await?;
        let ids = sqlx::query_scalar::<_, String>(
            "SELECT test.id FROM run JOIN test ON test.run = run.id
                 JOIN model ON model.fingerprint = test.model
                 JOIN engine ON engine.id = test.engine
             WHERE run.machine = ?1 AND run.origin = 'measured' AND run.deleted_at IS NULL
               AND test.kind = 'speed' AND test.status = 'done' AND test.suspect IS NULL
               AND model.synthetic = 0
               AND engine.build_number = ?2 AND engine.variant = ?3 AND engine.backends = ?4
               AND test.n_threads = ?5
             ORDER BY test.started_at DESC, test.id DESC LIMIT ?6",
        )
        .bind(filter.machine.as_str())
        .bind(filter.build)
        .bind(filter.variant.as_str())
        .bind(filter.backend.as_str())
        .bind(filter.threads)
        .bind(filter.limit)
        .fetch_all(&mut *reading)
        .await
        .map_err(|error| self.explain(error.into()))?;
        query::uuids(&ids).map_err(|fault| self.explain(fault))
    }

    /// Tests by their ids, in no particular order; what this version cannot read is left out.
    pub async fn tests(&self, ids: &[Uuid]) -> Result<Vec<Test>, HistoryError> {
        let mut reading = self.reading().await?;
        let found = query::tests(&mut reading, ids).await;
        Ok(found.map_err(|fault| self.explain(fault))?.tests)
    }
}

fn last_engine(row: &SqliteRow) -> Result<LastEngine, Fault> {
    let cells = Cells(row);
    Ok(LastEngine {
        at: cells.time("started_at")?,
        build: EngineBuild {
            build_number: cells.get("build_number")?,
            build_commit: cells.get("build_commit")?,
            crate_version: cells.get("crate_version")?,
        },
        backend: cells.get("backends")?,
        variants: cells.json("worker_variants")?.unwrap_or_default(),
    })
}
