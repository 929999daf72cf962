//! Every run, test and sample, kept in SQLite.
//!
//! One file, `history.sqlite` in the data folder, written by the window and the command line
//! alike, also at the same time. [`History`] opens it, keeps what a run says as it happens (it is
//! a [`Recorder`](twospeed_measure::Recorder)), answers what faces ask, and exports and imports
//! [`twospeed.results/1`](export). [`llama_bench`] writes results in that program's formats. No
//! SQL lives outside this crate.
//!
//! What is promised: a call that stores returns when its transaction is on the disk, so neither a
//! killed process nor a power cut loses what was acknowledged; a file that is damaged, newer or of
//! another program is never overwritten; deleting can be undone.

mod calibration;
mod columns;
mod edit;
mod error;
pub mod export;
mod folder;
mod foreign;
mod history;
mod import;
mod latest;
pub mod llama_bench;
mod notice;
mod open;
mod place;
mod query;
mod read;
mod read_speed;
mod recorder;
mod results_file;
mod resume;
mod run;
mod schema;
mod set_aside;
pub mod tables;
mod test;
mod tuned;
mod write;

pub use calibration::{AlikeFilter, LastEngine};
pub use error::HistoryError;
pub use history::History;
pub use import::{Flagged, Form, Imported, ImportedRun, Outcome, Rejected};
pub use notice::Notice;
pub use read_speed::ReadReading;
pub use run::{
    LatestFilter, ModelName, Origin, Resumable, Run, RunFilter, RunOverview, RunStatus, TestCounts,
    TriedTest, Unreadable, WholeRun,
};
pub use test::{Reported, Speed, Suspect, Test, Told};
pub use tuned::TunedRecord;

#[cfg(test)]
#[allow(dead_code)] // Each side of the crate uses some of it.
#[path = "../tests/history/records.rs"]
mod records;
