//! A model that was named: a file here, the built-in one, or one elsewhere whose header is enough.

use std::path::Path;
use std::time::Duration;

use twospeed_library::ModelHeader;
use twospeed_library::display::shown;
use twospeed_library::download::{GoOn, Hub, Place, RemoteError, remote_header};

use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Pause before the second try.
const PAUSE: Duration = Duration::from_millis(500);

/// The header of the model that was named: by a path, as `builtin`, by an address
/// (`https://..`), or as `OWNER/NAME:FILE` on Hugging Face. What is there under the name is a
/// path, whatever else it could be.
pub fn header(context: &Context, named: &Path) -> Result<ModelHeader, Failure> {
    let place = match named.to_str().filter(|_| !named.exists()) {
        Some(text) => Place::named(text).map_err(failure)?,
        None => None,
    };
    let Some(place) = place else {
        let path = context.model_path(named)?;
        return ModelHeader::open(&path)
            .map_err(|error| Failure::Failed(shown(&error.to_string())));
    };
    let hub = Hub::from_environment(|name| std::env::var_os(name)).map_err(RemoteError::from);
    say("Reading the header of the model, nothing else of it");
    // Nothing is kept yet, so an interrupt may end the process here.
    hub.and_then(|hub| remote_header(&hub, &place, PAUSE, &|| GoOn::Yes))
        .map_err(failure)
}

fn failure(error: RemoteError) -> Failure {
    let sentence = shown(&error.to_string());
    match error.is_usage() {
        true => Failure::Usage(sentence),
        false => Failure::Failed(sentence),
    }
}
