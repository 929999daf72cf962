//! SQL: a table and one INSERT a row, every value quoted, no samples.

use std::io::{self, Write};

use super::columns::extra_values;
use super::row::{FIELDS, Value, sql_type};
use super::{Columns, Format, Row};

/// Knows its further fields from the first call on.
#[derive(Default)]
pub struct Sql {
    extra: Vec<String>,
}

impl Format for Sql {
    fn begin(&mut self, out: &mut dyn Write, columns: &Columns) -> io::Result<()> {
        self.extra.clone_from(&columns.extra);
        let known = FIELDS
            .iter()
            .map(|field| format!("  {field} {}", sql_type(field)));
        // Of these nobody knows more than their name.
        let extra = self
            .extra
            .iter()
            .map(|name| format!("  {} TEXT", identifier(name)));
        let fields: Vec<_> = known.chain(extra).collect();
        writeln!(
            out,
            "CREATE TABLE IF NOT EXISTS llama_bench (\n{}\n);\n",
            fields.join(",\n")
        )
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let known = row.values().into_iter().map(|value| match value {
            Value::Unknown => "NULL".to_owned(),
            value => quoted(&value.plain()),
        });
        let extra = extra_values(&self.extra, row)
            .map(|value| value.map_or_else(|| "NULL".to_owned(), |value| quoted(&value)));
        let values: Vec<_> = known.chain(extra).collect();
        let names: Vec<_> = FIELDS
            .iter()
            .map(|field| (*field).to_owned())
            .chain(self.extra.iter().map(|name| identifier(name)))
            .collect();
        writeln!(
            out,
            "INSERT INTO llama_bench ({}) VALUES ({});",
            names.join(", "),
            values.join(", ")
        )
    }

    fn end(&mut self, _: &mut dyn Write, _: (&str, u32)) -> io::Result<()> {
        Ok(())
    }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A name that stands for nothing but a column, whatever an import called it.
fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
