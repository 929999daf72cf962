//! Models of random weights: real shapes, real types, real speed; what they write is noise.

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
        let writer = self.writer()?;
        let of: u64 = writer.tensors().iter().map(|tensor| tensor.bytes).sum();
        let mut rng = Rng::new(self.seed);
        let mut done = 0;
        let mut stopped = false;
        let mut piece = Vec::new();
        let written = writer.write(out, |tensor, out| {
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
                done += length;
                if !told(done, of) {
                    stopped = true;
                    return Err(io::Error::other("stopped"));
                }
            }
            Ok(())
        });
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
        if tensor.dimensions.len() == 1 && tensor.tensor_type == TensorType::F32 {
            return match tensor.name.ends_with(".weight") {
                true => Weights::Ones,
                false => Weights::Zeros,
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

enum Weights {
    Ones,
    Zeros,
    Random {
        blocks: Blocks,
        /// Bytes at the head that are zero: so are the weights of a block of zeros.
        silent: u64,
    },
}

impl Weights {
    /// Fills a piece of a tensor that starts at byte `at` of it.
    fn fill(&self, rng: &mut Rng, at: u64, piece: &mut [u8]) {
        match self {
            Self::Ones => {
                for value in piece.as_chunks_mut::<4>().0 {
                    *value = 1f32.to_le_bytes();
                }
            }
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
