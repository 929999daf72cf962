//! The cache filled to a depth before a test, kept and restored as llama-bench does.

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::Phase;
use twospeed_engine::{FlashAttention, Settings};

use crate::context::{Context, DecodeError};
use crate::os;
use crate::random::Random;

/// Seed of the tokens that fill a depth: the same at every depth, so that a deeper one continues a
/// shallower one.
const SEED: u64 = 0x6465_7074;

/// What must be equal for a state to fit: it is laid out by these.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    type_k: String,
    type_v: String,
    flash_attn: FlashAttention,
    no_kv_offload: bool,
    embeddings: bool,
}

impl Shape {
    fn of(settings: &Settings) -> Self {
        Self {
            type_k: settings.type_k.clone(),
            type_v: settings.type_v.clone(),
            flash_attn: settings.flash_attn,
            no_kv_offload: settings.no_kv_offload,
            embeddings: settings.embeddings,
        }
    }
}

/// The state of the loaded model's cache at the depth filled last.
#[derive(Debug, Default)]
pub struct DepthState {
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    shape: Shape,
    depth: u32,
    bytes: Vec<u8>,
}

impl DepthState {
    /// Fills an empty context to `depth` tokens: restored where that depth was filled before,
    /// continued from a shallower one, or computed from the start. `say` is told which before it
    /// takes time.
    pub fn fill(
        &mut self,
        context: &mut Context,
        settings: &Settings,
        depth: u32,
        mut say: impl FnMut(Phase),
    ) -> Result<(), DecodeError> {
        let shape = Shape::of(settings);
        let from = self.restore(context, &shape, depth);
        say(Phase::Depth {
            restored: from == depth,
        });
        if from == depth {
            return Ok(());
        }
        decode_from(context, settings, from, depth)?;
        self.keep(context, shape, depth);
        Ok(())
    }

    /// Restores the kept state where it serves this depth, and returns how deep it reaches.
    fn restore(&mut self, context: &mut Context, shape: &Shape, depth: u32) -> u32 {
        let Some(kept) = &self.kept else { return 0 };
        if kept.shape != *shape || kept.depth > depth {
            return 0;
        }
        if context.restore(&kept.bytes) {
            return kept.depth;
        }
        // What the engine does not take back is no use; whatever it read of it is forgotten.
        context.forget();
        self.kept = None;
        0
    }

    /// Keeps the state, unless the copy would take most of the memory that is left.
    fn keep(&mut self, context: &mut Context, shape: Shape, depth: u32) {
        self.kept = None;
        let size = context.state_size();
        let scarce = os::memory_available().is_some_and(|free| size as u64 > free / 2);
        let mut bytes = Vec::new();
        if scarce || bytes.try_reserve_exact(size).is_err() {
            return;
        }
        bytes.resize(size, 0);
        if context.save(&mut bytes) {
            self.kept = Some(Kept {
                shape,
                depth,
                bytes,
            });
        }
    }
}

fn decode_from(
    context: &mut Context,
    settings: &Settings,
    from: u32,
    depth: u32,
) -> Result<(), DecodeError> {
    let tokens = tokens(context, depth);
    let batch = context.n_batch().min(settings.n_batch as usize);
    let mut position = from as usize;
    while position < tokens.len() {
        let end = (position + batch).min(tokens.len());
        context.decode(&tokens[position..end], position as i32)?;
        position = end;
    }
    context.wait();
    Ok(())
}

fn tokens(context: &Context, depth: u32) -> Vec<sys::llama_token> {
    let vocabulary = context.model().vocabulary();
    let mut tokens = Random::new(SEED).tokens(vocabulary.len(), depth);
    if let (Some(first), Some(token)) = (tokens.first_mut(), vocabulary.first_token()) {
        *first = token;
    }
    tokens
}
