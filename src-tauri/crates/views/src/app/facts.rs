//! What `inspect` says of a file, for the details of a row.

use std::sync::Arc;

use twospeed_gguf::{Kind, Model};
use twospeed_library::Item;
use twospeed_library::display::{shown, shown_path};

use super::App;
use super::catalogue::Entry;
use super::models::unknown_row;
use crate::Problem;
use crate::models::{Fact, FactName, Facts, TypeShare};

impl App {
    /// What `inspect` says of a row's file.
    ///
    /// Errors: `row_unknown`, `row_not_there`, `file_unusable` for a file that cannot be read.
    pub async fn facts(self: &Arc<Self>, row: String) -> Result<Facts, Problem> {
        let app = self.clone();
        super::folders::on_a_thread(move || app.facts_of(&row)).await
    }

    fn facts_of(&self, row: &str) -> Result<Facts, Problem> {
        self.keep_builtin();
        let Some(entry) = self.catalogue.entry(row) else {
            return Err(match self.known_row(row) {
                Some(known) => Problem::new(
                    "row_not_there",
                    format!(
                        "{} {} is not on this disk yet, so there is nothing to say of it.",
                        known.name, known.quantization
                    ),
                ),
                None => unknown_row(),
            });
        };
        match entry.item.model() {
            Some(model) => Ok(of(&entry, model)),
            None => Err(Problem::new(
                "file_unusable",
                entry.hindrance.clone().unwrap_or_default(),
            )),
        }
    }
}

fn of(entry: &Entry, model: &Model) -> Facts {
    let number = |name, number: Option<f64>| Fact {
        name,
        number,
        text: None,
    };
    let text = |name, text: Option<String>| Fact {
        name,
        number: None,
        text,
    };
    let count = |name, count: Option<u64>| number(name, count.map(|count| count as f64));
    let mut facts = vec![
        text(FactName::Name, Some(shown(&model.name))),
        text(
            FactName::Architecture,
            model.architecture.as_deref().map(shown),
        ),
        text(FactName::Kind, Some(model.kind.words().to_owned())),
        count(FactName::Parameters, Some(model.parameters)),
    ];
    if model.active_parameters != Some(model.parameters) {
        facts.push(count(FactName::ActiveParameters, model.active_parameters));
    }
    facts.extend([
        text(
            FactName::Quantization,
            model.quantization.as_deref().map(shown),
        ),
        number(FactName::BitsPerWeight, model.bits_per_weight),
        count(FactName::Layers, model.layers.map(u64::from)),
        count(FactName::ContextLength, model.context_length),
        count(FactName::FileBytes, Some(model.file_bytes)),
        count(FactName::HeaderBytes, Some(model.header_bytes)),
        count(FactName::WeightBytesPerToken, entry.weight_bytes_per_token),
        count(FactName::KvBytesPerToken, entry.kv_bytes_per_token),
    ]);
    if let Some(split) = &model.split {
        let missing = u32::try_from(split.missing.len()).unwrap_or(u32::MAX);
        let there = split.parts.saturating_sub(missing);
        facts.push(text(
            FactName::Split,
            Some(format!("{there} of {}", split.parts)),
        ));
    }
    if !entry.is_unmade {
        facts.push(text(FactName::Path, Some(shown_path(&entry.item.path))));
    }
    let types = model.types.iter().map(|share| TypeShare {
        name: share.name().into_owned(),
        bytes: share.bytes,
        parameters: share.parameters,
    });
    Facts {
        row: entry.id.clone(),
        facts,
        types: types.collect(),
        warnings: match entry.is_unmade {
            // That its data is not there yet is no fault of it.
            true => Vec::new(),
            false => warnings(entry, model),
        },
    }
}

fn warnings(entry: &Entry, model: &Model) -> Vec<String> {
    let warnings = model
        .warnings
        .iter()
        .map(|warning| shown(&warning.to_string()));
    let mut sentences: Vec<String> = warnings.collect();
    if let Some(hindrance) = &entry.hindrance {
        sentences.insert(0, hindrance.clone());
    }
    sentences.dedup();
    sentences
}

/// What a file is that goes with a model or holds none: one sentence.
pub(super) fn kind_sentence(item: &Item) -> String {
    let kind = item.model().map_or(Kind::None, |model| model.kind);
    let words = kind.words();
    let mut letters = words.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
