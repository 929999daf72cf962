//! From headers to a [`Model`]: sums, shares, what is there and what is not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::check::{MAX_LAYERS, engine_limit};
use crate::error::{Error, Fault};
use crate::experts::active_parameters;
use crate::header::Header;
use crate::kind::{is_draft_head, kind};
use crate::metadata::Metadata;
use crate::model::{Data, Kind, Model, Part, Split, TensorInfo};
use crate::name::model_name;
use crate::quantization::{falls_back, label, shares};
use crate::tensor_list::{MAX_BYTES, MAX_TENSORS, duplicate_name};
use crate::text::{one_line, quoted, shown};
use crate::warning::Warning;

/// The parts of a model put together one by one. Of every part but the first only the tensors
/// are kept.
pub(crate) struct Assembly {
    /// Of the model: of a set the first part's, whether it is there or not.
    path: PathBuf,
    metadata: Option<Metadata>,
    parts: Vec<Part>,
    tensors: Vec<TensorInfo>,
    bytes_expected: u64,
}

impl Assembly {
    pub(crate) fn new(path: &Path) -> Assembly {
        Assembly {
            path: path.to_owned(),
            metadata: None,
            parts: Vec::new(),
            tensors: Vec::new(),
            bytes_expected: 0,
        }
    }

    fn malformed(&self, fault: Fault) -> Error {
        Error::Malformed {
            file: shown(&self.path),
            fault,
        }
    }

    /// Adds the next part.
    pub(crate) fn add(&mut self, part: Part, header: Header) -> Result<(), Error> {
        self.bytes_expected += header.bytes + header.data_bytes;
        if self.bytes_expected > MAX_BYTES {
            return Err(self.malformed(Fault::SetSize));
        }
        let index = self.parts.len() as u32;
        self.tensors
            .extend(header.tensors.into_iter().map(|tensor| TensorInfo {
                part: index,
                ..tensor
            }));
        let claimed = self.tensors.len() as u64;
        if claimed > MAX_TENSORS {
            return Err(self.malformed(Fault::TooMany {
                what: "tensors",
                claimed,
                limit: MAX_TENSORS,
            }));
        }
        self.metadata.get_or_insert(header.metadata);
        self.parts.push(part);
        Ok(())
    }

    /// What holds only of a set as a whole.
    fn check_set(&self, metadata: &Metadata, split: &Split) -> Result<(), Error> {
        if let Some(name) = duplicate_name(&self.tensors) {
            return Err(self.malformed(Fault::DuplicateTensor(quoted(name.as_bytes()))));
        }
        let found = self.tensors.len() as u64;
        match metadata.u64("split.tensors.count") {
            Some(declared) if split.missing.is_empty() && declared != found => {
                Err(Error::TensorsAddUp {
                    file: shown(&self.path),
                    parts: split.parts,
                    declared,
                    found,
                })
            }
            _ => Ok(()),
        }
    }

    /// The model of the parts that were added.
    pub(crate) fn finish(mut self, split: Option<Split>) -> Result<Model, Error> {
        let metadata = self.metadata.take().unwrap_or_default();
        if let Some(split) = &split {
            self.check_set(&metadata, split)?;
        }
        let missing = split
            .as_ref()
            .is_some_and(|split| !split.missing.is_empty());
        let parameters: u64 = self.tensors.iter().map(|tensor| tensor.elements).sum();
        if parameters > MAX_BYTES {
            return Err(self.malformed(Fault::SetSize));
        }
        let Assembly {
            path,
            parts,
            tensors,
            bytes_expected,
            ..
        } = self;
        let types = shares(tensors.iter());
        let weight_bytes: u64 = types.iter().map(|share| share.bytes).sum();
        let file_bytes = parts
            .iter()
            .fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        let kind = kind(&metadata, !tensors.is_empty() || missing);
        let mut model = Model {
            kind,
            architecture: metadata.architecture().map(one_line),
            name: model_name(&metadata, &path),
            path,
            parameters,
            active_parameters: active_parameters(&metadata, &tensors),
            file_bytes,
            header_bytes: parts.iter().map(|part| part.header_bytes).sum(),
            data: data(&tensors, &parts, missing),
            bytes_expected,
            bytes_found: file_bytes,
            quantization: label(&metadata, &tensors),
            bits_per_weight: (parameters > 0)
                .then(|| 8.0 * weight_bytes as f64 / parameters as f64),
            types,
            layers: metadata
                .arch_u64("block_count")
                .and_then(|layers| u32::try_from(layers).ok()),
            context_length: metadata.arch_u64("context_length"),
            split,
            warnings: Vec::new(),
            tensors,
            parts,
            metadata,
        };
        model.warnings = warnings(&model);
        Ok(model)
    }
}

/// Whether the tensors lie whole in their files. Tensors without elements are always whole.
fn data(tensors: &[TensorInfo], parts: &[Part], missing: bool) -> Data {
    let mut all = 0;
    let mut whole = 0;
    for tensor in tensors.iter().filter(|tensor| tensor.bytes > 0) {
        all += 1;
        let part = &parts[tensor.part as usize];
        if part.header_bytes + tensor.offset + tensor.bytes <= part.bytes {
            whole += 1;
        }
    }
    match (whole, missing) {
        (whole, false) if whole == all => Data::Complete,
        (0, _) if all > 0 => Data::Absent,
        _ => Data::Truncated,
    }
}

fn warnings(model: &Model) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (expected, found) = (model.bytes_expected, model.bytes_found);
    let missing = model
        .split
        .as_ref()
        .filter(|split| !split.missing.is_empty());
    match (model.data, missing) {
        (_, Some(split)) => {
            warnings.push(Warning::PartsMissing {
                missing: split.missing.clone(),
                parts: split.parts,
            });
        }
        (Data::Truncated, None) => warnings.push(Warning::Truncated { expected, found }),
        (Data::Absent, None) if found > model.header_bytes => {
            warnings.push(Warning::EndsInFirstTensor { expected, found });
        }
        _ => {}
    }
    if model.kind.is_model() {
        if let Err(limit) = engine_limit(&model.metadata) {
            warnings.push(Warning::CannotBeLoaded(limit));
        }
        if missing.is_none() {
            warnings.extend(incomplete(model));
        }
    }
    let label = model
        .quantization
        .as_ref()
        .filter(|label| falls_back(label, &model.tensors));
    if let (Some(label), Some(bits_per_weight)) = (label, model.bits_per_weight) {
        warnings.push(Warning::LargerThanItsLabel {
            label: label.clone(),
            bits_per_weight,
        });
    }
    if model.kind == Kind::Adapter && is_draft_head(model.architecture.as_deref()) {
        warnings.push(Warning::DraftHead);
    }
    warnings
}

/// Layers that are declared and have no tensors. Those that predict ahead may be left out of a file.
fn incomplete(model: &Model) -> Option<Warning> {
    // Its layers are named otherwise.
    if model.architecture.as_deref() == Some("wavtokenizer-dec") {
        return None;
    }
    let metadata: &Metadata = &model.metadata;
    let declared = metadata
        .arch_u64("block_count")
        .filter(|layers| *layers <= MAX_LAYERS)?;
    let needed = declared
        - metadata
            .arch_u64("nextn_predict_layers")
            .unwrap_or(0)
            .min(declared);
    let there: BTreeSet<u32> = model.tensors.iter().filter_map(TensorInfo::layer).collect();
    let without_tensors = (0..needed)
        .filter(|layer| !there.contains(&(*layer as u32)))
        .count() as u64;
    (without_tensors > 0).then_some(Warning::Incomplete {
        declared,
        without_tensors,
    })
}
