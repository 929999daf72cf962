//! What single operations of the engine take: [`Calibrate`](super::Request::Calibrate).

use serde::{Deserialize, Serialize};

/// Time single operations, as the engine runs them while it serves a model: the same backend, the
/// same thread pool, weights repacked where loading would repack them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrate {
    /// Threads that compute.
    pub n_threads: u32,
    /// Time for each kernel in nanoseconds; each is run three times at least.
    pub duration_ns: u64,
    /// The kernels, each timed on its own, in this order.
    pub kernels: Vec<Kernel>,
}

/// An operation to time. Weights are random and valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case")]
pub enum Kernel {
    /// A matrix times so many columns of f32 (`ggml_mul_mat`): 1 for decode, a micro-batch for
    /// prefill.
    Matrix {
        /// ggml's name of the type: `q4_K`, `f16`.
        tensor_type: String,
        /// Elements of a row.
        inner: u32,
        /// Rows.
        rows: u32,
        /// Columns that it is multiplied with.
        columns: u32,
        /// Bytes of different matrices that are gone through in turn, at least one matrix: what
        /// decides which cache they come from.
        set_bytes: u64,
    },
    /// The same with experts (`ggml_mul_mat_id`): each column uses `used` of `experts` matrices,
    /// chosen at random.
    Experts {
        /// ggml's name of the type.
        tensor_type: String,
        /// Elements of a row.
        inner: u32,
        /// Rows of one expert.
        rows: u32,
        /// Experts.
        experts: u32,
        /// Experts that a column uses.
        used: u32,
        /// Columns.
        columns: u32,
        /// Bytes of different tensors that are gone through in turn, at least one tensor.
        set_bytes: u64,
    },
    /// Attention of one layer over a cache that is filled: the last `columns` of the cells are the
    /// tokens asked about, and each sees those before it.
    Attention {
        /// Heads of the queries.
        heads: u32,
        /// Heads of keys and values.
        kv_heads: u32,
        /// Elements of one head.
        head: u32,
        /// ggml's name of the type of the keys.
        type_k: String,
        /// ggml's name of the type of the values.
        type_v: String,
        /// Flash attention (`ggml_flash_attn_ext`), otherwise KQ, soft-max and KQV.
        flash: bool,
        /// Cells that are read.
        cells: u32,
        /// Tokens that attend.
        columns: u32,
        /// Bytes of different caches that are gone through in turn, at least one.
        set_bytes: u64,
    },
    /// All operations of a plain transformer's layer except the matrices and attention: norms, RoPE,
    /// writing K and V into the cache, SwiGLU, additions.
    Layer {
        /// Width.
        embedding: u32,
        /// Width of the feed-forward part.
        feed_forward: u32,
        /// Heads of the queries.
        heads: u32,
        /// Heads of keys and values.
        kv_heads: u32,
        /// Elements of one head.
        head: u32,
        /// Tokens.
        columns: u32,
    },
}

/// What a [`Kernel`] took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelReading {
    /// Nanoseconds of one such operation (of one matrix, one layer): the median of the runs; `None`
    /// where the engine does not do it.
    pub ns: Option<f64>,
    /// The median of the distances from that median, in nanoseconds.
    pub spread_ns: Option<f64>,
    /// The weights were repacked.
    pub repacked: bool,
    /// Why there is no time, one sentence.
    pub refused: Option<String>,
}
