//! The open history.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqlitePool, Transaction};
use tempfile::TempDir;

use crate::error::{Fault, HistoryError};
use crate::notice::Notice;

/// How long a lock held by another process is waited for. Their transactions take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The history of one data folder, open. Cheap to clone; clones share the connections.
///
/// One connection writes, so that writers of this process wait in a queue and not in SQLite's
/// polling; other processes are waited for up to ten seconds. Reading never waits for writing.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) path: PathBuf,
    /// `None`: the history is read-only, or its disk is full.
    pub(crate) writer: Option<SqlitePool>,
    pub(crate) reader: SqlitePool,
    pub(crate) notices: Vec<Notice>,
    /// Of a read-only history that SQLite could not open in place: the copy that is read.
    pub(crate) _copy: Option<Arc<TempDir>>,
}

impl History {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the person should know about how it was opened.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether nothing can be stored.
    pub fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Closes the connections; the last process to do so leaves a single tidy file.
    ///
    /// Nothing is lost without it.
    pub async fn close(&self) {
        self.reader.close().await;
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }

    /// Begins a transaction that writes. IMMEDIATE: a transaction that reads first and writes
    /// later fails at once, without waiting, when another process wrote in between.
    pub(crate) async fn writing(&self) -> Result<Transaction<'static, Sqlite>, HistoryError> {
        let writer = self.writer.as_ref().ok_or_else(|| self.unwritable())?;
        writer
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| self.explain(error.into()))
    }

    /// Why nothing can be stored.
    fn unwritable(&self) -> HistoryError {
        let path = self.path.clone();
        let full = |notice: &Notice| matches!(notice, Notice::DiskFull { .. });
        match self.notices.iter().any(full) {
            true => HistoryError::DiskFull { path },
            false => HistoryError::ReadOnly { path },
        }
    }

    /// Ends a write: commits what was written, or rolls back and says what was wrong. Only when
    /// this has returned may anyone be told that it is stored.
    pub(crate) async fn finish<T>(
        &self,
        writing: Transaction<'static, Sqlite>,
        written: Result<T, Fault>,
    ) -> Result<T, HistoryError> {
        let value = written.map_err(|fault| self.explain(fault))?;
        let committed = writing.commit().await;
        committed.map_err(|error| self.explain(error.into()))?;
        Ok(value)
    }

    /// Begins a transaction that reads one moment of the history.
    pub(crate) async fn reading(&self) -> Result<Transaction<'static, Sqlite>, HistoryError> {
        self.reader
            .begin()
            .await
            .map_err(|error| self.explain(error.into()))
    }

    /// The fault as a sentence. Damage found on the way is left as a mark for the next start,
    /// which checks the whole file only then.
    pub(crate) fn explain(&self, fault: Fault) -> HistoryError {
        if fault.is_damage() && !self.is_read_only() {
            crate::set_aside::mark_damaged(&self.path);
        }
        fault.about(&self.path, PATIENCE)
    }
}

/// How every connection that writes is set.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    use sqlx::ConnectOptions;
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(PATIENCE)
        .foreign_keys(true)
        // FULL: a commit is on the disk when it returns, also when the power fails. NORMAL would
        // already survive a killed process, but samples come seconds apart and are the product,
        // and one fsync costs milliseconds outside every timed section.
        .synchronous(SqliteSynchronous::Full)
        // macOS: its fsync does not reach the platter without. Elsewhere it does nothing.
        .pragma("fullfsync", "ON")
        .disable_statement_logging()
}

/// Connections kept as they are: a pool that reaps idle ones wakes a thread at its own pace, and
/// nothing of ours may wake while a section is timed.
pub(crate) fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(3 * PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // A full disk makes SQLite roll back by itself; the transaction count kept beside it then
        // never comes back to zero, and the connection would refuse every transaction to come.
        .after_release(|connection, _| {
            Box::pin(async move {
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}

#[cfg(test)]
mod tests {
    use twospeed_measure::{Recorder, TestRecord};

    use super::*;
    use crate::records;

    /// A history with a test, on a disk that has `pages` pages of room left.
    async fn with_little_room(folder: &Path, pages: i64) -> (History, TestRecord) {
        let history = History::open(folder).await.unwrap();
        let run = records::run();
        let model = records::model("aa", "Smol");
        let test = records::test(run.id, 0, model, records::spec(512, 0));
        history.run_started(&run).await.unwrap();
        history.test_started(&test).await.unwrap();
        let used: i64 = on_writer(&history, "PRAGMA page_count".into()).await;
        on_writer(
            &history,
            format!("PRAGMA max_page_count = {}", used + pages),
        )
        .await;
        (history, test)
    }

    async fn on_writer(history: &History, sql: String) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(history.writer.as_ref().unwrap())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_full_disk_is_named_and_every_sample_before_stands() {
        let folder = tempfile::tempdir().unwrap();
        let (history, test) = with_little_room(folder.path(), 2).await;
        let mut stored = 0;
        let sentence = loop {
            match history.sample(&records::sample(&test, stored)).await {
                Ok(()) => stored += 1,
                Err(error) => break error.message,
            }
        };
        assert!(sentence.contains("is full"), "{sentence}");
        assert!(sentence.contains("history.sqlite"), "{sentence}");
        assert!(stored > 0);
        let whole = history.run(test.run).await.unwrap().unwrap();
        assert_eq!(whole.tests[0].samples.len() as u32, stored);
    }

    #[tokio::test]
    async fn once_there_is_room_again_the_same_history_goes_on_storing() {
        let folder = tempfile::tempdir().unwrap();
        let (history, test) = with_little_room(folder.path(), 0).await;
        let mut index = 0;
        while history.sample(&records::sample(&test, index)).await.is_ok() {
            index += 1;
        }
        // The connection that met the full disk is given up with its limit.
        history
            .sample(&records::sample(&test, index))
            .await
            .unwrap();
        let whole = history.run(test.run).await.unwrap().unwrap();
        assert_eq!(whole.tests[0].samples.len() as u32, index + 1);
    }
}
