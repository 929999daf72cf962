//! How fast a machine reads its memory: the readings of the probe.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use twospeed_measure::machine::Machine;

use crate::History;
use crate::columns::{Cells, Columns, Existing};
use crate::error::{Fault, HistoryError};
use crate::write;

/// One reading of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadReading {
    /// Size of the buffer that was read over and over.
    pub buffer_bytes: u64,
    /// Bytes per second, all threads together.
    pub bytes_per_second: u64,
    /// Threads that read.
    pub threads: u32,
    /// When.
    pub at: Timestamp,
}

impl History {
    /// Keeps readings of a machine; none replaces an older one.
    pub async fn keep_read_speeds(
        &self,
        machine: &Machine,
        readings: &[ReadReading],
    ) -> Result<(), HistoryError> {
        let mut writing = self.writing().await?;
        let written = async {
            write::machine(&mut writing, machine).await?;
            for reading in readings {
                Columns::default()
                    .set("machine", machine.id.as_str())
                    .count("buffer_bytes", reading.buffer_bytes)
                    .count("bytes_per_second", reading.bytes_per_second)
                    .set("threads", reading.threads)
                    .time("at", reading.at)
                    .insert(&mut writing, "read_speed", Existing::Keep)
                    .await?;
            }
            Ok::<_, Fault>(())
        }
        .await;
        self.finish(writing, written).await
    }

    /// The newest reading of each buffer size on a machine, by size.
    pub async fn read_speeds(&self, machine: &str) -> Result<Vec<ReadReading>, HistoryError> {
        let mut reading = self.reading().await?;
        let rows = sqlx::query(
            "SELECT buffer_bytes, bytes_per_second, threads, max(at) AS at
             FROM read_speed WHERE machine = ? GROUP BY buffer_bytes ORDER BY buffer_bytes",
        )
        .bind(machine)
        .fetch_all(&mut *reading)
        .await
        .map_err(|error| self.explain(error.into()))?;
        rows.iter()
            .map(|row| {
                let cells = Cells(row);
                Ok(ReadReading {
                    buffer_bytes: cells.count("buffer_bytes")?,
                    bytes_per_second: cells.count("bytes_per_second")?,
                    threads: cells.get("threads")?,
                    at: cells.time("at")?,
                })
            })
            .collect::<Result<_, Fault>>()
            .map_err(|fault| self.explain(fault))
    }
}
