//! The header that an estimate is about: of a row, of a quantization that can be made, or of
//! anything that was looked at.

use std::sync::Arc;

use twospeed_gguf::Model;
use twospeed_library::display::shown;
use twospeed_library::names::without_quantization;
use twospeed_library::{FileType, as_quantized};

use crate::Problem;
use crate::app::App;
use crate::app::catalogue::Entry;
use crate::app::models::unknown_row;
use crate::desk::locked;

/// A header.
#[derive(Clone)]
pub(in crate::app) enum Header {
    /// Of a file in the list.
    Listed(Arc<Entry>),
    /// Of a file on this disk that is not in the list.
    OnDisk(String, Arc<Model>),
    /// Of what is nowhere on this disk: not made yet, or elsewhere.
    Nowhere(String, Arc<Model>),
}

impl Header {
    /// Name and label of the quantization.
    pub(in crate::app) fn title(&self) -> String {
        let model = self.model();
        let name = shown(&without_quantization(&model.name));
        match &model.quantization {
            Some(label) => format!("{name} {}", shown(label)),
            None => name,
        }
    }

    /// What it says.
    pub(in crate::app) fn model(&self) -> &Model {
        match self {
            // Made of entries with a model alone.
            Self::Listed(entry) => entry.item.model().expect("BUG: a header without a model"),
            Self::OnDisk(_, model) | Self::Nowhere(_, model) => model,
        }
    }

    /// It with the file that the engine can be asked about.
    pub(in crate::app) fn on_disk(&self) -> Option<&Model> {
        match self {
            Self::Listed(entry) if entry.is_unmade => None,
            Self::Listed(_) | Self::OnDisk(..) => Some(self.model()),
            Self::Nowhere(..) => None,
        }
    }

    /// What answers about it are kept under: another file in the same place is another key.
    pub(super) fn key(&self) -> String {
        let of = match self {
            Self::Listed(entry) => &entry.id,
            Self::OnDisk(of, _) | Self::Nowhere(of, _) => of,
        };
        key(of, self.model())
    }
}

/// What answers about a header are kept under.
pub(super) fn key(of: &str, model: &Model) -> String {
    format!(
        "{of} {} {} {}",
        model.header_bytes,
        model.bytes_expected,
        model.tensors.len()
    )
}

impl App {
    /// The header behind a row of Models or behind what was looked at.
    ///
    /// Errors: `row_unknown`, `header_unknown`, `file_unusable`.
    pub(in crate::app) fn header(&self, of: &str) -> Result<Header, Problem> {
        self.keep_builtin();
        if let Some(entry) = self.catalogue.entry(of) {
            return match entry.item.model() {
                Some(_) => Ok(Header::Listed(entry)),
                None => Err(Problem::new(
                    "file_unusable",
                    entry.hindrance.clone().unwrap_or_default(),
                )),
            };
        }
        if let Some(looked) = locked(&self.estimating.looked).get(of) {
            return Ok(looked.clone());
        }
        match of.strip_prefix("make:") {
            Some(made) => {
                let model = self.worked_out(of, made)?;
                Ok(Header::Nowhere(of.to_owned(), model))
            }
            None if of == crate::app::models::offer_id() => Err(Problem::new(
                "header_unknown",
                "What it takes is known when its header has been looked at, which asks the network.",
            )),
            None => Err(unknown_row()),
        }
    }

    /// Keeps a header that is not in the list, to be asked about.
    ///
    /// Errors: `file_unusable` for what holds no model.
    pub(in crate::app) fn keep_header(&self, of: &str, header: Header) -> Result<Header, Problem> {
        let model = header.model();
        if !model.kind.is_model() {
            return Err(Problem::new(
                "file_unusable",
                format!(
                    "{} is {} and no model: there is no speed to tell of it.",
                    shown(&model.name),
                    model.kind.words()
                ),
            ));
        }
        locked(&self.estimating.looked).insert(of.to_owned(), header.clone());
        Ok(header)
    }

    /// The header that making a quantization would give.
    fn worked_out(&self, of: &str, made: &str) -> Result<Arc<Model>, Problem> {
        let source = made.split_once(':').and_then(|(source, label)| {
            let file_type = FileType::named(label).ok()?;
            Some((self.catalogue.entry(source)?, file_type))
        });
        let (source, file_type) = source.ok_or_else(unknown_row)?;
        let full = source.item.model().ok_or_else(unknown_row)?;
        let key = key(of, full);
        let mut last = locked(&self.estimating.worked_out);
        if let Some((known, model)) = &*last
            && *known == key
        {
            return Ok(model.clone());
        }
        let model = Arc::new(as_quantized(full, file_type).ok_or_else(unknown_row)?);
        *last = Some((key, model.clone()));
        Ok(model)
    }
}
