//! What is to be expected on a calibrated machine: a sum of terms, each with its cause.

mod band;
mod rates;
mod time;

use serde::Serialize;
use twospeed_gguf::TensorType;

pub(crate) use time::Work;

use crate::units::{Bytes, Flops, TokensPerSecond};

/// An expected speed, its band and what its time is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expected {
    /// The speed.
    pub speed: TokensPerSecond,
    /// The lower end of the band.
    pub low: TokensPerSecond,
    /// The upper end of the band.
    pub high: TokensPerSecond,
    /// Where the time goes, in the order of a layer: of one decoded token, or of one prompt.
    pub terms: Vec<Term>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// What takes it.
    pub what: What,
    /// Nanoseconds of one decoded token, or of the whole prompt.
    pub ns: f64,
    /// Bytes that are read for it.
    pub bytes: Option<Bytes>,
    /// Operations that are done for it.
    pub flops: Option<Flops>,
    /// What the figure rests on.
    pub basis: TermBasis,
}

/// What takes a part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// Matrices of the layers, by their type.
    Weights {
        /// ggml's type.
        #[serde(serialize_with = "name")]
        tensor_type: TensorType,
    },
    /// Matrices of experts, by their type: those that are used.
    Experts {
        /// ggml's type.
        #[serde(serialize_with = "name")]
        tensor_type: TensorType,
    },
    /// The output matrix.
    Output {
        /// ggml's type.
        #[serde(serialize_with = "name")]
        tensor_type: TensorType,
    },
    /// Attention over the cached keys and values.
    Attention,
    /// Recurrent state.
    State,
    /// All other operations of the layers: norms, additions, activation.
    Layers,
    /// What a step takes whatever the model: building the graph, waking threads.
    Step,
}

fn name<S: serde::Serializer>(tensor: &TensorType, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(tensor.name())
}

/// What a term rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TermBasis {
    /// The same operation was measured here.
    Measured,
    /// Taken over from one that resembles it.
    Resembling,
    /// Published figures of such a device.
    Published,
}
