//! Work that takes a while and is no run: quantizing, downloading, making a model, trying a twin,
//! calibrating.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Problem;

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// What it does.
    pub kind: JobKind,
    /// What it makes or is about, to show: `SmolLM2 135M Instruct Q4_K_M`.
    pub title: String,
    /// Row of Models that it makes, whose chip shows the progress; of a twin the row or header that
    /// it is about; of a calibration nothing.
    pub row: String,
    /// Where it stands.
    pub state: JobState,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// Makes another quantization of a model on disk.
    Quantize,
    /// Fetches a file that was asked for.
    Download,
    /// Makes the built-in model.
    Builtin,
    /// Measures shallower models of the same shape, to say what a model would run at.
    Twin,
    /// Measures what expected speeds are made of.
    Calibrate,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// Waits, and says for what.
    Waiting {
        /// One sentence.
        why: String,
    },
    /// At work.
    Running {
        /// From 0 to 1; `None` = not known.
        fraction: Option<f64>,
        /// Bytes done, of a download.
        bytes: Option<u64>,
        /// Bytes in all, of a download.
        bytes_total: Option<u64>,
    },
    /// Its file is there and is in the list of models; of a twin and of a calibration, what it
    /// found.
    Done {
        /// Row in Models, or what it was about.
        row: String,
    },
    /// Ended without one.
    Failed {
        /// Why.
        problem: Problem,
    },
    /// The person stopped it.
    Cancelled,
}
