//! What an estimate is asked.

use crate::bandwidth::{Bandwidth, BandwidthReading};
use crate::cache::ContextSettings;
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
