//! Models of random weights: real shapes, real types, real speed; what they write is noise.

use std::collections::HashMap;
use std::io::{self, Write};

use twospeed_gguf::{Blocks, Field, Model, Rng, TensorInfo, TensorType, WriteError, Writer};

use crate::file_type::FileType;
use crate::mixture::{self, Facts, Source};

/// The key that marks a model made here; it stays when the model is quantized.
pub const SYNTHETIC: &str = "twospeed.synthetic";

/// Whether a model was made here of random weights: its speed is real, its text is noise.
pub fn is_synthetic(model: &Model) -> bool {
    model.metadata().bool(SYNTHETIC) == Some(true)
}

/// A model to be made: every key and tensor of the file, and the seed of its weights.
///
/// The same value gives the same bytes on every machine.
#[derive(Debug, Clone)]
pub struct Synthetic {
    /// Keys in the order in which they are written.
    pub fields: Vec<(String, Field)>,
    /// Tensors in the order in which they are written.
    pub tensors: Vec<Tensor>,
    /// Seed of the weights.
    pub seed: u64,
    /// So many rows at the head of `output.weight` are zero: the logits of these tokens are 0, so
    /// that among thousands of random ones they are never the largest. Control and byte tokens
    /// stand there, and a text made of the others can be printed.
    pub silent_tokens: u64,
}

/// A tensor to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// As llama.cpp calls it.
    pub name: String,
    /// Elements by dimension, the row first.
    pub dimensions: Vec<u64>,
    /// How its elements are stored.
    pub tensor_type: TensorType,
}

/// Why a model was not written.
#[derive(Debug, thiserror::Error)]
pub enum SyntheticError {
    /// It has a shape that GGUF cannot hold, or writing failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The caller wanted no more of it.
    #[error("Making the model was stopped.")]
    Stopped,
}

/// The most bytes that are made at once. Part of the recipe: the generator's numbers are used up
/// piece by piece.
const PIECE: u64 = 1 << 20;

/// Weights that are made of each kind where they repeat: more than the largest caches near a core
/// hold, and no whole number of rows of a usual width.
const REPEATED: u64 = (4 << 20) - 4096;

/// Of the data in a file, as [`Writer`] lays it out.
const ALIGNMENT: u64 = 32;

impl Synthetic {
    /// Bytes of the file.
    ///
    /// Errors: a tensor that GGUF cannot hold.
    pub fn bytes(&self) -> Result<u64, SyntheticError> {
        let writer = self.writer()?;
        let weights = writer.tensors().last().map_or(0, |last| {
            last.offset + last.bytes.next_multiple_of(ALIGNMENT)
        });
        Ok(writer.header().len() as u64 + weights)
    }

    /// With the tensor types that llama.cpp's quantizer would give to it for `file_type`; `None`
    /// where the quantizer refuses a shape, or where the keys name no architecture and no layers.
    #[must_use]
    pub fn quantized_as(mut self, file_type: FileType) -> Option<Self> {
        let header = self.header().ok()?;
        let model = twospeed_gguf::read_from(&header[..], "synthetic", self.bytes().ok()?).ok()?;
        let sources: Vec<_> = self
            .tensors
            .iter()
            .map(|tensor| Source {
                name: &tensor.name,
                dimensions: &tensor.dimensions,
                tensor_type: tensor.tensor_type,
            })
            .collect();
        let types = mixture::types(&Facts::of(&model)?, &sources, file_type)?;
        for (tensor, tensor_type) in self.tensors.iter_mut().zip(types) {
            tensor.tensor_type = tensor_type;
        }
        self.fields.retain(|(key, _)| key != "general.file_type");
        self.fields
            .push(("general.file_type".to_owned(), file_type.id().into()));
        Some(self)
    }

    /// The file up to its weights.
    ///
    /// Errors: as [`Synthetic::bytes`].
    pub fn header(&self) -> Result<Vec<u8>, SyntheticError> {
        Ok(self.writer()?.header())
    }

