//! What a test is: llama-bench's settings, by llama-bench's names.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether flash attention is used; llama-bench's `-fa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashAttention {
    /// The engine decides (-1).
    #[default]
    Auto,
    /// Off (0).
    Off,
    /// On (1).
    On,
}

impl FlashAttention {
    /// llama-bench's number for it: -1 auto, 0 off, 1 on.
    pub fn number(self) -> i32 {
        match self {
            Self::Auto => -1,
            Self::Off => 0,
            Self::On => 1,
        }
    }
}

/// Every setting of llama-bench that shapes a test, with its default (build 11434).
///
/// Two tests may be compared or merged only when all of these and the [`TestSpec`] are equal.
/// Strings hold llama-bench's own spelling, so that they go into its formats unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Logical batch: tokens handed to one decode call.
    pub n_batch: u32,
    /// Micro-batch: tokens computed together.
    pub n_ubatch: u32,
    /// Threads of the engine. There is no default here: `measure::threads` finds it.
    pub n_threads: u32,
    /// CPU affinity mask, `0x0` for none.
    pub cpu_mask: String,
    /// Place threads strictly by the mask.
    pub cpu_strict: bool,
    /// Polling level of the thread pool, 0 to 100.
    pub poll: u32,
    /// ggml type of the K cache: `f16`, `q8_0`, ...
    pub type_k: String,
    /// ggml type of the V cache.
    pub type_v: String,
    /// Layers on the GPU; -1 leaves it to the engine.
    pub n_gpu_layers: i32,
    /// Layers whose experts stay on the CPU.
    pub n_cpu_moe: u32,
    /// `none`, `layer`, `row` or `tensor`.
    pub split_mode: String,
    /// The GPU used when `split_mode` is `none`.
    pub main_gpu: u32,
    /// Keep the KV cache on the host.
    pub no_kv_offload: bool,
    /// Flash attention.
    pub flash_attn: FlashAttention,
    /// Device list joined with `/`, or `auto`.
    pub devices: String,
    /// Share per device joined with `/`; `0.00` when not set.
    pub tensor_split: String,
    /// `pattern=buffer` joined with `;`, or `none`.
    pub tensor_buft_overrides: String,
    /// `auto`, `none`, `mmap`, `mlock`, `mmap+mlock` or `dio`, as llama-bench spells them.
    pub load_mode: String,
    /// `auto`, `off` or `on`.
    pub lazy_mode: String,
    /// Extract embeddings.
    pub embeddings: bool,
    /// Keep operations on the device of their weights.
    pub no_op_offload: bool,
    /// Bypass the host buffer.
    pub no_host: bool,
    /// Repack weights for the CPU where the engine can.
    pub repack: bool,
    /// MiB to leave free when fitting; 0 = no fitting.
    pub fit_target: u64,
    /// Smallest context when fitting; 0 = no fitting.
    pub fit_min_ctx: u32,
    /// Tokens of a micro-batch whose logits are kept: 512 is llama-bench's default (a whole micro-batch).
    pub n_outputs: u32,
    /// Process priority, 0 to 3.
    pub prio: i32,
    /// NUMA strategy: `disabled`, `distribute`, `isolate` or `numactl`.
    pub numa: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            n_batch: 2048,
            n_ubatch: 512,
            n_threads: 1,
            cpu_mask: "0x0".into(),
            cpu_strict: false,
            poll: 50,
            type_k: "f16".into(),
            type_v: "f16".into(),
            n_gpu_layers: -1,
            n_cpu_moe: 0,
            split_mode: "layer".into(),
            main_gpu: 0,
            no_kv_offload: false,
            flash_attn: FlashAttention::Auto,
            devices: "auto".into(),
            tensor_split: "0.00".into(),
            tensor_buft_overrides: "none".into(),
            load_mode: "auto".into(),
            lazy_mode: "auto".into(),
            embeddings: false,
            no_op_offload: false,
            no_host: false,
            repack: true,
            fit_target: 0,
            fit_min_ctx: 0,
            n_outputs: 512,
            prio: 0,
            numa: "disabled".into(),
        }
    }
}

impl Settings {
    /// Whether a model loaded with these settings can serve a test that asks for `other`.
    ///
    /// The same fields as llama-bench compares before it reloads.
    pub fn same_load(&self, other: &Self) -> bool {
        self.n_gpu_layers == other.n_gpu_layers
            && self.n_cpu_moe == other.n_cpu_moe
            && self.split_mode == other.split_mode
            && self.main_gpu == other.main_gpu
            && self.tensor_split == other.tensor_split
            && self.load_mode == other.load_mode
            && self.lazy_mode == other.lazy_mode
            && self.devices == other.devices
            && self.no_host == other.no_host
            && self.repack == other.repack
            && self.tensor_buft_overrides == other.tensor_buft_overrides
    }
}

/// What is timed: prompt tokens, generated tokens, at a depth.
///
/// `n_prompt` alone is pp, `n_gen` alone is tg, both are pg (timed as one).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestSpec {
    /// Prompt tokens in the timed section.
    pub n_prompt: u32,
    /// Single-token decodes in the timed section.
    pub n_gen: u32,
    /// Tokens filled into the cache before the timed section.
    pub n_depth: u32,
}

impl TestSpec {
    /// Tokens in the timed section.
    pub fn tokens(self) -> u64 {
        u64::from(self.n_prompt) + u64::from(self.n_gen)
    }

    /// Context that the test needs: all of its tokens.
    pub fn context(self) -> u64 {
        self.tokens() + u64::from(self.n_depth)
    }
}

/// llama-bench's name of the test: `pp512`, `tg128`, `pp512+tg128`, with ` @ d4096`.
impl fmt::Display for TestSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.n_prompt, self.n_gen) {
            (p, 0) => write!(f, "pp{p}")?,
            (0, g) => write!(f, "tg{g}")?,
            (p, g) => write!(f, "pp{p}+tg{g}")?,
        }
        if self.n_depth > 0 {
            write!(f, " @ d{}", self.n_depth)?;
        }
        Ok(())
    }
}

/// A model file as it crosses a process boundary: any bytes the OS allows.
///
/// JSON strings are Unicode and paths are not, so a path that is no valid UTF-8 travels as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelPath(pub PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathOnWire {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl Serialize for ModelPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => PathOnWire::Text(text.to_owned()),
            None => PathOnWire::Bytes {
                bytes: self.0.as_os_str().as_encoded_bytes().to_vec(),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ModelPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match PathOnWire::deserialize(deserializer)? {
            PathOnWire::Text(text) => PathBuf::from(text),
            #[cfg(unix)]
            PathOnWire::Bytes { bytes } => {
                use std::os::unix::ffi::OsStringExt;
                PathBuf::from(std::ffi::OsString::from_vec(bytes))
            }
            #[cfg(not(unix))]
            PathOnWire::Bytes { bytes } => {
                PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_llama_benchs_name() {
        let name = |n_prompt, n_gen, n_depth| {
            TestSpec {
                n_prompt,
                n_gen,
                n_depth,
            }
            .to_string()
        };
        assert_eq!(name(512, 0, 0), "pp512");
        assert_eq!(name(0, 128, 4096), "tg128 @ d4096");
        assert_eq!(name(512, 128, 0), "pp512+tg128");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_survives_the_wire() {
        use std::os::unix::ffi::OsStrExt;
        let path = ModelPath(PathBuf::from(std::ffi::OsStr::from_bytes(b"/m/\xff.gguf")));
        let wire = serde_json::to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<ModelPath>(&wire).unwrap(), path);
    }
}
