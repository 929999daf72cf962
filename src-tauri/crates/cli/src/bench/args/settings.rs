//! llama-bench's settings of the engine.

use clap::{ArgAction, Args};

use crate::bench::lists::{BadValue, Flag, List, Numbers};
use crate::bench::profile::Profile;

/// Every setting takes a list; all combinations are measured.
#[derive(Debug, Clone, Args)]
pub struct SettingArgs {
    /// Logical batch size (-b) [default: 2048]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub batch_size: Vec<Numbers>,
    /// Micro-batch size (-ub) [default: 512]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub ubatch_size: Vec<Numbers>,
    /// Threads [default: the physical cores this process may use]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub threads: Vec<Numbers>,
    /// CPU affinity mask in hexadecimal [default: 0x0]
    #[arg(short = 'C', long, value_name = "HEX", value_delimiter = ',', value_parser = mask, action = ArgAction::Append)]
    pub cpu_mask: Vec<String>,
    /// Place threads strictly by the mask: 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub cpu_strict: Vec<List<Flag>>,
    /// Polling level of the threads, 0 to 100 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub poll: Vec<Numbers>,
    /// Run this CPU variant instead of the best one
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Start from the settings that `twospeed tune` found: tuned (what was tuned last), tuned:prefill,
    /// tuned:decode, tuned:512,128; other flags go before it [default: llama-bench's defaults]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<Profile>,
    /// Type of the K cache (-ctk): f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1 [default: f16]
    #[arg(long, value_name = "TYPE", value_delimiter = ',', hide_possible_values = true, value_parser = CACHE_TYPES, action = ArgAction::Append)]
    pub cache_type_k: Vec<String>,
    /// Type of the V cache (-ctv): the same [default: f16]
    #[arg(long, value_name = "TYPE", value_delimiter = ',', hide_possible_values = true, value_parser = CACHE_TYPES, action = ArgAction::Append)]
    pub cache_type_v: Vec<String>,
    /// Flash attention (-fa): auto, on, off [default: auto]
    #[arg(long, value_name = "MODE", value_delimiter = ',', allow_hyphen_values = true, action = ArgAction::Append)]
    pub flash_attn: Vec<FlashFlag>,
    /// Extract embeddings (-embd): 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub embeddings: Vec<List<Flag>>,
    /// Repack weights for the CPU: 0, 1 [default: 1]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub repack: Vec<List<Flag>>,
    /// How the file is read (-lm): auto, none, mmap, mlock, mmap+mlock, dio [default: auto]
    #[arg(long, value_name = "MODE", value_delimiter = ',', hide_possible_values = true, value_parser = ["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"], action = ArgAction::Append)]
    pub load_mode: Vec<String>,
    /// Read some tensors only when needed (-lzm): auto, on, off [default: auto]
    #[arg(long, value_name = "MODE", value_delimiter = ',', hide_possible_values = true, value_parser = ["auto", "on", "off"], action = ArgAction::Append)]
    pub lazy_mode: Vec<String>,
    /// Layers on the GPU (-ngl); -1 leaves it to the engine [default: -1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, action = ArgAction::Append)]
    pub n_gpu_layers: Vec<Numbers>,
    /// Layers whose experts stay on the CPU (-ncmoe) [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_cpu_moe: Vec<Numbers>,
    /// Devices to use, joined by / (-dev): auto, none or what --list-devices says [default: auto]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',', action = ArgAction::Append)]
    pub device: Vec<String>,
    /// How GPUs share a model (-sm): none, layer, row, tensor [default: layer]
    #[arg(long, value_name = "MODE", value_delimiter = ',', hide_possible_values = true, value_parser = ["none", "layer", "row", "tensor"], action = ArgAction::Append)]
    pub split_mode: Vec<String>,
    /// The GPU used with --split-mode none (-mg) [default: 0]
    // llama-bench takes the last one where it is given again.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        overrides_with = "main_gpu"
    )]
    pub main_gpu: Option<Numbers>,
    /// Share of each GPU, joined by / (-ts) [default: 0]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', action = ArgAction::Append)]
    pub tensor_split: Vec<String>,
    /// Tensors to place elsewhere, pattern=buffer joined by ; (-ot)
    #[arg(long, value_name = "RULES", value_delimiter = ',', action = ArgAction::Append)]
    pub override_tensor: Vec<String>,
    /// Keep the KV cache on the host (-nkvo): 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub no_kv_offload: Vec<List<Flag>>,
    /// Keep operations on the device of their weights (-nopo): 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub no_op_offload: Vec<List<Flag>>,
    /// Bypass the host buffer: 0, 1 [default: 0]
    #[arg(long, value_name = "0|1", action = ArgAction::Append)]
    pub no_host: Vec<List<Flag>>,
    /// MiB to leave free on each device when fitting (-fitt) [default: no fitting]
    #[arg(long, value_name = "MIB", allow_negative_numbers = true, action = ArgAction::Append)]
    pub fit_target: Vec<Numbers>,
    /// Smallest context when fitting (-fitc) [default: no fitting]
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub fit_ctx: Vec<Numbers>,
    /// NUMA strategy: disabled, distribute, isolate, numactl
    #[arg(long, value_name = "MODE", default_value = "disabled", hide_possible_values = true, value_parser = ["disabled", "distribute", "isolate", "numactl"])]
    pub numa: String,
    /// Priority of the worker, -1 to 3
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-1..=3))]
    pub prio: i32,
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
