//! What follows from a model's layers and weights, whatever was measured.

use twospeed_gguf::{Model, TensorType};

use super::says::{ExpertUse, Rests, Says, Statement};
use super::{Facts, rests};
use crate::cache::{self, Cache, ContextSettings};
use crate::note::Note;
use crate::shape::{Shape, StoreKind};
use crate::units::Bytes;

/// Where a file does not say what context it was trained for, depths are tried up to this one.
const DEEPEST: u64 = 1 << 20;
/// Nearly all of the experts: so much of them.
const NEARLY_ALL: f64 = 0.95;
/// Blocks of the K and the IQ types.
const LARGE_BLOCK: u64 = 256;
/// From this share of the bytes on it matters what fell back.
const FALLEN: f64 = 0.1;

/// Rule: a token does not use all parameters. How many experts it uses is said where the header is
/// there to say it.
pub(super) fn experts(facts: &Facts<'_>) -> Option<Statement> {
    let known = &facts.model;
    let (parameters, active) = (known.parameters?, known.active_parameters?);
    (active < parameters).then_some(())?;
    Some(of_the_file(Says::Experts {
        parameters,
        active,
        file_bytes: known.file_bytes?.0,
        weight_bytes: known.weight_bytes_per_token.map(|bytes| bytes.0),
        used: facts.header.and_then(expert_use),
    }))
}

fn expert_use(model: &Model) -> Option<ExpertUse> {
    let Note::Experts { used, of } = Note::experts(model)? else {
        return None;
    };
    (0 < used && used < of).then(|| ExpertUse {
        used,
        of,
        nearly_all_from: nearly_all_from(used, of),
    })
}

/// Tokens from which [`NEARLY_ALL`] experts are touched.
///
/// When each of n tokens uses k of E experts by chance, E (1 - (1 - k/E)^n) of them are used by
/// some token: a share p of them from n = ln(1 - p) / ln(1 - k/E) on.
fn nearly_all_from(used: u64, of: u64) -> u64 {
    let unused = 1.0 - used as f64 / of as f64;
    ((1.0 - NEARLY_ALL).ln() / unused.ln()).ceil() as u64
}

/// Rule: what a token reads, weights and cache, is no larger than the last-level cache.
pub(super) fn cache_resident(facts: &Facts<'_>) -> Option<Statement> {
    let weights = facts.model.weight_bytes_per_token?;
    let kv = facts
        .estimate
        .and_then(|estimate| estimate.decode.kv_read_bytes_per_token);
    let set = weights + kv.unwrap_or(Bytes::ZERO);
    let cache = facts.last_level_cache?;
    (set <= cache).then(|| Statement {
        says: Says::CacheResident {
            working_set_bytes: set.0,
            cache_bytes: cache.0,
        },
        rests: facts.estimate.map_or(Rests::File, rests),
    })
}

/// Rule: the label names a type of large blocks, and a good part of the file lies in matrices
/// whose rows are no whole blocks of it and that take more bits instead.
pub(super) fn fallen_back(facts: &Facts<'_>) -> Option<Statement> {
    let model = facts.header?;
    let label = model.quantization.as_deref()?;
    let named = named_type(label)?;
    let mut types: Vec<(TensorType, u64)> = Vec::new();
    for tensor in &model.tensors {
        let fell = tensor.dimensions.len() >= 2
            && !tensor.dimensions.row().is_multiple_of(LARGE_BLOCK)
            && tensor.tensor_type.block_elements() < LARGE_BLOCK
            && tensor.tensor_type.bits_per_weight() > named.bits_per_weight();
        if !fell {
            continue;
        }
        match types
            .iter_mut()
            .find(|(other, _)| *other == tensor.tensor_type)
        {
            Some((_, bytes)) => *bytes = bytes.saturating_add(tensor.bytes),
            None => types.push((tensor.tensor_type, tensor.bytes)),
        }
    }
    types.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let fallen: u64 = types
        .iter()
        .fold(0, |sum, (_, bytes)| bytes.saturating_add(sum));
    let share = fallen as f64 / model.weight_bytes().max(1) as f64;
    (share >= FALLEN).then_some(())?;
    Some(of_the_file(Says::FallenBack {
        label: label.to_owned(),
        label_bits: named.bits_per_weight(),
        bits: model.bits_per_weight?,
        share,
        types: types
            .iter()
            .map(|(tensor_type, _)| tensor_type.name().to_owned())
            .collect(),
    }))
}