    /// Writes the file to `out`, which should be buffered.
    ///
    /// `told` hears the bytes of weights written and to write, about once per MiB, and ends it by
    /// answering false.
    pub fn write(
        &self,
        out: &mut impl Write,
        told: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<(), SyntheticError> {
        let mut rng = Rng::new(self.seed);
        let mut piece = Vec::new();
        self.write_by(out, told, |tensor, out, told| {
            let weights = self.weights(tensor);
            let block = tensor.tensor_type.block_bytes();
            let step = PIECE - PIECE % block;
            let mut at = 0;
            while at < tensor.bytes {
                let length = step.min(tensor.bytes - at);
                piece.resize(length as usize, 0);
                weights.fill(&mut rng, at, &mut piece);
                out.write_all(&piece)?;
                at += length;
                told(length)?;
            }
            Ok(())
        })
    }

    /// The same with weights that repeat after some MiB, each tensor from another place on: as
    /// fast as the disk takes it, and to the engine the same work. Silence is left out.
    pub fn write_repeating(
        &self,
        out: &mut impl Write,
        told: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<(), SyntheticError> {
        let mut rng = Rng::new(self.seed);
        let mut made: HashMap<Kind, Vec<u8>> = HashMap::new();
        self.write_by(out, told, |tensor, out, told| {
            let block = tensor.tensor_type.block_bytes();
            let kind = Kind::of(tensor);
            let pool = made.entry(kind).or_insert_with(|| {
                let weights = self.weights(tensor).loud();
                let mut pool = vec![0; (REPEATED - REPEATED % block) as usize];
                weights.fill(&mut rng, 0, &mut pool);
                pool
            });
            let blocks = pool.len() as u64 / block;
            let mut at = (rng.below(blocks) * block) as usize;
            let mut left = tensor.bytes;
            while left > 0 {
                let length = left.min((pool.len() - at) as u64);
                out.write_all(&pool[at..at + length as usize])?;
                left -= length;
                at = 0;
                told(length)?;
            }
            Ok(())
        })
    }

    /// Writes the file, each tensor by `write`, which hands the bytes it wrote to its third
    /// argument.
    fn write_by(
        &self,
        out: &mut impl Write,
        told: &mut dyn FnMut(u64, u64) -> bool,
        mut write: impl FnMut(
            &TensorInfo,
            &mut dyn Write,
            &mut dyn FnMut(u64) -> io::Result<()>,
        ) -> io::Result<()>,
    ) -> Result<(), SyntheticError> {
        let writer = self.writer()?;
        let of: u64 = writer.tensors().iter().map(|tensor| tensor.bytes).sum();
        let mut done = 0;
        let mut stopped = false;
        let mut told = |length: u64| {
            done += length;
            stopped = !told(done, of);
            match stopped {
                true => Err(io::Error::other("stopped")),
                false => Ok(()),
            }
        };
        let written = writer.write(out, |tensor, out| write(tensor, out, &mut told));
        if stopped {
            return Err(SyntheticError::Stopped);
        }
        Ok(written?)
    }

    fn writer(&self) -> Result<Writer, WriteError> {
        let mut writer = Writer::new();
        for (key, field) in &self.fields {
            writer.set(key.as_str(), field.clone());
        }
        for tensor in &self.tensors {
            writer.tensor(&tensor.name, tensor.tensor_type, &tensor.dimensions)?;
        }
        Ok(writer)
    }

    /// What a tensor is filled with: matrices with random weights that keep the scale of what
    /// passes through them, the vectors of norms with ones, and biases with zeros.
    fn weights(&self, tensor: &TensorInfo) -> Weights {
        let row = tensor.dimensions.row();
        if let Some(value) = fixed(tensor) {
            return Weights::Fixed {
                value,
                tensor_type: tensor.tensor_type,
            };
        }
        // The variance of a sum of `row` products is `row` times that of one.
        let deviation = (1.0 / row.max(1) as f32).sqrt();
        match Blocks::new(tensor.tensor_type, deviation) {
            Some(blocks) => Weights::Random {
                blocks,
                silent: match tensor.name.as_str() {
                    "output.weight" => {
                        self.silent_tokens * tensor.tensor_type.bytes(row).unwrap_or(0)
                    }
                    _ => 0,
                },
            },
            None => Weights::Zeros,
        }
    }
}

/// What tells the weights of one tensor from those of another.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    tensor_type: TensorType,
    row: u64,
    /// The bits of the value that fills it.
    fixed: Option<u32>,
}

impl Kind {
    fn of(tensor: &TensorInfo) -> Self {
        Self {
            tensor_type: tensor.tensor_type,
            row: tensor.dimensions.row(),
            fixed: fixed(tensor).map(f32::to_bits),
        }
    }
}

/// The one value that fills a tensor where chance would not do: the vectors of norms and scales
/// keep what passes, biases add nothing, the decay of a state space is negative, or its state
/// would grow without end.
fn fixed(tensor: &TensorInfo) -> Option<f32> {
    let name = tensor.name.as_str();
    let is_float = matches!(
        tensor.tensor_type,
        TensorType::F32 | TensorType::F16 | TensorType::Bf16
    );
    if name.ends_with(".ssm_a") || name.ends_with("ssm_a.weight") {
        return is_float.then_some(-1.0);
    }
    // A vector with a dimension to spare is one all the same.
    let is_vector = tensor.dimensions.iter().filter(|size| **size > 1).count() <= 1;
    if !is_vector || !is_float {
        return None;
    }
    let adds = name.ends_with(".bias") || name.ends_with("_b") || name.ends_with(".ssm_d");
    Some(if adds { 0.0 } else { 1.0 })
}

enum Weights {
    Fixed {
        value: f32,
        tensor_type: TensorType,
    },
    Zeros,
    Random {
        blocks: Blocks,
        /// Bytes at the head that are zero: so are the weights of a block of zeros.
        silent: u64,
    },
}

/// Fills a piece with the half whose bits stand for 1, times `value`: 0, 1 or -1.
fn fill_halves(piece: &mut [u8], one: u16, value: f32) {
    let bits = match value {
        0.0 => 0,
        _ if value < 0.0 => one | 0x8000,
        _ => one,
    };
    for slot in piece.as_chunks_mut::<2>().0 {
        *slot = bits.to_le_bytes();
    }
}

impl Weights {
    /// The same without silence.
    fn loud(self) -> Self {
        match self {
            Self::Random { blocks, .. } => Self::Random { blocks, silent: 0 },
            other => other,
        }
    }

