//! llama-bench's settings in the engine's terms. A value the engine does not know is an error that
//! names it, never a silent default.

use std::ffi::CString;

use llama_cpp_sys_2 as sys;
use twospeed_engine::{FlashAttention, Settings};

use crate::failure::Stopped;

/// Most threads a thread pool of ggml can hold (GGML_MAX_N_THREADS).
pub const MAX_THREADS: usize = 512;

/// Experts of the feed-forward layers, by the names of their tensors (llama.cpp `common/common.h`).
const EXPERTS: &str = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps";

/// Model parameters with everything they point to.
pub struct ModelParams {
    raw: sys::llama_model_params,
    // What `raw` points to: kept, never touched again.
    _devices: Vec<sys::ggml_backend_dev_t>,
    _tensor_split: Vec<f32>,
    _patterns: Vec<CString>,
    _overrides: Vec<sys::llama_model_tensor_buft_override>,
}

impl ModelParams {
    /// The settings that shape loading.
    pub fn new(settings: &Settings) -> Result<Self, Stopped> {
        check_fit(settings)?;
        let mut devices = devices(&settings.devices)?;
        let tensor_split = tensor_split(&settings.tensor_split)?;
        let (patterns, overrides) = overrides(settings)?;
        // SAFETY: a function without preconditions.
        let mut raw = unsafe { sys::llama_model_default_params() };
        raw.n_gpu_layers = settings.n_gpu_layers;
        if !devices.is_empty() {
            raw.devices = devices.as_mut_ptr();
        }
        raw.split_mode = split_mode(&settings.split_mode)?;
        raw.load_mode = load_mode(&settings.load_mode)?;
        raw.lazy_mode = lazy_mode(&settings.lazy_mode)?;
        raw.main_gpu = i32::try_from(settings.main_gpu).map_err(|_| {
            unknown(
                "main_gpu",
                &settings.main_gpu.to_string(),
                "the number of a GPU",
            )
        })?;
        raw.tensor_split = tensor_split.as_ptr();
        raw.no_host = settings.no_host;
        raw.use_extra_bufts = settings.repack;
        raw.tensor_buft_overrides = overrides.as_ptr();
        Ok(Self {
            raw,
            _devices: devices,
            _tensor_split: tensor_split,
            _patterns: patterns,
            _overrides: overrides,
        })
    }

    /// The engine's struct; valid while `self` lives.
    pub fn raw(&self) -> sys::llama_model_params {
        self.raw
    }
}

