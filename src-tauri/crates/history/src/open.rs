//! Opening the history: a folder that may be anything, a file that may be anything.
//!
//! Starting is fast: the file is not checked as a whole. SQLite notices a wrong header or a
//! missing end at the first read; damage further in is met by a later read, which leaves a mark
//! beside the file, and the start after that checks it in full.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;
use twospeed_measure::{interrupted, platform};

use crate::error::{Fault, HistoryError};
use crate::history::{History, PATIENCE, options, pool};
use crate::notice::Notice;
use crate::place::{self, Access, Place};
use crate::schema::{self, Identity};
use crate::{edit, query, set_aside};

/// Connections that read, beside the one that writes.
const READERS: u32 = 4;

impl History {
    /// Opens the history of a data folder, making both where they are missing.
    ///
    /// A damaged file is set aside under a name with a time stamp and a fresh one begun, one that
    /// is read-only or on a full disk is opened for reading, and runs whose process is gone are marked
    /// interrupted: [`History::notices`] tells. A file of a newer Twospeed or of another program
    /// is refused and left alone.
    pub async fn open(data_folder: &Path) -> Result<Self, HistoryError> {
        let folder = data_folder.to_owned();
        let Place { path, access } = blocking(move || Place::prepare(&folder)).await?;
        match access {
            Access::Write(lock) => {
                let history = match to_write(path.clone()).await {
                    Err(full @ HistoryError::DiskFull { .. }) => {
                        // Where even its index finds no room, it may be read in another place.
                        let notice = Notice::DiskFull { path: path.clone() };
                        return to_read(path, notice).await.map_err(|_| full);
                    }
                    history => history?,
                };
                drop(lock);
                history.with_cut_off_runs_marked().await
            }
            Access::Read => {
                let notice = Notice::ReadOnly { path: path.clone() };
                to_read(path, notice).await
            }
        }
    }

    /// Marks runs whose process is gone.
    async fn with_cut_off_runs_marked(mut self) -> Result<Self, HistoryError> {
        let mut reading = self.reading().await?;
        let running = query::running(&mut reading)
            .await
            .map_err(|fault| self.explain(fault))?;
        drop(reading);
        if running.is_empty() {
            return Ok(self);
        }
        let here = platform::machine();
        let cut_off: Vec<_> = running
            .iter()
            .filter(|run| interrupted::cut_off(run, &here, platform::process))
            .map(|run| run.id)
            .collect();
        match edit::mark_interrupted(&self, &cut_off).await {
            Ok(runs) if runs.is_empty() => {}
            Ok(runs) => self.notices.push(Notice::Interrupted { runs }),
            // Reading must work on a full disk; the next start marks them.
            Err(HistoryError::DiskFull { .. } | HistoryError::Busy { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(self)
    }
}

/// Runs what touches the file system where it may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work)
        .await
        .expect("BUG: work on the file system does not panic")
}

/// Why a history was not opened.
enum Refusal {
    Damaged(String),
    Newer(i64),
    Foreign,
    Other(Fault),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        if fault.is_damage() {
            Self::Damaged(fault.reason())
        } else {
            Self::Other(fault)
        }
    }
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        Fault::from(error).into()
    }
}

impl Refusal {
    fn about(self, path: &Path) -> HistoryError {
        let path = path.to_owned();
        match self {
            Self::Damaged(reason) => HistoryError::Damaged { path, reason },
            Self::Foreign => HistoryError::NotOurs { path },
            Self::Other(fault) => fault.about(&path, PATIENCE),
            Self::Newer(found) => HistoryError::Newer {
                path,
                found,
                known: schema::VERSION,
            },
        }
    }
}

async fn to_write(path: PathBuf) -> Result<History, HistoryError> {
    let mut notices = Vec::new();
    if set_aside::is_a_log_alone(&path) {
        notices.push(put_aside(&path, "only its log is left".into()).await?);
    }
    let writer = match writer(&path).await {
        Err(Refusal::Damaged(reason)) => {
            notices.push(put_aside(&path, reason).await?);
            writer(&path).await
        }
        writer => writer,
    };
    Ok(History {
        writer: Some(writer.map_err(|refusal| refusal.about(&path))?),
        reader: readers(options(&path)),
        path,
        notices,
        _copy: None,
    })
}

