//! Whether a context fits, and which would.

use std::fmt;

use crate::cache::{self, Cache, ContextError, ContextSettings};
use crate::shape::Shape;
use crate::units::Bytes;

/// Contexts are judged in steps of this many tokens, as the engine rounds them.
const STEP: u64 = 256;
/// The largest that the engine can be asked for.
const LARGEST: u64 = u32::MAX as u64 / STEP * STEP;

/// What a context allocates for itself at least: cache, recurrent state and output.
///
/// Real memory whatever happens to the weights, which may lie in the page cache and be read again.
/// Working buffers come on top. Errors: [`ContextError`] where the engine refuses the settings.
pub fn context_bytes(shape: &Shape, settings: &ContextSettings) -> Result<Bytes, ContextError> {
    let cache = Cache::of(shape, settings)?;
    let output = cache::output_bytes(shape, settings).unwrap_or(Bytes::ZERO);
    Ok(cache.kv() + cache.state + output)
}

/// The largest context, in tokens, whose [`context_bytes`] are within `budget`.
///
/// `None` where none is. Errors: as [`context_bytes`].
pub fn largest_context(
    shape: &Shape,
    settings: &ContextSettings,
    budget: Bytes,
) -> Result<Option<u64>, ContextError> {
    let fits = |context| {
        let settings = ContextSettings {
            context,
            ..*settings
        };
        Ok(context_bytes(shape, &settings)? <= budget)
    };
    if !fits(STEP)? {
        return Ok(None);
    }
    // What a context takes never falls as it grows: halve the steps between one that fits and one
    // beyond the last.
    let (mut fitting, mut beyond) = (1, LARGEST / STEP + 1);
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle * STEP)? {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    Ok(Some(fitting * STEP))
}

/// A context that cannot fit, with what would. Displayed as one sentence or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotFit {
    /// The context asked for, in tokens.
    pub context: u64,
    /// What it allocates at least.
    pub need: Bytes,
    /// What is free.
    pub free: Bytes,
    /// The largest context whose cache would fit; `None` where none would.
    pub largest_context: Option<u64>,
}

/// Whether a context cannot fit what is free; `None` where it may.
///
/// Errors: as [`context_bytes`].
pub fn cannot_fit(
    shape: &Shape,
    settings: &ContextSettings,
    free: Bytes,
) -> Result<Option<CannotFit>, ContextError> {
    let need = context_bytes(shape, settings)?;
    if need <= free {
        return Ok(None);
    }
    let context = match settings.context {
        0 => shape.training_context.unwrap_or(0),
        tokens => tokens,
    };
    Ok(Some(CannotFit {
        context,
        need,
        free,
        largest_context: largest_context(shape, settings, free)?,
    }))
}

impl fmt::Display for CannotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            context,
            need,
            free,
            largest_context,
        } = self;
        write!(
            f,
            "A context of {context} tokens needs at least {need}; {free} is free. "
        )?;
        match largest_context {
            Some(tokens) => write!(
                f,
                "Take at most {tokens} tokens, or a smaller KV cache type."
            ),
            None => f.write_str(
                "Not even the smallest context fits; free memory, or take a smaller model.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv_type::KvType;
    use crate::testing;

    /// 2 layers x 2 (K and V) x 1 head of 32 x 2 bytes = 256 bytes a token.
    fn tiny() -> Shape {
        testing::shape("llama", 2, 32, &[("attention.head_count", 1)])
    }

    #[test]
    fn a_context_of_two_billion_tokens_is_refused_with_what_would_fit() {
        let settings = ContextSettings {
            context: 2_000_000_000,
            ..ContextSettings::default()
        };
        let refused = cannot_fit(&tiny(), &settings, Bytes::gib(24))
            .unwrap()
            .unwrap();
        // 2,000,000,000 is a multiple of 256; x 256 bytes = 512e9 bytes = 476.8 GiB.
        assert_eq!(refused.need, Bytes(512_000_000_000));
        // 24 GiB / 256 bytes = 100,663,296 tokens, a multiple of 256.
        assert_eq!(refused.largest_context, Some(100_663_296));
        assert_eq!(
            refused.to_string(),
            "A context of 2000000000 tokens needs at least 477 GiB; 24.0 GiB is free. \
             Take at most 100663296 tokens, or a smaller KV cache type."
        );
    }

    #[test]
    fn a_context_that_fits_to_the_byte_is_not_refused() {
        let settings = ContextSettings {
            context: 1024,
            ..ContextSettings::default()
        };
        let need = Bytes(1024 * 256);
        assert_eq!(context_bytes(&tiny(), &settings), Ok(need));
        assert_eq!(cannot_fit(&tiny(), &settings, need), Ok(None));
        assert!(
            cannot_fit(&tiny(), &settings, Bytes(need.0 - 1))
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn where_nothing_fits_no_context_is_suggested() {
        let refused = cannot_fit(&tiny(), &ContextSettings::default(), Bytes(1000))
            .unwrap()
            .unwrap();
        assert_eq!(refused.largest_context, None);
        assert!(
            refused
                .to_string()
                .contains("Not even the smallest context fits")
        );
    }

    #[test]
    fn the_largest_context_counts_the_type_and_the_sequences() {
        let q8_0 = ContextSettings {
            type_k: KvType::Q8_0,
            type_v: KvType::Q8_0,
            ..ContextSettings::default()
        };
        // 2 layers x 2 x 34 bytes = 136 a token; 1 MiB / 136 = 7,710, down to 7,680 = 30 x 256.
        assert_eq!(
            largest_context(&tiny(), &q8_0, Bytes::mib(1)),
            Ok(Some(7680))
        );
        // Four sequences of 256 cells at least: 4 x 256 x 256 bytes = 256 KiB for any context up
        // to 1,024 tokens, so 1 MiB holds 4,096 tokens.
        let split = ContextSettings {
            sequences: 4,
            split: true,
            ..ContextSettings::default()
        };
        assert_eq!(
            largest_context(&tiny(), &split, Bytes::mib(1)),
            Ok(Some(4096))
        );
    }

    #[test]
    fn a_recurrent_model_takes_any_context() {
        let mamba = testing::shape(
            "mamba",
            2,
            32,
            &[
                ("ssm.conv_kernel", 4),
                ("ssm.inner_size", 64),
                ("ssm.state_size", 16),
            ],
        );
        assert_eq!(
            largest_context(&mamba, &ContextSettings::default(), Bytes::mib(1)),
            Ok(Some(LARGEST))
        );
    }
}
