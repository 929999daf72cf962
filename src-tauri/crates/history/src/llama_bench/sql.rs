//! SQL: a table and one INSERT a row, every value quoted, no samples.

use std::io::{self, Write};

use super::row::{FIELDS, sql_type};
use super::{Columns, Format, Row};

pub struct Sql;

impl Format for Sql {
    fn begin(&mut self, out: &mut dyn Write, _: &Columns) -> io::Result<()> {
        let fields: Vec<_> = FIELDS
            .iter()
            .map(|field| format!("  {field} {}", sql_type(field)))
            .collect();
        writeln!(
            out,
            "CREATE TABLE IF NOT EXISTS llama_bench (\n{}\n);\n",
            fields.join(",\n")
        )
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        let values: Vec<_> = row
            .values()
            .iter()
            .map(|value| format!("'{}'", value.plain().replace('\'', "''")))
            .collect();
        writeln!(
            out,
            "INSERT INTO llama_bench ({}) VALUES ({});",
            FIELDS.join(", "),
            values.join(", ")
        )
    }

    fn end(&mut self, _: &mut dyn Write, _: (&str, u32)) -> io::Result<()> {
        Ok(())
    }
}
