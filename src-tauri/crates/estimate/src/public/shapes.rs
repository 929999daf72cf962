//! Shapes of publicly known models, for measurements that name a model and no file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use twospeed_gguf::TensorType;

use crate::shape::{Layer, Shape, Store, StoreKind, Value};
use crate::units::Bytes;
use crate::weights::{Matrix, Role, Weights};

/// The configuration that a model's publisher states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublicShape {
    /// Names that sources give it, between semicolons.
    pub models: String,
    /// Layers.
    pub layers: u64,
    /// Width of the embeddings.
    pub width: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads that keys and values have.
    pub kv_heads: u64,
    /// Elements of a head.
    pub head: u64,
    /// Width of the feed-forward part, of one expert where there are experts.
    pub feed_forward: u64,
    /// Experts in a layer.
    pub experts: Option<u64>,
    /// Experts that a token uses.
    pub experts_used: Option<u64>,
    /// Words of the vocabulary.
    pub vocabulary: u64,
    /// The embeddings serve as the output matrix too.
    pub tied_output: bool,
    /// Tokens that sliding-window layers look back.
    pub window: Option<u64>,
    /// Of so many layers, one attends in full and the others slide.
    pub one_full_layer_in: Option<u64>,
    /// Type of all matrices but the experts, where it is not the file's own.
    pub other_matrices: Option<String>,
    /// Where this is published.
    pub source: String,
}

/// Every model whose shape is known.
pub fn shapes() -> &'static [PublicShape] {
    static SHAPES: LazyLock<Vec<PublicShape>> = LazyLock::new(|| {
        csv::Reader::from_reader(&include_bytes!("../../data/model_shapes.csv")[..])
            .deserialize()
            .collect::<Result<_, _>>()
            .expect("BUG: the bundled list of model shapes is sound")
    });
    &SHAPES
}

/// The shape of a model by the name that a source gives it.
pub fn shape_of(model: &str) -> Option<&'static PublicShape> {
    shapes()
        .iter()
        .find(|shape| shape.models.split(';').any(|name| name == model))
}

/// The type that most of a file of this quantization is made of.
fn main_type(quantization: &str) -> Option<TensorType> {
    let label = quantization.split(' ').next()?;
    let by_name = |name: &str| {
        let mut types = TensorType::ALL.iter().copied();
        types.find(|tensor_type| tensor_type.name() == name)
    };
    by_name(label).or_else(|| by_name(label.strip_suffix("_M").or(label.strip_suffix("_S"))?))
}

/// Bytes of so many weights of a type.
fn bytes(tensor_type: TensorType, elements: u64) -> u64 {
    (elements as f64 * tensor_type.bits_per_weight() / 8.0).round() as u64
}

impl PublicShape {
    /// Weights of all matrices, both embedding matrices counted where there are two.
    pub fn parameters(&self) -> u64 {
        let embedding = self.vocabulary * self.width;
        let matrices = if self.tied_output { 1 } else { 2 };
        self.dense() + self.all_experts() + matrices * embedding
    }

    /// Experts that there are and that a token uses.
    fn experts(&self) -> Option<(u64, u64)> {
        self.experts.zip(self.experts_used)
    }

    fn all_experts(&self) -> u64 {
        let one = 3 * self.width * self.feed_forward;
        self.experts
            .map_or(0, |experts| self.layers * experts * one)
    }

    /// Attention of one layer: queries and output, keys and values.
    fn attention(&self) -> u64 {
        2 * self.width * self.head * (self.heads + self.kv_heads)
    }

    /// What is no expert and no embedding: attention, and the feed-forward part or the router.
    fn dense(&self) -> u64 {
        let forward = match self.experts {
            None => 3 * self.width * self.feed_forward,
            Some(experts) => self.width * experts,
        };
        self.layers * (self.attention() + forward)
    }

    /// What a token reads of a file of this quantization and size.
    ///
    /// The embedding is left out where the output is a matrix of its own, and experts that a token
    /// does not use. Where the size is not published, that of the main type stands for it, which is
    /// a little less. `None` for a quantization that is no type's.
    pub(crate) fn weights(&self, quantization: &str, size: Option<Bytes>) -> Option<Weights> {
        let main = main_type(quantization)?;
        let other = match &self.other_matrices {
            Some(name) => main_type(name)?,
            None => main,
        };
        let embedding = self.vocabulary * self.width;
        let experts = bytes(main, self.all_experts());
        let looked_up = if self.tied_output { 0 } else { embedding };
        let rest = match size {
            Some(size) => size
                .0
                .saturating_sub(experts)
                .saturating_sub(bytes(other, looked_up)),
            None => bytes(other, self.dense() + embedding),
        };
        let used_experts = match self.experts() {
            Some((of, used)) => experts / of * used,
            None => 0,
        };
        let mut read_per_token = BTreeMap::new();
        *read_per_token.entry(other).or_default() += Bytes(rest);
        *read_per_token.entry(main).or_default() += Bytes(used_experts);
        let matrix = |tensor_type, rows, count, role| Matrix {
            tensor_type,
            inner: self.width,
            rows,
            count,
            role,
            resembles: false,
        };
        let mut matrices = vec![
            matrix(
                other,
                self.dense() / self.layers / self.width,
                self.layers,
                Role::Layer,
            ),
            matrix(other, self.vocabulary, 1, Role::Output),
        ];
        let mut active = self.dense();
        if let Some((of, used)) = self.experts() {
            let role = Role::Experts {
                used,
                of,
                last: false,
            };
            matrices.push(matrix(main, 3 * self.feed_forward, self.layers, role));
            active += self.all_experts() / of * used;
        }
        Some(Weights {
            read_per_token,
            matrix_elements: active,
            matrices,
            norms: (0, 0),
        })
    }

