//! One row: a test with llama-bench's 42 fields.

use jiff::Timestamp;
use serde_json::Map;
use twospeed_engine::protocol::Sample;
use twospeed_engine::{Settings, TestSpec};
use twospeed_measure::stats::spread;
use twospeed_measure::{TestEnd, TestRecord, TestStatus};

use crate::test::{Reported, Test};

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

/// A finished test as llama-bench reports it. What another tool did not tell is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The engine's commit.
    pub build_commit: Option<String>,
    /// The engine's build number.
    pub build_number: Option<u32>,
    /// CPU name.
    pub cpu_info: Option<String>,
    /// GPU names, empty when there is none.
    pub gpu_info: Option<String>,
    /// Backends, `CPU` when there is no other.
    pub backends: Option<String>,
    /// The file as it was given.
    pub model_filename: Option<String>,
    /// The engine's description of the model.
    pub model_type: Option<String>,
    /// Bytes of all tensors.
    pub model_size: Option<u64>,
    /// Parameters.
    pub model_n_params: Option<u64>,
    /// Every setting.
    pub settings: Settings,
    /// Names of settings that are not known.
    pub unknown: Vec<String>,
    /// What was timed.
    pub spec: TestSpec,
    /// When it started: UTC, RFC 3339, whole seconds.
    pub test_time: Option<String>,
    /// One duration a repetition; empty where another tool gave none.
    pub samples_ns: Vec<u64>,
    /// What it gave instead.
    pub reported: Reported,
    /// Its fields beyond llama-bench's of today.
    pub extra: Map<String, serde_json::Value>,
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
    /// Not told: null in JSON and SQL, empty elsewhere.
    Unknown,
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Unknown, Self::Text)
    }
}

impl From<Option<u64>> for Value {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::Unknown, |number| Self::Integer(number as i64))
    }
}

impl Value {
    /// As CSV, SQL and the table write it.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Flag(flag) => u8::from(*flag).to_string(),
            Self::Real(number) => format!("{number:.6}"),
            Self::Unknown => String::new(),
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
    /// The row of a test; `None` for one that is no speed or did not come to its end (its samples are
    /// kept, and are no result) and where it has no samples or no worker said what it loaded.
    pub fn of(test: &TestRecord, end: &TestEnd, samples: &[Sample]) -> Option<Self> {
        let worker = end.worker.as_ref()?;
        let loaded = end.loaded.as_ref()?;
        if end.status != TestStatus::Done || !test.kind.is_speed() || samples.is_empty() {
            return None;
        }
        Some(Self {
            build_commit: Some(worker.engine.build_commit.clone()),
            build_number: Some(worker.engine.build_number),
            cpu_info: Some(worker.cpu_info.clone()),
            gpu_info: Some(worker.gpu_info.clone()),
            backends: Some(worker.backends.clone()),
            model_filename: Some(test.model.path.0.to_string_lossy().into_owned()),
            model_type: Some(loaded.model_type.clone()),
            model_size: Some(loaded.model_size),
            model_n_params: Some(loaded.model_n_params),
            settings: test.settings.clone(),
            unknown: Vec::new(),
            spec: test.spec,
            test_time: Some(whole_seconds(test.started_at)),
            samples_ns: samples.iter().map(|sample| sample.ns).collect(),
            reported: Reported::default(),
            extra: Map::new(),
        })
    }

