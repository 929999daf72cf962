//! The base model, loaded beside the one that is judged.

use twospeed_engine::Settings;
use twospeed_engine::protocol::{FailureCode, Load, PageCache};
use twospeed_engine::settings::ModelPath;

use crate::failure::Stopped;
use crate::foresee::gib;
use crate::load::{self, LoadedModel};
use crate::serve::Worker;
use crate::vocabulary::Vocabulary;
use crate::{files, os};

/// Loads the base model for `judged`. `rows` is how many tokens' logits of each are held at once.
pub fn load(
    worker: &mut Worker,
    judged: &LoadedModel,
    path: &ModelPath,
    settings: &Settings,
    rows: usize,
    request: u64,
) -> Result<LoadedModel, Stopped> {
    check_room(worker, judged, path, rows)?;
    let load = Load {
        model: path.clone(),
        settings: settings.clone(),
        page_cache: PageCache::AsIs,
    };
    let (base, _) = load::read(worker, load, request)?;
    load::check_writes(&base, settings)?;
    load::check_reads(&base)?;
    check_vocabulary(judged, &base)?;
    Ok(base)
}

/// Refuses what cannot fit. This is the least it takes: what the engine adds (its caches, weights in
/// another order) is foreseen with each context.
fn check_room(
    worker: &Worker,
    judged: &LoadedModel,
    path: &ModelPath,
    rows: usize,
) -> Result<(), Stopped> {
    let files = files::parts(&worker.resolve(&path.0));
    files::check(&files)?;
    let Some(free) = os::memory_available() else {
        return Ok(());
    };
    // A file that was taken away since has no size; loading says so.
    let weights: u64 = files
        .iter()
        .filter_map(|file| Some(std::fs::metadata(file).ok()?.len()))
        .sum();
    let row = u64::from(judged.model.vocabulary().len()) * size_of::<f32>() as u64;
    let need = weights + 2 * rows as u64 * row;
    if need <= free {
        return Ok(());
    }
    Err(Stopped::because(
        FailureCode::ContextRefused,
        format!(
            "To compare {} with {} needs at least {} of memory and {} is free: choose a smaller base model, or none.",
            judged.name(),
            path.0.display(),
            gib(need),
            gib(free),
        ),
    ))
}

/// Refuses a model that takes other tokens for the same: to compare their predictions means nothing.
fn check_vocabulary(judged: &LoadedModel, base: &LoadedModel) -> Result<(), Stopped> {
    let (own, its) = (judged.model.vocabulary(), base.model.vocabulary());
    let difference = if own.len() != its.len() {
        format!("{} tokens, not {}", its.len(), own.len())
    } else if let Some(token) = first_difference(own, its) {
        format!("another token {token}")
    } else {
        return Ok(());
    };
    Err(Stopped::because(
        FailureCode::NotAble,
        format!(
            "{} cannot be the base of {}: its vocabulary has {difference}. Choose a file of the same model.",
            base.name(),
            judged.name(),
        ),
    ))
}

fn first_difference(own: Vocabulary<'_>, its: Vocabulary<'_>) -> Option<i32> {
    (0..own.len() as i32).find(|token| own.entry(*token) != its.entry(*token))
}
