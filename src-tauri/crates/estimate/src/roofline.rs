//! The roofline: how much is computed for each byte that is read, from one token per step to many,
//! and which of a machine's two limits that meets.
//!
//! A step computes some tokens together: one in decode, a micro-batch in prefill. It reads the
//! weights once however many they are, so its intensity (operations per byte) grows with them. Memory
//! allows bandwidth x intensity operations a second; arithmetic allows what matrices are multiplied
//! with. Where the two meet is the ridge.

use std::collections::BTreeMap;

use twospeed_gguf::{Model, TensorType};

use crate::bandwidth::Bandwidth;
use crate::cache;
use crate::calibration::{Calibration, Kernel};
use crate::estimate::estimate;
use crate::prefill;
use crate::question::Question;
use crate::shape::{Shape, ShapeError};
use crate::units::{Bytes, Flops, TokensPerSecond};
use crate::weights::{Matrix, Role, Weights, WeightsError};

/// Tokens per step that a roofline is worked out for.
pub const STEPS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// From so many columns on a product counts as one of matrices.
const MANY: u32 = 64;

/// Types that were not measured may do at most this part of the operations.
const UNMEASURED: f64 = 0.1;

/// What limits a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Reading weights and cache.
    Memory,
    /// Multiplying.
    Arithmetic,
}

/// A model's steps under the limits of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofline {
    /// How fast a step's bytes can be read; `None` = not measured.
    pub reading: Option<Bandwidth>,
    /// Operations a second with which matrices of the model's types are multiplied, by what each
    /// type has to do; `None` where too much of it was not measured.
    pub arithmetic: Option<f64>,
    /// From few tokens to many.
    pub steps: Vec<Step>,
}

/// A step of so many tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Tokens.
    pub tokens: u64,
    /// Operations for all of them.
    pub flops: Flops,
    /// Bytes that are read for all of them.
    pub bytes: Bytes,
    /// What is expected: its speed, the lower and the upper end.
    pub expected: Option<[TokensPerSecond; 3]>,
}

/// Why there is no roofline. One sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RooflineError {
    /// The layers are unknown.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The weights are.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

impl Step {
    /// Operations per byte; 0 where nothing is read.
    pub fn intensity(&self) -> f64 {
        match self.bytes.0 {
            0 => 0.0,
            bytes => self.flops.0 as f64 / bytes as f64,
        }
    }

    /// Operations for one token.
    pub fn flops_per_token(&self) -> f64 {
        self.flops.0 as f64 / self.tokens.max(1) as f64
    }

    /// Operations a second at a speed.
    pub fn flops_per_second(&self, speed: TokensPerSecond) -> f64 {
        speed.0 * self.flops_per_token()
    }
}

impl Roofline {
    /// The intensity at which both limits allow the same.
    pub fn ridge(&self) -> Option<f64> {
        let reading = self.reading.as_ref()?.rate.0 as f64;
        (reading > 0.0).then(|| self.arithmetic.map(|roof| roof / reading))?
    }

    /// Operations a second that the limits allow at an intensity, and which of them it is; `None`
    /// unless both are known.
    pub fn limit(&self, intensity: f64) -> Option<(f64, Limit)> {
        let slope = self.reading.as_ref()?.rate.0 as f64 * intensity;
        let roof = self.arithmetic?;
        Some(match slope < roof {
            true => (slope, Limit::Memory),
            false => (roof, Limit::Arithmetic),
        })
    }

    /// Tokens per step from which on arithmetic is the limit, between steps on a logarithmic scale.
    /// `None` where that is not within the steps.
    pub fn ridge_tokens(&self) -> Option<f64> {
        let ridge = self.ridge()?;
        let first = self.steps.first()?;
        if first.intensity() >= ridge {
            return (first.tokens == 1).then_some(1.0);
        }
        self.steps.windows(2).find_map(|pair| {
            let (low, high) = (pair[0].intensity(), pair[1].intensity());
            (low < ridge && ridge <= high && low > 0.0).then(|| {
                let along = (ridge / low).ln() / (high / low).ln();
                let (from, to) = (pair[0].tokens as f64, pair[1].tokens as f64);
                from * (to / from).powf(along)
            })
        })
    }
}

