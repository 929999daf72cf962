//! A run as it happens. Each call is one transaction, on the disk when the call returns.

use async_trait::async_trait;
use jiff::Timestamp;
use twospeed_engine::protocol::EngineBuild;
use twospeed_measure::machine::Machine;
use twospeed_measure::{Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord};
use uuid::Uuid;

use crate::History;
use crate::columns::{Columns, Existing};
use crate::error::Fault;
use crate::test::Test;
use crate::write::{self, Facts};

#[async_trait]
impl Recorder for History {
    async fn run_started(&self, run: &RunRecord) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let written = write::run(&mut writing, run).await;
        Ok(self.finish(writing, written).await?)
    }

    async fn run_resumed(&self, run: &RunRecord) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let written = write::resumed_run(&mut writing, run).await;
        Ok(self.finish(writing, written).await?)
    }

    async fn test_started(&self, test: &TestRecord) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let test = Test::new(test.clone(), None, Vec::new());
        let written = write::test(&mut writing, &test, Facts::Fresh, Existing::Refuse).await;
        self.finish(writing, written).await?;
        Ok(())
    }

    async fn sample(&self, sample: &SampleRecord) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let written = write::sample(&mut writing, sample, Existing::Refuse).await;
        self.finish(writing, written).await?;
        Ok(())
    }

    async fn test_ended(&self, end: &TestEnd) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let written = write::test_end(&mut writing, end, &[]).await;
        Ok(self.finish(writing, written).await?)
    }

    async fn run_ended(
        &self,
        run: Uuid,
        at: Timestamp,
        complete: bool,
    ) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let status = if complete { "complete" } else { "stopped" };
        let written = Columns::default()
            .set("status", status)
            .time("ended_at", at)
            .update(&mut writing, "run", run)
            .await
            .and_then(|known| match known {
                true => Ok(()),
                false => Err(Fault::NoRun(run.to_string())),
            });
        Ok(self.finish(writing, written).await?)
    }

    async fn variants_set_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
    ) -> Result<Vec<String>, RecorderError> {
        let mut reading = self.reading().await?;
        let variants = sqlx::query_scalar(
            "SELECT variant FROM variant_set_aside
             WHERE machine = ? AND build_number = ? AND build_commit = ? AND crate_version = ?
             ORDER BY at, variant",
        )
        .bind(machine.id.as_str())
        .bind(engine.build_number)
        .bind(engine.build_commit.as_str())
        .bind(engine.crate_version.as_str())
        .fetch_all(&mut *reading)
        .await;
        Ok(variants.map_err(|error| self.explain(error.into()))?)
    }

    async fn set_variant_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
        variant: &str,
        reason: &str,
    ) -> Result<(), RecorderError> {
        let mut writing = self.writing().await?;
        let written = async {
            write::machine(&mut writing, machine).await?;
            Columns::default()
                .set("machine", machine.id.as_str())
                .set("build_number", engine.build_number)
                .set("build_commit", engine.build_commit.as_str())
                .set("crate_version", engine.crate_version.as_str())
                .set("variant", variant)
                .set("reason", reason)
                .time("at", Timestamp::now())
                .insert(&mut writing, "variant_set_aside", Existing::Keep)
                .await
        }
        .await;
        self.finish(writing, written).await?;
        Ok(())
    }
}
