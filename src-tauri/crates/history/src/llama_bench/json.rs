//! JSON (an array) and JSON lines, both with the samples.

use std::io::{self, Write};

use super::row::FIELDS;
use super::{Columns, Format, Row, Value};

/// An array of objects.
#[derive(Default)]
pub struct Json {
    rows: usize,
}

/// An object a line.
pub struct JsonLines;

impl Format for Json {
    fn begin(&mut self, out: &mut dyn Write, _: &Columns) -> io::Result<()> {
        writeln!(out, "[")
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        if self.rows > 0 {
            writeln!(out, ",")?;
        }
        self.rows += 1;
        write!(out, "  {{\n    {}", fields(row).join(",\n    "))?;
        if !row.samples_ns.is_empty() {
            write!(out, ",\n    \"samples_ns\": [ {} ]", nanoseconds(row))?;
            write!(out, ",\n    \"samples_ts\": [ {} ]", speeds(row))?;
        }
        write!(out, "\n  }}")
    }

    fn end(&mut self, out: &mut dyn Write, _: (&str, u32)) -> io::Result<()> {
        writeln!(out, "{}]", if self.rows > 0 { "\n" } else { "" })
    }
}

impl Format for JsonLines {
    fn begin(&mut self, _: &mut dyn Write, _: &Columns) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()> {
        write!(out, "{{{}", fields(row).join(", "))?;
        if !row.samples_ns.is_empty() {
            write!(out, ", \"samples_ns\": [ {} ]", nanoseconds(row))?;
            write!(out, ",\"samples_ts\": [ {} ]", speeds(row))?;
        }
        writeln!(out, "}}")
    }

    fn end(&mut self, _: &mut dyn Write, _: (&str, u32)) -> io::Result<()> {
        Ok(())
    }
}

/// `"name": value` of each field.
fn fields(row: &Row) -> Vec<String> {
    let known = FIELDS.iter().zip(row.values());
    let mut fields: Vec<_> = known
        .map(|(field, value)| format!("\"{field}\": {}", json(&value)))
        .collect();
    fields.extend(
        row.further()
            .map(|(field, value)| format!("{}: {value}", serde_json::Value::from(field.as_str()))),
    );
    fields
}

fn json(value: &Value) -> String {
    match value {
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Unknown => "null".to_owned(),
        number => number.plain(),
    }
}

fn nanoseconds(row: &Row) -> String {
    let list: Vec<_> = row.samples_ns.iter().map(u64::to_string).collect();
    list.join(", ")
}

fn speeds(row: &Row) -> String {
    let list: Vec<_> = row.samples_ts().into_iter().map(six_digits).collect();
    list.join(", ")
}

/// A number with six significant digits, trailing zeros dropped, as C's `%g` writes it.
fn six_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".into();
    }
    // The exponent after rounding to six digits decides the notation.
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific
        .split_once('e')
        .expect("BUG: scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("BUG: an exponent is a number");
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        trim(&format!("{number:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::six_digits;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        // printf '%g\n' of each number.
        for (number, text) in [
            (284.5783, "284.578"),
            (230.870, "230.87"),
            (0.5, "0.5"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.6, "1e+06"),
            (100_000.0, "100000"),
            (0.000_012_34, "1.234e-05"),
            (39.0, "39"),
        ] {
            assert_eq!(six_digits(number), text);
        }
    }
}
