//! Refusing a context that cannot fit, before the kernel ends the process over it, and asking the
//! engine what it would allocate without its allocating it.
//!
//! Linux grants more memory than there is and kills who uses it, so the engine's own allocation
//! does not fail where it should.

use std::ffi::CStr;
use std::rc::Rc;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::{BufferUse, FailureCode};

use crate::breakdown::Part;
use crate::context::Context;
use crate::failure::Stopped;
use crate::load::LoadedModel;
use crate::model::Model;
use crate::model_params::ModelParams;
use crate::placement::Told;
use crate::settings::CONTEXT_STEP;
use crate::{breakdown, log, os};

/// What llama.cpp remembers of each token beside its K and V (`llama-kv-cells.h`): 52 bytes, and a
/// node in each of two search trees once the token is there. Even `no_alloc` allocates it.
const CELL: u64 = 150;

/// Caches of one model that have a cell for every token, at most (`llama-kv-cache-dsa-iswa.cpp`).
const CACHES: u64 = 3;

/// Refuses when the context needs more than is free.
///
/// A generous bound decides at once for contexts that plainly fit, the cells alone for those that
/// plainly do not. Between them the engine is asked: it goes through making the context without
/// allocating its buffers (`no_alloc`).
pub fn check(
    loaded: &LoadedModel,
    params: &sys::llama_context_params,
    request: u64,
) -> Result<(), Stopped> {
    let Some(free) = os::memory_available() else {
        return Ok(());
    };
    if bound(&loaded.model, params) < u128::from(free) {
        return Ok(());
    }
    let cells = if loaded.model.keeps_cells() {
        u64::from(params.n_ctx) * CELL
    } else {
        0
    };
    if cells > free {
        return Err(refused(&loaded.name(), params.n_ctx, cells.into(), free));
    }
    match needed(loaded, params, request) {
        Some(buffers) if buffers + cells > free => Err(refused(
            &loaded.name(),
            params.n_ctx,
            (buffers + cells).into(),
            free,
        )),
        _ => Ok(()),
    }
}

/// Refuses a context whose mere counting would take more than half of what is free: cells, states
/// and logits are allocated even so.
pub fn check_bare(
    name: &str,
    model: &Model,
    params: &sys::llama_context_params,
) -> Result<(), Stopped> {
    let Some(free) = os::memory_available() else {
        return Ok(());
    };
    let cells = if model.keeps_cells() {
        u128::from(params.n_ctx) * u128::from(CELL * CACHES)
    } else {
        0
    };
    let states = if model.is_recurrent() {
        states_bound(model) * u128::from(params.n_seq_max.max(1))
    } else {
        0
    };
    let taken = cells + states + u128::from(model.output_bytes(params));
    if taken > u128::from(free / 2) {
        return Err(refused(name, params.n_ctx, taken, free));
    }
    Ok(())
}

fn refused(name: &str, n_ctx: u32, need: u128, free: u64) -> Stopped {
    Stopped::because(
        FailureCode::ContextRefused,
        format!(
            "A context of {n_ctx} tokens for {name} needs at least {} of memory and {} is free: choose a shorter context, fewer tokens a micro-batch, or a smaller cache type.",
            gib(u64::try_from(need).unwrap_or(u64::MAX)),
            gib(free),
        ),
    )
}

/// More than any context needs: K and V of twice the model's width in f32 on every layer (a recurrent
/// state takes less than 256 tokens do), logits of a micro-batch, ten of its rows in f32 and its mask.
fn bound(model: &Model, params: &sys::llama_context_params) -> u128 {
    let states = u128::from(params.n_seq_max.max(1)) * 256;
    let n_ctx = u128::from(params.n_ctx) + states;
    let width = u128::from(model.n_embd());
    let tokens = u128::from(params.n_ubatch.min(params.n_batch).max(1));
    let vocabulary = u128::from(model.vocabulary().len());
    let cache = n_ctx * u128::from(model.n_layer()) * 2 * (2 * width) * 4;
    let compute = tokens * (2 * vocabulary + 10 * width + 4 * n_ctx) * 4;
    cache + compute + n_ctx * u128::from(CELL)
}

/// More than the recurrent state of one sequence takes, in bytes: the sum of what each kind of
/// layer keeps (`llama-hparams.cpp`, `n_embd_r` and `n_embd_s`), for every layer.
fn states_bound(model: &Model) -> u128 {
    let architecture = model.meta("general.architecture").unwrap_or_default();
    let key = |name: &str, absent: u128| {
        let value = model.meta(&format!("{architecture}.{name}"));
        let value: u128 = value.and_then(|text| text.parse().ok()).unwrap_or(absent);
        // The engine takes numbers of 32 bits, and a product of three of them fits here.
        value.min(u128::from(u32::MAX))
    };
    let heads = u128::from(model.n_head());
    let embedding = u128::from(model.n_embd());
    let (conv, inner, size) = (
        key("ssm.conv_kernel", 4),
        key("ssm.inner_size", 0),
        key("ssm.state_size", 0),
    );
    let groups = key("ssm.group_count", 0);
    let mamba = (conv * (inner + 2 * groups * size)).saturating_add(size * inner);
    let rwkv = embedding * (key("token_shift_count", 2) + key("wkv.head_size", 0));
    let short = embedding * key("shortconv.l_cache", 0);
    let delta = key("kda.head_dim", 0);
    let delta = heads * delta * (3 * conv + delta);
    let lightning = if architecture == "minimax-01" {
        let head = key("attention.key_length", embedding / heads.max(1));
        head * head * heads
    } else {
        0
    };
    let history = key("ple.conv_kernel", 0)
        .saturating_mul(key("ple.ngram_size", 0))
        .saturating_mul(key("hyper_connection.count", 0))
        .saturating_mul(embedding);
    [mamba, rwkv, short, delta, lightning, history]
        .into_iter()
        .fold(0, u128::saturating_add)
        .saturating_mul(u128::from(model.n_layer()) * 4)
        // A product with the sequences has to fit as well.
        .min(u128::from(u64::MAX))
}

