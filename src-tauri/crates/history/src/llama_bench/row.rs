//! One row: a test with llama-bench's 42 fields.

use twospeed_engine::protocol::Sample;
use twospeed_engine::{Settings, TestSpec};
use twospeed_measure::stats::spread;
use twospeed_measure::{TestEnd, TestRecord, TestStatus};

/// llama-bench's fields in its order.
pub const FIELDS: [&str; 42] = [
    "build_commit",
    "build_number",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "n_batch",
    "n_ubatch",
    "n_threads",
    "cpu_mask",
    "cpu_strict",
    "poll",
    "type_k",
    "type_v",
    "n_gpu_layers",
    "n_cpu_moe",
    "split_mode",
    "main_gpu",
    "no_kv_offload",
    "flash_attn",
    "devices",
    "tensor_split",
    "tensor_buft_overrides",
    "load_mode",
    "lazy_mode",
    "embeddings",
    "no_op_offload",
    "no_host",
    "repack",
    "fit_target",
    "fit_min_ctx",
    "n_prompt",
    "n_gen",
    "n_depth",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
];

/// A finished test as llama-bench reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The engine's commit.
    pub build_commit: String,
    /// The engine's build number.
    pub build_number: u32,
    /// CPU name.
    pub cpu_info: String,
    /// GPU names, empty when there is none.
    pub gpu_info: String,
    /// Backends, `CPU` when there is no other.
    pub backends: String,
    /// The file as it was given.
    pub model_filename: String,
    /// The engine's description of the model.
    pub model_type: String,
    /// Bytes of all tensors.
    pub model_size: u64,
    /// Parameters.
    pub model_n_params: u64,
    /// Every setting.
    pub settings: Settings,
    /// What was timed.
    pub spec: TestSpec,
    /// When it started: UTC, RFC 3339, whole seconds.
    pub test_time: String,
    /// One duration a repetition.
    pub samples_ns: Vec<u64>,
}

/// A field's value with its kind: the formats differ in how they write each.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Quoted everywhere.
    Text(String),
    /// A number in JSON.
    Integer(i64),
    /// `true` or `false` in JSON, 0 or 1 elsewhere.
    Flag(bool),
    /// Six decimals.
    Real(f64),
}

impl Value {
    /// As CSV, SQL and the table write it.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Flag(flag) => u8::from(*flag).to_string(),
            Self::Real(number) => format!("{number:.6}"),
        }
    }
}

/// SQLite's type of a field, as llama-bench declares it.
pub fn sql_type(field: &str) -> &'static str {
    match field {
        "avg_ts" | "stddev_ts" => "REAL",
        "build_commit"
        | "cpu_info"
        | "gpu_info"
        | "backends"
        | "model_filename"
        | "model_type"
        | "cpu_mask"
        | "type_k"
        | "type_v"
        | "split_mode"
        | "devices"
        | "tensor_split"
        | "tensor_buft_overrides"
        | "load_mode"
        | "lazy_mode"
        | "test_time" => "TEXT",
        _ => "INTEGER",
    }
}

/// The settings among [`FIELDS`], by name and in that order.
pub fn settings_fields(settings: &Settings) -> Vec<(&'static str, Value)> {
    use Value::{Flag, Integer};
    let text = |text: &str| Value::Text(text.to_owned());
    let s = settings;
    vec![
        ("n_batch", Integer(i64::from(s.n_batch))),
        ("n_ubatch", Integer(i64::from(s.n_ubatch))),
        ("n_threads", Integer(i64::from(s.n_threads))),
        ("cpu_mask", text(&s.cpu_mask)),
        ("cpu_strict", Flag(s.cpu_strict)),
        ("poll", Integer(i64::from(s.poll))),
        ("type_k", text(&s.type_k)),
        ("type_v", text(&s.type_v)),
        ("n_gpu_layers", Integer(i64::from(s.n_gpu_layers))),
        ("n_cpu_moe", Integer(i64::from(s.n_cpu_moe))),
        ("split_mode", text(&s.split_mode)),
        ("main_gpu", Integer(i64::from(s.main_gpu))),
        ("no_kv_offload", Flag(s.no_kv_offload)),
        ("flash_attn", Integer(i64::from(s.flash_attn.number()))),
        ("devices", text(&s.devices)),
        ("tensor_split", text(&s.tensor_split)),
        ("tensor_buft_overrides", text(&s.tensor_buft_overrides)),
        ("load_mode", text(&s.load_mode)),
        ("lazy_mode", text(&s.lazy_mode)),
        ("embeddings", Flag(s.embeddings)),
        ("no_op_offload", Integer(i64::from(s.no_op_offload))),
        ("no_host", Flag(s.no_host)),
        ("repack", Flag(s.repack)),
        ("fit_target", Integer(s.fit_target as i64)),
        ("fit_min_ctx", Integer(i64::from(s.fit_min_ctx))),
    ]
}

