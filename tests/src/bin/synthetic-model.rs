//! `synthetic-model KIND OUT`: writes one of two large models of random weights, the same to the
//! byte on every machine, for the benchmarks that hold predictions against measurements.
//!
//! - `dense-1gb`: a Llama of 1.7 billion parameters in Q4_K_M.
//! - `moe-2gb`: a Qwen3 with 64 experts, 8 of them used, 2.7 billion parameters, in Q5_K_M.
//!
//! Every width is a multiple of 256, so that each tensor has the type that llama.cpp's quantizer
//! means for it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use twospeed_gguf::{Field, TensorType};
use twospeed_library::synthetic::{SYNTHETIC, Tensor};
use twospeed_library::vocabulary::{self, Vocabulary};
use twospeed_library::{FileType, LlamaShape, Synthetic};

const USAGE: &str = "Write synthetic-model KIND OUT with a KIND of dense-1gb or moe-2gb.";

/// 2,048 wide with 16 heads of 128 and 8 for keys and values, as Qwen3 1.7B.
const DENSE: LlamaShape = LlamaShape {
    width: 2048,
    layers: 28,
    heads: 16,
    kv_heads: 8,
    feed_forward: 6144,
    vocabulary: 64_000,
    context: 32_768,
};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let made = match &arguments[..] {
        [kind, out] => model(kind.to_str().unwrap_or_default()).map(|made| (made, out)),
        _ => None,
    };
    let Some((model, out)) = made else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match write(&model, Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "{} cannot be written: {error}. Name another file.",
                Path::new(out).display()
            );
            ExitCode::FAILURE
        }
    }
}

fn model(kind: &str) -> Option<Synthetic> {
    match kind {
        "dense-1gb" => {
            let name = "Synthetic dense 1.7B (random weights)";
            Some(DENSE.model(name, FileType::Q4_K_M, 1))
        }
        "moe-2gb" => experts().quantized_as(FileType::Q5_K_M),
        _ => None,
    }
}

fn write(model: &Synthetic, out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    model.write(&mut file, &mut |_, _| true)?;
    file.flush()?;
    Ok(())
}

/// Widths of a mixture of experts in the manner of Qwen3 30B A3B, smaller.
mod shape {
    pub const WIDTH: u32 = 1536;
    pub const LAYERS: u32 = 16;
    pub const HEADS: u32 = 16;
    pub const KV_HEADS: u32 = 4;
    pub const HEAD: u32 = 128;
    pub const EXPERTS: u32 = 64;
    pub const USED: u32 = 8;
    pub const EXPERT_WIDTH: u32 = 512;
    pub const VOCABULARY: u32 = 64_000;
}

/// The mixture of experts in half precision.
fn experts() -> Synthetic {
    use shape::{EXPERT_WIDTH, EXPERTS, HEAD, HEADS, KV_HEADS, LAYERS, USED, VOCABULARY, WIDTH};
    let words = Vocabulary::of_syllables(VOCABULARY as usize);
    let fields: Vec<(&str, Field)> = vec![
        ("general.architecture", "qwen3moe".into()),
        ("general.type", "model".into()),
        (
            "general.name",
            "Synthetic experts 2.7B (random weights)".into(),
        ),
        ("general.quantization_version", 2u32.into()),
        (SYNTHETIC, true.into()),
        ("qwen3moe.block_count", LAYERS.into()),
        ("qwen3moe.context_length", 32_768u32.into()),
        ("qwen3moe.embedding_length", WIDTH.into()),
        ("qwen3moe.feed_forward_length", (EXPERT_WIDTH * USED).into()),
        ("qwen3moe.attention.head_count", HEADS.into()),
        ("qwen3moe.attention.head_count_kv", KV_HEADS.into()),
        ("qwen3moe.attention.key_length", HEAD.into()),
        ("qwen3moe.attention.value_length", HEAD.into()),
        ("qwen3moe.attention.layer_norm_rms_epsilon", 1e-6f32.into()),
        ("qwen3moe.rope.freq_base", 1_000_000f32.into()),
        ("qwen3moe.expert_count", EXPERTS.into()),
        ("qwen3moe.expert_used_count", USED.into()),
        ("qwen3moe.expert_feed_forward_length", EXPERT_WIDTH.into()),
        ("tokenizer.ggml.model", "llama".into()),
        ("tokenizer.ggml.tokens", Field::texts(&words.pieces)),
        ("tokenizer.ggml.scores", words.scores.as_slice().into()),
        ("tokenizer.ggml.token_type", words.kinds.as_slice().into()),
        ("tokenizer.ggml.bos_token_id", vocabulary::BEGIN.into()),
        ("tokenizer.ggml.eos_token_id", vocabulary::END.into()),
        (
            "tokenizer.ggml.unknown_token_id",
            vocabulary::UNKNOWN.into(),
        ),
        ("tokenizer.ggml.add_bos_token", true.into()),
    ];
    let fields = fields
        .into_iter()
        .map(|(key, field)| (key.to_owned(), field));

    let tensor = |name: String, tensor_type, dimensions: &[u32]| Tensor {
        name,
        dimensions: dimensions.iter().copied().map(u64::from).collect(),
        tensor_type,
    };
    let mut tensors = vec![
        tensor(
            "token_embd.weight".into(),
            TensorType::F16,
            &[WIDTH, VOCABULARY],
        ),
        tensor(
            "output.weight".into(),
            TensorType::F16,
            &[WIDTH, VOCABULARY],
        ),
        tensor("output_norm.weight".into(), TensorType::F32, &[WIDTH]),
    ];
    for layer in 0..LAYERS {
        let mut add = |part: &str, tensor_type, dimensions: &[u32]| {
            let name = format!("blk.{layer}.{part}.weight");
            tensors.push(tensor(name, tensor_type, dimensions));
        };
        add("attn_norm", TensorType::F32, &[WIDTH]);
        add("attn_q", TensorType::F16, &[WIDTH, HEAD * HEADS]);
        add("attn_k", TensorType::F16, &[WIDTH, HEAD * KV_HEADS]);
        add("attn_v", TensorType::F16, &[WIDTH, HEAD * KV_HEADS]);
        add("attn_output", TensorType::F16, &[HEAD * HEADS, WIDTH]);
        add("attn_q_norm", TensorType::F32, &[HEAD]);
        add("attn_k_norm", TensorType::F32, &[HEAD]);
        add("ffn_norm", TensorType::F32, &[WIDTH]);
        add("ffn_gate_inp", TensorType::F32, &[WIDTH, EXPERTS]);
        add(
            "ffn_gate_exps",
            TensorType::F16,
            &[WIDTH, EXPERT_WIDTH, EXPERTS],
        );
        add(
            "ffn_up_exps",
            TensorType::F16,
            &[WIDTH, EXPERT_WIDTH, EXPERTS],
        );
        add(
            "ffn_down_exps",
            TensorType::F16,
            &[EXPERT_WIDTH, WIDTH, EXPERTS],
        );
    }
    Synthetic {
        fields: fields.collect(),
        tensors,
        seed: 2,
        silent_tokens: vocabulary::SPECIAL as u64,
    }
}
