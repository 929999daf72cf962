//! Speeds that a hand can follow.

use std::sync::Arc;

use twospeed_gguf::{Model, TensorType};

use super::*;
use crate::calibration::{Kernel, KernelReading};
use crate::estimate::estimate;
use crate::testing::{Tensor, model};
use crate::{BandwidthReading, BytesPerSecond};
use TensorType::{F32, Q8_0};

/// Two layers of 589,824 elements in matrices each, 393,216 of them feed-forward, and an output of
/// 256,000: in Q8_0, of 34 bytes for 32, 626,688 bytes a layer and 272,000.
fn small() -> Model {
    let mut tensors: Vec<Tensor<'static>> = vec![
        ("token_embd.weight".into(), Q8_0, &[256, 1000]),
        ("output.weight".into(), Q8_0, &[256, 1000]),
    ];
    const LAYER: [(&str, TensorType, &[u64]); 9] = [
        ("attn_norm", F32, &[256]),
        ("attn_q", Q8_0, &[256, 256]),
        ("attn_k", Q8_0, &[256, 128]),
        ("attn_v", Q8_0, &[256, 128]),
        ("attn_output", Q8_0, &[256, 256]),
        ("ffn_norm", F32, &[256]),
        ("ffn_gate", Q8_0, &[256, 512]),
        ("ffn_up", Q8_0, &[256, 512]),
        ("ffn_down", Q8_0, &[512, 256]),
    ];
    for layer in 0..2 {
        for (name, tensor_type, dimensions) in LAYER {
            tensors.push((
                format!("blk.{layer}.{name}.weight"),
                tensor_type,
                dimensions,
            ));
        }
    }
    let keys = [
        ("block_count", 2),
        ("embedding_length", 256),
        ("context_length", 8192),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
    ];
    model("llama", &keys, &tensors)
}

fn attention(cells: u32, columns: u32) -> Kernel {
    Kernel::Attention {
        heads: 4,
        kv_heads: 2,
        head: 64,
        type_k: KvType::F16,
        type_v: KvType::F16,
        flash: true,
        cells,
        columns,
        set_bytes: 0,
    }
}

/// 2,560 elements: outputs of (4 + 2 x 2) x 64 + 2 x 256 + 2 x 512, and norms of 2 x 256.
fn layer(columns: u32) -> Kernel {
    Kernel::Layer {
        embedding: 256,
        feed_forward: 512,
        heads: 4,
        kv_heads: 2,
        head: 64,
        columns,
    }
}

/// 0.1 ns a byte; 0.001 ns a multiplication; 1 ns for each head, token and token seen; 1,000 ns
/// for the rest of a layer and 0.01 ns for each element of many tokens; 5,000 ns a step.
fn calibration() -> Calibration {
    let vector = Kernel::Matrix {
        tensor_type: Q8_0,
        inner: 1024,
        rows: 1024,
        columns: 1,
        set_bytes: 1 << 20,
    };
    let product = Kernel::Matrix {
        tensor_type: Q8_0,
        inner: 256,
        rows: 1024,
        columns: 512,
        set_bytes: 1 << 20,
    };
    let Kernel::Layer {
        heads,
        kv_heads,
        head,
        ..
    } = layer(1)
    else {
        unreachable!()
    };
    let wide = Kernel::Layer {
        embedding: 512,
        feed_forward: 1024,
        heads,
        kv_heads,
        head,
        columns: 1,
    };
    let kernels = [
        (vector, 111_411.2),
        (product, 0.256 * 1024.0 * 512.0),
        (attention(1000, 1), 4_000.0),
        (attention(512, 512), 4.0 * 512.0 * 256.5),
        (layer(1), 1_000.0),
        (wide, 1_000.0),
        (layer(512), 0.01 * 2560.0 * 512.0),
    ];
    Calibration {
        id: "c".into(),
        at: "2026-12-01T00:00:00Z".into(),
        backend: "CPU".into(),
        variant: "zen4".into(),
        threads: 2,
        build: 11434,
        ubatch: 512,
        last_level_cache: None,
        reads: vec![BandwidthReading {
            buffer: Bytes::mib(256),
            rate: BytesPerSecond(10_000_000_000),
        }],
        kernels: kernels
            .into_iter()
            .map(|(kernel, ns)| KernelReading {
                kernel,
                ns,
                spread_ns: 0.0,
                repacked: false,
            })
            .collect(),
        step_ns: Some(5_000.0),
    }
}

fn asked(change: impl FnOnce(&mut Question)) -> Question {
    let mut question = Question {
        calibration: Some(Arc::new(calibration())),
        ..Question::default()
    };
    question.context.context = 8192;
    change(&mut question);
    question
}

fn ns(terms: &[Term], what: What) -> f64 {
    let of = terms.iter().filter(|term| term.what == what);
    of.map(|term| term.ns).sum()
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.002
}

const LAYERS: What = What::Weights { tensor_type: Q8_0 };
const OUTPUT: What = What::Output { tensor_type: Q8_0 };

