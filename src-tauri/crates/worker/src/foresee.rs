//! Refusing a context that cannot fit, before the kernel ends the process over it.
//!
//! Linux grants more memory than there is and kills who uses it, so the engine's own allocation
//! does not fail where it should.

use std::rc::Rc;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::FailureCode;

use crate::context::Context;
use crate::failure::Stopped;
use crate::load::LoadedModel;
use crate::model::Model;
use crate::model_params::ModelParams;
use crate::{breakdown, log, os};

/// What llama.cpp remembers of each token beside its K and V (`llama-kv-cells.h`): 52 bytes, and a
/// node in each of two search trees once the token is there. Even `no_alloc` allocates it.
const CELL: u64 = 150;

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
        return Err(refused(loaded, params.n_ctx, cells, free));
    }
    match needed(loaded, params, request) {
        Some(buffers) if buffers + cells > free => {
            Err(refused(loaded, params.n_ctx, buffers + cells, free))
        }
        _ => Ok(()),
    }
}

fn refused(loaded: &LoadedModel, n_ctx: u32, need: u64, free: u64) -> Stopped {
    Stopped::because(
        FailureCode::ContextRefused,
        format!(
            "A context of {n_ctx} tokens for {} needs at least {} of memory and {} is free: choose a shorter context, fewer tokens a micro-batch, or a smaller cache type.",
            loaded.name(),
            gib(need),
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

/// Bytes of the machine's own memory that the engine would allocate; `None` when it does not say.
fn needed(loaded: &LoadedModel, params: &sys::llama_context_params, request: u64) -> Option<u64> {
    let model_params = ModelParams::new(&loaded.settings).ok()?;
    let path = os::engine_path(loaded.path.as_os_str())?;
    let mut raw = model_params.raw();
    raw.no_alloc = true;
    // The engine refuses to map a file whose weights it does not load.
    raw.load_mode = sys::LLAMA_LOAD_MODE_NONE;
    let (parts, _) = log::capture(|| {
        // SAFETY: `model_params` lives until the model is loaded.
        let model = Rc::new(unsafe { Model::load(&path, raw) }?);
        let context = Context::new(&model, *params, None, request)?;
        Some(breakdown::of(&context))
    });
    let host = parts?.into_iter().filter(|part| part.host);
    Some(host.map(|part| part.context + part.compute).sum())
}

/// Bytes in words.
pub fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
