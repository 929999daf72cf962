//! The folders and files that the person added to the list of models.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use twospeed_engine::settings::ModelPath;

use crate::History;
use crate::columns::{Cells, Columns, Existing};
use crate::error::{Fault, HistoryError};

impl History {
    /// In the order in which they were added.
    pub async fn folders(&self) -> Result<Vec<PathBuf>, HistoryError> {
        let mut reading = self.reading().await?;
        let rows = sqlx::query("SELECT path FROM folder ORDER BY position")
            .fetch_all(&mut *reading)
            .await
            .map_err(|error| self.explain(error.into()))?;
        rows.iter()
            .map(|row| path(Cells(row)))
            .collect::<Result<_, Fault>>()
            .map_err(|fault| self.explain(fault))
    }

    /// Adds one at the end; `false` when it was there and stays where it was.
    pub async fn add_folder(&self, folder: &Path, at: Timestamp) -> Result<bool, HistoryError> {
        let mut writing = self.writing().await?;
        let columns = Columns::default().time("added_at", at);
        let columns = match folder.to_str() {
            Some(text) => columns.set("path", text),
            None => columns.set("path", folder.as_os_str().as_encoded_bytes()),
        };
        let written = columns.insert(&mut writing, "folder", Existing::Keep).await;
        self.finish(writing, written).await
    }

    /// Takes one out; `false` when it was not there.
    pub async fn remove_folder(&self, folder: &Path) -> Result<bool, HistoryError> {
        let mut writing = self.writing().await?;
        let query = sqlx::query("DELETE FROM folder WHERE path = ?");
        let query = match folder.to_str() {
            Some(text) => query.bind(text),
            None => query.bind(folder.as_os_str().as_encoded_bytes()),
        };
        let written = query
            .execute(&mut *writing)
            .await
            .map(|done| done.rows_affected() > 0)
            .map_err(Fault::from);
        self.finish(writing, written).await
    }
}

fn path(cells: Cells<'_>) -> Result<PathBuf, Fault> {
    if !cells.is_blob("path")? {
        return Ok(cells.get::<String>("path")?.into());
    }
    // The engine crate knows how bytes become a path on this system.
    let bytes: Vec<u8> = cells.get("path")?;
    serde_json::from_value(serde_json::json!({ "bytes": bytes }))
        .map(|ModelPath(path)| path)
        .map_err(|error| Fault::Unreadable(format!("path, {error}")))
}
