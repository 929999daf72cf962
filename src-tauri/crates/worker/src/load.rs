//! [`Request::Load`]: a model file becomes a model in memory.
//!
//! [`Request::Load`]: twospeed_engine::protocol::Request::Load

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use twospeed_engine::Settings;
use twospeed_engine::protocol::{Ability, Event, FailureCode, Load, Loaded, PageCache};

use crate::context::DecodeError;
use crate::failure::Stopped;
use crate::log::{self, Line};
use crate::model::Model;
use crate::model_params::ModelParams;
use crate::serve::Worker;
use crate::settings;
use crate::wire::{self, Wire};
use crate::{files, os};

/// The loaded model and what is known of its loading.
pub struct LoadedModel {
    /// The model.
    pub model: Rc<Model>,
    /// Its first file.
    pub path: PathBuf,
    /// The settings it was loaded with.
    pub settings: Settings,
    /// What the engine logged meanwhile.
    pub lines: Vec<Line>,
}

impl LoadedModel {
    /// The file's name for sentences.
    pub fn name(&self) -> String {
        name(&self.path)
    }

    /// That this model is of the wrong kind for what was asked; `why` goes on from its name.
    pub fn not_able(&self, why: &str) -> Stopped {
        Stopped::because(FailureCode::NotAble, format!("{} {why}.", self.name()))
    }

    /// Why `what` (a test, an answer) came to no end on this model.
    pub fn stopped(&self, what: &str, error: DecodeError) -> Stopped {
        match error {
            DecodeError::Cancelled => Stopped::Cancelled,
            DecodeError::NoRoom => Stopped::by_engine(
                FailureCode::ContextTooSmall,
                format!(
                    "The context is too small for {what} on {}: the engine found no room for the next tokens.",
                    self.name()
                ),
            ),
            DecodeError::Failed(number) => Stopped::by_engine(
                FailureCode::DecodeFailed,
                format!(
                    "The engine could not compute {what} on {} (its error {number}).",
                    self.name()
                ),
            ),
        }
    }
}

/// A file's name for sentences.
pub fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Loads a model in the place of the one before.
pub fn load(worker: &mut Worker, load: Load, request: u64) -> Result<Event, Stopped> {
    worker.unload();
    let (model, loaded) = read(worker, load, request)?;
    worker.keep(model);
    Ok(Event::Loaded(loaded))
}

/// Reads a model, beside what is loaded. The clock covers what the engine does, from asking for the
/// model to its return; what is asked of the page cache happens before.
pub fn read(
    worker: &mut Worker,
    load: Load,
    request: u64,
) -> Result<(LoadedModel, Loaded), Stopped> {
    let files = files::parts(&worker.resolve(&load.model.0));
    files::check(&files)?;
    let first = files
        .first()
        .expect("BUG: a model has at least one file")
        .clone();
    let path = os::engine_path(first.as_os_str()).ok_or_else(|| {
        Stopped::because(
            FailureCode::FileUnreadable,
            format!(
                "{} has a name the engine cannot open: rename it.",
                first.display()
            ),
        )
    })?;
    worker.set_numa(&load.settings)?;
    let params = ModelParams::new(&load.settings)?;

    let page_cache = prepare_page_cache(&files, load.page_cache, request)?;
    let resident_before = os::resident_share(&files);

    let mut progress = Progress {
        wire: &mut worker.wire,
        request,
    };
    let mut raw = params.raw();
    raw.progress_callback = Some(report);
    raw.progress_callback_user_data = (&raw mut progress).cast();
    let start = Instant::now();
    // SAFETY: `params` and `progress` live until the model is loaded.
    let (model, lines) = log::capture(|| unsafe { Model::load(&path, raw) });
    let load_ns = start.elapsed().as_nanos() as u64;

    if wire::is_cancelled(request) {
        return Err(Stopped::Cancelled);
    }
    let model = model.ok_or_else(|| refused(&first, &lines))?;
    let loaded = Loaded {
        load_ns,
        resident_before,
        page_cache,
        model_type: model.description(),
        model_size: model.size(),
        model_n_params: model.n_params(),
        n_layer: model.n_layer(),
        n_ctx_train: model.n_ctx_train(),
        n_vocab: model.vocabulary().len(),
        ability: model.ability(),
        recurrent: model.is_recurrent(),
    };
    let model = LoadedModel {
        model: Rc::new(model),
        path: first,
        settings: load.settings,
        lines,
    };
    Ok((model, loaded))
}

/// That the engine refuses a model, with the reason that its log gives.
pub fn refused(path: &Path, lines: &[Line]) -> Stopped {
    let why = log::first_error(lines).unwrap_or_else(|| "it gave no reason".into());
    let why = why.trim_end_matches('.');
    Stopped::by_engine(
        FailureCode::ModelRefused,
        format!("The engine refuses {}: {why}.", name(path)),
    )
}

