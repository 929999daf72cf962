//! llama-bench's settings in the engine's terms: those that shape a context and its threads.
//!
//! A value the engine does not know is an error that names it, never a silent default.

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::FailureCode;
use twospeed_engine::{FlashAttention, Settings};

use crate::failure::Stopped;

/// Most threads a thread pool of ggml can hold (GGML_MAX_N_THREADS).
pub const MAX_THREADS: usize = 512;

/// The engine's contexts are multiples of this.
pub const CONTEXT_STEP: u32 = 256;

/// What a context has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Tokens, of all sequences together.
    pub n_ctx: u32,
    /// Sequences side by side.
    pub sequences: u32,
    /// A part of the cache for each sequence; otherwise they share one.
    pub split: bool,
}

/// Room for one sequence of that many tokens.
impl From<u32> for Room {
    fn from(n_ctx: u32) -> Self {
        Self {
            n_ctx,
            sequences: 1,
            split: true,
        }
    }
}

/// Tokens of a context as the engine counts them; else a sentence.
pub fn tokens_of_context(tokens: u64) -> Result<u32, Stopped> {
    // Rounding up must not leave the engine's numbers.
    u32::try_from(tokens)
        .ok()
        .filter(|n_ctx| *n_ctx <= i32::MAX as u32 - CONTEXT_STEP)
        .ok_or_else(|| {
            Stopped::because(
                FailureCode::ContextRefused,
                format!("{tokens} tokens are more than any context holds: ask for fewer."),
            )
        })
}

/// Context parameters for that room, the rest as llama-bench sets it.
///
/// `whole_outputs`: the model's outputs cannot be limited (encoders, embeddings).
pub fn context_params(
    settings: &Settings,
    room: Room,
    whole_outputs: bool,
) -> Result<sys::llama_context_params, Stopped> {
    if settings.n_batch == 0 {
        return Err(Stopped::bad_setting(
            "n_batch is 0: give at least 1 token a batch.",
        ));
    }
    if settings.n_outputs == 0 {
        return Err(Stopped::bad_setting(
            "n_outputs is 0: room for at least 1 token's logits is needed.",
        ));
    }
    let threads = threads(settings)?;
    // SAFETY: a function without preconditions.
    let mut raw = unsafe { sys::llama_context_default_params() };
    raw.n_ctx = room.n_ctx;
    raw.n_seq_max = room.sequences;
    raw.kv_unified = !room.split;
    raw.n_batch = settings.n_batch;
    raw.n_ubatch = settings.n_ubatch;
    // 0 is "as many as the batch has": llama-bench's default, and the same as a whole micro-batch.
    let whole = whole_outputs || settings.embeddings || settings.n_outputs >= settings.n_ubatch;
    // The engine asserts room for a row of each sequence.
    let rows = settings.n_outputs.max(room.sequences);
    raw.n_outputs_max = if whole { 0 } else { rows };
    raw.n_threads = threads;
    raw.n_threads_batch = threads;
    raw.type_k = cache_type("type_k", &settings.type_k)?;
    raw.type_v = cache_type("type_v", &settings.type_v)?;
    raw.offload_kqv = !settings.no_kv_offload;
    raw.flash_attn_type = match settings.flash_attn {
        FlashAttention::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
        FlashAttention::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        FlashAttention::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
    };
    raw.embeddings = settings.embeddings;
    raw.op_offload = !settings.no_op_offload;
    // The library's default is a full-size cache for sliding-window layers; nobody measures that.
    raw.swa_full = false;
    Ok(raw)
}

/// Threads as the engine counts them.
pub fn threads(settings: &Settings) -> Result<i32, Stopped> {
    match settings.n_threads {
        0 => Err(Stopped::bad_setting(
            "n_threads is 0: the engine needs at least 1 thread.",
        )),
        n if n as usize > MAX_THREADS => Err(Stopped::bad_setting(format!(
            "n_threads is {n}: the engine takes at most {MAX_THREADS}."
        ))),
        n => Ok(n as i32),
    }
}

/// CPU mask in hexadecimal, `0x` in front or not: bit n stands for CPU n. All false is no mask.
pub fn cpu_mask(mask: &str) -> Result<[bool; MAX_THREADS], Stopped> {
    let digits = mask.strip_prefix("0x").unwrap_or(mask);
    let mut cpus = [false; MAX_THREADS];
    if digits.is_empty() || digits.len() > MAX_THREADS / 4 {
        return Err(unknown(
            "cpu_mask",
            mask,
            "hexadecimal digits such as 0x3, 128 at most",
        ));
    }
    for (place, digit) in digits.chars().rev().enumerate() {
        let value = digit
            .to_digit(16)
            .ok_or_else(|| unknown("cpu_mask", mask, "hexadecimal digits such as 0x3"))?;
        for bit in 0..4 {
            cpus[4 * place + bit] = value & (1 << bit) != 0;
        }
    }
    Ok(cpus)
}

/// The strategy by name, for `llama_numa_init`.
pub fn numa(name: &str) -> Result<sys::ggml_numa_strategy, Stopped> {
    choose(
        "numa",
        name,
        &[
            ("disabled", sys::GGML_NUMA_STRATEGY_DISABLED),
            ("distribute", sys::GGML_NUMA_STRATEGY_DISTRIBUTE),
            ("isolate", sys::GGML_NUMA_STRATEGY_ISOLATE),
            ("numactl", sys::GGML_NUMA_STRATEGY_NUMACTL),
        ],
    )
}