    /// Fills a piece of a tensor that starts at byte `at` of it.
    fn fill(&self, rng: &mut Rng, at: u64, piece: &mut [u8]) {
        match self {
            Self::Fixed { value, tensor_type } => match tensor_type {
                TensorType::F32 => {
                    for slot in piece.as_chunks_mut::<4>().0 {
                        *slot = value.to_le_bytes();
                    }
                }
                // Of these two 0, 1 and -1 alone are asked for.
                TensorType::F16 => fill_halves(piece, 0x3c00, *value),
                _ => fill_halves(piece, 0x3f80, *value),
            },
            Self::Zeros => piece.fill(0),
            Self::Random { blocks, silent } => {
                blocks.fill(rng, piece);
                let silent = silent.saturating_sub(at).min(piece.len() as u64);
                piece[..silent as usize].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use twospeed_gguf::read_from;

    use super::*;
    use crate::{FileType, LlamaShape};

    const SMALL: LlamaShape = LlamaShape {
        width: 256,
        layers: 2,
        heads: 4,
        kv_heads: 4,
        feed_forward: 512,
        vocabulary: 300,
        context: 128,
    };

    fn small(seed: u64) -> Synthetic {
        Synthetic {
            fields: vec![("general.architecture".into(), "llama".into())],
            tensors: SMALL.tensors(FileType::Q4_K_M),
            seed,
            silent_tokens: 3,
        }
    }

    fn file(model: &Synthetic) -> Vec<u8> {
        let mut out = Vec::new();
        model.write(&mut out, &mut |_, _| true).unwrap();
        out
    }

    #[test]
    fn a_seed_gives_the_same_file_and_another_seed_another() {
        assert_eq!(file(&small(1)), file(&small(1)));
        assert_ne!(file(&small(1)), file(&small(2)));
    }

    #[test]
    fn the_size_is_known_before_it_is_written() {
        assert_eq!(small(1).bytes().unwrap(), file(&small(1)).len() as u64);
    }

    #[test]
    fn the_file_holds_what_was_asked_for() {
        let file = file(&small(1));
        let model = read_from(&file[..], "small.gguf", file.len() as u64).unwrap();
        model.check().unwrap();
        for (made, read) in small(1).tensors.iter().zip(&model.tensors) {
            assert_eq!(made.name, read.name);
            assert_eq!(made.tensor_type, read.tensor_type, "{}", made.name);
            assert_eq!(made.dimensions[..], read.dimensions[..], "{}", made.name);
        }
        assert_eq!(model.tensors.len(), small(1).tensors.len());
    }

    #[test]
    fn the_mixture_follows_from_the_keys_as_from_the_shape() {
        let made = SMALL.model("small", FileType::F16, 1);
        let mixed = made.quantized_as(FileType::Q4_K_M).unwrap();
        assert_eq!(mixed.tensors, SMALL.tensors(FileType::Q4_K_M));
        let file = file(&mixed);
        let model = read_from(&file[..], "small.gguf", file.len() as u64).unwrap();
        assert_eq!(model.quantization.as_deref(), Some("Q4_K_M"));
    }

    #[test]
    fn norms_are_ones_and_the_logits_of_silent_tokens_are_zero() {
        let file = file(&small(1));
        let model = read_from(&file[..], "small.gguf", file.len() as u64).unwrap();
        let bytes = |name: &str| {
            let tensor = model.tensor(name).unwrap();
            let start = (model.header_bytes + tensor.offset) as usize;
            &file[start..start + tensor.bytes as usize]
        };
        let ones = bytes("blk.1.ffn_norm.weight").as_chunks::<4>().0;
        assert!(ones.iter().all(|one| f32::from_le_bytes(*one) == 1.0));

        // A row of 256 is one block of Q6_K: 210 bytes.
        let rows: Vec<&[u8]> = bytes("output.weight").chunks(210).collect();
        assert!(rows[..3].iter().all(|row| row.iter().all(|b| *b == 0)));
        assert!(rows[3..].iter().all(|row| row.iter().any(|b| *b != 0)));
    }

    #[test]
    fn weights_that_repeat_are_as_valid_and_take_the_same_place() {
        let mut repeating = Vec::new();
        small(1)
            .write_repeating(&mut repeating, &mut |_, _| true)
            .unwrap();
        let drawn = file(&small(1));
        assert_eq!(repeating.len(), drawn.len());
        let read = |file: &[u8]| read_from(file, "small.gguf", file.len() as u64).unwrap();
        let (model, other) = (read(&repeating), read(&drawn));
        assert_eq!(model.tensors, other.tensors);
        // The scales of every block of Q4_K are those that a drawn block has.
        let tensor = model.tensor("blk.0.attn_q.weight").unwrap();
        let start = (model.header_bytes + tensor.offset) as usize;
        let scales = |file: &[u8]| file[start..start + 4].to_vec();
        assert_eq!(scales(&repeating), scales(&drawn));
        let blocks: Vec<&[u8]> = repeating[start..start + tensor.bytes as usize]
            .chunks(144)
            .collect();
        assert!(blocks.iter().all(|block| block[..4] == scales(&drawn)));
        assert!(blocks.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn what_chance_would_break_is_filled_with_a_value_that_holds() {
        let value = |name: &str, tensor_type, dimensions: &[u64]| {
            let mut writer = Writer::new();
            writer.tensor(name, tensor_type, dimensions).unwrap();
            fixed(&writer.tensors()[0])
        };
        let f32 = TensorType::F32;
        assert_eq!(value("blk.0.attn_norm.weight", f32, &[8]), Some(1.0));
        assert_eq!(value("blk.0.attn_q.bias", f32, &[8]), Some(0.0));
        assert_eq!(value("blk.0.ffn_up.scale", f32, &[1]), Some(1.0));
        assert_eq!(value("blk.0.ssm_a", f32, &[16, 8]), Some(-1.0));
        assert_eq!(value("blk.0.ssm_a", f32, &[1, 8]), Some(-1.0));
        assert_eq!(value("blk.0.ffn_gate_inp.weight", f32, &[8, 4]), None);
        assert_eq!(
            value("blk.0.attn_q.weight", TensorType::Q8_0, &[32, 8]),
            None
        );
        let mut halves = [7; 4];
        fill_halves(&mut halves, 0x3c00, -1.0);
        assert_eq!(halves, [0, 0xbc, 0, 0xbc]);
    }

    #[test]
    fn silence_goes_on_over_the_pieces_in_which_a_tensor_is_made() {
        let weights = Weights::Random {
            blocks: Blocks::new(TensorType::F16, 1.0).unwrap(),
            silent: 150,
        };
        let zeros = |at| {
            let mut piece = [0xff; 100];
            weights.fill(&mut Rng::new(1), at, &mut piece);
            piece.iter().take_while(|byte| **byte == 0).count()
        };
        assert_eq!([zeros(0), zeros(100), zeros(200)], [100, 50, 0]);
    }

    #[test]
    fn it_stops_when_told_to() {
        let mut out = Vec::new();
        let mut calls = 0;
        let stopped = small(1).write(&mut out, &mut |_, _| {
            calls += 1;
            calls < 2
        });
        assert!(matches!(stopped, Err(SyntheticError::Stopped)));
        assert_eq!(calls, 2);
    }

    #[test]
    fn a_shape_of_partial_blocks_is_refused() {
        let mut odd = small(1);
        odd.tensors[0].dimensions[0] = 255;
        assert!(matches!(
            odd.bytes(),
            Err(SyntheticError::Write(WriteError::Shape { .. }))
        ));
    }
}
