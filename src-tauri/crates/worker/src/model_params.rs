//! llama-bench's settings in the engine's terms: those that shape how a model is loaded.

use std::ffi::CString;

use llama_cpp_sys_2 as sys;
use twospeed_engine::Settings;

use crate::failure::Stopped;
use crate::settings::{choose, unknown};

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
    use crate::testing::{message, with};

    #[test]
    fn the_defaults_are_llama_benchs() {
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
    fn an_unknown_value_is_named_with_its_setting() {
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
    fn shares_are_filled_up_with_zeros() {
        let shares = tensor_split("3/1").unwrap();
        assert_eq!(shares.len(), llama_cpp_2::max_devices());
        assert_eq!(shares[0], 3.0);
        assert!(shares[2..].iter().all(|share| *share == 0.0));
    }
}
