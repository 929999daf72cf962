//! Which columns the Markdown table has.

use twospeed_engine::Settings;

use super::row::{Row, Value, settings_fields};

/// Columns chosen before the first row, from what the whole plan asks for: a setting has one when
/// it varies within the plan or differs from llama-bench's default.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    pub(super) fields: Vec<&'static str>,
    /// Fields beyond llama-bench's of today, which CSV and SQL have columns for too.
    pub(super) extra: Vec<String>,
}

/// Settings that may have a column, in the table's order.
const OPTIONAL: [&str; 25] = [
    "n_gpu_layers",
    "n_cpu_moe",
    "n_threads",
    "cpu_mask",
    "cpu_strict",
    "poll",
    "n_batch",
    "n_ubatch",
    "type_k",
    "type_v",
    "main_gpu",
    "split_mode",
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
];

impl Columns {
    /// Columns for a plan with these settings on these backends; `default_threads` is the number of
    /// threads that is taken when none is asked for.
    pub fn of(backends: &str, settings: &[&Settings], default_threads: u32) -> Self {
        let cpu = ["CPU", "BLAS", "ZenDNN"]
            .iter()
            .any(|name| backends.contains(name));
        let default = Settings {
            n_threads: default_threads,
            ..Settings::default()
        };
        let differs = |field: &str| {
            let standard = value_of(&default, field);
            settings
                .iter()
                .any(|settings| value_of(settings, field) != standard)
        };
        let mut fields = vec!["model", "size", "params", "backend"];
        fields.extend(OPTIONAL.into_iter().filter(|field| match *field {
            "n_gpu_layers" => !cpu,
            "n_threads" => cpu || differs(field),
            field => differs(field),
        }));
        fields.extend(["test", "t/s"]);
        Self {
            fields,
            extra: Vec::new(),
        }
    }

    /// With a column for each further field that one of the rows has, in CSV and SQL.
    pub(super) fn with_extra(mut self, rows: &[Row]) -> Self {
        for (name, _) in rows.iter().flat_map(Row::further) {
            if !self.extra.contains(name) {
                self.extra.push(name.clone());
            }
        }
        self
    }
}

/// The text of each extra field of a row; empty where it has none.
pub(super) fn extra_values<'a>(
    names: &'a [String],
    row: &'a Row,
) -> impl Iterator<Item = Option<String>> + 'a {
    names.iter().map(|name| match row.extra.get(name)? {
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    })
}

fn value_of(settings: &Settings, field: &str) -> Value {
    settings_fields(settings)
        .into_iter()
        .find(|(name, _)| *name == field)
        .map(|(_, value)| value)
        .expect("BUG: an optional column is a setting")
}
