//! Choosing the next token of an answer.

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

/// The likeliest token, or one by chance at a temperature.
#[derive(Debug)]
pub struct Sampler {
    chain: LlamaSampler,
    candidates: LlamaTokenDataArray,
}

impl Sampler {
    /// Temperature 0 is greedy; else the same seed makes the same choices.
    pub fn new(temperature: f32, seed: u64) -> Self {
        let chain = if temperature == 0.0 {
            LlamaSampler::greedy()
        } else {
            // The engine's seeds have 32 bits.
            let seed = (seed ^ (seed >> 32)) as u32;
            LlamaSampler::chain_simple([LlamaSampler::temp(temperature), LlamaSampler::dist(seed)])
        };
        Self {
            chain,
            candidates: LlamaTokenDataArray::new(Vec::new(), false),
        }
    }

    /// Chooses by the logits of every token of the vocabulary; `None` when there are none.
    pub fn next(&mut self, logits: &[f32]) -> Option<i32> {
        self.candidates.data.clear();
        self.candidates.data.extend(
            (0..)
                .zip(logits)
                .map(|(id, logit)| LlamaTokenData::new(LlamaToken(id), *logit, 0.0)),
        );
        self.candidates.sorted = false;
        self.candidates.selected = None;
        if self.candidates.data.is_empty() {
            return None;
        }
        self.candidates.apply_sampler(&mut self.chain);
        let token = self.candidates.selected_token()?;
        self.chain.accept(token);
        Some(token.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_likeliest() {
        let mut sampler = Sampler::new(0.0, 1);
        assert_eq!(sampler.next(&[0.1, 3.0, -2.0]), Some(1));
        assert_eq!(sampler.next(&[9.0, 3.0, -2.0]), Some(0));
        assert_eq!(sampler.next(&[]), None);
    }

    #[test]
    fn a_seed_repeats_its_choices_and_chance_reaches_every_token() {
        let choices = |seed| -> Vec<i32> {
            let mut sampler = Sampler::new(1.0, seed);
            (0..200)
                .map(|_| sampler.next(&[1.0, 1.0, 1.0]).unwrap())
                .collect()
        };
        assert_eq!(choices(7), choices(7));
        assert_ne!(choices(7), choices(8));
        assert!((0..3).all(|token| choices(7).contains(&token)));
    }
}
