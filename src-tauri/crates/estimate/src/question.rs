//! What an estimate is asked.

use std::sync::Arc;

use crate::bandwidth::{Bandwidth, BandwidthReading};
use crate::cache::ContextSettings;
use crate::calibration::Calibration;
use crate::learn::Corrections;
use crate::units::Bytes;

/// What is asked of an estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Prompt tokens.
    pub prompt: u64,
    /// Generated tokens.
    pub generate: u64,
    /// Tokens in the cache before either.
    pub depth: u64,
    /// The context.
    pub context: ContextSettings,
    /// Tokens of a micro-batch whose logits are kept.
    pub outputs: u64,
    /// Layers on the GPU; -1 leaves it to the engine.
    pub gpu_layers: i32,
    /// The device preset that is asked about; `None` for this machine.
    pub device: Option<String>,
    /// How fast memory is.
    pub bandwidth: BandwidthFrom,
    /// Memory that is free, where it is known.
    pub available: Option<Bytes>,
    /// What the engine said it would allocate for this very context; `None` where it was not asked.
    pub allocation: Option<Allocation>,
    /// What this machine's engine was measured to do; `None` = ceilings only.
    pub calibration: Option<Arc<Calibration>>,
    /// What own runs teach.
    pub corrections: Corrections,
}

/// What the engine would allocate, all devices together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Weights, copies that are repacked included.
    pub weights: Bytes,
    /// Keys and values.
    pub kv: Bytes,
    /// Recurrent state.
    pub state: Bytes,
    /// Working buffers of the graph.
    pub compute: Bytes,
    /// Logits.
    pub output: Bytes,
}

impl Allocation {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.weights + self.kv + self.state + self.compute + self.output
    }
}

/// llama-bench's defaults, on a machine of which nothing is known.
impl Default for Question {
    fn default() -> Self {
        Self {
            prompt: 512,
            generate: 128,
            depth: 0,
            context: ContextSettings::default(),
            outputs: 512,
            gpu_layers: -1,
            device: None,
            bandwidth: BandwidthFrom::Unknown,
            available: None,
            allocation: None,
            calibration: None,
            corrections: Corrections::default(),
        }
    }
}

/// Where an estimate takes its bandwidth from.
#[derive(Debug, Clone, PartialEq)]
pub enum BandwidthFrom {
    /// Nowhere: ceilings stay unknown.
    Unknown,
    /// One figure.
    Known(Bandwidth),
    /// A probe's readings, of which the one is taken that suits the model (see
    /// [`Bandwidth::measured`]).
    Probe {
        /// By buffer size.
        readings: Vec<BandwidthReading>,
        /// Size of the last-level cache.
        last_level_cache: Option<Bytes>,
    },
}