    /// The row of a stored test, measured here or told by another tool; `None` as for [`Row::of`].
    pub fn of_test(test: &Test) -> Option<Self> {
        let samples: Vec<_> = test
            .samples
            .iter()
            .map(|record| record.sample.clone())
            .collect();
        let end = test.end.as_ref()?;
        let Some(told) = test.told.clone() else {
            return Self::of(&test.record, end, &samples);
        };
        let record = &test.record;
        if end.status != TestStatus::Done || !record.kind.is_speed() {
            return None;
        }
        test.speed()?;
        let known = |name: &str| test.knows(name).then_some(());
        Some(Self {
            build_commit: told.build_commit,
            build_number: told.build_number,
            cpu_info: told.cpu_info,
            gpu_info: told.gpu_info,
            backends: told.backends,
            model_filename: known("model_path")
                .map(|()| record.model.path.0.to_string_lossy().into_owned()),
            model_type: told.model_type,
            model_size: told.model_size,
            model_n_params: told.model_n_params,
            settings: record.settings.clone(),
            unknown: test.unknown.clone(),
            spec: record.spec,
            test_time: known("started_at").map(|()| whole_seconds(record.started_at)),
            samples_ns: samples.iter().map(|sample| sample.ns).collect(),
            reported: test.reported.unwrap_or_default(),
            extra: test.extra.clone(),
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

    /// Mean of the samples' tokens per second (not tokens / mean time) and its standard deviation,
    /// or what was reported.
    pub fn tokens_per_second(&self) -> (Option<f64>, Option<f64>) {
        match spread(&self.samples_ts()) {
            Some(spread) => (Some(spread.mean), spread.standard_deviation),
            None => (self.reported.avg_ts, self.reported.stddev_ts),
        }
    }

    /// Mean of the samples' nanoseconds and its standard deviation, or what was reported.
    fn nanoseconds(&self) -> (Option<f64>, Option<f64>) {
        let ns: Vec<f64> = self.samples_ns.iter().map(|ns| *ns as f64).collect();
        match spread(&ns) {
            Some(spread) => (Some(spread.mean), spread.standard_deviation),
            None => (self.reported.avg_ns, self.reported.stddev_ns),
        }
    }

    /// The value of each of [`FIELDS`], in that order.
    pub fn values(&self) -> Vec<Value> {
        use Value::{Integer, Real, Unknown};
        let (avg_ns, stddev_ns) = self.nanoseconds();
        let (avg_ts, stddev_ts) = self.tokens_per_second();
        let mut values: Vec<Value> = vec![
            self.build_commit.clone().into(),
            self.build_number.map(u64::from).into(),
            self.cpu_info.clone().into(),
            self.gpu_info.clone().into(),
            self.backends.clone().into(),
            self.model_filename.clone().into(),
            self.model_type.clone().into(),
            self.model_size.into(),
            self.model_n_params.into(),
        ];
        let settings = settings_fields(&self.settings);
        values.extend(settings.into_iter().map(|(name, value)| {
            match self.unknown.iter().any(|unknown| unknown == name) {
                true => Unknown,
                false => value,
            }
        }));
        values.extend([
            Integer(i64::from(self.spec.n_prompt)),
            Integer(i64::from(self.spec.n_gen)),
            Integer(i64::from(self.spec.n_depth)),
            self.test_time.clone().into(),
            avg_ns.map_or(Unknown, |ns| Integer(ns as i64)),
            Integer(stddev_ns.unwrap_or(0.0) as i64),
            avg_ts.map_or(Unknown, Real),
            Real(stddev_ts.unwrap_or(0.0)),
        ]);
        // A setting of a form that is not known here stands as it came.
        for (value, field) in values.iter_mut().zip(FIELDS) {
            if let (Unknown, Some(told)) = (&*value, self.extra.get(field)) {
                *value = match told {
                    serde_json::Value::Bool(flag) => Value::Flag(*flag),
                    serde_json::Value::String(text) => Value::Text(text.clone()),
                    other => other
                        .as_i64()
                        .map_or_else(|| Value::Text(other.to_string()), Integer),
                };
            }
        }
        values
    }

    /// Fields beyond [`FIELDS`].
    pub(super) fn further(&self) -> impl Iterator<Item = (&String, &serde_json::Value)> {
        let further = |name: &str| !FIELDS.contains(&name);
        self.extra.iter().filter(move |(name, _)| further(name))
    }
}

/// A time as llama-bench writes it.
fn whole_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
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
        build_commit: Some(text("build_commit")),
        build_number: Some(small("build_number")),
        cpu_info: Some(text("cpu_info")),
        gpu_info: Some(text("gpu_info")),
        backends: Some(text("backends")),
        model_filename: Some(text("model_filename")),
        model_type: Some(text("model_type")),
        model_size: Some(whole("model_size") as u64),
        model_n_params: Some(whole("model_n_params") as u64),
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
        test_time: Some(text("test_time")),
        samples_ns: object["samples_ns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|ns| ns.as_u64().unwrap())
            .collect(),
        unknown: Vec::new(),
        reported: Reported::default(),
        extra: Map::new(),
    }
}