/// Priority, -1 to 3.
pub fn priority(level: i32) -> Result<sys::ggml_sched_priority, Stopped> {
    if (-1..=3).contains(&level) {
        Ok(level)
    } else {
        Err(unknown("prio", &level.to_string(), "-1, 0, 1, 2 or 3"))
    }
}

/// The type of a cache, by ggml's name.
pub fn cache_type(setting: &str, name: &str) -> Result<sys::ggml_type, Stopped> {
    choose(
        setting,
        name,
        &[
            ("f32", sys::GGML_TYPE_F32),
            ("f16", sys::GGML_TYPE_F16),
            ("bf16", sys::GGML_TYPE_BF16),
            ("q8_0", sys::GGML_TYPE_Q8_0),
            ("q4_0", sys::GGML_TYPE_Q4_0),
            ("q4_1", sys::GGML_TYPE_Q4_1),
            ("iq4_nl", sys::GGML_TYPE_IQ4_NL),
            ("q5_0", sys::GGML_TYPE_Q5_0),
            ("q5_1", sys::GGML_TYPE_Q5_1),
        ],
    )
}

/// The value of a name among those the engine knows.
pub fn choose<T: Copy>(setting: &str, name: &str, values: &[(&str, T)]) -> Result<T, Stopped> {
    if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let known: Vec<&str> = values.iter().map(|(known, _)| *known).collect();
    Err(unknown(setting, name, &known.join(", ")))
}

/// A value the engine does not know, and those it does.
pub fn unknown(setting: &str, value: &str, known: &str) -> Stopped {
    Stopped::bad_setting(format!(
        "{setting} is \"{value}\", which the engine does not know: give {known}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{message, with};

    #[test]
    fn the_defaults_are_llama_benchs() {
        let raw = context_params(&with(|_| {}), Room::from(640), false).unwrap();
        assert_eq!((raw.n_ctx, raw.n_batch, raw.n_ubatch), (640, 2048, 512));
        assert_eq!(raw.n_outputs_max, 0, "a whole micro-batch");
        assert_eq!((raw.n_threads, raw.n_threads_batch), (2, 2));
        assert_eq!(
            (raw.type_k, raw.type_v),
            (sys::GGML_TYPE_F16, sys::GGML_TYPE_F16)
        );
        assert_eq!(raw.flash_attn_type, sys::LLAMA_FLASH_ATTN_TYPE_AUTO);
        assert!(raw.offload_kqv && raw.op_offload && !raw.embeddings && !raw.swa_full);
    }

    #[test]
    fn sequences_have_a_part_of_the_room_each_or_share_it() {
        let shape = |room| {
            let raw = context_params(&with(|_| {}), room, false).unwrap();
            (raw.n_ctx, raw.n_seq_max, raw.kv_unified)
        };
        assert_eq!(shape(Room::from(640)), (640, 1, false));
        let mut room = Room {
            n_ctx: 1024,
            sequences: 4,
            split: true,
        };
        assert_eq!(shape(room), (1024, 4, false));
        room.split = false;
        assert_eq!(shape(room), (1024, 4, true));
    }

    #[test]
    fn one_output_leaves_room_for_one() {
        let settings = with(|s| s.n_outputs = 1);
        assert_eq!(
            context_params(&settings, Room::from(256), false)
                .unwrap()
                .n_outputs_max,
            1
        );
        assert_eq!(
            context_params(&settings, Room::from(256), true)
                .unwrap()
                .n_outputs_max,
            0,
            "an encoder outputs every token"
        );
    }

    #[test]
    fn every_cache_type_of_llama_bench_is_known() {
        for name in [
            "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl",
        ] {
            let settings = with(|s| {
                s.type_k = name.into();
                s.type_v = name.into();
            });
            let raw = context_params(&settings, Room::from(256), false).unwrap();
            // SAFETY: a constant C string of ggml.
            let its_name = unsafe { crate::backend::text(sys::ggml_type_name(raw.type_k)) };
            assert_eq!(its_name, name);
            assert_eq!(raw.type_v, raw.type_k);
        }
    }

    #[test]
    fn an_unknown_value_is_named_with_its_setting() {
        let bad_type = with(|s| s.type_v = "q3_k".into());
        assert_eq!(
            message(context_params(&bad_type, Room::from(256), false)),
            "type_v is \"q3_k\", which the engine does not know: give f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1."
        );
        let no_threads = with(|s| s.n_threads = 0);
        assert!(
            message(context_params(&no_threads, Room::from(256), false))
                .starts_with("n_threads is 0")
        );
    }

    #[test]
    fn a_mask_counts_cpus_from_its_right_end() {
        let on = |mask| -> Vec<usize> {
            let cpus = cpu_mask(mask).unwrap();
            (0..MAX_THREADS).filter(|&cpu| cpus[cpu]).collect()
        };
        assert!(on("0x0").is_empty());
        assert_eq!(on("0x3"), [0, 1]);
        assert_eq!(on("F0"), [4, 5, 6, 7]);
        assert_eq!(on("0x100000000"), [32]);
        assert!(message(cpu_mask("0xg")).contains("cpu_mask"));
        assert!(message(cpu_mask("0x")).contains("cpu_mask"));
    }
}
