//! llama-bench's five output formats, byte for byte (build 11434), so that `twospeed bench` can stand
//! where llama-bench is called today; and llama-batched-bench's JSON lines.
//!
//! What another tool did not tell is null in JSON and SQL and empty in CSV and the table; fields
//! beyond llama-bench's of today stand behind them under their own names.
//!
//! Two things differ on purpose: apostrophes are escaped in SQL, and the Markdown table says `n/a`
//! where one sample has no spread (the other formats have no way to say so and print 0, as llama-bench
//! does).

mod batched;
mod columns;
mod csv;
mod json;
mod markdown;
mod row;
mod sql;

use std::io::{self, Write};

pub use batched::write_batched;
pub use columns::Columns;
pub(crate) use csv::quoted;
pub use row::{Row, Value, settings_fields};

/// Writes rows in one of llama-bench's formats, one after the other as tests end.
pub trait Format: Send {
    /// What stands before the first row.
    fn begin(&mut self, out: &mut dyn Write, columns: &Columns) -> io::Result<()>;
    /// One row.
    fn row(&mut self, out: &mut dyn Write, row: &Row) -> io::Result<()>;
    /// What stands after the last row; `build` is the engine's commit and number.
    fn end(&mut self, out: &mut dyn Write, build: (&str, u32)) -> io::Result<()>;
}

/// The format of a name as `-o` takes it: `csv`, `json`, `jsonl`, `md`, `sql`.
pub fn format(name: &str) -> Option<Box<dyn Format>> {
    Some(match name {
        "csv" => Box::<csv::Csv>::default(),
        "json" => Box::<json::Json>::default(),
        "jsonl" => Box::new(json::JsonLines),
        "md" => Box::<markdown::Markdown>::default(),
        "sql" => Box::<sql::Sql>::default(),
        _ => return None,
    })
}

/// Writes rows that are all there, with the columns that tell them apart.
pub fn write(format: &mut dyn Format, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let settings: Vec<_> = rows.iter().map(|row| &row.settings).collect();
    let backends = rows.first().and_then(|row| row.backends.as_deref());
    let threads = settings.first().map_or(1, |settings| settings.n_threads);
    let columns = Columns::of(backends.unwrap_or("CPU"), &settings, threads).with_extra(rows);
    format.begin(out, &columns)?;
    for row in rows {
        format.row(out, row)?;
    }
    match rows.last() {
        Some(row) => {
            let commit = row.build_commit.as_deref().unwrap_or("unknown");
            format.end(out, (commit, row.build_number.unwrap_or(0)))
        }
        None => format.end(out, ("unknown", 0)),
    }
}

