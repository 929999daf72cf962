//! The model a test was made with.

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::Ability;
use twospeed_engine::settings::ModelPath;
use twospeed_gguf::{Error, Kind, Model};

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
    /// Errors: [`Model::check_loads`] says why the file cannot be measured.
    pub fn of(
        model: &Model,
        fingerprint: String,
        weight_bytes_per_token: Option<u64>,
        synthetic: bool,
    ) -> Result<Self, Error> {
        model.check_loads()?;
        let ability = match model.kind {
            Kind::Embeds => Ability::Embeds,
            Kind::Diffusion => Ability::Diffuses,
            // Kinds that are no model did not pass the check.
            _ => Ability::Generates,
        };
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

#[cfg(test)]
pub(crate) mod tests {
    use std::path::{Path, PathBuf};

    use twospeed_gguf::Data;

    use super::*;

    /// A model that generates, for plans in tests.
    pub(crate) fn model(name: &str) -> MeasuredModel {
        MeasuredModel {
            fingerprint: format!("content of {name}"),
            path: ModelPath(PathBuf::from(format!("/models/{name}.gguf"))),
            name: name.into(),
            architecture: Some("llama".into()),
            quantization: Some("Q4_0".into()),
            file_bytes: 600,
            parameters: 1000,
            active_parameters: Some(1000),
            weight_bytes_per_token: None,
            ability: Some(Ability::Generates),
            synthetic: false,
        }
    }

    /// A real header, taken for a file that holds its weights too.
    fn header() -> Model {
        let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let mut model = twospeed_gguf::read(&path).unwrap();
        model.data = Data::Complete;
        model
    }

    fn measured(model: &Model) -> Result<MeasuredModel, Error> {
        MeasuredModel::of(model, "content".into(), Some(7), false)
    }

    #[test]
    fn a_model_is_kept_by_its_content_and_what_its_header_says() {
        let header = header();
        let model = measured(&header).unwrap();
        assert_eq!(model.fingerprint, "content");
        assert_eq!(model.weight_bytes_per_token, Some(7));
        assert_eq!(model.ability, Some(Ability::Generates));
        assert_eq!(model.path.0, header.path);
        assert_eq!(model.parameters, header.parameters);
    }

    #[test]
    fn an_embedding_model_is_a_model() {
        let mut header = header();
        header.kind = Kind::Embeds;
        assert_eq!(measured(&header).unwrap().ability, Some(Ability::Embeds));
    }

    #[test]
    fn what_cannot_be_loaded_is_refused_in_the_readers_words() {
        let mut header = header();
        header.data = Data::Absent;
        assert!(matches!(measured(&header), Err(Error::NoWeights { .. })));
        header.kind = Kind::Projector;
        assert!(matches!(measured(&header), Err(Error::NotAModel { .. })));
    }
}
