//! CSV: header unquoted, every value quoted, no samples.

use std::io::{self, Write};

use super::columns::extra_values;
use super::row::FIELDS;
use super::{Columns, Format, Row};

/// Knows its further fields from the first call on.
#[derive(Default)]
pub struct Csv {
    extra: Vec<String>,
}

impl Format for Csv {
    fn begin(&mut self, out: &mut dyn Write, columns: &Columns) -> io::Result<()> {
        self.extra.clone_from(&columns.extra);
        let extra = self.extra.iter().map(|name| heading(name));
        let names: Vec<_> = FIELDS
            .iter()
            .map(|field| (*field).to_owned())
            .chain(extra)
            .collect();
        writeln!(out, "{}", names.join(","))
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let extra = extra_values(&self.extra, row).map(Option::unwrap_or_default);
        let values: Vec<_> = row
            .values()
            .iter()
            .map(super::Value::plain)
            .chain(extra)
            .map(|value| quoted(&value))
            .collect();
        writeln!(out, "{}", values.join(","))
    }

    fn end(&mut self, _: &mut dyn Write, _: (&str, u32)) -> io::Result<()> {
        Ok(())
    }
}

/// A value in quotes; those within are doubled.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\"\""))
}

/// A name as llama-bench writes it, without quotes; one that needs them has them.
fn heading(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => quoted(name),
        false => name.to_owned(),
    }
}
