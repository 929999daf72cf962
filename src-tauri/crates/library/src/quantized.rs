//! What a model becomes when it is quantized here: how large, under which name.

use std::path::{Path, PathBuf};

use serde::Serialize;
use twospeed_gguf::{Data, Model, SetName, TensorType, TypeShare};

use crate::file_type::FileType;
use crate::mixture::{self, Facts, Source};
use crate::{names, os};

/// Data of a tensor starts at multiples of this (llama.cpp `GGUF_DEFAULT_ALIGNMENT`).
const ALIGNMENT: u64 = 32;

/// A quantization that can be made of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Makeable {
    /// What.
    pub file_type: FileType,
    /// Size of the file.
    pub bytes: u64,
    /// The file would be larger than its source, and hold no more than it.
    pub is_larger: bool,
    /// Weights that are quantized already would be quantized again, which costs quality that
    /// quantizing the original would not.
    pub requantizes: bool,
}

/// What is offered, from large to small.
const OFFERED: [FileType; 6] = [
    FileType::F16,
    FileType::Q8_0,
    FileType::Q6_K,
    FileType::Q5_K_M,
    FileType::Q4_K_M,
    FileType::Q4_0,
];

/// Bytes of the file that quantizing `model` gives; `None` for what the engine refuses to make.
///
/// Counts what llama.cpp's quantizer does tensor by tensor (`llama-quant.cpp`) with the header of
/// the source; only that header's own change, some bytes, is left out.
#[must_use]
pub fn quantized_size(model: &Model, file_type: FileType) -> Option<u64> {
    let types = mixture::types(&Facts::of(model)?, &sources(model), file_type)?;
    model
        .tensors
        .iter()
        .zip(types)
        .try_fold(model.header_bytes, |sum, (tensor, tensor_type)| {
            let bytes = tensor_type.bytes(tensor.elements)?;
            sum.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?)
        })
}

/// The header that quantizing `model` gives, as far as sizes and speeds depend on it; `None` for
/// what the engine refuses to make. Its data is nowhere.
#[must_use]
pub fn as_quantized(model: &Model, file_type: FileType) -> Option<Model> {
    let types = mixture::types(&Facts::of(model)?, &sources(model), file_type)?;
    let mut made = model.clone();
    let (mut end, mut weights) = (0u64, 0u64);
    let mut shares: Vec<TypeShare> = Vec::new();
    for (tensor, tensor_type) in made.tensors.iter_mut().zip(types) {
        tensor.tensor_type = tensor_type;
        tensor.bytes = tensor_type.bytes(tensor.elements)?;
        (tensor.offset, tensor.part) = (end, 0);
        end = end.checked_add(tensor.bytes.checked_next_multiple_of(ALIGNMENT)?)?;
        weights = weights.checked_add(tensor.bytes)?;
        let share = match shares.iter_mut().find(|one| one.tensor_type == tensor_type) {
            Some(share) => share,
            None => shares.push_mut(TypeShare {
                tensor_type,
                new_type: None,
                tensors: 0,
                bytes: 0,
                parameters: 0,
            }),
        };
        share.tensors += 1;
        share.bytes += tensor.bytes;
        share.parameters += tensor.elements;
    }
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    made.types = shares;
    made.quantization = Some(file_type.name().to_owned());
    made.bits_per_weight =
        (made.parameters > 0).then(|| 8.0 * weights as f64 / made.parameters as f64);
    made.bytes_expected = made.header_bytes.checked_add(end)?;
    (made.file_bytes, made.bytes_found, made.data) = (0, 0, Data::Absent);
    made.parts.truncate(1);
    made.split = None;
    Some(made)
}