/// Names that [`format()`] knows.
pub const FORMATS: [&str; 5] = ["csv", "json", "jsonl", "md", "sql"];

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str) -> String {
        let path = format!(
            "{}/../../../tests/data/llama-bench/{name}",
            env!("CARGO_MANIFEST_DIR")
        );
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Rows as llama-bench itself printed them.
    fn rows_of_json(text: &str) -> Vec<Row> {
        let objects: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(text).unwrap();
        objects.iter().map(row::from_object).collect()
    }

    fn rows_of_json_lines(text: &str) -> Vec<Row> {
        text.lines()
            .map(|line| row::from_object(&serde_json::from_str(line).unwrap()))
            .collect()
    }

    fn write(name: &str, rows: &[Row]) -> String {
        let mut format = format(name).unwrap();
        let mut out = Vec::new();
        let settings: Vec<_> = rows.iter().map(|row| &row.settings).collect();
        let columns = Columns::of(rows[0].backends.as_deref().unwrap(), &settings, 1);
        format.begin(&mut out, &columns).unwrap();
        for row in rows {
            format.row(&mut out, row).unwrap();
        }
        format.end(&mut out, ("unknown", 0)).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// llama-bench squares nanoseconds in 64-bit integers and rounds on the way (and past 4.3 s a sample
    /// its squares wrap), so its stddev_ns differs from ours in the last digits.
    fn without_stddev_ns(text: &str) -> String {
        let mut kept = String::new();
        for line in text.lines() {
            let line = match line.find("\"stddev_ns\": ") {
                Some(start) => {
                    let rest = &line[start + 13..];
                    let end = rest.find(',').unwrap();
                    format!("{}{}", &line[..start + 13], &rest[end..])
                }
                None => line.to_owned(),
            };
            kept.push_str(&line);
            kept.push('\n');
        }
        kept
    }

    #[test]
    fn json_is_what_llama_bench_prints() {
        for name in ["plain", "depth", "kv-q8_0"] {
            let theirs = sample(&format!("{name}.json"));
            let ours = write("json", &rows_of_json(&theirs));
            assert_eq!(without_stddev_ns(&ours), without_stddev_ns(&theirs));
        }
    }

    #[test]
    fn json_lines_are_what_llama_bench_prints() {
        for name in ["plain", "depth", "kv-q8_0"] {
            let theirs = sample(&format!("{name}.jsonl"));
            let ours = write("jsonl", &rows_of_json_lines(&theirs));
            assert_eq!(without_stddev_ns(&ours), without_stddev_ns(&theirs));
        }
    }

    #[test]
    fn the_table_is_what_llama_bench_prints() {
        for name in ["plain", "depth", "kv-q8_0"] {
            // The samples say that .jsonl and .md come from one run.
            let rows = rows_of_json_lines(&sample(&format!("{name}.jsonl")));
            assert_eq!(write("md", &rows), sample(&format!("{name}.md")));
        }
    }

    #[test]
    fn csv_is_what_llama_bench_prints() {
        for name in ["plain", "depth", "kv-q8_0"] {
            // The samples say that .json and .csv come from one run.
            let rows = rows_of_json(&sample(&format!("{name}.json")));
            let ours = write("csv", &rows);
            let theirs = sample(&format!("{name}.csv"));
            let stddev = row::FIELDS
                .iter()
                .position(|field| *field == "stddev_ns")
                .unwrap();
            for (ours, theirs) in ours.lines().zip(theirs.lines()) {
                let ours: Vec<_> = ours.split(',').collect();
                let theirs: Vec<_> = theirs.split(',').collect();
                for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                    if index != stddev {
                        assert_eq!(ours, theirs, "{}", row::FIELDS[index]);
                    }
                }
                assert_eq!(ours.len(), theirs.len());
            }
        }
    }

    #[test]
    fn sql_has_the_form_that_llama_bench_prints() {
        // The SQL samples come from a third run: the form is compared, figures are not.
        let form = |text: &str| {
            text.chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c })
                .collect::<String>()
                .replace("00", "0")
                .replace("00", "0")
                .replace("00", "0")
        };
        let rows = rows_of_json(&sample("plain.json"));
        assert_eq!(form(&write("sql", &rows)), form(&sample("plain.sql")));
    }

    #[test]
    fn settings_stand_by_their_names_and_types() {
        let rows = rows_of_json(&sample("plain.json"));
        let settings = settings_fields(&rows[0].settings);
        let first = row::FIELDS
            .iter()
            .position(|field| *field == "n_batch")
            .unwrap();
        let names: Vec<_> = settings.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, row::FIELDS[first..first + names.len()]);
        for (field, value) in row::FIELDS.iter().zip(rows[0].values()) {
            let kind = match value {
                Value::Text(_) => "TEXT",
                Value::Integer(_) | Value::Flag(_) => "INTEGER",
                Value::Real(_) => "REAL",
                Value::Unknown => panic!("{field}"),
            };
            assert_eq!(row::sql_type(field), kind, "{field}");
        }
    }

    #[test]
    fn an_apostrophe_does_not_end_a_value() {
        let mut rows = rows_of_json(&sample("plain.json"));
        rows[0].model_filename = Some("it's.gguf".into());
        assert!(write("sql", &rows).contains("'it''s.gguf'"));
    }

    #[test]
    fn a_single_sample_has_no_spread_in_the_table() {
        let mut rows = rows_of_json(&sample("plain.json"));
        rows.truncate(1);
        rows[0].samples_ns.truncate(1);
        let table = write("md", &rows);
        assert!(table.contains(" ± n/a |"), "{table}");
    }

    #[test]
    fn settings_that_vary_or_differ_from_the_default_get_a_column() {
        let mut rows = rows_of_json(&sample("plain.json"));
        rows[0].settings.n_ubatch = 128;
        rows[1].settings.repack = false;
        let table = write("md", &rows);
        let header = table.lines().next().unwrap();
        assert_eq!(
            header.split('|').map(str::trim).collect::<Vec<_>>(),
            [
                "", "model", "size", "params", "backend", "threads", "n_ubatch", "rpk", "test",
                "t/s", ""
            ]
        );
    }
}
