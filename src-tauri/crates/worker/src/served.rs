//! A context with what it remembers, for a request that begins as the one before did.

use llama_cpp_sys_2 as sys;
use twospeed_engine::Settings;

use crate::context::{Context, DecodeError};

/// A context and the tokens in its cache, in order.
#[derive(Debug)]
pub struct Served {
    context: Context,
    settings: Settings,
    remembered: Vec<sys::llama_token>,
}

impl Served {
    /// A new context, which remembers nothing.
    pub fn new(context: Context, settings: Settings) -> Self {
        Self {
            context,
            settings,
            remembered: Vec::new(),
        }
    }

    /// Whether it can serve a request with these settings that needs room for `n_ctx` tokens.
    pub fn fits(&self, settings: &Settings, n_ctx: u32) -> bool {
        self.settings == *settings && self.context.n_ctx() >= n_ctx
    }

    /// The context.
    pub fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Tokens in the cache.
    pub fn remembered(&self) -> usize {
        self.remembered.len()
    }

    /// Keeps what the cache holds of this prompt, forgets the rest, and returns how many tokens it
    /// kept. The last token of a prompt is always computed: its logits are needed.
    ///
    /// Where the memory cannot drop a tail (recurrent state) or has lost what lies before it (a
    /// sliding window), everything is forgotten, and 0 is the honest number.
    pub fn reuse(&mut self, prompt: &[sys::llama_token]) -> usize {
        let common = self
            .remembered
            .iter()
            .zip(prompt)
            .take_while(|(cached, wanted)| cached == wanted)
            .count();
        let keep = common.min(prompt.len().saturating_sub(1));
        let tail_is_gone = keep == self.remembered.len() || self.context.forget_from(keep as i32);
        if keep == 0 || !tail_is_gone || !self.holds_window_before(keep) {
            return self.start_anew();
        }
        self.remembered.truncate(keep);
        keep
    }

    /// A sliding window keeps little more than itself: going on at `position` needs the window
    /// before it whole, or the engine would compute with holes.
    fn holds_window_before(&self, position: usize) -> bool {
        let window = self.context.model().n_swa() as usize;
        let from = if window == 0 {
            0
        } else {
            position.saturating_sub(window)
        };
        usize::try_from(self.context.first_position()).is_ok_and(|first| first <= from)
    }

    /// Forgets everything.
    pub fn start_anew(&mut self) -> usize {
        self.context.forget();
        self.remembered.clear();
        0
    }

    /// Decodes tokens after those it remembers, and does not wait for the result.
    pub fn decode(&mut self, tokens: &[sys::llama_token]) -> Result<(), DecodeError> {
        self.context.decode(tokens, self.remembered.len() as i32)?;
        self.remembered.extend_from_slice(tokens);
        Ok(())
    }
}
