//! What own measurements teach: by how much expected speeds are to be corrected.

use serde::Serialize;

/// Own measurements beside what was expected of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Corrections {
    /// Of prefill.
    pub prefill: Option<Correction>,
    /// Of decode.
    pub decode: Option<Correction>,
}

/// A correction of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correction {
    /// Expected speeds are multiplied by it.
    pub factor: f64,
    /// Half the width of the band that the measurements leave, as a share: 0.1 is 10 %.
    pub spread: f64,
    /// Runs that it comes from.
    pub runs: u64,
    /// They were made with this very model.
    pub same_model: bool,
}
