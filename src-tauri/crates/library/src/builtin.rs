//! The built-in model: made on the spot, so that both speeds can be measured on a machine that has
//! no model yet and no network.
//!
//! A Llama of 150 million random weights in Q4_K_M, as llama.cpp's quantizer would make it of
//! this shape. Arithmetic does not care what a weight says, so its speed is real; its text is
//! noise. It is the same to the byte on every machine, so that machines can be compared by it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use twospeed_gguf::{Model, WriteError};

use crate::display::shown_path;
use crate::file_type::FileType;
use crate::shape::LlamaShape;
use crate::synthetic::{Synthetic, SyntheticError};

/// What its header calls it.
pub const NAME: &str = "Twospeed built-in 150M (random weights)";

/// Fingerprint of its content ([`twospeed_gguf::fingerprint`]). A change of the recipe changes
/// it, and then the file is made anew where an older one lies.
pub const FINGERPRINT: &str = "28834c213963f26b36353e244b22a3e61721e9bfccf9e3f19fbff33e7712ff02";

/// Size of the file.
pub const BYTES: u64 = 95_081_120;

/// All widths are multiples of 256, so that no tensor falls back to a type with smaller blocks.
pub const SHAPE: LlamaShape = LlamaShape {
    width: 768,
    layers: 16,
    heads: 12,
    kv_heads: 4,
    feed_forward: 2048,
    vocabulary: 32_000,
    context: 8192,
};

const SEED: u64 = 2;

const FILE: &str = "twospeed-builtin-150m-Q4_K_M.gguf";

/// Why there is no built-in model.
#[derive(Debug, thiserror::Error)]
pub enum BuiltinError {
    /// The folder or the file cannot be written.
    #[error(
        "The built-in model cannot be written to {}: {}. It needs {} MB there; free some space or choose another data folder (--data-dir).",
        shown_path(.folder), .source, BYTES / 1_000_000
    )]
    Write {
        /// Where it should lie.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The caller wanted no more of it.
    #[error("Making the built-in model was stopped.")]
    Stopped,
}

/// Where the built-in model lies below a data folder, whether it has been made or not.
pub fn path(data_folder: &Path) -> PathBuf {
    data_folder.join("models").join(FILE)
}

/// What its header says, whether it has been made or not.
#[must_use]
pub fn model(data_folder: &Path) -> Option<Model> {
    let path = path(data_folder);
    let header = recipe().header().ok()?;
    let mut model = twospeed_gguf::read_from(&header[..], FILE, BYTES).ok()?;
    model.path = path;
    Some(model)
}

/// Makes sure that the built-in model lies below `data_folder`, and says where.
///
/// A file that is there and sound is left alone: its header, its size and samples of its content
/// are checked, which takes some milliseconds. Anything else in its place is replaced, by a file
/// that appears whole or not at all. Processes that come at the same time wait for each other.
///
/// `told` hears the bytes made and to make, and ends it by answering false; it hears nothing where
/// nothing is to be made. Blocks for a second or a few.
pub fn ensure(
    data_folder: &Path,
    told: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<PathBuf, BuiltinError> {
    let path = path(data_folder);
    if is_sound(&path) {
        return Ok(path);
    }
    let folder = data_folder.join("models");
    let failed = |source| BuiltinError::Write {
        folder: folder.clone(),
        source,
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let lock = File::create(folder.join(format!("{FILE}.lock"))).map_err(failed)?;
    // Where a file system has no locks, two processes at worst write the same bytes twice.
    let _ = lock.lock();
    if is_sound(&path) {
        return Ok(path);
    }
    let unfinished = folder.join(format!("{FILE}.part"));
    let made = write(&unfinished, told).and_then(|()| {
        fs::rename(&unfinished, &path).map_err(failed)?;
        crate::os::sync_folder(&folder).map_err(failed)
    });
    if made.is_err() {
        // The failure is what the person has to know; a rest is overwritten next time.
        let _ = fs::remove_file(&unfinished);
    }
    made.map(|()| path)
}

/// Whether the file is the built-in model of this recipe.
fn is_sound(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() == BYTES)
        && twospeed_gguf::read(path)
            .and_then(|model| twospeed_gguf::fingerprint(&model))
            .is_ok_and(|fingerprint| fingerprint == FINGERPRINT)
}

fn write(path: &Path, told: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), BuiltinError> {
    let failed = |source| BuiltinError::Write {
        folder: path.parent().unwrap_or(path).to_owned(),
        source,
    };
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    recipe()
        .write(&mut file, told)
        .map_err(|error| match error {
            SyntheticError::Stopped => BuiltinError::Stopped,
            SyntheticError::Write(WriteError::Io(source)) => failed(source),
            SyntheticError::Write(error) => failed(io::Error::other(error)),
        })?;
    file.flush()
        .and_then(|()| file.get_ref().sync_all())
        .map_err(failed)
}

/// What the built-in model is made of.
fn recipe() -> Synthetic {
    SHAPE.model(NAME, FileType::Q4_K_M, SEED)
}