/// The type that a label names, where its blocks are large: Q4_K of `Q4_K_M`.
fn named_type(label: &str) -> Option<TensorType> {
    let of_name = |name: &str| {
        let mut all = TensorType::ALL.iter().copied();
        all.find(|tensor_type| tensor_type.name() == name)
    };
    let base = || label.rsplit_once('_').and_then(|(base, _)| of_name(base));
    let named = of_name(label).or_else(base)?;
    (named.block_elements() == LARGE_BLOCK).then_some(named)
}

/// Rule: the cache grows with the context.
pub(super) fn kv_growth(facts: &Facts<'_>) -> Option<Statement> {
    let shape = Shape::from_model(facts.header?).ok()?;
    let weights = facts.model.weight_bytes_per_token?;
    let settings = facts.context;
    let context = match settings.context {
        0 => shape.training_context?,
        tokens => tokens,
    };
    let kv = |context| {
        Some(
            Cache::of(
                &shape,
                &ContextSettings {
                    context,
                    ..settings
                },
            )
            .ok()?
            .kv(),
        )
    };
    let (once, twice) = (kv(context)?, kv(context.checked_mul(2)?)?);
    (twice > once).then_some(())?;
    let most_context = shape
        .training_context
        .filter(|tokens| *tokens > 0)
        .unwrap_or(DEEPEST);
    Some(of_the_file(Says::KvGrowth {
        bytes_per_token: cache::kv_per_token(&shape, &settings).ok()?.0,
        context,
        kv_bytes: once.0,
        doubled_bytes: twice.0,
        weight_bytes: weights.0,
        equal_depth: equal_depth(&shape, &settings, weights, most_context),
        most_context,
    }))
}

/// The least depth below `most` at which a token reads as much of the cache as of the weights.
fn equal_depth(
    shape: &Shape,
    settings: &ContextSettings,
    weights: Bytes,
    most: u64,
) -> Option<u64> {
    let settings = ContextSettings {
        context: most,
        sequences: 1,
        ..*settings
    };
    let state = shape.state_per_sequence().0.saturating_mul(2);
    let enough = |depth| {
        let read = cache::read_per_token(shape, &settings, depth).ok()?;
        Some(read.0.saturating_sub(state) >= weights.0)
    };
    // The token itself takes a place too.
    let last = most.checked_sub(1)?;
    enough(last)?.then_some(())?;
    // What is read never falls as the depth grows.
    let (mut below, mut from) = (None, last);
    while below.map_or(0, |depth: u64| depth + 1) < from {
        let low = below.map_or(0, |depth| depth + 1);
        let middle = low + (from - low) / 2;
        if enough(middle)? {
            from = middle;
        } else {
            below = Some(middle);
        }
    }
    Some(from)
}

/// Rule: some layers keep a window, and it holds fewer cells than the context it was trained for.
pub(super) fn sliding_window(facts: &Facts<'_>) -> Option<Statement> {
    let shape = Shape::from_model(facts.header?).ok()?;
    let most = shape.training_context.filter(|tokens| *tokens > 0)?;
    let settings = ContextSettings {
        context: most,
        ..facts.context
    };
    let kept = Cache::of(&shape, &settings).ok()?;
    let cells = kept
        .parts
        .iter()
        .find(|part| part.kind == StoreKind::Window)?
        .cells;
    (cells < most).then_some(())?;
    let trunk = &shape.layers[..shape.trunk];
    let slides = |layer: &&crate::shape::Layer| {
        let kept = layer.reads.and_then(|index| shape.layers.get(index));
        let stores = &kept.unwrap_or(layer).stores;
        stores.iter().any(|store| store.kind == StoreKind::Window)
    };
    Some(of_the_file(Says::SlidingWindow {
        layers: trunk.iter().filter(slides).count() as u64,
        of: shape.trunk as u64,
        window: shape.window?,
        cells,
    }))
}

