//! Where a memory bandwidth comes from: published, measured here, or given by the person.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::device::{Confidence, Device};
use crate::units::{Bytes, BytesPerSecond};

/// A memory bandwidth and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Bandwidth {
    /// Bytes read per second.
    pub rate: BytesPerSecond,
    /// Who says so.
    pub source: BandwidthSource,
}

/// Who says how fast memory is.
#[derive(Debug, Clone, PartialEq)]
pub enum BandwidthSource {
    /// The person.
    Given,
    /// A device preset: a peak, rarely sustained.
    Published {
        /// Name of the preset.
        device: String,
        /// Where the preset has it from.
        source: String,
        /// How far that can be trusted.
        confidence: Confidence,
    },
    /// Read by all cores of this machine.
    Measured {
        /// The buffer that was read.
        buffer: Bytes,
        /// What that buffer stands for.
        reach: Reach,
    },
}

/// What a measured buffer stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The weights that a token reads may come from the last-level cache: the buffer nearest their
    /// size.
    NearestToTheModel,
    /// They do not fit the cache: the largest buffer.
    BeyondTheCache,
}

/// As `at.bandwidth_source` of `estimate --json` spells it.
impl fmt::Display for BandwidthSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => f.write_str("given"),
            Self::Published { device, .. } => write!(f, "published: {device}"),
            Self::Measured { buffer, reach } => {
                let reach = match reach {
                    Reach::NearestToTheModel => "nearest to the model's size",
                    Reach::BeyondTheCache => "beyond the last-level cache",
                };
                write!(f, "measured: buffer of {}, {reach}", buffer.binary())
            }
        }
    }
}

impl Serialize for BandwidthSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One reading of a bandwidth probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandwidthReading {
    /// Size of the buffer that was read over and over.
    pub buffer: Bytes,
    /// Bytes read per second.
    pub rate: BytesPerSecond,
}

impl Bandwidth {
    /// As the person states it.
    pub fn given(rate: BytesPerSecond) -> Self {
        Self {
            rate,
            source: BandwidthSource::Given,
        }
    }

    /// As published for a device.
    pub fn published(device: &Device) -> Self {
        Self {
            rate: device.bandwidth,
            source: BandwidthSource::Published {
                device: device.name.clone(),
                source: device.source.clone(),
                confidence: device.confidence,
            },
        }
    }

    /// The reading that stands for reading `working_set` bytes once per token.
    ///
    /// A working set within the last-level cache is read from there after the first token, so the
    /// reading nearest its size stands for it; a larger one comes from memory, for which the largest
    /// buffer stands. Where the cache is unknown the nearest size decides. `None` without readings.
    pub fn measured(
        readings: &[BandwidthReading],
        working_set: Bytes,
        last_level_cache: Option<Bytes>,
    ) -> Option<Self> {
        let beyond = readings.iter().max_by_key(|r| r.buffer)?;
        let nearest = readings.iter().min_by(|a, b| {
            distance(a.buffer, working_set).total_cmp(&distance(b.buffer, working_set))
        })?;
        let (reading, reach) = match last_level_cache {
            Some(cache) if working_set > cache => (beyond, Reach::BeyondTheCache),
            _ => (nearest, Reach::NearestToTheModel),
        };
        Some(Self {
            rate: reading.rate,
            source: BandwidthSource::Measured {
                buffer: reading.buffer,
                reach,
            },
        })
    }

    /// What a reader of an estimate should know about its bandwidth, in one sentence.
    pub(crate) fn note(&self) -> String {
        match &self.source {
            BandwidthSource::Given => format!("Bandwidth {} as given.", self.rate),
            BandwidthSource::Published {
                device,
                source,
                confidence,
            } => format!(
                "Bandwidth {} is the published peak of {device} ({source}; {} confidence); what is sustained is less.",
                self.rate,
                match confidence {
                    Confidence::Low => "low",
                    Confidence::Medium => "medium",
                    Confidence::High => "high",
                }
            ),
            BandwidthSource::Measured { buffer, reach } => format!(
                "Bandwidth {} was measured here on a buffer of {}, {}.",
                self.rate,
                buffer.binary(),
                match reach {
                    Reach::NearestToTheModel => "the nearest to the bytes that one token reads",
                    Reach::BeyondTheCache =>
                        "since the bytes that one token reads do not fit the last-level cache",
                }
            ),
        }
    }
}

/// How far apart two sizes are, by their ratio.
fn distance(a: Bytes, b: Bytes) -> f64 {
    (a.0.max(1) as f64 / b.0.max(1) as f64).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;

    /// A machine with a 300 MB cache that is read at 40 GB/s, and memory at 12 GB/s.
    const READINGS: [BandwidthReading; 2] = [
        BandwidthReading {
            buffer: Bytes::mib(94),
            rate: BytesPerSecond(40_000_000_000),
        },
        BandwidthReading {
            buffer: Bytes::gib(2),
            rate: BytesPerSecond(12_000_000_000),
        },
    ];
    const CACHE: Option<Bytes> = Some(Bytes::mib(300));

    fn gb_s(working_set: Bytes, cache: Option<Bytes>) -> f64 {
        Bandwidth::measured(&READINGS, working_set, cache)
            .unwrap()
            .rate
            .gb_s()
    }

    #[test]
    fn a_model_within_the_cache_is_judged_by_a_buffer_of_its_size() {
        assert_eq!(gb_s(Bytes::mib(90), CACHE), 40.0);
        assert_eq!(gb_s(Bytes::mib(300), CACHE), 40.0);
    }

    #[test]
    fn a_model_beyond_the_cache_is_judged_by_memory() {
        assert_eq!(gb_s(Bytes::mib(301), CACHE), 12.0);
        assert_eq!(gb_s(Bytes::gib(9), CACHE), 12.0);
    }

    #[test]
    fn where_the_cache_is_unknown_the_nearest_size_decides() {
        assert_eq!(gb_s(Bytes::mib(90), None), 40.0);
        assert_eq!(gb_s(Bytes::gib(9), None), 12.0);
    }

    #[test]
    fn the_source_names_the_buffer() {
        let source = |set| {
            Bandwidth::measured(&READINGS, set, CACHE)
                .unwrap()
                .source
                .to_string()
        };
        assert_eq!(
            source(Bytes::mib(90)),
            "measured: buffer of 94.0 MiB, nearest to the model's size"
        );
        assert_eq!(
            source(Bytes::gib(9)),
            "measured: buffer of 2.00 GiB, beyond the last-level cache"
        );
    }

    #[test]
    fn without_readings_nothing_is_measured() {
        assert_eq!(Bandwidth::measured(&[], Bytes::gib(1), CACHE), None);
    }

    #[test]
    fn a_published_bandwidth_keeps_its_source_and_confidence() {
        let bandwidth = Bandwidth::published(device::find("RK3588 (LPDDR5-5472)").unwrap());
        assert_eq!(
            bandwidth.source.to_string(),
            "published: RK3588 (LPDDR5-5472)"
        );
        assert!(
            bandwidth.note().contains("low confidence"),
            "{}",
            bandwidth.note()
        );
    }
}