#[test]
fn a_decoded_token_reads_every_weight_and_looks_back() {
    let said = estimate(&small(), &asked(|_| {}));
    let terms = &said.decode.breakdown;
    assert!(near(ns(terms, LAYERS), 125_337.6), "2 x 62,668.8");
    assert!(near(ns(terms, OUTPUT), 27_200.0));
    // The 65th token stands for 128: 2 layers x 4 heads x 65.
    assert!(near(ns(terms, What::Attention), 520.0));
    assert!(near(ns(terms, What::Layers), 2_000.0));
    assert!(near(ns(terms, What::Step), 5_000.0));
    // 160,057.6 ns in all.
    assert!(near(said.decode.expected_tok_s.unwrap().0, 6_247.7));
    assert!(said.decode.expected_low < said.decode.expected_tok_s);
    assert!(said.decode.expected_tok_s < said.decode.expected_high);
    assert_eq!(said.basis.calibration.as_deref(), Some("c"));
}

#[test]
fn depth_costs_attention_alone() {
    let deep = estimate(&small(), &asked(|q| q.depth = 4096));
    let terms = &deep.decode.breakdown;
    // Token 4,161 looks back in 4,352 cells, half of them for each thread: 2 x 4 x 2 x 2,176.
    assert!(near(ns(terms, What::Attention), 34_816.0));
    assert!(near(ns(terms, LAYERS), 125_337.6));
}

#[test]
fn a_prompt_multiplies_all_but_the_last_feed_forward_part() {
    let said = estimate(&small(), &asked(|_| {}));
    let terms = &said.prefill.breakdown;
    // (589,824 + 196,608) x 512 x 0.001, and the last token's 393,216 x 34 / 32 x 0.1.
    assert!(near(ns(terms, LAYERS), 402_653.2 + 41_779.2));
    assert!(near(ns(terms, OUTPUT), 27_200.0));
    // 2 x 4 x 512 x 256.5
    assert!(near(ns(terms, What::Attention), 1_050_624.0));
    // 2 x (1,000 + 0.01 x 2,560 x 512)
    assert!(near(ns(terms, What::Layers), 28_214.4));
}

#[test]
fn a_long_prompt_is_the_sum_of_its_micro_batches() {
    let said = estimate(&small(), &asked(|q| q.prompt = 4096 + 100));
    let terms = &said.prefill.breakdown;
    // 589,824 + 196,608 elements: eight times with 512 tokens, at 0.001 ns each, and once with 100,
    // where reading (0.10625 ns) and multiplying (0.1 ns) meet at 0.1228 (their fourth powers add).
    // Logits of three batches, the last of them of the 100.
    assert!(near(
        ns(terms, LAYERS),
        8.0 * 402_653.2 + 96_577.8 + 3.0 * 41_779.2
    ));
    assert!(near(ns(terms, OUTPUT), 3.0 * 27_200.0));
    // 2 x 4 x (512 x (256.5 + 768.5 + .. + 3,840.5) + 100 x 4,146.5): eight of them are 16,388.
    assert!(near(
        ns(terms, What::Attention),
        8.0 * (512.0 * 16_388.0 + 100.0 * 4_146.5)
    ));
}

#[test]
fn a_prompt_without_end_is_worked_out_at_once() {
    let said = estimate(
        &small(),
        &asked(|q| {
            q.prompt = u64::from(u32::MAX);
            q.context.ubatch = 1;
        }),
    );
    assert!(said.prefill.expected_tok_s.is_some());
}

#[test]
fn users_share_the_weights_and_not_their_caches() {
    let four = estimate(
        &small(),
        &asked(|q| {
            q.context.sequences = 4;
            q.depth = 1024;
        }),
    );
    let terms = &four.decode.breakdown;
    // 4 x 2 x 4 x (1,024 + 65)
    assert!(near(ns(terms, What::Attention), 34_848.0));
    // Reading still binds: 4 columns multiply for 0.004 ns an element, reading takes 0.10625.
    assert!(near(ns(terms, LAYERS), 125_337.6));
    assert!(four.decode.expected_tok_s.unwrap().0 > 3.0 * 6_247.7);
}

#[test]
fn a_correction_moves_the_speed_and_its_band() {
    let correction = Correction {
        factor: 0.9,
        spread: 0.05,
        runs: 4,
        same_model: true,
    };
    let corrected = estimate(
        &small(),
        &asked(|q| q.corrections.decode = Some(correction)),
    );
    let speed = corrected.decode.expected_tok_s.unwrap().0;
    assert!(near(speed, 0.9 * 6_247.7));
    assert!(near(
        corrected.decode.expected_high.unwrap().0,
        1.05 * speed
    ));
    assert_eq!(corrected.basis.corrected_by_runs, 4);
}

#[test]
fn without_a_calibration_nothing_is_expected() {
    let said = estimate(&small(), &asked(|q| q.calibration = None));
    assert_eq!(said.decode.expected_tok_s, None);
    assert_eq!(said.prefill.expected_tok_s, None);
    assert!(said.decode.breakdown.is_empty());
}