    /// Its layers.
    pub(crate) fn shape(&self) -> Shape {
        let row = self.kv_heads * self.head;
        let full = |layer: u64| match (self.window, self.one_full_layer_in) {
            (Some(_), Some(period)) => (layer + 1).is_multiple_of(period),
            _ => true,
        };
        let layers = (0..self.layers).map(|layer| Layer {
            heads: self.heads,
            head_key: self.head,
            head_value: self.head,
            stores: vec![Store {
                kind: if full(layer) {
                    StoreKind::Full
                } else {
                    StoreKind::Window
                },
                key: row,
                value: Some(Value { row, widest: row }),
            }],
            state: 0,
            reads: None,
        });
        Shape {
            architecture: self.models.clone(),
            layers: layers.collect(),
            trunk: usize::try_from(self.layers).unwrap_or(0),
            embedding: self.width,
            vocabulary: Some(self.vocabulary),
            training_context: None,
            window: self.window,
            no_cache: None,
            latent: false,
            separate_sequences: false,
            without_flash_attention: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{self, ContextSettings};

    fn read(model: &str, quantization: &str, gib: f64) -> u64 {
        let size = Bytes((gib * (1_u64 << 30) as f64) as u64);
        let weights = shape_of(model)
            .unwrap()
            .weights(quantization, Some(size))
            .unwrap();
        weights.bytes_per_token().0
    }

    #[test]
    fn a_quantization_is_known_by_the_type_most_of_it_is() {
        for (label, name) in [
            ("Q4_0", "Q4_0"),
            ("Q4_K_M", "Q4_K"),
            ("Q5_K_S", "Q5_K"),
            ("IQ3_S", "IQ3_S"),
            ("Q4_K_M (ollama default)", "Q4_K"),
            ("MXFP4", "MXFP4"),
        ] {
            assert_eq!(
                main_type(label).map(TensorType::name),
                Some(name),
                "{label}"
            );
        }
        assert_eq!(main_type("4-bit"), None);
    }

    #[test]
    fn a_dense_model_reads_its_file_without_the_embedding() {
        // Llama 2 7B Q4_0: 3.56 GiB = 3,822,520,893 bytes; 32,000 x 4,096 x 4.5 / 8 = 73,728,000.
        assert_eq!(read("llama2 7B", "Q4_0", 3.56), 3_822_520_893 - 73_728_000);
        // Gemma 3 4B: the embedding is the output.
        assert_eq!(read("gemma3 4B (qat)", "Q4_0", 2.35), 2_523_293_286);
    }

    #[test]
    fn of_experts_a_token_reads_those_it_uses() {
        // gpt-oss-20b: 24 layers x 32 experts x 3 x 2,880 x 2,880 = 19,110,297,600 weights of 4.25
        // bits = 10,152,345,600 bytes, of which 4/32 = 1,269,043,200 are read. The file of
        // 11.27 GiB = 12,101,070,356 bytes holds 1,948,724,756 beside them, of which
        // 201,088 x 2,880 x 8.5 / 8 = 615,329,280 are looked up.
        let rest = 12_101_070_356 - 10_152_345_600 - 615_329_280;
        let read = read("gpt-oss-20b", "MXFP4", 11.27);
        assert!(read.abs_diff(rest + 1_269_043_200) < 4, "{read}");
    }

    #[test]
    fn its_cache_is_as_large_as_that_of_the_file() {
        // Qwen3 8B: 147,456 bytes a token (the article's), one step of 256.
        let settings = ContextSettings::default();
        let read = |model: &str, depth| {
            cache::read_per_token(&shape_of(model).unwrap().shape(), &settings, depth)
                .unwrap()
                .0
        };
        assert_eq!(read("Qwen3 8B", 0), 256 * 147_456);
        // Gemma 3 4B: 4,096 bytes a row; of 34 layers 5 are full; windows hold 1,024 + 512 cells.
        assert_eq!(read("gemma3 4B (qat)", 3000), 4096 * (5 * 3072 + 29 * 1536));
    }
}