fn of_the_file(says: Says) -> Statement {
    Statement {
        says,
        rests: Rests::File,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ModelKnown;
    use super::super::tests::estimate;
    use super::*;
    use crate::testing::{Tensor, model};
    use crate::weights::Weights;
    use TensorType::{F16, F32, Q4K, Q5_0, Q8_0};

    fn of_model(header: &Model) -> Facts<'_> {
        Facts {
            model: ModelKnown {
                quantization: header.quantization.as_deref(),
                parameters: Some(header.parameters),
                active_parameters: header.active_parameters,
                file_bytes: Some(Bytes(header.bytes_expected)),
                weight_bytes_per_token: Weights::of(header).ok().map(|w| w.bytes_per_token()),
            },
            header: Some(header),
            ..Facts::default()
        }
    }

    /// Two layers of one head of 64, 256 bytes of cache for a token: 2 x (K and V) x 64 x 2 bytes.
    fn small(context_length: u32, more: &[(&str, u32)]) -> Model {
        let mut keys = vec![
            ("block_count", 2),
            ("embedding_length", 64),
            ("attention.head_count", 1),
            ("context_length", context_length),
        ];
        keys.extend_from_slice(more);
        let tensors: Vec<Tensor<'_>> = vec![
            ("token_embd.weight".into(), F16, &[64, 100]),
            ("output.weight".into(), F16, &[64, 1024]),
            ("blk.0.attn_q.weight".into(), F16, &[64, 1024]),
            ("blk.1.attn_q.weight".into(), F16, &[64, 1024]),
        ];
        model("llama", &keys, &tensors)
    }

    #[test]
    fn twice_the_context_is_twice_the_cache_and_the_same_weights() {
        let header = small(8192, &[]);
        let mut facts = of_model(&header);
        facts.context.context = 1024;
        let said = kv_growth(&facts).unwrap();
        assert_eq!(said.rests, Rests::File);
        assert_eq!(
            said.says,
            Says::KvGrowth {
                // 2 layers x 2 x 64 x 2 bytes.
                bytes_per_token: 512,
                context: 1024,
                kv_bytes: 512 * 1024,
                doubled_bytes: 512 * 2048,
                // 3 x 64 x 1024 x 2 bytes.
                weight_bytes: 393_216,
                // 393,216 / 512 = 768 cells; they are read in steps of 256, so the third step
                // does, which depth 512 and its own token reach.
                equal_depth: Some(512),
                most_context: 8192,
            }
        );
    }

    #[test]
    fn a_depth_beyond_its_context_is_never_reached() {
        // 512 cells of 512 bytes are 262,144.
        let header = small(512, &[]);
        let says = kv_growth(&of_model(&header)).map(|said| said.says);
        let Some(Says::KvGrowth {
            equal_depth: None,
            most_context: 512,
            ..
        }) = says
        else {
            panic!("{says:?}");
        };
        // 768 are enough, at the very last token.
        let header = small(768, &[]);
        let says = kv_growth(&of_model(&header)).map(|said| said.says);
        assert!(
            matches!(
                says,
                Some(Says::KvGrowth {
                    equal_depth: Some(512),
                    ..
                })
            ),
            "{says:?}"
        );
    }

    #[test]
    fn a_cache_that_does_not_grow_is_not_said_to() {
        let keys = [
            ("block_count", 1),
            ("embedding_length", 64),
            ("context_length", 4096),
            ("ssm.conv_kernel", 4),
            ("ssm.inner_size", 64),
            ("ssm.state_size", 16),
        ];
        let tensors: Vec<Tensor<'_>> = vec![("output.weight".into(), F16, &[64, 100])];
        let header = model("mamba", &keys, &tensors);
        assert!(Weights::of(&header).is_ok() && Shape::from_model(&header).is_ok());
        assert_eq!(kv_growth(&of_model(&header)), None);
        assert_eq!(kv_growth(&Facts::default()), None, "without a header");
    }

    #[test]
    fn experts_are_said_of_where_a_token_does_not_use_all() {
        let tensors: Vec<Tensor<'_>> = vec![
            ("output.weight".into(), F16, &[256, 10]),
            ("blk.0.ffn_up_exps.weight".into(), F16, &[256, 64, 128]),
        ];
        let keys = [
            ("block_count", 1),
            ("expert_count", 128),
            ("expert_used_count", 8),
        ];
        let header = model("qwen3moe", &keys, &tensors);
        let said = experts(&of_model(&header)).unwrap().says;
        let Says::Experts {
            parameters,
            active,
            weight_bytes,
            used,
            ..
        } = said
        else {
            panic!("{said:?}");
        };
        // 2,560 and 128 or 8 times 16,384.
        assert_eq!((parameters, active), (2_099_712, 133_632));
        assert_eq!(weight_bytes, Some(2 * 133_632));
        // ln 0.05 / ln(1 - 8/128) = 2.9957 / 0.06454 = 46.4.
        assert_eq!(
            used,
            Some(ExpertUse {
                used: 8,
                of: 128,
                nearly_all_from: 47
            })
        );
        // After 47 tokens 128 x (1 - 0.9375^47) = 121.8 experts, 95 % of 128 being 121.6; after 46
        // they are 121.4.
        let touched = |tokens: i32| 128.0 * (1.0 - 0.9375_f64.powi(tokens));
        assert!(touched(47) >= 121.6 && touched(46) < 121.6);
    }

    #[test]
    fn of_a_model_whose_file_is_gone_the_history_has_its_active_parameters() {
        let mut facts = Facts {
            model: ModelKnown {
                parameters: Some(30_532_122_624),
                active_parameters: Some(3_353_032_704),
                file_bytes: Some(Bytes(18_556_000_000)),
                weight_bytes_per_token: Some(Bytes(1_900_000_000)),
                quantization: Some("Q4_K_M"),
            },
            ..Facts::default()
        };
        let said = experts(&facts).map(|said| said.says);
        assert!(
            matches!(
                said,
                Some(Says::Experts {
                    used: None,
                    active: 3_353_032_704,
                    ..
                })
            ),
            "{said:?}"
        );
        facts.model.active_parameters = facts.model.parameters;
        assert_eq!(experts(&facts), None, "all of them are used");
        facts.model.active_parameters = None;
        assert_eq!(experts(&facts), None, "unknown is not fewer");
    }

    #[test]
    fn a_model_is_in_the_cache_when_weights_and_kv_are() {
        let mut said = estimate();
        said.decode.kv_read_bytes_per_token = Some(Bytes(20));
        let mut facts = Facts {
            estimate: Some(&said),
            last_level_cache: Some(Bytes(100)),
            ..Facts::default()
        };
        facts.model.weight_bytes_per_token = Some(Bytes(80));
        assert_eq!(
            cache_resident(&facts).map(|said| said.says),
            Some(Says::CacheResident {
                working_set_bytes: 100,
                cache_bytes: 100
            })
        );
        facts.model.weight_bytes_per_token = Some(Bytes(81));
        assert_eq!(cache_resident(&facts), None);
        facts.model.weight_bytes_per_token = Some(Bytes(80));
        facts.last_level_cache = None;
        assert_eq!(cache_resident(&facts), None, "the cache is not known");
    }

    #[test]
    fn rows_that_are_no_whole_blocks_fall_back() {
        let labelled = |tensors: &[Tensor<'_>]| {
            let mut header = model("gemma3", &[("block_count", 1)], tensors);
            header.quantization = Some("Q4_K_M".into());
            header
        };
        // Gemma 3 270M is 640 wide, no multiple of 256.
        let odd: Vec<Tensor<'_>> = vec![
            ("token_embd.weight".into(), Q8_0, &[640, 1000]),
            ("blk.0.attn_q.weight".into(), Q5_0, &[640, 1024]),
            ("blk.0.attn_output.weight".into(), Q4K, &[1024, 640]),
            ("blk.0.attn_norm.weight".into(), F32, &[640]),
        ];
        let header = labelled(&odd);
        let said = fallen_back(&of_model(&header)).map(|said| said.says);
        let Some(Says::FallenBack {
            label_bits,
            bits,
            share,
            types,
            ..
        }) = said
        else {
            panic!("{said:?}");
        };
        // Q8_0: 20,000 blocks of 34 = 680,000; Q5_0: 20,480 of 22 = 450,560; Q4_K: 2,560 of 144 =
        // 368,640; the norm 2,560 bytes.
        assert_eq!(label_bits, 4.5);
        assert_eq!(types, ["Q8_0", "Q5_0"]);
        assert!((share - 1_130_560.0 / 1_501_760.0).abs() < 1e-9);
        assert!((bits - 8.0 * 1_501_760.0 / 1_951_360.0).abs() < 1e-9);

        let even: Vec<Tensor<'_>> = vec![
            ("token_embd.weight".into(), Q8_0, &[512, 1000]),
            ("blk.0.attn_q.weight".into(), Q4K, &[512, 1024]),
        ];
        assert_eq!(
            fallen_back(&of_model(&labelled(&even))),
            None,
            "whole blocks"
        );
        let mut plain = labelled(&odd);
        plain.quantization = Some("Q5_0".into());
        assert_eq!(fallen_back(&of_model(&plain)), None, "its blocks are of 32");
        let mut little = odd.clone();
        little[0].2 = &[640, 1];
        little[1].2 = &[640, 10];
        assert_eq!(
            fallen_back(&of_model(&labelled(&little))),
            None,
            "too little to matter"
        );
    }

    #[test]
    fn labels_name_their_type() {
        for (label, named) in [
            ("Q4_K_M", Some(Q4K)),
            ("Q6_K", Some(TensorType::Q6K)),
            ("Q3_K_XL", Some(TensorType::Q3K)),
            ("IQ3_XXS", Some(TensorType::Iq3Xxs)),
            ("Q8_0", None),
            ("IQ4_NL", None),
            ("F16", None),
            ("unknown (999)", None),
            ("", None),
        ] {
            assert_eq!(named_type(label), named, "{label}");
        }
    }

    #[test]
    fn layers_that_slide_are_counted_where_they_stop_growing() {
        let header = |context| {
            let keys = [
                ("block_count", 18),
                ("embedding_length", 640),
                ("context_length", context),
                ("attention.head_count", 4),
                ("attention.head_count_kv", 1),
                ("attention.key_length", 256),
                ("attention.value_length", 256),
                ("attention.sliding_window", 512),
            ];
            model("gemma3", &keys, &[])
        };
        // Gemma 3: every sixth layer is full; 512 + a micro-batch of 512 are 1,024 cells.
        let long = header(32_768);
        assert_eq!(
            sliding_window(&of_model(&long)).map(|said| said.says),
            Some(Says::SlidingWindow {
                layers: 15,
                of: 18,
                window: 512,
                cells: 1024
            })
        );
        let short = header(1024);
        assert_eq!(sliding_window(&of_model(&short)), None, "it never slides");
        let full = small(32_768, &[]);
        assert_eq!(
            sliding_window(&of_model(&full)),
            None,
            "all layers are full"
        );
    }
}
