//! Whether a context fits, and which would.

use std::fmt;

use crate::cache::{self, Cache, ContextError, ContextSettings};
use crate::kv_type::KvType;
use crate::shape::Shape;
use crate::units::Bytes;

/// Contexts are judged in steps of this many tokens, as the engine rounds them.
const STEP: u64 = 256;
/// The largest that the engine can be asked for.
const LARGEST: u64 = u32::MAX as u64 / STEP * STEP;

/// The most sequences that the engine serves (`LLAMA_MAX_SEQ`).
const MOST_SEQUENCES: u64 = 256;

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

/// What would fit instead of a context that does not, each change by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WouldFit {
    /// The largest context; `None` where none would.
    pub context: Option<u64>,
    /// The largest of the smaller KV types with which the same context would.
    pub kv_type: Option<KvType>,
    /// The most users, each with the share of the context that it has now; `None` where there is
    /// one, or not even one would.
    pub sequences: Option<u64>,
}

/// What would fit within `budget`.
///
/// Errors: as [`context_bytes`] of the settings asked about.
pub fn would_fit(
    shape: &Shape,
    settings: &ContextSettings,
    budget: Bytes,
) -> Result<WouldFit, ContextError> {
    // A type that the engine refuses for this model is no help.
    let fits = |settings: &ContextSettings| {
        context_bytes(shape, settings).is_ok_and(|bytes| bytes <= budget)
    };
    let now = context_bytes(shape, settings)?;
    let kv_type = [KvType::Q8_0, KvType::Q4_0].into_iter().find(|smaller| {
        let settings = ContextSettings {
            type_k: *smaller,
            type_v: *smaller,
            ..*settings
        };
        let is_smaller = context_bytes(shape, &settings).is_ok_and(|bytes| bytes < now);
        is_smaller && fits(&settings)
    });
    let asked = context_asked(shape, settings);
    let sequences = (1..settings.sequences.min(MOST_SEQUENCES + 1))
        .rev()
        .find(|fewer| {
            let share = u128::from(asked) * u128::from(*fewer) / u128::from(settings.sequences);
            fits(&ContextSettings {
                context: u64::try_from(share).unwrap_or(u64::MAX).max(1),
                sequences: *fewer,
                ..*settings
            })
        });
    Ok(WouldFit {
        context: largest_context(shape, settings, budget)?,
        kv_type,
        sequences,
    })
}

fn context_asked(shape: &Shape, settings: &ContextSettings) -> u64 {
    match settings.context {
        0 => shape.training_context.unwrap_or(0),
        tokens => tokens,
    }
}

/// What to do, as one sentence.
impl fmt::Display for WouldFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ways = Vec::new();
        if let Some(tokens) = self.context {
            ways.push(format!("a context of at most {tokens} tokens"));
        }
        if let Some(kv_type) = self.kv_type {
            ways.push(format!("a KV cache of type {kv_type}"));
        }
        match self.sequences {
            Some(1) => ways.push("1 user".to_owned()),
            Some(users) => ways.push(format!("at most {users} users")),
            None => {}
        }
        match &ways[..] {
            [] => f.write_str(
                "Not even the smallest context fits; free memory, or take a smaller model or quantization.",
            ),
            [way] => write!(f, "It would fit with {way}."),
            [ways @ .., last] => write!(f, "It would fit with {} or {last}.", ways.join(", ")),
        }
    }
}

/// A context that cannot fit, with what would. Displayed as one sentence or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotFit {
    /// The context asked for, in tokens.
    pub context: u64,
    /// What it allocates at least, with what stays beside it.
    pub need: Bytes,
    /// What is free.
    pub free: Bytes,
    /// What would fit.
    pub would_fit: WouldFit,
}

