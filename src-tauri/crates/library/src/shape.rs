//! The shape of a Llama: its tensors and the keys that describe it.

use twospeed_gguf::{Field, TensorType};

use crate::file_type::FileType;
use crate::mixture::{self, Facts, Source};
use crate::synthetic::{SYNTHETIC, Synthetic, Tensor};
use crate::vocabulary::{self, Vocabulary};

/// A dense Llama with an output matrix of its own.
///
/// Every width has to be a multiple of 256: with any other llama.cpp's quantizer falls back to
/// types with smaller blocks, and a "Q4_K_M" would not measure K-quants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlamaShape {
    /// Width of the residual stream (`embedding_length`).
    pub width: u32,
    /// Layers (`block_count`).
    pub layers: u32,
    /// Query heads (`attention.head_count`).
    pub heads: u32,
    /// Key and value heads (`attention.head_count_kv`).
    pub kv_heads: u32,
    /// Width of the feed-forward part (`feed_forward_length`).
    pub feed_forward: u32,
    /// Tokens of the vocabulary.
    pub vocabulary: u32,
    /// Context it says it was trained for (`context_length`).
    pub context: u32,
}

impl LlamaShape {
    /// Elements of one head.
    pub fn head_width(&self) -> u32 {
        self.width / self.heads
    }

    /// Its tensors in the order of llama.cpp's quantizer, typed as it would make `file_type`.
    pub fn tensors(&self, file_type: FileType) -> Vec<Tensor> {
        let mut tensors = self.plain_tensors();
        let sources: Vec<_> = tensors
            .iter()
            .map(|tensor| Source {
                name: &tensor.name,
                dimensions: &tensor.dimensions,
                tensor_type: tensor.tensor_type,
            })
            .collect();
        let facts = Facts {
            architecture: "llama".to_owned(),
            layers: self.layers.into(),
            experts: 0,
            heads_per_kv: u64::from(self.heads / self.kv_heads.max(1)),
            is_70b: false,
        };
        // Where a shape does not fit, it stays half precision.
        if let Some(types) = mixture::types(&facts, &sources, file_type) {
            for (tensor, tensor_type) in tensors.iter_mut().zip(types) {
                tensor.tensor_type = tensor_type;
            }
        }
        tensors
    }

    /// Its tensors in half precision.
    fn plain_tensors(&self) -> Vec<Tensor> {
        let (width, kv, inner) = (
            self.width,
            self.kv_heads * self.head_width(),
            self.feed_forward,
        );
        let matrix = |name: &str, inputs: u32, outputs: u32| Tensor {
            name: name.to_owned(),
            dimensions: vec![inputs.into(), outputs.into()],
            tensor_type: TensorType::F16,
        };
        let norm = |name: &str| Tensor {
            name: name.to_owned(),
            dimensions: vec![width.into()],
            tensor_type: TensorType::F32,
        };
        let mut tensors = vec![
            matrix("output.weight", width, self.vocabulary),
            norm("output_norm.weight"),
            matrix("token_embd.weight", width, self.vocabulary),
        ];
        for layer in 0..self.layers {
            let within = |part: &str| format!("blk.{layer}.{part}.weight");
            let matrix = |part, inputs, outputs| matrix(&within(part), inputs, outputs);
            tensors.extend([
                matrix("attn_k", width, kv),
                norm(&within("attn_norm")),
                matrix("attn_output", width, width),
                matrix("attn_q", width, width),
                matrix("attn_v", width, kv),
                matrix("ffn_down", inner, width),
                matrix("ffn_gate", width, inner),
                norm(&within("ffn_norm")),
                matrix("ffn_up", width, inner),
            ]);
        }
        tensors
    }

    /// Elements of all its tensors.
    pub fn parameters(&self) -> u64 {
        self.plain_tensors()
            .iter()
            .map(|tensor| tensor.dimensions.iter().product::<u64>())
            .sum()
    }

    /// A model of this shape with random weights and a tokenizer made of syllables.
    ///
    /// # Panics
    /// Where the vocabulary has a size that [`Vocabulary::of_syllables`] does not make.
    pub fn model(&self, name: &str, file_type: FileType, seed: u64) -> Synthetic {
        let vocabulary = Vocabulary::of_syllables(self.vocabulary as usize);
        let fields: [(&str, Field); 27] = [
            ("general.architecture", "llama".into()),
            ("general.type", "model".into()),
            ("general.name", name.into()),
            (
                "general.size_label",
                size_label(self.parameters()).as_str().into(),
            ),
            ("general.file_type", file_type.id().into()),
            // The layout of quantized blocks; 2 since May 2023.
            ("general.quantization_version", 2u32.into()),
            (SYNTHETIC, true.into()),
            ("llama.block_count", self.layers.into()),
            ("llama.context_length", self.context.into()),
            ("llama.embedding_length", self.width.into()),
            ("llama.feed_forward_length", self.feed_forward.into()),
            ("llama.vocab_size", self.vocabulary.into()),
            ("llama.attention.head_count", self.heads.into()),
            ("llama.attention.head_count_kv", self.kv_heads.into()),
            ("llama.attention.key_length", self.head_width().into()),
            ("llama.attention.value_length", self.head_width().into()),
            ("llama.attention.layer_norm_rms_epsilon", 1e-5f32.into()),
            ("llama.rope.dimension_count", self.head_width().into()),
            ("llama.rope.freq_base", 10_000f32.into()),
            ("tokenizer.ggml.model", "llama".into()),
            ("tokenizer.ggml.tokens", Field::texts(&vocabulary.pieces)),
            ("tokenizer.ggml.scores", vocabulary.scores.as_slice().into()),
            (
                "tokenizer.ggml.token_type",
                vocabulary.kinds.as_slice().into(),
            ),
            ("tokenizer.ggml.bos_token_id", vocabulary::BEGIN.into()),
            ("tokenizer.ggml.eos_token_id", vocabulary::END.into()),
            (
                "tokenizer.ggml.unknown_token_id",
                vocabulary::UNKNOWN.into(),
            ),
            ("tokenizer.ggml.add_bos_token", true.into()),
        ];
        Synthetic {
            fields: fields.map(|(key, field)| (key.to_owned(), field)).into(),
            tensors: self.tensors(file_type),
            seed,
            silent_tokens: vocabulary::SPECIAL as u64,
        }
    }
}

/// Parameters as model names have them: `150M`, `1.2B`.
fn size_label(parameters: u64) -> String {
    match (parameters + 500_000) / 1_000_000 {
        millions @ ..1000 => format!("{millions}M"),
        _ => format!("{:.1}B", parameters as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_reads_as_in_the_names_of_models() {
        assert_eq!(size_label(149_840_640), "150M");
        assert_eq!(size_label(999_499_999), "999M");
        assert_eq!(size_label(999_500_000), "1.0B");
        assert_eq!(size_label(1_240_000_000), "1.2B");
    }
}
