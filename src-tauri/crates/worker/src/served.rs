//! A context with what it remembers, for a request that begins as the one before did.

use llama_cpp_sys_2 as sys;
use twospeed_engine::Settings;

use crate::context::{Context, DecodeError};
use crate::sampler::Sampler;

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

    /// How many tokens this prompt shares with those in the cache, from its first one on.
    pub fn shares(&self, prompt: &[sys::llama_token]) -> usize {
        self.remembered
            .iter()
            .zip(prompt)
            .take_while(|(cached, wanted)| cached == wanted)
            .count()
    }

    /// Keeps what the cache holds of this prompt, forgets the rest, and returns how many tokens it
    /// kept. The last token of a prompt is always computed: its logits are needed.
    ///
    /// Where the memory cannot drop a tail (recurrent state) or has lost what lies before it (a
    /// sliding window), everything is forgotten, and 0 is the honest number.
    pub fn reuse(&mut self, prompt: &[sys::llama_token]) -> usize {
        let keep = self.shares(prompt).min(prompt.len().saturating_sub(1));
        let goes_back = keep < self.remembered.len();
        if keep == 0
            || (goes_back
                && !(self.context.forget_from(keep as i32) && self.holds_window_before(keep)))
        {
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

    /// Computes the rest of a prompt, batch by batch, and waits for it.
    pub fn prefill(&mut self, tokens: &[sys::llama_token]) -> Result<(), DecodeError> {
        let n_batch = self.context.n_batch().min(self.settings.n_batch as usize);
        for batch in tokens.chunks(n_batch) {
            self.decode(batch)?;
        }
        self.context.wait();
        Ok(())
    }

    /// Chooses the token that follows the last one decoded.
    pub fn sample(&mut self, sampler: &mut Sampler) -> Result<sys::llama_token, DecodeError> {
        let logits = self.context.logits().unwrap_or_default();
        sampler.next(logits).ok_or(DecodeError::Failed(-1))
    }

    /// Decodes tokens after those it remembers, and does not wait for the result.
    pub fn decode(&mut self, tokens: &[sys::llama_token]) -> Result<(), DecodeError> {
        self.context.decode(tokens, self.remembered.len() as i32)?;
        self.remembered.extend_from_slice(tokens);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::context_params;
    use crate::testing::tiny_model;
    use crate::threads::ThreadPool;

    fn served(name: &str, bytes: u64, n_ctx: u32) -> Served {
        let settings = Settings {
            n_threads: 1,
            ..Settings::default()
        };
        let model = tiny_model(name, bytes);
        let params = context_params(&settings, n_ctx.into(), false).unwrap();
        let threads = ThreadPool::new(&settings, None).unwrap();
        let context = Context::new(&model, params, Some(threads), u64::MAX - 1).unwrap();
        Served::new(context, settings)
    }

    fn tokens(count: i32) -> Vec<i32> {
        (0..count).map(|n| n * 7 % 128).collect()
    }

    fn decode(served: &mut Served, tokens: &[i32]) {
        for batch in tokens.chunks(512) {
            served.decode(batch).unwrap();
        }
        served.context().wait();
    }

    #[test]
    fn a_repeated_prompt_is_reused_but_for_its_last_token() {
        let mut served = served("llama-dense-Q8_0", 1_299_360, 1024);
        let prompt = tokens(512);
        assert_eq!(served.reuse(&prompt), 0, "nothing is remembered yet");
        decode(&mut served, &prompt);
        assert_eq!(served.reuse(&prompt), 511);
        assert_eq!(served.remembered(), 511);
    }

    #[test]
    fn a_changed_tail_is_reused_up_to_the_change() {
        let mut served = served("llama-dense-Q8_0", 1_299_360, 1024);
        let mut prompt = tokens(100);
        decode(&mut served, &prompt);
        prompt[60] += 1;
        assert_eq!(served.reuse(&prompt), 60);
        decode(&mut served, &prompt[60..]);
        assert_eq!(served.reuse(&prompt), 99);
        prompt[0] += 1;
        assert_eq!(served.reuse(&prompt), 0, "nothing in common");
    }

    #[test]
    fn recurrent_state_cannot_go_back_and_says_so() {
        let mut served = served("mamba-dense-Q8_0", 1_767_808, 1024);
        let prompt = tokens(100);
        decode(&mut served, &prompt[..60]);
        assert_eq!(served.reuse(&prompt), 60, "going on needs no going back");
        decode(&mut served, &prompt[60..]);
        assert_eq!(served.reuse(&prompt), 0);
        assert_eq!(served.remembered(), 0);
    }

    #[test]
    fn a_window_that_slid_past_is_computed_again() {
        let mut served = served("gemma3-dense-Q8_0", 1_295_232, 4096);
        let window = served.context().model().n_swa() as usize;
        let prompt = tokens(3000);
        decode(&mut served, &prompt);
        let mut near = prompt.clone();
        near.truncate(2990);
        assert_eq!(served.reuse(&near), 2989, "the window before it is there");
        decode(&mut served, &near[2989..]);
        let far = &prompt[..window + 10];
        assert_eq!(
            served.reuse(far),
            0,
            "its window of {window} tokens is gone"
        );
    }
}