impl Row {
    /// The row of a test; `None` for one that did not come to its end (its samples are kept, and
    /// are no result) and where it has no samples or no worker said what it loaded.
    pub fn of(test: &TestRecord, end: &TestEnd, samples: &[Sample]) -> Option<Self> {
        let worker = end.worker.as_ref()?;
        let loaded = end.loaded.as_ref()?;
        if end.status != TestStatus::Done || samples.is_empty() {
            return None;
        }
        Some(Self {
            build_commit: worker.engine.build_commit.clone(),
            build_number: worker.engine.build_number,
            cpu_info: worker.cpu_info.clone(),
            gpu_info: worker.gpu_info.clone(),
            backends: worker.backends.clone(),
            model_filename: test.model.path.0.to_string_lossy().into_owned(),
            model_type: loaded.model_type.clone(),
            model_size: loaded.model_size,
            model_n_params: loaded.model_n_params,
            settings: test.settings.clone(),
            spec: test.spec,
            test_time: test.started_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            samples_ns: samples.iter().map(|sample| sample.ns).collect(),
        })
    }

    /// Tokens per second of each repetition: 1e9 x tokens / ns.
    pub fn samples_ts(&self) -> Vec<f64> {
        let tokens = self.spec.tokens() as f64;
        self.samples_ns
            .iter()
            .map(|ns| 1e9 * tokens / *ns as f64)
            .collect()
    }

    /// Mean of the samples' tokens per second (not tokens / mean time) and its standard deviation.
    pub fn tokens_per_second(&self) -> (f64, Option<f64>) {
        mean_and_deviation(&self.samples_ts())
    }

    /// The value of each of `FIELDS`, in that order.
    pub fn values(&self) -> Vec<Value> {
        use Value::{Integer, Real};
        let text = |text: &str| Value::Text(text.to_owned());
        let ns: Vec<f64> = self.samples_ns.iter().map(|ns| *ns as f64).collect();
        let (avg_ns, stddev_ns) = mean_and_deviation(&ns);
        let (avg_ts, stddev_ts) = self.tokens_per_second();
        let mut values = vec![
            text(&self.build_commit),
            Integer(i64::from(self.build_number)),
            text(&self.cpu_info),
            text(&self.gpu_info),
            text(&self.backends),
            text(&self.model_filename),
            text(&self.model_type),
            Integer(self.model_size as i64),
            Integer(self.model_n_params as i64),
        ];
        let settings = settings_fields(&self.settings);
        values.extend(settings.into_iter().map(|(_, value)| value));
        values.extend([
            Integer(i64::from(self.spec.n_prompt)),
            Integer(i64::from(self.spec.n_gen)),
            Integer(i64::from(self.spec.n_depth)),
            text(&self.test_time),
            Integer(avg_ns as i64),
            Integer(stddev_ns.unwrap_or(0.0) as i64),
            Real(avg_ts),
            Real(stddev_ts.unwrap_or(0.0)),
        ]);
        values
    }
}

/// Mean and, from two values on, the standard deviation with n - 1.
fn mean_and_deviation(values: &[f64]) -> (f64, Option<f64>) {
    match spread(values) {
        Some(spread) => (spread.mean, spread.standard_deviation),
        None => (0.0, None),
    }
}

/// A row from one of llama-bench's own JSON objects.
#[cfg(test)]
pub fn from_object(object: &serde_json::Map<String, serde_json::Value>) -> Row {
    use twospeed_engine::FlashAttention;
    let text = |name: &str| object[name].as_str().unwrap().to_owned();
    let whole = |name: &str| object[name].as_i64().unwrap();
    let small = |name: &str| u32::try_from(whole(name)).unwrap();
    let flag = |name: &str| object[name].as_bool().unwrap();
    Row {
        build_commit: text("build_commit"),
        build_number: small("build_number"),
        cpu_info: text("cpu_info"),
        gpu_info: text("gpu_info"),
        backends: text("backends"),
        model_filename: text("model_filename"),
        model_type: text("model_type"),
        model_size: whole("model_size") as u64,
        model_n_params: whole("model_n_params") as u64,
        settings: Settings {
            n_batch: small("n_batch"),
            n_ubatch: small("n_ubatch"),
            n_threads: small("n_threads"),
            cpu_mask: text("cpu_mask"),
            cpu_strict: flag("cpu_strict"),
            poll: small("poll"),
            type_k: text("type_k"),
            type_v: text("type_v"),
            n_gpu_layers: whole("n_gpu_layers") as i32,
            n_cpu_moe: small("n_cpu_moe"),
            split_mode: text("split_mode"),
            main_gpu: small("main_gpu"),
            no_kv_offload: flag("no_kv_offload"),
            flash_attn: match whole("flash_attn") {
                0 => FlashAttention::Off,
                1 => FlashAttention::On,
                _ => FlashAttention::Auto,
            },
            devices: text("devices"),
            tensor_split: text("tensor_split"),
            tensor_buft_overrides: text("tensor_buft_overrides"),
            load_mode: text("load_mode"),
            lazy_mode: text("lazy_mode"),
            embeddings: flag("embeddings"),
            no_op_offload: whole("no_op_offload") == 1,
            no_host: flag("no_host"),
            repack: flag("repack"),
            fit_target: whole("fit_target") as u64,
            fit_min_ctx: small("fit_min_ctx"),
            ..Settings::default()
        },
        spec: TestSpec {
            n_prompt: small("n_prompt"),
            n_gen: small("n_gen"),
            n_depth: small("n_depth"),
        },
        test_time: text("test_time"),
        samples_ns: object["samples_ns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|ns| ns.as_u64().unwrap())
            .collect(),
    }
}
