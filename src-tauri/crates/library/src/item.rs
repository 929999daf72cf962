//! One row of the list of models: a file, or a whole split set, and what its header says.

use std::path::PathBuf;
use std::time::SystemTime;

use twospeed_gguf::Model;

use crate::display::shown;

/// A model file or split set as a scan found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The file that opens it: of a split set the first part that is there.
    pub path: PathBuf,
    /// Name to show: safe for a terminal, Ollama's `model:tag` where Ollama keeps it.
    pub label: String,
    /// Every file of it that is there, part by part.
    pub files: Vec<FileOnDisk>,
    /// What its header says.
    pub reading: Reading,
}

/// A file as it was when it was looked at. The same path, size and time: the same content, as
/// far as a scan cares; results go by fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileOnDisk {
    /// Where it lies.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last written; `None` where the system cannot say.
    pub modified: Option<SystemTime>,
}

/// What reading the header gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// A sound container; not always of a model.
    Read(Box<Model>),
    /// Not to be read: one sentence that names the fault.
    Broken(String),
}

/// What an item is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A model: a row of its own among the models.
    Model,
    /// Goes with a model (a projector, an adapter, an importance matrix, a bare tokenizer) or
    /// holds none.
    Helper,
    /// Cannot be read.
    Broken,
}

impl Item {
    /// What its header says, where it can be read.
    pub fn model(&self) -> Option<&Model> {
        match &self.reading {
            Reading::Read(model) => Some(model),
            Reading::Broken(_) => None,
        }
    }

    /// What it is good for.
    pub fn role(&self) -> Role {
        match &self.reading {
            // A cut-off model is still known for what it is, and keeps its place.
            Reading::Read(model) if model.kind.is_model() => Role::Model,
            Reading::Read(model) if model.check().is_ok() => Role::Helper,
            Reading::Read(_) | Reading::Broken(_) => Role::Broken,
        }
    }

    /// Bytes of all its files that are there.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Why it cannot be run, as a sentence; `None` for a model that is there whole.
    ///
    /// An embedding model can be run, it only has no decode speed.
    pub fn hindrance(&self) -> Option<String> {
        match &self.reading {
            Reading::Read(model) => model.check_loads().err().map(|e| shown(&e.to_string())),
            Reading::Broken(sentence) => Some(sentence.clone()),
        }
    }
}
