//! What an expectation of another device rests on, said in a sentence.

use std::fmt;

use super::learn::{DecodeModel, MET, PrefillModel};
use crate::device::Device;
use crate::units::Bytes;

/// What an expectation of another device rests on, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Footing {
    /// Decode is expected.
    Decode {
        /// The device.
        device: String,
        /// Share of its peak bandwidth that is taken for reached.
        efficiency: f64,
        /// Microseconds that each layer adds.
        layer_us: f64,
        /// What it was learned from.
        learned: LearnedFrom,
    },
    /// Prefill is expected.
    Prefill {
        /// The device.
        device: String,
        /// Throughput that is taken for reached, in TFLOP/s.
        tflops: f64,
        /// How that is known.
        throughput: Throughput,
        /// What it was learned from.
        learned: LearnedFrom,
    },
    /// Published measurements are of one user.
    SeveralUsers,
    /// Published measurements that are learned from have all layers on the device.
    PartOfTheLayers,
    /// No memory that the device is sold with holds it.
    TooLarge {
        /// The device.
        device: String,
        /// What is known to be needed.
        at_least: Bytes,
        /// The largest memory.
        largest: Bytes,
    },
}

/// The measurements that something was learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedFrom {
    /// How near their devices are.
    pub near: Near,
    /// Devices.
    pub devices: usize,
    /// Measurements.
    pub measurements: usize,
    /// Devices that were left out were met within this factor.
    pub within: f64,
}

/// How near to a device those are that stand for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// Of its kind.
    Kind,
    /// Of related kinds.
    Family,
}

/// How the throughput of prefill is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throughput {
    /// A share of the published peak.
    OfPeak,
    /// It goes with the bandwidth, as no peak is published.
    WithBandwidth,
}

impl Throughput {
    /// What shares are of: operations, or bytes, in a second. `None` where it is not published.
    pub(super) fn base(self, device: &Device) -> Option<f64> {
        match self {
            Self::OfPeak => device.peak_fp16_tflops.map(|tflops| tflops * 1e12),
            Self::WithBandwidth => Some(device.bandwidth.0 as f64),
        }
    }
}

impl Footing {
    pub(super) fn decode(device: &Device, model: &DecodeModel) -> Self {
        Self::Decode {
            device: device.name.clone(),
            efficiency: model.rates.efficiency,
            layer_us: 1e6 * model.rates.layer_seconds,
            learned: LearnedFrom {
                near: model.near,
                devices: model.devices,
                measurements: model.measurements,
                within: model.band,
            },
        }
    }

    pub(super) fn prefill(device: &Device, model: &PrefillModel) -> Self {
        Self::Prefill {
            device: device.name.clone(),
            tflops: 1e-12 / model.seconds_per_flop(device),
            throughput: model.throughput,
            learned: LearnedFrom {
                near: model.near,
                devices: model.devices,
                measurements: model.measurements,
                within: model.band,
            },
        }
    }
}

impl fmt::Display for Footing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode {
                device,
                efficiency,
                layer_us,
                learned,
            } => write!(
                f,
                "Decode on {device}: {:.0} % of the peak bandwidth and {layer_us:.0} µs for each \
                 layer, {learned}.",
                100.0 * efficiency
            ),
            Self::Prefill {
                device,
                tflops,
                throughput,
                learned,
            } => write!(
                f,
                "Prefill on {device}: {tflops:.1} TFLOP/s, {}, {learned}.",
                match throughput {
                    Throughput::OfPeak => "a share of its published peak",
                    Throughput::WithBandwidth =>
                        "judged by its bandwidth alone as no peak is published",
                }
            ),
            Self::SeveralUsers => f.write_str(
                "Published measurements are of one user at a time, so no speed is expected for \
                 several on another device.",
            ),
            Self::PartOfTheLayers => f.write_str(
                "Published measurements have all layers on the device, so no speed is expected \
                 with part of them elsewhere.",
            ),
            Self::TooLarge {
                device,
                at_least,
                largest,
            } => write!(
                f,
                "It needs at least {at_least} and {device} has {largest} at most, so no speed is \
                 expected there."
            ),
        }
    }
}

impl fmt::Display for LearnedFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            near,
            devices,
            measurements,
            within,
        } = self;
        let of = match near {
            Near::Kind => "of its kind",
            Near::Family => "of related kinds, for nobody published any of its own",
        };
        write!(
            f,
            "as in {} on {} {of}; devices left out were met within a factor of \
             {within:.1} in {:.0} % of cases",
            counted(*measurements, "published measurement"),
            counted(*devices, "device"),
            100.0 * MET
        )
    }
}

fn counted(count: usize, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {what}{end}")
}
