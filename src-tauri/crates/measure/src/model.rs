//! The model a test was made with.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::Ability;
use twospeed_engine::settings::ModelPath;

/// A model by its content; the path is only where it lay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredModel {
    /// Fingerprint of its content: survives renames, never merges different files of one name.
    pub fingerprint: String,
    /// Where it lay.
    pub path: ModelPath,
    /// Its name.
    pub name: String,
    /// Architecture.
    pub architecture: Option<String>,
    /// Quantization label.
    pub quantization: Option<String>,
    /// Bytes of the file (set).
    pub file_bytes: u64,
    /// Parameters.
    pub parameters: u64,
    /// Active parameters.
    pub active_parameters: Option<u64>,
    /// Bytes of weights that one decoded token reads.
    pub weight_bytes_per_token: Option<u64>,
    /// What it can be asked to do; `None` where only a foreign result tells of it.
    pub ability: Option<Ability>,
    /// Random weights made here: its speed is real, its text is noise.
    pub synthetic: bool,
}
