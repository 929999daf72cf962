//! What tuning tells.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{RowKind, Setting};

/// A step of tuning. Settings are those in which a choice differs from the usual ones: none of
/// them = the usual settings themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "tuning", rename_all = "snake_case")]
pub enum TuneStep {
    /// The usual settings were measured, so the rest can be foreseen.
    Searching {
        /// Their speeds.
        speeds: BothSpeeds,
        /// Combinations there are.
        combinations: u32,
        /// Seconds that all of them would take at least.
        grid_s: f64,
        /// Seconds that tuning may take.
        budget_s: f64,
    },
    /// A stage begins.
    Stage {
        /// What is turned.
        stage: TuneStage,
        /// The choices; the first is the best so far.
        choices: Vec<Vec<Setting>>,
    },
    /// A test begins.
    Testing {
        /// With which settings.
        choice: Vec<Setting>,
        /// Which test.
        what: RowKind,
    },
    /// A choice was measured once more.
    Measured {
        /// The choice.
        choice: Vec<Setting>,
        /// Its speeds.
        speeds: BothSpeeds,
        /// Its speed as a share of the first choice's; `None` = not known.
        share: Option<f64>,
    },
    /// A choice is out of the race.
    Dropped {
        /// The choice.
        choice: Vec<Setting>,
        /// Its speed as a share of the fastest's; `None` where it could not be measured.
        share: Option<f64>,
        /// Why it could not be measured, a sentence.
        reason: Option<String>,
    },
    /// A stage ended.
    Best {
        /// The best so far.
        choice: Vec<Setting>,
        /// Its time was up before everything was tried.
        out_of_time: bool,
    },
    /// The usual settings against the best, in alternating pairs.
    Final {
        /// The best.
        choice: Vec<Setting>,
        /// Pairs.
        pairs: u32,
    },
}

/// What a stage of tuning turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TuneStage {
    /// The CPU variant.
    Variant,
    /// Threads.
    Threads,
    /// Flash attention and repacked weights.
    Attention,
    /// The micro-batch.
    MicroBatch,
}

/// Both speeds, tokens per second, as far as they matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct BothSpeeds {
    /// Prefill.
    pub prefill: Option<f64>,
    /// Decode.
    pub decode: Option<f64>,
}