/// The same of a context of so many tokens for the model of this name.
pub fn context_refused(name: &str, n_ctx: u32, lines: &[Line]) -> Stopped {
    let why = log::first_error(lines).unwrap_or_else(|| "it gave no reason".into());
    let why = why.trim_end_matches('.');
    Stopped::by_engine(
        FailureCode::ContextRefused,
        format!("The engine refuses a context of {n_ctx} tokens for {name}: {why}."),
    )
}

/// Does what is asked about the page cache, and says what was done: a system that cannot drop a
/// file's pages leaves them as they are.
fn prepare_page_cache(
    files: &[PathBuf],
    wanted: PageCache,
    request: u64,
) -> Result<PageCache, Stopped> {
    match wanted {
        PageCache::AsIs => Ok(PageCache::AsIs),
        PageCache::Drop => Ok(match os::drop_page_cache(files) {
            Ok(()) => PageCache::Drop,
            Err(_) => PageCache::AsIs,
        }),
        PageCache::Warm => {
            os::fill_page_cache(files, || wire::is_cancelled(request)).map_err(|error| {
                Stopped::because(
                    FailureCode::FileUnreadable,
                    format!("The file cannot be read to its end: {error}."),
                )
            })?;
            if wire::is_cancelled(request) {
                return Err(Stopped::Cancelled);
            }
            Ok(PageCache::Warm)
        }
    }
}

struct Progress<'a> {
    wire: &'a mut Wire,
    request: u64,
}

/// Called by the engine before each tensor: false stops it.
unsafe extern "C" fn report(fraction: f32, progress: *mut c_void) -> bool {
    // No panic may cross into C++; one stops the loading.
    std::panic::catch_unwind(|| {
        // SAFETY: the struct that `load` keeps alive and touches only through here while it loads.
        let progress = unsafe { &mut *progress.cast::<Progress<'_>>() };
        progress.wire.say_progress(fraction.clamp(0.0, 1.0));
        !wire::is_cancelled(progress.request)
    })
    .unwrap_or(false)
}

/// Whether a loaded model serves a request with these settings; else a sentence.
pub fn check_same_load(loaded: &LoadedModel, settings: &Settings) -> Result<(), Stopped> {
    if loaded.settings.same_load(settings) {
        return Ok(());
    }
    Err(Stopped::bad_setting(format!(
        "{} was loaded with other settings than this test asks for: load it again first.",
        loaded.name()
    )))
}

/// Refuses what does not write an answer token by token.
pub fn check_writes(loaded: &LoadedModel, settings: &Settings) -> Result<(), Stopped> {
    let why = match loaded.model.ability() {
        Ability::Embeds => "is an embedding model: it reads text and writes none",
        Ability::Diffuses => "is a diffusion model: it does not write token by token",
        Ability::Generates if loaded.model.has_encoder() => {
            "is an encoder-decoder model: it does not go on with a prompt"
        }
        Ability::Generates if settings.embeddings => {
            return Err(Stopped::bad_setting(
                "embeddings is on: the engine then gives vectors and no text; switch it off.",
            ));
        }
        Ability::Generates => return Ok(()),
    };
    Err(loaded.not_able(why))
}

/// Refuses what cannot turn text into tokens.
pub fn check_reads(loaded: &LoadedModel) -> Result<(), Stopped> {
    if loaded.model.vocabulary().has_tokenizer() {
        return Ok(());
    }
    Err(loaded.not_able("has no tokenizer, so it cannot read a prompt"))
}

/// Refuses what has no tokens to measure with.
pub fn check_vocabulary(loaded: &LoadedModel) -> Result<(), Stopped> {
    if loaded.model.vocabulary().len() > 0 {
        return Ok(());
    }
    Err(loaded.not_able("has no vocabulary, so there are no tokens to measure with"))
}

/// Refuses more tokens than the model has positions for.
pub fn check_positions(loaded: &LoadedModel, tokens: u64) -> Result<(), Stopped> {
    match loaded.model.position_limit() {
        Some(limit) if tokens > u64::from(limit) => Err(Stopped::because(
            FailureCode::ContextRefused,
            format!(
                "{} has positions for {limit} tokens and {tokens} were asked for: ask for fewer.",
                loaded.name()
            ),
        )),
        _ => Ok(()),
    }
}

/// The strategy may be set once in the life of a process; asked for again it must be the same.
pub fn set_numa(already: &mut Option<String>, settings: &Settings) -> Result<(), Stopped> {
    match already {
        Some(before) if *before == settings.numa => Ok(()),
        Some(before) => Err(Stopped::bad_setting(format!(
            "numa is \"{}\" after \"{before}\": the engine takes one strategy in its life, start it anew.",
            settings.numa
        ))),
        None => {
            let strategy = settings::numa(&settings.numa)?;
            // SAFETY: the backends are loaded.
            unsafe { llama_cpp_sys_2::llama_numa_init(strategy) };
            *already = Some(settings.numa.clone());
            Ok(())
        }
    }
}