/// Works out the roofline of a model from a calibration, for steps of so many tokens.
///
/// The question's context settings count; its prompt, answer and depth do not: each step stands at
/// an empty cache. `expected` says what speed is expected of a step, for example [`expected_step`].
/// Errors: [`RooflineError`] where layers or weights are unknown.
pub fn roofline(
    model: &Model,
    question: &Question,
    calibration: &Calibration,
    steps: &[u64],
    expected: &dyn Fn(u64) -> Option<[TokensPerSecond; 3]>,
) -> Result<Roofline, RooflineError> {
    let shape = Shape::from_model(model)?;
    let weights = Weights::of(model)?;
    let reads = bytes(&shape, &weights, question, 1);
    let most = steps.iter().copied().max().unwrap_or(1);
    Ok(Roofline {
        reading: Bandwidth::measured(&calibration.reads, reads, calibration.last_level_cache),
        arithmetic: arithmetic(&weights, calibration, most),
        steps: steps
            .iter()
            .map(|tokens| Step {
                tokens: *tokens,
                flops: flops(&shape, &weights, question, *tokens),
                bytes: bytes(&shape, &weights, question, *tokens),
                expected: expected(*tokens),
            })
            .collect(),
    })
}

/// What [`estimate`] expects of a step: decode of one token, a prompt of several.
pub fn expected_step(
    model: &Model,
    question: &Question,
    tokens: u64,
) -> Option<[TokensPerSecond; 3]> {
    let question = Question {
        prompt: tokens,
        generate: 1,
        depth: 0,
        ..question.clone()
    };
    let estimate = estimate(model, &question);
    let (value, low, high) = match tokens {
        1 => (
            estimate.decode.expected_tok_s,
            estimate.decode.expected_low,
            estimate.decode.expected_high,
        ),
        _ => (
            estimate.prefill.expected_tok_s,
            estimate.prefill.expected_low,
            estimate.prefill.expected_high,
        ),
    };
    Some([value?, low?, high?])
}

/// Columns that a matrix is multiplied with in a step: logits are wanted of the last token alone.
fn columns(role: Role, tokens: u64) -> u64 {
    match role {
        Role::Layer | Role::Experts { last: false, .. } => tokens,
        Role::LastFeedForward | Role::Experts { last: true, .. } | Role::Output => 1,
    }
}

/// Operations of a matrix in a step.
fn matrix_flops(matrix: &Matrix, tokens: u64) -> f64 {
    let used = match matrix.role {
        Role::Experts { used, .. } => used as f64,
        _ => 1.0,
    };
    2.0 * matrix.inner as f64
        * matrix.rows as f64
        * matrix.count as f64
        * used
        * columns(matrix.role, tokens) as f64
}

fn flops(shape: &Shape, weights: &Weights, question: &Question, tokens: u64) -> Flops {
    let matrices: f64 = weights
        .matrices
        .iter()
        .map(|matrix| matrix_flops(matrix, tokens))
        .sum();
    // What is left of a token's operations without its matrices is its attention.
    let of_token = prefill::flops_per_token(shape, weights, &question.context, tokens, 0);
    let attention = of_token.map_or(0, |flops| {
        flops
            .0
            .saturating_sub(weights.matrix_elements.saturating_mul(2))
    });
    Flops((matrices + attention as f64 * tokens as f64).round() as u64)
}

