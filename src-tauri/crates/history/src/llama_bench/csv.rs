//! CSV: header unquoted, every value quoted, no samples.

use std::io::{self, Write};

use super::row::FIELDS;
use super::{Columns, Format, Row};

pub struct Csv;

impl Format for Csv {
    fn begin(&mut self, out: &mut dyn Write, _: &Columns) -> io::Result<()> {
        writeln!(out, "{}", FIELDS.join(","))
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let values: Vec<_> = row
            .values()
            .iter()
            .map(|value| format!("\"{}\"", value.plain().replace('"', "\"\"")))
            .collect();
        writeln!(out, "{}", values.join(","))
    }

    fn end(&mut self, _: &mut dyn Write, _: (&str, u32)) -> io::Result<()> {
        Ok(())
    }
}