/// Loads what a file says of its model and none of its weights.
///
/// # Safety
/// `params` lives until this returns.
pub unsafe fn load_bare(path: &CStr, params: &ModelParams) -> Option<Model> {
    let mut raw = params.raw();
    raw.no_alloc = true;
    // The engine refuses to map a file whose weights it does not load.
    raw.load_mode = sys::LLAMA_LOAD_MODE_NONE;
    // SAFETY: by this function's contract.
    unsafe { Model::load(path, raw) }
}

/// A loaded model once more, without its weights.
fn bare(loaded: &LoadedModel) -> Option<Rc<Model>> {
    let params = ModelParams::new(&loaded.settings).ok()?;
    let path = os::engine_path(loaded.path.as_os_str())?;
    // SAFETY: `params` lives until the model is loaded.
    let (model, _) = log::capture(|| unsafe { load_bare(&path, &params) });
    model.map(Rc::new)
}

/// Bytes of the machine's own memory that the engine would allocate; `None` when it does not say.
fn needed(loaded: &LoadedModel, params: &sys::llama_context_params, request: u64) -> Option<u64> {
    let parts = parts(&bare(loaded)?, *params, request)?;
    let host = parts.into_iter().filter(|part| part.host);
    Some(host.map(|part| part.context + part.compute).sum())
}

/// What a context of a model without weights would hold; `None` when the engine refuses it.
fn parts(model: &Rc<Model>, params: sys::llama_context_params, request: u64) -> Option<Vec<Part>> {
    let (parts, _) = log::capture(|| {
        let context = Context::new(model, params, None, request)?;
        Some(breakdown::of(&context))
    });
    parts
}

/// The recurrent state of a loaded model's context by device, to the byte; empty when it cannot be
/// found so exactly.
pub fn states_of(
    loaded: &LoadedModel,
    params: &sys::llama_context_params,
    told: &Told,
    request: u64,
) -> Vec<(String, u64)> {
    match bare(loaded) {
        Some(model) => states(&model, params, told, request),
        None => Vec::new(),
    }
}

/// The recurrent state by device, to the byte, of a model without weights; empty when it cannot be
/// found so exactly.
///
/// The engine tells cache and state as one sum. A state does not grow with the context, and every
/// cache is twice as large for twice the cells: so the state is twice what a context takes less
/// what one of twice its length takes. `told` is the log of the context that is asked about; what
/// was found has to agree with it.
pub fn states(
    model: &Rc<Model>,
    params: &sys::llama_context_params,
    told: &Told,
    request: u64,
) -> Vec<(String, u64)> {
    // The smallest contexts will do, but where a cache keeps one row for so many tokens (of 128 at
    // most): there 256 rows are the least.
    [CONTEXT_STEP, 128 * CONTEXT_STEP]
        .into_iter()
        .find_map(|cells| states_by(cells, model, params, told, request))
        .unwrap_or_default()
}

fn states_by(
    cells: u32,
    model: &Rc<Model>,
    params: &sys::llama_context_params,
    told: &Told,
    request: u64,
) -> Option<Vec<(String, u64)>> {
    let with = |cells: u32| {
        let sequences = params.n_seq_max.max(1);
        let parts_of_it = if params.kv_unified { 1 } else { sequences };
        let mut params = *params;
        params.n_ctx = cells.checked_mul(parts_of_it)?;
        // A window has as many cells as a micro-batch has tokens, and no more than there are.
        params.n_batch = cells.max(sequences);
        params.n_ubatch = params.n_batch;
        params.n_outputs_max = sequences;
        parts(model, params, request)
    };
    let (once, twice) = (with(cells)?, with(2 * cells)?);
    let held = |parts: &[Part], device: &str| {
        let of = parts.iter().filter(|part| part.device == device);
        of.map(|part| part.context).sum::<u64>()
    };
    let mut states = Vec::new();
    for device in told.devices(BufferUse::State) {
        let state = (2 * held(&once, device)).checked_sub(held(&twice, device))?;
        if !told.agrees(BufferUse::State, device, state) {
            return None;
        }
        states.push((device.to_owned(), state));
    }
    Some(states)
}

/// Bytes in words.
pub fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
