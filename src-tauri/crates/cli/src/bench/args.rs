//! `twospeed bench`: llama-bench's flags with llama-bench's meaning.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::lists::{BadValue, Flag, List, Numbers, PromptGen};

/// Measure prefill and decode by llama-bench's conventions.
///
/// Several values are given with commas (512,1024), by ranges (0-4096+1024, 1-64*2) or by repeating the
/// flag; every combination is measured.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Model file, or "builtin" for the built-in model; of a split set the first part
    #[arg(short, long = "model", value_name = "FILE", required = true, action = ArgAction::Append)]
    pub model: Vec<PathBuf>,
    /// Prompt tokens of the prefill tests; 0 for none [default: 512]
    #[arg(short = 'p', long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_prompt: Vec<Numbers>,
    /// Generated tokens of the decode tests; 0 for none [default: 128]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_gen: Vec<Numbers>,
    /// Prompt and generation timed as one (-pg)
    #[arg(long = "prompt-gen", value_name = "PP,TG", action = ArgAction::Append)]
    pub prompt_gen: Vec<PromptGen>,
    /// Tokens already in the cache when a test starts [default: 0]
    #[arg(short = 'd', long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_depth: Vec<Numbers>,
    /// Repetitions of each test
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 5,
        allow_negative_numbers = true
    )]
    pub repetitions: u32,
    /// Logical batch size (-b) [default: 2048]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub batch_size: Vec<Numbers>,
    /// Micro-batch size (-ub) [default: 512]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub ubatch_size: Vec<Numbers>,
    /// Threads [default: the physical cores this process may use]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub threads: Vec<Numbers>,
    /// Type of the K cache (-ctk) [default: f16]
    #[arg(long, value_name = "TYPE", value_delimiter = ',', value_parser = CACHE_TYPES, action = ArgAction::Append)]
    pub cache_type_k: Vec<String>,
    /// Type of the V cache (-ctv) [default: f16]
    #[arg(long, value_name = "TYPE", value_delimiter = ',', value_parser = CACHE_TYPES, action = ArgAction::Append)]
    pub cache_type_v: Vec<String>,
    /// Layers on the GPU (-ngl); -1 leaves it to the engine [default: -1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, action = ArgAction::Append)]
    pub n_gpu_layers: Vec<Numbers>,
    /// Flash attention (-fa): auto, on, off [default: auto]
    #[arg(long, value_name = "MODE", value_delimiter = ',', allow_hyphen_values = true, action = ArgAction::Append)]
    pub flash_attn: Vec<FlashFlag>,
    /// CPU affinity mask in hexadecimal [default: 0x0]
    #[arg(short = 'C', long, value_name = "HEX", value_delimiter = ',', value_parser = mask, action = ArgAction::Append)]
    pub cpu_mask: Vec<String>,
    /// Place threads strictly by the mask: 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub cpu_strict: Vec<List<Flag>>,
    /// Polling level of the threads, 0 to 100 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub poll: Vec<Numbers>,
    /// Layers whose experts stay on the CPU (-ncmoe) [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_cpu_moe: Vec<Numbers>,
    /// How GPUs share a model (-sm): none, layer, row, tensor [default: layer]
    #[arg(long, value_name = "MODE", value_delimiter = ',', value_parser = ["none", "layer", "row", "tensor"], action = ArgAction::Append)]
    pub split_mode: Vec<String>,
    /// The GPU used with --split-mode none (-mg) [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub main_gpu: Vec<Numbers>,
    /// Keep the KV cache on the host (-nkvo): 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub no_kv_offload: Vec<List<Flag>>,
    /// Devices to use, joined by / (-dev) [default: auto]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',', action = ArgAction::Append)]
    pub device: Vec<String>,
    /// Share of each GPU, joined by / (-ts) [default: 0]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', action = ArgAction::Append)]
    pub tensor_split: Vec<String>,
    /// Tensors to place elsewhere, pattern=buffer joined by ; (-ot)
    #[arg(long, value_name = "RULES", value_delimiter = ',', action = ArgAction::Append)]
    pub override_tensor: Vec<String>,
    /// How the file is read (-lm): auto, none, mmap, mlock, mmap+mlock, dio [default: auto]
    #[arg(long, value_name = "MODE", value_delimiter = ',', value_parser = ["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"], action = ArgAction::Append)]
    pub load_mode: Vec<String>,
    /// Read some tensors only when needed (-lzm): auto, on, off [default: auto]
    #[arg(long, value_name = "MODE", value_delimiter = ',', value_parser = ["auto", "on", "off"], action = ArgAction::Append)]
    pub lazy_mode: Vec<String>,
    /// Extract embeddings (-embd): 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub embeddings: Vec<List<Flag>>,
    /// Keep operations on the device of their weights (-nopo): 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub no_op_offload: Vec<List<Flag>>,
    /// Bypass the host buffer: 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub no_host: Vec<List<Flag>>,
    /// Repack weights for the CPU: 0, 1 [default: 1]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub repack: Vec<List<Flag>>,
    /// MiB to leave free on each device when fitting (-fitt) [default: no fitting]
    #[arg(long, value_name = "MIB", allow_negative_numbers = true, action = ArgAction::Append)]
    pub fit_target: Vec<Numbers>,
    /// Smallest context when fitting (-fitc) [default: no fitting]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub fit_ctx: Vec<Numbers>,
    /// NUMA strategy: disabled, distribute, isolate, numactl
    #[arg(long, value_name = "MODE", default_value = "disabled", value_parser = ["disabled", "distribute", "isolate", "numactl"])]
    pub numa: String,
    /// Priority of the worker, -1 to 3
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-1..=3))]
    pub prio: i32,
    /// Seconds to wait before each test
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub delay: u32,
    /// Leave out the untimed warm-up
    #[arg(long)]
    pub no_warmup: bool,
    /// What goes to standard output: md, json, jsonl, csv, sql, results (with samples and environment)
    #[arg(short, long, value_name = "FORMAT", default_value = "md", value_parser = super::OUTPUTS)]
    pub output: String,
    /// The same on standard error (-oe) [default: none]
    #[arg(long, value_name = "FORMAT", value_parser = super::OUTPUTS_ERR)]
    pub output_err: Option<String>,
    /// Say each step on standard error, also where it is no terminal
    #[arg(long)]
    pub progress: bool,
    /// Show the engine's log on standard error
    #[arg(short, long)]
    pub verbose: bool,
    /// Leave nothing in the history
    #[arg(long, overrides_with = "save")]
    pub no_save: bool,
    /// Keep everything in the history (the default)
    #[arg(long, overrides_with = "no_save")]
    pub save: bool,
    /// Run this CPU variant instead of the best one
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
}

/// Types of the KV cache: llama-bench's, and `f32`, which the engine takes too.
const CACHE_TYPES: [&str; 9] = [
    "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1",
];

/// A mask as it was written, when it is one.
fn mask(text: &str) -> Result<String, BadValue> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        Ok(text.to_owned())
    } else {
        Err(BadValue::NoMask)
    }
}

/// A value of `-fa`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlashFlag(pub twospeed_engine::FlashAttention);

impl std::str::FromStr for FlashFlag {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        use twospeed_engine::FlashAttention::{Auto, Off, On};
        Ok(Self(match text {
            "1" | "on" | "enabled" | "true" => On,
            "0" | "off" | "disabled" | "false" => Off,
            "-1" | "auto" => Auto,
            other => return Err(BadValue::NoMode(other.to_owned())),
        }))
    }
}