/// Bytes of weights and cache that a step reads. Of experts those that its tokens are expected to
/// touch, E (1 - (1 - k/E)^n) of E where each token uses k.
fn bytes(shape: &Shape, weights: &Weights, question: &Question, tokens: u64) -> Bytes {
    let matrices: f64 = weights
        .matrices
        .iter()
        .map(|matrix| {
            let row = matrix.tensor_type.bits_per_weight() / 8.0 * matrix.inner as f64;
            let touched = match matrix.role {
                Role::Experts { used, of, .. } => {
                    let (used, of) = (used as f64, of.max(1) as f64);
                    let n = columns(matrix.role, tokens) as f64;
                    of * (1.0 - (1.0 - used / of).powf(n))
                }
                _ => 1.0,
            };
            row * matrix.rows as f64 * matrix.count as f64 * touched
        })
        .sum();
    let cache = cache::read_per_token(shape, &question.context, tokens.saturating_sub(1));
    Bytes(matrices.round() as u64) + cache.unwrap_or(Bytes::ZERO)
}

/// Operations a second, all types together: each type's share at its own measured speed.
fn arithmetic(weights: &Weights, calibration: &Calibration, tokens: u64) -> Option<f64> {
    let mut work: BTreeMap<(TensorType, bool), f64> = BTreeMap::new();
    for matrix in &weights.matrices {
        let has_experts = matches!(matrix.role, Role::Experts { .. });
        // Vectors times a matrix are no arithmetic to speak of.
        if columns(matrix.role, tokens) > 1 {
            *work.entry((matrix.tensor_type, has_experts)).or_default() +=
                matrix_flops(matrix, tokens);
        }
    }
    let all: f64 = work.values().sum();
    let (mut known, mut seconds) = (0.0, 0.0);
    for ((tensor_type, has_experts), flops) in work {
        let rate = rate(calibration, tensor_type, has_experts)
            .or_else(|| rate(calibration, tensor_type, false));
        if let Some(rate) = rate {
            known += flops;
            seconds += flops / rate;
        }
    }
    (seconds > 0.0 && known >= (1.0 - UNMEASURED) * all).then(|| known / seconds)
}

