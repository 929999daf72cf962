//! What theory allows and what to expect: memory, decode, prefill.

pub mod article;
mod architecture;
mod bandwidth;
mod build;
mod cache;
pub mod device;
mod keys;
mod kv_type;
mod prefill;
mod shape;
mod units;
mod weights;

pub use architecture::NoCache;
pub use bandwidth::{Bandwidth, BandwidthReading, BandwidthSource, Reach};
pub use cache::{Cache, CachePart, ContextError, ContextSettings, FlashAttention, kv_per_token, output_bytes, read_per_token};
pub use kv_type::{KvType, UnknownKvType};
pub use prefill::flops_per_token;
pub use shape::{Layer, Shape, ShapeError, Store, StoreKind, Value};
pub use units::{Bytes, BytesPerSecond, Flops, TokensPerSecond};
pub use weights::{Weights, WeightsError};