async fn put_aside(path: &Path, reason: String) -> Result<Notice, HistoryError> {
    let path = path.to_owned();
    blocking(move || {
        set_aside::set_aside(&path, Timestamp::now(), reason)
            .map_err(|error| place::fault(&path, &error))
    })
    .await
}

/// The connection that writes, to a history of this version.
async fn writer(path: &Path) -> Result<SqlitePool, Refusal> {
    let options = options(path).create_if_missing(true);
    let writer = pool(1).connect_with(options).await?;
    match bring_up_to_date(&writer, path).await {
        Ok(()) => Ok(writer),
        Err(refusal) => {
            writer.close().await;
            Err(refusal)
        }
    }
}

async fn bring_up_to_date(writer: &SqlitePool, path: &Path) -> Result<(), Refusal> {
    let mut connection = writer.acquire().await?;
    match schema::identity(&mut connection).await? {
        Identity::Ours(found) if found > schema::VERSION => return Err(Refusal::Newer(found)),
        Identity::Foreign => return Err(Refusal::Foreign),
        Identity::Ours(_) | Identity::Empty => {}
    }
    if set_aside::is_marked_damaged(path) {
        let found: String = sqlx::query_scalar("PRAGMA integrity_check(1)")
            .fetch_one(&mut *connection)
            .await?;
        if found != "ok" {
            return Err(Refusal::Damaged(found));
        }
        set_aside::remove_mark(path);
    }
    // Kept in the file; readers do not wait for the writer and the writer not for them.
    sqlx::query("PRAGMA journal_mode = WAL")
        .execute(&mut *connection)
        .await?;
    Ok(schema::migrate(&mut connection).await?)
}

fn readers(options: SqliteConnectOptions) -> SqlitePool {
    pool(READERS).connect_lazy_with(options.pragma("query_only", "ON"))
}

/// Opens a history that may not be written, in place or, where SQLite would have to write to do
/// so (it needs an index of the log, or an older schema brought up to date), as a copy.
async fn to_read(path: PathBuf, notice: Notice) -> Result<History, HistoryError> {
    let in_place = readers(options(&path).read_only(true));
    let (reader, copy) = match is_current(&in_place).await {
        Ok(true) => (in_place, None),
        _ => {
            in_place.close().await;
            let (copy, copied) = copy(&path).await?;
            let writer = writer(&copied).await.map_err(|refusal| match refusal {
                Refusal::Damaged(reason) => HistoryError::DamagedReadOnly {
                    path: path.clone(),
                    reason,
                },
                refusal => refusal.about(&path),
            })?;
            writer.close().await;
            (readers(options(&copied)), Some(Arc::new(copy)))
        }
    };
    Ok(History {
        notices: vec![notice],
        path,
        writer: None,
        reader,
        _copy: copy,
    })
}

async fn is_current(reader: &SqlitePool) -> Result<bool, Fault> {
    let mut connection = reader.acquire().await?;
    let identity = schema::identity(&mut connection).await?;
    Ok(identity == Identity::Ours(schema::VERSION))
}

/// Copies the history and its log into a folder that is removed with the last [`History`].
async fn copy(path: &Path) -> Result<(TempDir, PathBuf), HistoryError> {
    let path = path.to_owned();
    blocking(move || {
        let copy = || {
            let folder = TempDir::with_prefix("twospeed-history-")?;
            let copied = folder.path().join("history.sqlite");
            fs::copy(&path, &copied)?;
            let log = set_aside::log(&path);
            if log.exists() {
                fs::copy(log, set_aside::log(&copied))?;
            }
            Ok((folder, copied))
        };
        copy().map_err(|error| place::fault(&path, &error))
    })
    .await
}