/// Whether a context cannot fit what is free beside `on_top` (weights that have to stay in memory,
/// working buffers where they are known); `None` where it may.
///
/// Errors: as [`context_bytes`].
pub fn cannot_fit(
    shape: &Shape,
    settings: &ContextSettings,
    on_top: Bytes,
    free: Bytes,
) -> Result<Option<CannotFit>, ContextError> {
    let need = context_bytes(shape, settings)? + on_top;
    if need <= free {
        return Ok(None);
    }
    let budget = free.0.checked_sub(on_top.0).map(Bytes);
    let would_fit = match budget {
        Some(budget) => would_fit(shape, settings, budget)?,
        // What stays does not fit alone.
        None => WouldFit::default(),
    };
    Ok(Some(CannotFit {
        context: context_asked(shape, settings),
        need,
        free,
        would_fit,
    }))
}

impl fmt::Display for CannotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            context,
            need,
            free,
            would_fit,
        } = self;
        write!(
            f,
            "A context of {context} tokens needs at least {need}; {free} is free. {would_fit}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let refused = cannot_fit(&tiny(), &settings, Bytes::ZERO, Bytes::gib(24))
            .unwrap()
            .unwrap();
        // 2,000,000,000 is a multiple of 256; x 256 bytes = 512e9 bytes = 476.8 GiB.
        assert_eq!(refused.need, Bytes(512_000_000_000));
        // 24 GiB / 256 bytes = 100,663,296 tokens, a multiple of 256.
        assert_eq!(refused.would_fit.context, Some(100_663_296));
        assert_eq!(
            refused.to_string(),
            "A context of 2000000000 tokens needs at least 477 GiB; 24.0 GiB is free. \
             It would fit with a context of at most 100663296 tokens."
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
        let refused = |on_top, free| cannot_fit(&tiny(), &settings, on_top, free).unwrap();
        assert_eq!(refused(Bytes::ZERO, need), None);
        assert!(refused(Bytes::ZERO, Bytes(need.0 - 1)).is_some());
        assert_eq!(refused(Bytes(100), Bytes(need.0 + 100)), None);
        assert_eq!(
            refused(Bytes(101), Bytes(need.0 + 100)).unwrap().need,
            Bytes(need.0 + 101)
        );
    }

    #[test]
    fn where_nothing_fits_no_context_is_suggested() {
        let settings = ContextSettings::default();
        let refused = |on_top, free| {
            cannot_fit(&tiny(), &settings, on_top, free)
                .unwrap()
                .unwrap()
        };
        let refused = [
            refused(Bytes::ZERO, Bytes(1000)),
            // Room for any context, and none beside the weights.
            refused(Bytes::gib(3), Bytes::gib(2)),
        ];
        assert_eq!(refused[1].would_fit, WouldFit::default());
        let refused = &refused[0];
        assert_eq!(refused.would_fit.context, None);
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
    fn a_smaller_type_or_fewer_users_are_named_where_they_would_do() {
        // 4,096 tokens of 256 bytes are 1 MiB for 4 users, 256 KiB each. In q8_0 a token takes 136
        // bytes, 544 KiB in all; in q4_0 2 layers x 2 x 18 bytes, 72 a token and 288 KiB in all.
        let users = ContextSettings {
            sequences: 4,
            split: true,
            ..ContextSettings::default()
        };
        let with = |kib| would_fit(&tiny(), &users, Bytes::kib(kib)).unwrap();
        assert_eq!(
            with(800),
            WouldFit {
                context: Some(3072),
                kv_type: Some(KvType::Q8_0),
                sequences: Some(3),
            }
        );
        assert_eq!(with(543).kv_type, Some(KvType::Q4_0));
        assert_eq!(with(287).kv_type, None);
        assert_eq!(
            with(287).to_string(),
            "It would fit with a context of at most 1024 tokens or 1 user."
        );
        assert_eq!(
            with(800).to_string(),
            "It would fit with a context of at most 3072 tokens, a KV cache of type q8_0 or at most 3 users."
        );
        // A quantized V needs flash attention.
        let without = ContextSettings {
            flash_attention: crate::FlashAttention::Off,
            ..users
        };
        assert_eq!(
            would_fit(&tiny(), &without, Bytes::kib(800))
                .unwrap()
                .kv_type,
            None
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
