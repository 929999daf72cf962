//! The Markdown table.

use std::io::{self, Write};

use super::row::FIELDS;
use super::{Columns, Format, Row, Value};

/// Knows its columns from the first call on.
#[derive(Default)]
pub struct Markdown {
    fields: Vec<&'static str>,
}

impl Format for Markdown {
    fn begin(&mut self, out: &mut dyn Write, columns: &Columns) -> io::Result<()> {
        self.fields.clone_from(&columns.fields);
        write!(out, "|")?;
        for field in &self.fields {
            write!(out, " {} |", pad(heading(field), Width::of(field)))?;
        }
        write!(out, "\n|")?;
        for field in &self.fields {
            let width = Width::of(field);
            let end = if width.left { '-' } else { ':' };
            write!(out, " {}{end} |", "-".repeat(width.bytes - 1))?;
        }
        writeln!(out)
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let values = row.values();
        write!(out, "|")?;
        for field in &self.fields {
            let mut width = Width::of(field);
            if *field == "t/s" {
                width.bytes += '±'.len_utf8() - 1;
            }
            write!(out, " {} |", pad(&cell(field, row, &values), width))?;
        }
        writeln!(out)
    }

    fn end(&mut self, out: &mut dyn Write, (commit, number): (&str, u32)) -> io::Result<()> {
        writeln!(out, "\nbuild: {commit} ({number})")
    }
}

/// What a cell holds.
fn cell(field: &str, row: &Row, values: &[Value]) -> String {
    match field {
        "model" => row
            .model_type
            .clone()
            .unwrap_or_default()
            .replace('|', "\\|"),
        "size" => row.model_size.map(size).unwrap_or_default(),
        "params" => row.model_n_params.map(parameters).unwrap_or_default(),
        "backend" => row.backends.clone().unwrap_or_default(),
        "test" => row.spec.to_string(),
        "t/s" => match row.tokens_per_second() {
            (Some(mean), Some(deviation)) => format!("{mean:.2} ± {deviation:.2}"),
            (Some(mean), None) => format!("{mean:.2} ± n/a"),
            (None, _) => "n/a".to_owned(),
        },
        setting => {
            let index = FIELDS
                .iter()
                .position(|name| *name == setting)
                .expect("BUG: a column is a field");
            values[index].plain()
        }
    }
}

fn size(bytes: u64) -> String {
    let mib = bytes as f64 / 1024.0 / 1024.0;
    if mib < 1024.0 {
        format!("{mib:.2} MiB")
    } else {
        format!("{:.2} GiB", mib / 1024.0)
    }
}

fn parameters(number: u64) -> String {
    let number = number as f64;
    if number < 1e9 {
        format!("{:.2} M", number / 1e6)
    } else {
        format!("{:.2} B", number / 1e9)
    }
}

/// What stands at the head of a column.
fn heading(field: &'static str) -> &'static str {
    match field {
        "n_gpu_layers" => "ngl",
        "split_mode" => "sm",
        "n_threads" => "threads",
        "no_kv_offload" => "nkvo",
        "flash_attn" => "fa",
        "load_mode" => "lm",
        "embeddings" => "embd",
        "no_op_offload" => "nopo",
        "no_host" => "noh",
        "repack" => "rpk",
        "devices" => "dev",
        "tensor_split" => "ts",
        "tensor_buft_overrides" => "ot",
        "fit_target" => "fitt",
        "fit_min_ctx" => "fitc",
        other => other,
    }
}

/// Width of a column in bytes and the side its text stands on.
#[derive(Clone, Copy)]
struct Width {
    bytes: usize,
    left: bool,
}

impl Width {
    fn of(field: &str) -> Self {
        let right = |bytes| Self { bytes, left: false };
        let left = |bytes| Self { bytes, left: true };
        match field {
            "model" => left(30),
            "t/s" => right(20),
            "size" | "params" => right(10),
            "n_gpu_layers" | "flash_attn" | "repack" => right(3),
            "n_threads" | "n_batch" => right(7),
            "n_ubatch" => right(8),
            "type_k" | "type_v" | "split_mode" => right(6),
            "load_mode" => right(10),
            "devices" => left(12),
            "test" => right(15),
            "no_op_offload" | "no_host" => right(4),
            "backend" | "cpu_mask" | "tensor_split" | "tensor_buft_overrides" | "lazy_mode" => {
                left(field.len().max(10))
            }
            other => right(other.len().max(10)),
        }
    }
}

fn pad(text: &str, width: Width) -> String {
    let missing = " ".repeat(width.bytes.saturating_sub(text.len()));
    if width.left {
        format!("{text}{missing}")
    } else {
        format!("{missing}{text}")
    }
}
