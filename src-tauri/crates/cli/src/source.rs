//! A model that was named: a file here, the built-in one, or one elsewhere whose header is enough.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use twospeed_gguf::Model;
use twospeed_library::ModelHeader;
use twospeed_library::display::shown;
use twospeed_library::download::{GoOn, Hub, Place, RemoteError, remote_header};

use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// A copied header's file.
const COPY: &str = "header.gguf";

/// Pause before the second try.
const PAUSE: Duration = Duration::from_millis(500);

/// A model's file that can be read: its own, or a copy of the header of one elsewhere.
pub struct Found {
    /// What was named.
    pub path: PathBuf,
    /// What to call it: of a set its first part, of a model elsewhere its address.
    pub called: PathBuf,
    /// What it says.
    pub model: Model,
    // The copy goes with it.
    _copy: Option<TempDir>,
}

/// The model that was named, as [`header`] takes names, of whatever state its file is in.
pub fn model(context: &Context, named: &Path) -> Result<Found, Failure> {
    let Some(place) = elsewhere(named)? else {
        let path = context.model_path(named)?;
        let model = twospeed_gguf::read(&path).map_err(Failure::of)?;
        return Ok(Found {
            called: model.path.clone(),
            model,
            path,
            _copy: None,
        });
    };
    let header = remote(&place)?;
    let copy = tempfile::Builder::new()
        .prefix("twospeed-header-")
        .tempdir()
        .map_err(Failure::of)?;
    let path = copy.path().join(COPY);
    std::fs::write(&path, header.bytes()).map_err(Failure::of)?;
    Ok(Found {
        model: twospeed_gguf::read(&path).map_err(Failure::of)?,
        // Not the copy's place, which is gone with it.
        path: named.to_owned(),
        called: named.to_owned(),
        _copy: Some(copy),
    })
}

/// The header of the model that was named: by a path, as `builtin`, by an address
/// (`https://..`), or as `OWNER/NAME:FILE` on Hugging Face. What is there under the name is a
/// path, whatever else it could be.
pub fn header(context: &Context, named: &Path) -> Result<ModelHeader, Failure> {
    match elsewhere(named)? {
        Some(place) => remote(&place),
        None => ModelHeader::open(&context.model_path(named)?)
            .map_err(|error| Failure::Failed(shown(&error.to_string()))),
    }
}

fn elsewhere(named: &Path) -> Result<Option<Place>, Failure> {
    match named.to_str().filter(|_| !named.exists()) {
        Some(text) => Place::named(text).map_err(failure),
        None => Ok(None),
    }
}

fn remote(place: &Place) -> Result<ModelHeader, Failure> {
    let hub = Hub::from_environment(|name| std::env::var_os(name)).map_err(RemoteError::from);
    say("Reading the header of the model, nothing else of it");
    // Nothing is kept yet, so an interrupt may end the process here.
    hub.and_then(|hub| remote_header(&hub, place, PAUSE, &|| GoOn::Yes))
        .map_err(failure)
}

fn failure(error: RemoteError) -> Failure {
    let sentence = shown(&error.to_string());
    match error.is_usage() {
        true => Failure::Usage(sentence),
        false => Failure::Failed(sentence),
    }
}