/// Context parameters for `n_ctx` tokens, as llama-bench sets them.
///
/// `whole_outputs`: the model's outputs cannot be limited (encoders, embeddings).
pub fn context_params(
    settings: &Settings,
    n_ctx: u32,
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
    raw.n_ctx = n_ctx;
    raw.n_batch = settings.n_batch;
    raw.n_ubatch = settings.n_ubatch;
    // 0 is "as many as the batch has": llama-bench's default, and the same as a whole micro-batch.
    let whole = whole_outputs || settings.embeddings || settings.n_outputs >= settings.n_ubatch;
    raw.n_outputs_max = if whole { 0 } else { settings.n_outputs };
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

/// Fitting a model to a device's memory needs a device; without one there is nothing to fit.
fn check_fit(settings: &Settings) -> Result<(), Stopped> {
    use llama_cpp_2::LlamaBackendDeviceType::{Gpu, IntegratedGpu};
    let fits = settings.fit_target != 0 || settings.fit_min_ctx != 0;
    let has_gpu = || {
        llama_cpp_2::list_llama_ggml_backend_devices()
            .iter()
            .any(|device| matches!(device.device_type, Gpu | IntegratedGpu))
    };
    if fits && has_gpu() {
        return Err(Stopped::bad_setting(
            "fit_target and fit_min_ctx are not honoured here: say how many layers go to the GPU (-ngl).",
        ));
    }
    Ok(())
}

fn cache_type(setting: &str, name: &str) -> Result<sys::ggml_type, Stopped> {
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

fn split_mode(name: &str) -> Result<sys::llama_split_mode, Stopped> {
    choose(
        "split_mode",
        name,
        &[
            ("none", sys::LLAMA_SPLIT_MODE_NONE),
            ("layer", sys::LLAMA_SPLIT_MODE_LAYER),
            ("row", sys::LLAMA_SPLIT_MODE_ROW),
            ("tensor", sys::LLAMA_SPLIT_MODE_TENSOR),
        ],
    )
}

fn load_mode(name: &str) -> Result<sys::llama_load_mode, Stopped> {
    choose(
        "load_mode",
        name,
        &[
            ("auto", sys::LLAMA_LOAD_MODE_AUTO),
            ("none", sys::LLAMA_LOAD_MODE_NONE),
            ("mmap", sys::LLAMA_LOAD_MODE_MMAP),
            ("mlock", sys::LLAMA_LOAD_MODE_MLOCK),
            ("mmap+mlock", sys::LLAMA_LOAD_MODE_MMAP_MLOCK),
            ("dio", sys::LLAMA_LOAD_MODE_DIRECT_IO),
        ],
    )
}

fn lazy_mode(name: &str) -> Result<sys::llama_lazy_mode, Stopped> {
    choose(
        "lazy_mode",
        name,
        &[
            ("auto", sys::LLAMA_LAZY_MODE_AUTO),
            ("off", sys::LLAMA_LAZY_MODE_OFF),
            ("on", sys::LLAMA_LAZY_MODE_ON),
        ],
    )
}

fn choose<T: Copy>(setting: &str, name: &str, values: &[(&str, T)]) -> Result<T, Stopped> {
    if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let known: Vec<&str> = values.iter().map(|(known, _)| *known).collect();
    Err(unknown(setting, name, &known.join(", ")))
}

fn unknown(setting: &str, value: &str, known: &str) -> Stopped {
    Stopped::bad_setting(format!(
        "{setting} is \"{value}\", which the engine does not know: give {known}."
    ))
}

/// `auto` is an empty list (the engine decides); any other ends with a null, as the engine wants it.
fn devices(list: &str) -> Result<Vec<sys::ggml_backend_dev_t>, Stopped> {
    let list = list.trim();
    if list == "auto" {
        return Ok(Vec::new());
    }
    let mut devices = Vec::new();
    if list != "none" {
        for name in list.split('/').map(str::trim) {
            devices.push(device(name)?);
        }
    }
    devices.push(std::ptr::null_mut());
    Ok(devices)
}

fn device(name: &str) -> Result<sys::ggml_backend_dev_t, Stopped> {
    let found = CString::new(name).ok().map(|name| {
        // SAFETY: a C string; the registry lives as long as the process.
        unsafe { sys::ggml_backend_dev_by_name(name.as_ptr()) }
    });
    match found {
        // SAFETY: a device of the registry.
        Some(device)
            if !device.is_null()
                && unsafe { sys::ggml_backend_dev_type(device) }
                    != sys::GGML_BACKEND_DEVICE_TYPE_CPU =>
        {
            Ok(device)
        }
        _ => {
            let known = device_names();
            let known = if known.is_empty() {
                "none or auto, this build sees no GPU".into()
            } else {
                known
            };
            Err(unknown("devices", name, &known))
        }
    }
}

fn device_names() -> String {
    let devices = llama_cpp_2::list_llama_ggml_backend_devices();
    let names: Vec<&str> = devices
        .iter()
        .filter(|device| device.device_type != llama_cpp_2::LlamaBackendDeviceType::Cpu)
        .map(|device| device.name.as_str())
        .collect();
    names.join("/")
}

/// As many shares as the engine can have devices; 0 for all is "by their free memory".
fn tensor_split(list: &str) -> Result<Vec<f32>, Stopped> {
    let room = llama_cpp_2::max_devices();
    let mut shares = vec![0.0; room];
    let given: Vec<&str> = list.split(['/', ';']).collect();
    if given.len() > room {
        return Err(unknown(
            "tensor_split",
            list,
            &format!("at most {room} shares"),
        ));
    }
    for (share, text) in shares.iter_mut().zip(given) {
        *share = match text.trim().parse::<f32>() {
            Ok(value) if value.is_finite() && value >= 0.0 => value,
            _ => return Err(unknown("tensor_split", list, "shares such as 3/1")),
        };
    }
    Ok(shares)
}

type Overrides = (Vec<CString>, Vec<sys::llama_model_tensor_buft_override>);

/// `pattern=buffer` joined with `;`, then the experts that stay on the CPU; ends with an empty one.
fn overrides(settings: &Settings) -> Result<Overrides, Stopped> {
    let mut patterns = Vec::new();
    let mut buffers = Vec::new();
    let list = settings.tensor_buft_overrides.trim();
    if list != "none" && !list.is_empty() {
        for item in list.split(';').filter(|item| !item.is_empty()) {
            let (pattern, buffer) = item
                .split_once('=')
                .ok_or_else(|| unknown("tensor_buft_overrides", item, "pattern=buffer"))?;
            patterns.push(CString::new(pattern).map_err(|_| {
                unknown(
                    "tensor_buft_overrides",
                    item,
                    "a pattern without zero bytes",
                )
            })?);
            buffers.push(buffer_type(buffer)?);
        }
    }
    // Bounded by the engine's own list: a model of more layers than that does not exist.
    // SAFETY: functions without preconditions.
    let room = unsafe { sys::llama_max_tensor_buft_overrides() };
    for layer in 0..settings.n_cpu_moe {
        if patterns.len() + 1 >= room {
            return Err(unknown(
                "n_cpu_moe",
                &settings.n_cpu_moe.to_string(),
                &format!("at most {}", room - 1),
            ));
        }
        let pattern = format!(r"blk\.{layer}{EXPERTS}");
        patterns.push(
            CString::new(pattern)
                .expect("BUG: a pattern made of digits and constants holds no zero"),
        );
        // SAFETY: a function without preconditions.
        buffers.push(unsafe { sys::ggml_backend_cpu_buffer_type() });
    }
    let mut overrides: Vec<_> = patterns
        .iter()
        .zip(buffers)
        .map(|(pattern, buft)| sys::llama_model_tensor_buft_override {
            pattern: pattern.as_ptr(),
            buft,
        })
        .collect();
    overrides.push(sys::llama_model_tensor_buft_override {
        pattern: std::ptr::null(),
        buft: std::ptr::null_mut(),
    });
    Ok((patterns, overrides))
}

fn buffer_type(name: &str) -> Result<sys::ggml_backend_buffer_type_t, Stopped> {
    let mut known = Vec::new();
    // SAFETY: indices below the count; the registry and its names live as long as the process.
    unsafe {
        for index in 0..sys::ggml_backend_dev_count() {
            let buffer = sys::ggml_backend_dev_buffer_type(sys::ggml_backend_dev_get(index));
            if buffer.is_null() {
                continue;
            }
            let its_name = crate::backend::text(sys::ggml_backend_buft_name(buffer));
            if its_name == name {
                return Ok(buffer);
            }
            known.push(its_name);
        }
    }
    Err(unknown("tensor_buft_overrides", name, &known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use twospeed_engine::protocol::FailureCode;

    fn message<T>(result: Result<T, Stopped>) -> String {
        match result {
            Err(Stopped::Failed(failure)) => {
                assert_eq!(failure.code, FailureCode::BadSetting);
                failure.message
            }
            Err(Stopped::Cancelled) => panic!("cancelled"),
            Ok(_) => panic!("accepted"),
        }
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = Settings {
            n_threads: 2,
            ..Settings::default()
        };
        change(&mut settings);
        settings
    }

    #[test]
    fn the_defaults_are_llama_benchs() {
        let raw = context_params(&with(|_| {}), 640, false).unwrap();
        assert_eq!((raw.n_ctx, raw.n_batch, raw.n_ubatch), (640, 2048, 512));
        assert_eq!(raw.n_outputs_max, 0, "a whole micro-batch");
        assert_eq!((raw.n_threads, raw.n_threads_batch), (2, 2));
        assert_eq!(
            (raw.type_k, raw.type_v),
            (sys::GGML_TYPE_F16, sys::GGML_TYPE_F16)
        );
        assert_eq!(raw.flash_attn_type, sys::LLAMA_FLASH_ATTN_TYPE_AUTO);
        assert!(raw.offload_kqv && raw.op_offload && !raw.embeddings && !raw.swa_full);

        let params = ModelParams::new(&with(|_| {})).unwrap();
        let raw = params.raw();
        assert_eq!(raw.n_gpu_layers, -1);
        assert!(raw.devices.is_null());
        assert_eq!(raw.split_mode, sys::LLAMA_SPLIT_MODE_LAYER);
        assert_eq!(raw.load_mode, sys::LLAMA_LOAD_MODE_AUTO);
        assert_eq!(raw.lazy_mode, sys::LLAMA_LAZY_MODE_AUTO);
        assert!(raw.use_extra_bufts && !raw.no_host);
        // SAFETY: the list has at least its end, and lives in `params`.
        assert!(unsafe { (*raw.tensor_buft_overrides).pattern.is_null() });
    }

    #[test]
    fn one_output_leaves_room_for_one() {
        let settings = with(|s| s.n_outputs = 1);
        assert_eq!(
            context_params(&settings, 256, false).unwrap().n_outputs_max,
            1
        );
        assert_eq!(
            context_params(&settings, 256, true).unwrap().n_outputs_max,
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
            let raw = context_params(&settings, 256, false).unwrap();
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
            message(context_params(&bad_type, 256, false)),
            "type_v is \"q3_k\", which the engine does not know: give f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1."
        );
        let no_threads = with(|s| s.n_threads = 0);
        assert!(message(context_params(&no_threads, 256, false)).starts_with("n_threads is 0"));
        for (setting, settings) in [
            ("split_mode", with(|s| s.split_mode = "diagonal".into())),
            ("load_mode", with(|s| s.load_mode = "fast".into())),
            ("lazy_mode", with(|s| s.lazy_mode = "very".into())),
            ("devices", with(|s| s.devices = "Abacus0".into())),
            ("tensor_split", with(|s| s.tensor_split = "1/x".into())),
            (
                "tensor_buft_overrides",
                with(|s| s.tensor_buft_overrides = "blk=Abacus".into()),
            ),
        ] {
            let message = message(ModelParams::new(&settings).map(|_| ()));
            assert!(message.starts_with(setting), "{message}");
        }
    }

    #[test]
    fn experts_that_stay_on_the_cpu_are_patterns_by_layer() {
        let (patterns, overrides) = overrides(&with(|s| s.n_cpu_moe = 2)).unwrap();
        let patterns: Vec<_> = patterns.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(
            patterns,
            [
                r"blk\.0\.ffn_(up|down|gate|gate_up)_(ch|)exps",
                r"blk\.1\.ffn_(up|down|gate|gate_up)_(ch|)exps",
            ]
        );
        assert_eq!(overrides.len(), 3, "two and the end of the list");
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

    #[test]
    fn shares_are_filled_up_with_zeros() {
        let shares = tensor_split("3/1").unwrap();
        assert_eq!(shares.len(), llama_cpp_2::max_devices());
        assert_eq!(shares[0], 3.0);
        assert!(shares[2..].iter().all(|share| *share == 0.0));
    }
}
