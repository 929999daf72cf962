//! What tuning says of itself while it goes on, and what comes of it: data, for every face.

use serde::{Deserialize, Serialize};
use twospeed_engine::TestSpec;
use uuid::Uuid;

use super::costs::Grid;
use super::pairs::Verdict;
use super::race::Fate;
use super::space::{Choice, Space, Stage};
use super::target::{Speeds, Target};

/// A step of tuning. Nothing is said inside a timed section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "progress", rename_all = "snake_case")]
pub enum TuneProgress {
    /// It begins, with the defaults.
    Started {
        /// The run that keeps everything.
        run: Uuid,
        /// What is to be fast.
        target: Target,
        /// llama-bench's defaults on this machine.
        defaults: Choice,
    },
    /// The defaults were measured, so the rest can be foreseen.
    Searching(Searched),
    /// A stage begins.
    Stage {
        /// What is turned.
        stage: Stage,
        /// The choices, by number; the best so far is number 0.
        choices: Vec<Choice>,
    },
    /// A test begins.
    Testing {
        /// With which settings.
        choice: Choice,
        /// Which test.
        spec: TestSpec,
    },
    /// A choice was measured once more.
    Measured {
        /// The choice.
        choice: Choice,
        /// Its speeds in these tests, medians.
        speeds: Speeds,
        /// Its speed as a share of the stage's number 0, over all rounds so far; `None` where one
        /// of them was not measured.
        share: Option<f64>,
    },
    /// A choice is out of the race.
    Dropped {
        /// The choice.
        choice: Choice,
        /// Why.
        fate: Fate,
        /// One sentence, where it could not be measured.
        reason: Option<String>,
    },
    /// A stage ended.
    Best {
        /// What was turned.
        stage: Stage,
        /// The best so far.
        choice: Choice,
        /// Its time was up before everything was tried.
        out_of_time: bool,
    },
    /// The last check begins: the defaults against the best, in alternating pairs.
    Final {
        /// The best.
        choice: Choice,
        /// What is measured on both sides.
        tests: Vec<TestSpec>,
        /// Pairs.
        pairs: u32,
    },
    /// It is decided.
    Decided(Decision),
}

/// The defaults' speeds, the grid around them, and the time there is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The CPU variant that the defaults came to.
    pub variant: String,
    /// Speeds of the defaults.
    pub speeds: Speeds,
    /// Everything that may be turned.
    pub space: Space,
    /// Every combination of that.
    pub grid: Grid,
    /// Seconds that the grid would take at least: the defaults' speed for all of it.
    pub grid_seconds: f64,
    /// Seconds that tuning may take, the last check included.
    pub budget_seconds: f64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Other settings are faster than the defaults beyond doubt.
    Tuned {
        /// They.
        choice: Choice,
        /// The pairs that show it.
        verdict: Verdict,
        /// Speeds of the defaults in the pairs, medians.
        default_speeds: Speeds,
        /// Speeds of the choice in the pairs, medians.
        speeds: Speeds,
    },
    /// The defaults are the fastest, or nothing is faster beyond doubt.
    Defaults {
        /// The choice that came nearest, where one was checked in pairs.
        nearest: Option<Choice>,
        /// What the pairs said of it.
        verdict: Option<Verdict>,
    },
    /// The person stopped it: nothing is decided.
    Stopped,
}
