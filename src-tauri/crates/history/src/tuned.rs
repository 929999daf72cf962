//! Settings that measuring found fastest.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteRow;
use twospeed_engine::Settings;
use uuid::Uuid;

use crate::History;
use crate::columns::{Cells, Columns, Existing};
use crate::error::{Fault, HistoryError};

/// What tuning found for one model on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// When (UTC).
    pub at: Timestamp,
    /// The machine ([`Machine::id`](twospeed_measure::machine::Machine::id)).
    pub machine: String,
    /// The model (fingerprint).
    pub model: String,
    /// What it is fastest at: `prefill`, `decode` or `mix:P,N`.
    pub target: String,
    /// The CPU variant; `None` = the one that is taken unasked.
    pub variant: Option<String>,
    /// The settings.
    pub settings: Settings,
    /// Median ratio of its speed to that of llama-bench's defaults.
    pub gain: f64,
    /// Lower 95 % bound of that; `None` where too few pairs were measured for one.
    pub gain_low: Option<f64>,
    /// The run that found it.
    pub run: Option<Uuid>,
}

/// The newest of each model and target.
const NEWEST: &str = "SELECT * FROM (SELECT tuned.*, row_number() OVER (
         PARTITION BY machine, model, target ORDER BY at DESC, id DESC) AS age FROM tuned)
     WHERE age = 1 AND machine = ?1 AND (?2 IS NULL OR model = ?2)
       AND (?3 IS NULL OR target = ?3)
     ORDER BY at DESC, id DESC";

impl History {
    /// Keeps what tuning found; the newest counts, older ones stay.
    ///
    /// Errors: [`HistoryError::Impossible`] where machine, model or run were never stored here.
    pub async fn keep_tuned(&self, tuned: &TunedRecord) -> Result<(), HistoryError> {
        let TunedRecord {
            id,
            at,
            machine,
            model,
            target,
            variant,
            settings,
            gain,
            gain_low,
            run,
        } = tuned;
        let mut writing = self.writing().await?;
        let written = Columns::default()
            .id("id", *id)
            .time("at", *at)
            .set("machine", machine.as_str())
            .set("model", model.as_str())
            .set("target", target.as_str())
            .set("variant", variant.as_deref())
            .json("settings", Some(settings))
            .set("gain", *gain)
            .set("gain_low", *gain_low)
            .set("run", run.map(|run| run.to_string()))
            .insert(&mut writing, "tuned", Existing::Refuse)
            .await;
        self.finish(writing, written).await?;
        Ok(())
    }

    /// What tuning found last for a model on a machine; `None` when it was never tuned for that.
    pub async fn tuned(
        &self,
        machine: &str,
        model: &str,
        target: &str,
    ) -> Result<Option<TunedRecord>, HistoryError> {
        let found = self
            .newest_tuned(machine, Some(model), Some(target))
            .await?;
        Ok(found.into_iter().next())
    }

    /// What tuning found last for each target of a model on a machine, the newest first.
    pub async fn tuned_for(
        &self,
        machine: &str,
        model: &str,
    ) -> Result<Vec<TunedRecord>, HistoryError> {
        self.newest_tuned(machine, Some(model), None).await
    }

    /// What tuning found last for each model and target on a machine, the newest first.
    pub async fn tuned_on(&self, machine: &str) -> Result<Vec<TunedRecord>, HistoryError> {
        self.newest_tuned(machine, None, None).await
    }

    async fn newest_tuned(
        &self,
        machine: &str,
        model: Option<&str>,
        target: Option<&str>,
    ) -> Result<Vec<TunedRecord>, HistoryError> {
        let mut reading = self.reading().await?;
        let rows = sqlx::query(NEWEST)
            .bind(machine)
            .bind(model)
            .bind(target)
            .fetch_all(&mut *reading)
            .await
            .map_err(|error| self.explain(error.into()))?;
        rows.iter()
            .map(tuned)
            .collect::<Result<_, Fault>>()
            .map_err(|fault| self.explain(fault))
    }
}

fn tuned(row: &SqliteRow) -> Result<TunedRecord, Fault> {
    let cells = Cells(row);
    let run: Option<&str> = cells.maybe("run")?;
    Ok(TunedRecord {
        id: cells.id("id")?,
        at: cells.time("at")?,
        machine: cells.get("machine")?,
        model: cells.get("model")?,
        target: cells.get("target")?,
        variant: cells.maybe("variant")?,
        settings: cells
            .json("settings")?
            .ok_or_else(|| Fault::Unreadable("settings, it is unknown".into()))?,
        gain: cells.get("gain")?,
        gain_low: cells.maybe("gain_low")?,
        run: run.map(|_| cells.id("run")).transpose()?,
    })
}
