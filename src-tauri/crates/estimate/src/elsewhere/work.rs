//! What a token and a prompt ask of a device, whichever device it is.

use crate::cache;
use crate::expected::What;
use crate::prefill;
use crate::question::Question;
use crate::shape::Shape;
use crate::units::Bytes;
use crate::weights::{Matrix, Role, Weights};

/// One decoded token, halfway through the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DecodeWork {
    /// Layers that it passes.
    pub(super) layers: f64,
    /// Weights that it reads.
    pub(super) weights: Bytes,
    /// Keys and values that it reads.
    pub(super) cache: Bytes,
    /// Recurrent state that it reads and writes.
    pub(super) state: Bytes,
}

/// One prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PrefillWork {
    /// Its tokens.
    pub(super) tokens: f64,
    /// Tokens of a micro-batch.
    pub(super) columns: f64,
    /// Micro-batches.
    pub(super) batches: f64,
    /// Layers that each passes.
    pub(super) layers: f64,
    /// Bytes of matrices that a micro-batch reads.
    pub(super) bytes_per_batch: f64,
    /// Operations of the whole prompt.
    pub(super) flops: f64,
}

impl DecodeWork {
    pub(super) fn of(weights: &Weights, shape: &Shape, question: &Question) -> Option<Self> {
        let depth = question.depth.saturating_add(question.generate / 2);
        let kept = cache::read_per_token(shape, &question.context, depth).ok()?;
        let state = Bytes(shape.state_per_sequence().0.saturating_mul(2)).min(kept);
        let work = Self {
            layers: shape.trunk as f64,
            weights: weights.bytes_per_token(),
            cache: Bytes(kept.0 - state.0),
            state,
        };
        (work.weights > Bytes::ZERO).then_some(work)
    }

    /// All bytes.
    pub(super) fn bytes(&self) -> f64 {
        self.weights.0 as f64 + self.cache.0 as f64 + self.state.0 as f64
    }
}

impl PrefillWork {
    pub(super) fn of(weights: &Weights, shape: &Shape, question: &Question) -> Option<Self> {
        let settings = &question.context;
        let prompt = question.prompt;
        let columns = settings.ubatch.min(settings.batch).min(prompt);
        if columns == 0 || weights.matrix_elements == 0 {
            return None;
        }
        let flops =
            prefill::flops_per_token(shape, weights, settings, prompt, question.depth).ok()?;
        let layers = weights
            .matrices
            .iter()
            .filter(|matrix| matrix.role != Role::Output);
        Some(Self {
            tokens: prompt as f64,
            columns: columns as f64,
            batches: prompt.div_ceil(columns) as f64,
            layers: shape.trunk as f64,
            bytes_per_batch: layers.map(|matrix| bytes_for(matrix, columns as f64)).sum(),
            flops: flops.0 as f64 * prompt as f64,
        })
    }
}

/// Bytes of a matrix that so many tokens read together: of experts those that any of them uses,
/// which is E (1 - (1 - used / E)^tokens) on the average.
pub(super) fn bytes_for(matrix: &Matrix, tokens: f64) -> f64 {
    let one = matrix.tensor_type.bits_per_weight() / 8.0 * matrix.inner as f64 * matrix.rows as f64;
    let experts = match matrix.role {
        Role::Experts { used, of, .. } => {
            let missed = (1.0 - used as f64 / of.max(1) as f64).max(0.0);
            of as f64 * (1.0 - missed.powf(tokens))
        }
        _ => 1.0,
    };
    one * experts * matrix.count as f64
}

/// Operations and bytes of a prompt in the matrices of the layers, by what they are for.
pub(super) fn matrices(weights: &Weights, work: &PrefillWork) -> Vec<(What, f64, f64)> {
    let mut parts: Vec<(What, f64, f64)> = Vec::new();
    for matrix in &weights.matrices {
        let tensor_type = matrix.tensor_type;
        let (what, used) = match matrix.role {
            Role::Output => continue,
            Role::Experts { used, .. } => (What::Experts { tensor_type }, used as f64),
            Role::Layer | Role::LastFeedForward => (What::Weights { tensor_type }, 1.0),
        };
        let elements = matrix.inner as f64 * matrix.rows as f64 * matrix.count as f64 * used;
        let flops = 2.0 * elements * work.tokens;
        let bytes = bytes_for(matrix, work.columns) * work.batches;
        match parts.iter_mut().find(|(part, ..)| *part == what) {
            Some((_, all_flops, all_bytes)) => {
                *all_flops += flops;
                *all_bytes += bytes;
            }
            None => parts.push((what, flops, bytes)),
        }
    }
    parts
}
