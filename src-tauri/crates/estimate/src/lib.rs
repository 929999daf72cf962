//! What theory allows and what to expect: memory, decode, prefill. Pure: no engine, no clock.
//!
//! - [`estimate`](estimate()) answers a [`Question`] about a model: what `estimate --json` prints.
//! - [`article`] holds the formulas a person can do by hand.
//! - [`Shape`] is a model's layers with its architecture's rules applied; [`Cache`] what a context
//!   of it keeps; [`Weights`] what a token reads; [`cannot_fit`] whether there is room.
//! - [`public`] holds what others measured, [`elsewhere`] what it lets expect of another device.
//! - [`roofline`] says which limit of a machine binds at how many tokens per step.
//! - [`explain`] says why a model is as fast as it is: statements with their numbers.
//! - [`device`] holds published bandwidths, [`Bandwidth`] says where one comes from.
//! - [`Bytes`] and the other units carry numbers exactly and are formatted at the edge.

mod architecture;
pub mod article;
mod bandwidth;
mod bounds;
mod build;
mod cache;
mod calibration;
pub mod device;
pub mod elsewhere;
mod estimate;
mod expected;
pub mod explain;
mod fit;
mod keys;
mod kv_type;
pub mod learn;
mod note;
mod prefill;
pub mod public;
mod question;
pub mod roofline;
mod shape;
#[cfg(test)]
mod testing;
mod twin;
mod units;
mod weights;

pub use architecture::NoCache;
pub use bandwidth::{Bandwidth, BandwidthReading, BandwidthSource, Reach};
pub use cache::{
    Cache, CachePart, ContextError, ContextSettings, FlashAttention, kv_per_token, output_bytes,
    read_per_token,
};
pub use calibration::{Calibration, Kernel, KernelReading};
pub use estimate::{
    At, Basis, Decode, Estimate, Memory, MemorySource, ModelFacts, Prefill, estimate,
};
pub use expected::{Expected, Term, TermBasis, What};
pub use fit::{CannotFit, WouldFit, cannot_fit, context_bytes, largest_context, would_fit};
pub use kv_type::{KvType, UnknownKvType};
pub use learn::{Correction, Corrections};
pub use note::{Allocated, Note};
pub use prefill::flops_per_token;
pub use question::{Allocation, BandwidthFrom, Question};
pub use shape::{Layer, Shape, ShapeError, Store, StoreKind, Value};
pub use twin::{Depths, TooLarge, TwinLayers, TwinPrediction, TwinTime};
pub use units::{Bytes, BytesPerSecond, Flops, TokensPerSecond};
pub use weights::{Weights, WeightsError, loaded_bytes};
