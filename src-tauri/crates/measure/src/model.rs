//! The model a test was made with.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::Ability;
use twospeed_engine::settings::ModelPath;
use twospeed_gguf::{Data, Kind, Model};

/// A model by its content; the path is only where it lay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredModel {
    /// Fingerprint of its content: survives renames, never merges different files of one name.
    pub fingerprint: String,
    /// Where it lay.
    pub path: ModelPath,
    /// Its name.
    pub name: String,
    /// Architecture.
    pub architecture: Option<String>,
    /// Quantization label.
    pub quantization: Option<String>,
    /// Bytes of the file (set).
    pub file_bytes: u64,
    /// Parameters.
    pub parameters: u64,
    /// Active parameters.
    pub active_parameters: Option<u64>,
    /// Bytes of weights that one decoded token reads.
    pub weight_bytes_per_token: Option<u64>,
    /// What it can be asked to do; `None` where only a foreign result tells of it.
    pub ability: Option<Ability>,
    /// Random weights made here: its speed is real, its text is noise.
    pub synthetic: bool,
}

impl MeasuredModel {
    /// Takes from a header what results are kept under.
    ///
    /// `fingerprint` stands for the file's content, `weight_bytes_per_token` is the estimate's.
    /// Errors: [`NotAModel`] when the file holds none that can be run.
    pub fn of(
        model: &Model,
        fingerprint: String,
        weight_bytes_per_token: Option<u64>,
        synthetic: bool,
    ) -> Result<Self, NotAModel> {
        let refuse = |reason: &str| {
            Err(NotAModel {
                name: model.path.display().to_string(),
                reason: reason.to_owned(),
            })
        };
        let ability = match model.kind {
            Kind::Generates => Ability::Generates,
            Kind::Embeds => Ability::Embeds,
            Kind::Diffusion => Ability::Diffuses,
            Kind::Projector => {
                return refuse(
                    "a projector, the part beside a model that reads images or sound; name the model itself",
                );
            }
            Kind::Adapter => {
                return refuse(
                    "an adapter, which changes a model and cannot run alone; name the model itself",
                );
            }
            Kind::Imatrix => {
                return refuse(
                    "an importance matrix, which only helps to quantize a model; name the model itself",
                );
            }
            Kind::Vocabulary => {
                return refuse("a vocabulary without weights; name a file that holds the model");
            }
            Kind::None => {
                return refuse(
                    "no model: the file is sound and holds something else; name a model file",
                );
            }
        };
        if let Some(split) = model
            .split
            .as_ref()
            .filter(|split| !split.missing.is_empty())
        {
            return refuse(&format!(
                "not complete: {} of its {} parts are missing ({}); download them beside it",
                split.missing.len(),
                split.parts,
                split.missing.join(", "),
            ));
        }
        match model.data {
            Data::Complete => {}
            Data::Absent => {
                return refuse("only a header, without the weights; download the whole file");
            }
            Data::Truncated => {
                return refuse(&format!(
                    "cut off: {} of {} bytes are there; download it again",
                    model.bytes_found, model.bytes_expected,
                ));
            }
        }
        Ok(Self {
            fingerprint,
            path: ModelPath(model.path.clone()),
            name: model.name.clone(),
            architecture: model.architecture.clone(),
            quantization: model.quantization.clone(),
            file_bytes: model.file_bytes,
            parameters: model.parameters,
            active_parameters: model.active_parameters,
            weight_bytes_per_token,
            ability: Some(ability),
            synthetic,
        })
    }
}

/// A file that cannot be measured since it holds no model that runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {reason}.")]
pub struct NotAModel {
    /// The file.
    pub name: String,
    /// What it is instead and what to do.
    pub reason: String,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A model that generates, for plans in tests.
    pub(crate) fn model(name: &str) -> MeasuredModel {
        MeasuredModel::of(&header(name), format!("content of {name}"), None, false).unwrap()
    }

    fn header(name: &str) -> Model {
        Model {
            path: PathBuf::from(format!("/models/{name}.gguf")),
            kind: Kind::Generates,
            architecture: Some("llama".into()),
            name: name.into(),
            parameters: 1000,
            active_parameters: Some(1000),
            file_bytes: 600,
            header_bytes: 100,
            data: Data::Complete,
            bytes_expected: 600,
            bytes_found: 600,
            quantization: Some("Q4_0".into()),
            bits_per_weight: Some(4.0),
            types: vec![],
            layers: Some(2),
            context_length: Some(2048),
            split: None,
            warnings: vec![],
            tensors: vec![],
        }
    }

    fn refusal(change: impl FnOnce(&mut Model)) -> String {
        let mut model = header("x");
        change(&mut model);
        MeasuredModel::of(&model, String::new(), None, false)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_no_model_is_refused_by_its_name_and_kind() {
        for (kind, part) in [
            (Kind::Projector, "projector"),
            (Kind::Adapter, "adapter"),
            (Kind::Imatrix, "importance matrix"),
            (Kind::Vocabulary, "vocabulary"),
            (Kind::None, "no model"),
        ] {
            let sentence = refusal(|m| m.kind = kind);
            assert!(sentence.contains(part), "{sentence}");
            assert!(sentence.starts_with("/models/x.gguf is "), "{sentence}");
        }
    }

    #[test]
    fn a_cut_off_file_is_refused_with_both_sizes() {
        let sentence = refusal(|m| {
            m.data = Data::Truncated;
            m.bytes_found = 300;
        });
        assert!(sentence.contains("300 of 600 bytes"), "{sentence}");
    }

    #[test]
    fn a_header_alone_cannot_be_measured() {
        assert!(refusal(|m| m.data = Data::Absent).contains("only a header"));
    }

    #[test]
    fn missing_parts_are_named() {
        let sentence = refusal(|m| {
            m.split = Some(twospeed_gguf::Split {
                part: 1,
                parts: 3,
                missing: vec!["x-00003-of-00003.gguf".into()],
            });
        });
        assert!(
            sentence.contains("1 of its 3 parts") && sentence.contains("x-00003-of-00003.gguf"),
            "{sentence}"
        );
    }

    #[test]
    fn an_embedding_model_is_a_model() {
        let mut embeds = header("e");
        embeds.kind = Kind::Embeds;
        let model = MeasuredModel::of(&embeds, String::new(), None, false).unwrap();
        assert_eq!(model.ability, Some(Ability::Embeds));
    }
}