/// Operations a second of the widest measured products of a type.
fn rate(calibration: &Calibration, wanted: TensorType, has_experts: bool) -> Option<f64> {
    let readings: Vec<(u32, f64, f64)> = calibration
        .kernels
        .iter()
        .filter(|reading| reading.ns > 0.0)
        .filter_map(|reading| match reading.kernel {
            Kernel::Matrix {
                tensor_type,
                inner,
                rows,
                columns,
                ..
            } if !has_experts && tensor_type == wanted => {
                let flops = 2.0 * f64::from(inner) * f64::from(rows) * f64::from(columns);
                Some((columns, flops, reading.ns))
            }
            Kernel::Experts {
                tensor_type,
                inner,
                rows,
                used,
                columns,
                ..
            } if has_experts && tensor_type == wanted => {
                let flops = 2.0 * f64::from(inner) * f64::from(rows) * f64::from(columns);
                Some((columns, flops * f64::from(used), reading.ns))
            }
            _ => None,
        })
        .filter(|(columns, ..)| *columns >= MANY)
        .collect();
    let widest = readings.iter().map(|(columns, ..)| *columns).max()?;
    let of_widest = readings.iter().filter(|(columns, ..)| *columns == widest);
    let (flops, ns) = of_widest.fold((0.0, 0.0), |(flops, ns), reading| {
        (flops + reading.1, ns + reading.2)
    });
    Some(flops * 1e9 / ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::BandwidthReading;
    use crate::calibration::KernelReading;
    use crate::testing::{self, Tensor};
    use crate::units::BytesPerSecond;
    use TensorType::{F16, Q8_0};

    const KEYS: [(&str, u32); 6] = [
        ("block_count", 2),
        ("embedding_length", 256),
        ("context_length", 4096),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("feed_forward_length", 512),
    ];

    /// Two layers with one matrix of each kind that counts, and an output matrix.
    fn dense() -> Model {
        let tensors: Vec<Tensor<'_>> = vec![
            ("output.weight".into(), F16, &[256, 1000]),
            ("blk.0.attn_q.weight".into(), F16, &[256, 256]),
            ("blk.0.ffn_up.weight".into(), Q8_0, &[256, 512]),
            ("blk.1.attn_q.weight".into(), F16, &[256, 256]),
            ("blk.1.ffn_up.weight".into(), Q8_0, &[256, 512]),
        ];
        testing::model("llama", &KEYS, &tensors)
    }

    fn kernel(tensor_type: TensorType, columns: u32, ns: f64) -> KernelReading {
        KernelReading {
            kernel: Kernel::Matrix {
                tensor_type,
                inner: 1000,
                rows: 500,
                columns,
                set_bytes: 1 << 30,
            },
            ns,
            spread_ns: 0.0,
            repacked: false,
        }
    }

    /// Memory is read at 10 GB/s; F16 is multiplied at 100 and Q8_0 at 50 GFLOP/s.
    fn machine() -> Calibration {
        Calibration {
            id: "calibration".into(),
            at: "2026-12-01T12:00:00Z".into(),
            backend: "CPU".into(),
            variant: "zen4".into(),
            threads: 2,
            build: 11434,
            ubatch: 512,
            last_level_cache: None,
            reads: vec![BandwidthReading {
                buffer: Bytes::mib(512),
                rate: BytesPerSecond(10_000_000_000),
            }],
            // 2 x 1000 x 500 x 512 = 512e6 operations.
            kernels: vec![
                kernel(F16, 512, 5.12e6),
                kernel(Q8_0, 512, 10.24e6),
                kernel(Q8_0, 1, 1.0),
            ],
            step_ns: None,
        }
    }

    fn of(model: &Model, calibration: &Calibration, steps: &[u64]) -> Roofline {
        roofline(model, &Question::default(), calibration, steps, &|_| None).unwrap()
    }

    #[test]
    fn a_step_reads_its_weights_once_however_many_tokens_it_computes() {
        let roofline = of(&dense(), &machine(), &[1, 2]);
        let [one, two] = roofline.steps[..] else {
            panic!("two steps");
        };
        // F16 takes 2 bytes: output 512,000 + 2 x 131,072. Q8_0 takes 34 bytes for 32: 2 x 139,264.
        let weights = 512_000 + 2 * 131_072 + 2 * 139_264;
        // Cache: 256 cells of 2 layers of K and V of 2 heads of 64, 2 bytes each.
        let cache = 256 * 2 * 2 * 128 * 2;
        assert_eq!(one.bytes, Bytes(weights + cache));
        assert_eq!(two.bytes, one.bytes);
        // One token: 2 x (256,000 + 2 x 65,536 + 2 x 131,072); attention sees half a token, none.
        let (output, layers) = (2 * 256_000, 2 * (2 * 65_536 + 131_072));
        let last = 2 * 131_072;
        assert_eq!(one.flops, Flops(output + layers + last));
        // Two: the layers twice, the last feed-forward part and the output for the last token
        // alone; and attention of 2 layers x 2 x 4 heads x (64 + 64) for one token seen each.
        assert_eq!(two.flops, Flops(output + 2 * layers + last + 2 * 2048));
        let intensity = one.flops.0 as f64 / one.bytes.0 as f64;
        assert!((one.intensity() - intensity).abs() < 1e-12);
        // 100 tokens a second of one token per step.
        let flops = one.flops_per_second(TokensPerSecond(100.0));
        assert!((flops - 100.0 * one.flops.0 as f64).abs() < 1e-3);
    }

    #[test]
    fn types_share_the_roof_by_what_each_has_to_do() {
        let roofline = of(&dense(), &machine(), &STEPS);
        // Of the matrices that many tokens pass, F16 has 2 x 65,536 elements and Q8_0, whose last
        // one is for the last token alone, 131,072: half of the operations at 100 and half at 50
        // GFLOP/s are 1 / (0.5 / 100 + 0.5 / 50) = 66.7 GFLOP/s.
        let roof = roofline.arithmetic.unwrap();
        assert!((roof / 1e9 - 200.0 / 3.0).abs() < 1e-9, "{roof}");
        // 66.7 GFLOP/s / 10 GB/s.
        let ridge = roofline.ridge().unwrap();
        assert!((ridge - 20.0 / 3.0).abs() < 1e-9, "{ridge}");
        assert_eq!(roofline.limit(1.0), Some((1e10, Limit::Memory)));
        assert_eq!(roofline.limit(100.0), Some((roof, Limit::Arithmetic)));
    }

    #[test]
    fn the_ridge_lies_between_the_steps_whose_intensities_enclose_it() {
        let roofline = of(&dense(), &machine(), &STEPS);
        let tokens = roofline.ridge_tokens().unwrap();
        let ridge = roofline.ridge().unwrap();
        let below = roofline
            .steps
            .iter()
            .rfind(|s| s.intensity() < ridge)
            .unwrap();
        let above = roofline
            .steps
            .iter()
            .find(|s| s.intensity() >= ridge)
            .unwrap();
        assert!((below.tokens as f64..above.tokens as f64).contains(&tokens));
        // Arithmetic that is slower than any step's reading is the limit from the first token on.
        let mut slow = machine();
        for reading in &mut slow.kernels {
            reading.ns *= 1e6;
        }
        assert_eq!(of(&dense(), &slow, &STEPS).ridge_tokens(), Some(1.0));
        let mut fast = machine();
        for reading in &mut fast.kernels {
            reading.ns /= 1e6;
        }
        assert_eq!(of(&dense(), &fast, &STEPS).ridge_tokens(), None);
    }

    #[test]
    fn what_was_not_measured_leaves_its_limit_unknown() {
        let mut calibration = machine();
        calibration.reads.clear();
        calibration.kernels.retain(|reading| {
            !matches!(
                reading.kernel,
                Kernel::Matrix {
                    tensor_type: Q8_0,
                    columns: 512,
                    ..
                }
            )
        });
        let roofline = of(&dense(), &calibration, &STEPS);
        // A product with one column says nothing of many.
        assert_eq!(
            (roofline.reading.as_ref(), roofline.arithmetic),
            (None, None)
        );
        assert_eq!(roofline.ridge_tokens(), None);
        assert_eq!(roofline.limit(1.0), None);
    }

    #[test]
    fn more_tokens_touch_more_experts() {
        let tensors: Vec<Tensor<'_>> = vec![
            ("output.weight".into(), F16, &[256, 1000]),
            ("blk.0.ffn_up_exps.weight".into(), F16, &[256, 64, 8]),
            ("blk.1.attn_q.weight".into(), F16, &[256, 256]),
        ];
        let mut keys = KEYS.to_vec();
        keys.extend([("expert_count", 8), ("expert_used_count", 2)]);
        let model = testing::model("qwen2moe", &keys, &tensors);
        let roofline = of(&model, &machine(), &[1, 2, 512]);
        let expert = 256 * 64 * 2;
        let [one, two, many] = roofline.steps[..] else {
            panic!("three steps");
        };
        // 2 of 8; then 8 (1 - 0.75^2) = 3.5; then all.
        assert_eq!(two.bytes.0 - one.bytes.0, expert * 3 / 2);
        let cache = |tokens: u64| {
            let shape = Shape::from_model(&model).unwrap();
            cache::read_per_token(&shape, &Question::default().context, tokens - 1)
                .unwrap()
                .0
        };
        assert_eq!(
            many.bytes.0 - cache(512) - (one.bytes.0 - cache(1)),
            expert * 6
        );
    }

    #[test]
    fn a_model_that_does_not_write_has_no_roofline() {
        let model = testing::model("bert", &[("block_count", 1)], &[]);
        let none = roofline(&model, &Question::default(), &machine(), &STEPS, &|_| None);
        assert!(none.is_err());
    }
}
