//! What a reader of a result should know, as data.

use serde::{Deserialize, Serialize};

/// A reason to read a result with care. The words and the advice belong to the faces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "warning", rename_all = "snake_case")]
pub enum Warning {
    /// The first repetition took `by` times the median of the others.
    SlowFirstSample {
        /// Factor.
        by: f64,
    },
    /// The spread is large against the mean.
    HighVariance {
        /// Standard deviation / mean.
        relative: f64,
    },
    /// Speed drifts over the repetitions.
    Trend {
        /// Change from the first to the last by a fitted line, relative to the mean; negative = slower.
        relative: f64,
    },
    /// Swap was in use.
    SwapInUse {
        /// Bytes.
        bytes: u64,
    },
    /// Other processes used the CPU.
    OtherLoad {
        /// Cores' worth.
        cores: f64,
    },
    /// The hypervisor took CPU time.
    Steal {
        /// Share, 0 to 1.
        share: f64,
    },
    /// More threads than the cgroup quota allows, or the quota was hit.
    CpuQuota {
        /// Cores the quota allows.
        cores: f64,
        /// Threads used.
        threads: u32,
    },
    /// The anchor changed: the machine was not the same before and after.
    Drift {
        /// after / before - 1; positive = slower after.
        relative: f64,
    },
    /// Runs on battery.
    OnBattery,
    /// The best CPU variant died here; another ran.
    VariantSetAside {
        /// The one that died.
        died: String,
        /// The one that ran.
        ran: String,
    },
    /// The device that computed is software, not a GPU.
    SoftwareGpu {
        /// Its name.
        device: String,
    },
    /// Layers were to run on a GPU and none did.
    NothingOffloaded {
        /// Layers asked for.
        asked: i32,
    },
    /// Reading from disk inside the timed section.
    PageFaults {
        /// Major faults.
        faults: u64,
    },
    /// Repeated as often as was allowed, and the mean is still not known as well as was asked.
    NotSettled {
        /// Half-width of the 95 % confidence interval of the mean, relative to it.
        relative: f64,
        /// What was asked for.
        target: f64,
    },
    /// Single repetitions lie far from all others. Without them the mean is known as well as was
    /// asked; with them it is not. The median hardly feels them.
    Outliers {
        /// How many.
        count: u32,
        /// Speed of the farthest / the median of all.
        by: f64,
    },
    /// Processors held their clock down because of heat while the test ran.
    Throttled {
        /// Times.
        times: u64,
    },
    /// The power profile saves energy at the cost of speed.
    PowerSaver {
        /// The system's word for it.
        profile: String,
    },
}
