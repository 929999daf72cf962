//! Random tokens for tests: the same seed gives the same tokens.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A token of a vocabulary of `n_vocab` entries (at least 1).
    pub fn token(&mut self, n_vocab: u32) -> i32 {
        // Multiplying and taking the high half spreads evenly without a division's bias.
        ((u128::from(self.next()) * u128::from(n_vocab)) >> 64) as i32
    }

    /// That many of them.
    pub fn tokens(&mut self, n_vocab: u32, count: u32) -> Vec<i32> {
        (0..count).map(|_| self.token(n_vocab)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_fill_the_vocabulary_and_never_leave_it() {
        let mut random = Random::new(7);
        let mut seen = [false; 32];
        for _ in 0..2_000 {
            seen[usize::try_from(random.token(32)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 32]);
    }

    #[test]
    fn a_seed_repeats_its_tokens() {
        let tokens = |seed| -> Vec<i32> { Random::new(seed).tokens(49_152, 50) };
        assert_eq!(tokens(1), tokens(1));
        assert_ne!(tokens(1), tokens(2));
    }
}
