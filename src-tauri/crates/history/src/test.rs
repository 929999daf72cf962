//! A test as the history gives it back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use twospeed_measure::{SampleRecord, TestEnd, TestRecord, summary};

/// A test with everything known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// What was measured, and how. What [`Test::unknown`] names stands here with a value that says
    /// nothing.
    pub record: TestRecord,
    /// How it ended; `None` while it runs.
    pub end: Option<TestEnd>,
    /// Its samples in the order they were made.
    pub samples: Vec<SampleRecord>,
    /// Names of what is not known of `record`: settings by llama-bench's names, and `split_kv`,
    /// `repetitions`, `warmup`, `started_at`, `ended_at`, `model_path`, `file_bytes`, `parameters`.
    ///
    /// Only results of other tools have any: what their files do not tell is no default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What another tool said of its samples where it did not give them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// What another tool said of engine, machine and model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// Why it cannot be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect: Option<Suspect>,
    /// Fields of an import that this version does not know. Of another tool they may be settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Statistics as another tool reported them, without the samples. Unknown is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reported {
    /// Mean duration of a repetition in nanoseconds.
    pub avg_ns: Option<f64>,
    /// Its standard deviation.
    pub stddev_ns: Option<f64>,
    /// Mean tokens per second.
    pub avg_ts: Option<f64>,
    /// Its standard deviation.
    pub stddev_ts: Option<f64>,
}

/// What another tool said of its engine, machine and model, by llama-bench's names. Unknown is
/// `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The engine's commit.
    pub build_commit: Option<String>,
    /// The engine's build number.
    pub build_number: Option<u32>,
    /// CPU name.
    pub cpu_info: Option<String>,
    /// GPU names; empty when there is none.
    pub gpu_info: Option<String>,
    /// Backends.
    pub backends: Option<String>,
    /// The engine's description of the model.
    pub model_type: Option<String>,
    /// Bytes of all tensors.
    pub model_size: Option<u64>,
    /// Parameters.
    pub model_n_params: Option<u64>,
}

/// Why a result cannot be right. It stays out of figures until it is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    /// One sentence with the numbers.
    pub reason: String,
    /// When the person allowed it all the same.
    pub allowed_at: Option<Timestamp>,
}

/// The speed of a test, in tokens per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// Mean of the samples' speeds, or what was reported.
    pub mean: f64,
    /// Standard deviation with n - 1; one sample has none, and another tool may not tell.
    pub standard_deviation: Option<f64>,
    /// Each sample's speed; empty where only the mean was reported.
    pub samples: Vec<f64>,
}

impl Test {
    /// A test of which everything is known, as one measured here is.
    pub fn new(record: TestRecord, end: Option<TestEnd>, samples: Vec<SampleRecord>) -> Self {
        Self {
            record,
            end,
            samples,
            unknown: Vec::new(),
            reported: None,
            told: None,
            suspect: None,
            extra: Map::new(),
        }
    }

    /// Whether what stands under this name in the record is known.
    pub fn knows(&self, name: &str) -> bool {
        !self.unknown.iter().any(|unknown| unknown == name)
    }

    /// Whether both were made under the same settings, as far as either tells: what is unknown of
    /// one and known of the other, and a field that only one has, make a difference.
    pub fn same_settings(&self, other: &Self) -> bool {
        self.record.settings == other.record.settings
            && self.unknown == other.unknown
            && self.extra == other.extra
    }

    /// Whether it may stand in a figure: nothing speaks against it, or it was allowed.
    pub fn counts(&self) -> bool {
        self.suspect
            .as_ref()
            .is_none_or(|suspect| suspect.allowed_at.is_some())
    }

    /// Its speed as llama-bench defines it, computed from the samples where there are any and
    /// otherwise as it was reported; `None` where there is neither.
    pub fn speed(&self) -> Option<Speed> {
        let spec = self.record.spec;
        let samples: Vec<_> = self
            .samples
            .iter()
            .map(|record| record.sample.clone())
            .collect();
        if let Some(summary) = summary(spec, &samples) {
            return Some(Speed {
                mean: summary.tokens_per_second.mean,
                standard_deviation: summary.tokens_per_second.standard_deviation,
                samples: samples
                    .iter()
                    .filter_map(|sample| {
                        twospeed_measure::stats::tokens_per_second(spec.tokens(), sample.ns)
                    })
                    .collect(),
            });
        }
        let reported = self.reported?;
        Some(Speed {
            mean: reported.avg_ts?,
            standard_deviation: reported.stddev_ts,
            samples: Vec::new(),
        })
    }
}
