//! Which tensor of a Llama gets which type: the mixtures that llama.cpp's quantizer makes.

use twospeed_gguf::TensorType;

/// A quantization as people name it: a rule that gives each tensor its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixture {
    /// Half precision throughout.
    F16,
    /// Q8_0 throughout.
    Q8_0,
    /// Q6_K throughout.
    Q6K,
    /// Q5_K, with Q6_K where it matters most.
    Q5KM,
    /// Q4_K, with Q6_K where it matters most.
    Q4KM,
}

impl Mixture {
    /// The label: `Q4_K_M`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "F16",
            Self::Q8_0 => "Q8_0",
            Self::Q6K => "Q6_K",
            Self::Q5KM => "Q5_K_M",
            Self::Q4KM => "Q4_K_M",
        }
    }

    /// `general.file_type`: llama.cpp's `llama_ftype`.
    pub fn file_type(self) -> u32 {
        match self {
            Self::F16 => 1,
            Self::Q8_0 => 7,
            Self::Q4KM => 15,
            Self::Q5KM => 17,
            Self::Q6K => 18,
        }
    }

    /// The type of a matrix of a dense Llama with an output matrix of its own, whose rows are
    /// whole blocks (multiples of 256).
    ///
    /// Source: llama.cpp `llama-quant.cpp`, `llama_tensor_get_type_impl`. Norms and other vectors
    /// stay F32 and do not come here.
    pub(crate) fn matrix(self, role: Matrix, layer: Option<u32>, layers: u32) -> TensorType {
        let plain = match self {
            Self::F16 => return TensorType::F16,
            Self::Q8_0 => return TensorType::Q8_0,
            Self::Q6K => return TensorType::Q6K,
            Self::Q5KM => TensorType::Q5K,
            Self::Q4KM => TensorType::Q4K,
        };
        match (role, layer) {
            (Matrix::Output, _) => TensorType::Q6K,
            (Matrix::Value | Matrix::Down, Some(layer)) if gets_more_bits(layer, layers) => {
                TensorType::Q6K
            }
            _ => plain,
        }
    }
}

/// The matrices that a mixture tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matrix {
    Embedding,
    Output,
    Value,
    Down,
    Other,
}

/// The first and the last eighth of the layers, and every third between them.
fn gets_more_bits(layer: u32, layers: u32) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}
