//! A header extended to the length that it claims.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use twospeed_estimate::Bytes;
use twospeed_gguf::Model;
use twospeed_library::display::shown_path;

/// No header is larger: the vocabulary with its merges, some MB, is most of the largest.
const LARGEST_HEADER: u64 = 256 << 20;

/// No file system holds a larger file (ext4's limit is 16 TiB), and no model is as large.
const LONGEST_FILE: u64 = 8 << 40;

/// Headers in a folder of their own, each in a file of the length it claims. Removed when dropped.
#[derive(Debug)]
pub(super) struct SparseCopy {
    // Held for its removal.
    _folder: TempDir,
    path: PathBuf,
}

impl SparseCopy {
    /// The file to load: of a set the first.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// What is to be copied.
#[derive(Debug)]
pub(super) struct Plan {
    parts: Vec<PartPlan>,
}

#[derive(Debug)]
struct PartPlan {
    from: PathBuf,
    name: OsString,
    header: u64,
    length: u64,
}

/// Why a header cannot be extended, as a sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum SparseError {
    /// The header is not believed.
    #[error(
        "The header claims {} before its weights and {} in all, which no model has, so the engine was not asked.",
        Bytes(*header).decimal(),
        Bytes(*length).decimal()
    )]
    NotBelieved { header: u64, length: u64 },
    /// This system would fill the disk.
    #[error("On this system the engine can only be asked about whole files.")]
    NoSparseFiles,
    /// Reading or writing failed.
    #[error("{} could not be copied for the engine: {error}.", shown_path(path))]
    Disk { path: PathBuf, error: io::Error },
}

impl Plan {
    /// Of a model's parts, by what its header says.
    pub(super) fn of(model: &Model) -> Result<Self, SparseError> {
        if cfg!(windows) {
            return Err(SparseError::NoSparseFiles);
        }
        let mut parts = Vec::new();
        for (index, part) in (0..).zip(&model.parts) {
            let tensors = model.tensors.iter().filter(|tensor| tensor.part == index);
            let end = tensors
                .map(|tensor| tensor.offset.saturating_add(tensor.bytes))
                .max();
            let length = part.header_bytes.saturating_add(end.unwrap_or(0));
            if part.header_bytes > LARGEST_HEADER || length > LONGEST_FILE {
                return Err(SparseError::NotBelieved {
                    header: part.header_bytes,
                    length,
                });
            }
            parts.push(PartPlan {
                from: part.path.clone(),
                // The engine finds the parts of a set by their names.
                name: part.path.file_name().unwrap_or_default().to_owned(),
                header: part.header_bytes,
                length,
            });
        }
        Ok(Self { parts })
    }

    /// Copies the headers and extends them. What was begun is removed where that fails.
    pub(super) fn make(&self) -> Result<SparseCopy, SparseError> {
        let folder =
            TempDir::with_prefix("twospeed-header-").map_err(|error| SparseError::Disk {
                path: std::env::temp_dir(),
                error,
            })?;
        for part in &self.parts {
            let to = folder.path().join(&part.name);
            part.copy(&to).map_err(|error| SparseError::Disk {
                path: part.from.clone(),
                error,
            })?;
        }
        let first = self.parts.first().map(|part| part.name.clone());
        Ok(SparseCopy {
            path: folder.path().join(first.unwrap_or_default()),
            _folder: folder,
        })
    }
}

impl PartPlan {
    fn copy(&self, to: &Path) -> io::Result<()> {
        let mut header = File::open(&self.from)?.take(self.header);
        let mut copy = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(to)?;
        let copied = io::copy(&mut header, &mut copy)?;
        // A header whose last padding is left out is as good.
        if copied > self.header {
            return Err(io::ErrorKind::InvalidData.into());
        }
        copy.set_len(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Model {
        let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
        twospeed_gguf::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
    }

    #[test]
    fn a_header_gets_the_length_it_claims_and_no_blocks_for_it() {
        let mut model = header();
        // As if its last tensor were a hundred gigabytes further on.
        let last = model
            .tensors
            .iter_mut()
            .max_by_key(|tensor| tensor.offset)
            .unwrap();
        last.bytes += 100 << 30;
        let copy = Plan::of(&model).unwrap().make().unwrap();
        let facts = fs::metadata(copy.path()).unwrap();
        let end = model
            .tensors
            .iter()
            .map(|tensor| tensor.offset + tensor.bytes)
            .max();
        assert_eq!(facts.len(), model.header_bytes + end.unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert!(facts.blocks() * 512 < 1 << 20, "{} blocks", facts.blocks());
        }
        let read = fs::read(&model.path).unwrap();
        let mut begin = vec![0; read.len()];
        File::open(copy.path())
            .unwrap()
            .read_exact(&mut begin)
            .unwrap();
        assert_eq!(begin, read, "the header itself is whole");

        let folder = copy.path().parent().unwrap().to_owned();
        drop(copy);
        assert!(!folder.exists(), "nothing stays behind");
    }

    #[test]
    fn what_no_model_has_is_not_even_begun() {
        let mut model = header();
        model.tensors[0].bytes = u64::MAX;
        let refused = Plan::of(&model).unwrap_err();
        assert!(
            matches!(refused, SparseError::NotBelieved { .. }),
            "{refused}"
        );
        let mut model = header();
        model.parts[0].header_bytes = 1 << 40;
        assert!(Plan::of(&model).is_err());
    }

    #[test]
    fn a_header_that_is_gone_leaves_nothing_behind() {
        let mut model = header();
        model.parts[0].path = "/nowhere/model.gguf".into();
        let plan = Plan::of(&model).unwrap();
        let refused = plan.make().unwrap_err().to_string();
        assert!(
            refused.starts_with("/nowhere/model.gguf could not be copied"),
            "{refused}"
        );
    }
}