/// Whether making `file_type` of `model` quantizes weights that are quantized already.
#[must_use]
pub fn requantizes(model: &Model, file_type: FileType) -> bool {
    let sources = sources(model);
    let types = Facts::of(model).and_then(|facts| mixture::types(&facts, &sources, file_type));
    types.is_some_and(|types| {
        sources
            .iter()
            .zip(types)
            .any(|(from, to)| !is_float(from.tensor_type) && from.tensor_type != to)
    })
}

/// The quantizations to offer for a model: none that it has already, none that would give the
/// same file, and half precision only of what is more precise.
#[must_use]
pub fn types_that_can_be_made(model: &Model) -> Vec<Makeable> {
    if model.check_loads().is_err() {
        return Vec::new();
    }
    let label = model.quantization.as_deref().unwrap_or_default();
    OFFERED
        .into_iter()
        .filter(|file_type| !file_type.name().eq_ignore_ascii_case(label))
        .filter_map(|file_type| {
            Some(Makeable {
                file_type,
                bytes: quantized_size(model, file_type)?,
                is_larger: false,
                requantizes: requantizes(model, file_type),
            })
        })
        .filter(|made| !(made.file_type.is_float() && (made.requantizes || !is_full(model))))
        .map(|made| Makeable {
            is_larger: made.bytes > model.bytes_expected,
            ..made
        })
        .collect()
}

/// Share of each tensor in the work of quantizing, in the order in which the engine goes through
/// them: the fraction done before each, and 1 at the end.
#[must_use]
pub fn fractions(model: &Model) -> Vec<f32> {
    let sources = sources(model);
    let total: u64 = model.tensors.iter().map(|tensor| tensor.elements).sum();
    let mut done = 0;
    let mut fractions = vec![0.0];
    for at in mixture::in_the_engines_order(&sources) {
        done += model.tensors[at].elements;
        fractions.push(done as f32 / total.max(1) as f32);
    }
    fractions
}

/// Where a quantization of `model` is put if nobody says otherwise: the source's name with the
/// label replaced or appended, beside the source, or in `data_folder`'s `models` where that
/// folder is not to be written to or another program keeps its own order in it.
#[must_use]
pub fn quantized_path(model: &Model, file_type: FileType, data_folder: &Path) -> PathBuf {
    let name = file_name(model, file_type);
    match model.path.parent() {
        Some(folder) if !is_kept_by_others(folder) && os::is_writable(folder) => folder.join(name),
        _ => data_folder.join("models").join(name),
    }
}

fn file_name(model: &Model, file_type: FileType) -> String {
    let set = SetName::of(&model.path).map(|set| set.stem());
    let stem = set.or_else(|| {
        let stem = model.path.file_stem()?.to_string_lossy().into_owned();
        let is_gguf = model
            .path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("gguf"));
        is_gguf.then_some(stem)
    });
    // A blob of a store has no name of its own, so the model's has to do.
    let stem = stem.unwrap_or_else(|| {
        let safe = |c: char| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        };
        model.name.chars().map(safe).collect()
    });
    format!("{}.gguf", names::with_quantization(&stem, file_type.name()))
}

/// Folders in which Ollama and the Hugging Face tools keep files under names they made up.
fn is_kept_by_others(folder: &Path) -> bool {
    folder
        .components()
        .any(|part| part.as_os_str() == "blobs" || part.as_os_str() == "snapshots")
}

fn sources(model: &Model) -> Vec<Source<'_>> {
    let sources = model.tensors.iter().map(|tensor| Source {
        name: &tensor.name,
        dimensions: &tensor.dimensions,
        tensor_type: tensor.tensor_type,
    });
    sources.collect()
}

fn is_float(tensor_type: TensorType) -> bool {
    matches!(
        tensor_type,
        TensorType::F32 | TensorType::F16 | TensorType::Bf16
    )
}

/// Whether most weights are stored in full precision, or in the half that F16 is not.
fn is_full(model: &Model) -> bool {
    let first = model.types.first().map(|share| share.tensor_type);
    matches!(first, Some(TensorType::F32 | TensorType::Bf16))
}
