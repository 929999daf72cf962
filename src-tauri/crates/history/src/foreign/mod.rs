//! The output of llama-bench and llama-batched-bench, from 2023 to today.
//!
//! What a file is, is told by what stands in it and never by its name; fields are found by name
//! and never by position, since every year has added some. Nothing is executed: SQL is text here.
//! A row that cannot be read is named with its line, and the others are kept.
//!
//! What a row does not tell is unknown, and a field that is not known here is kept: rows that
//! differ in any of it are never merged. The id of a test is made of what its row says, so that the same
//! row adds nothing when it comes again: in another order, in another of llama-bench's formats that
//! loses nothing, or between the lines that a program prints before it.

mod arrive;
mod batched;
mod bench;
mod ceiling;
mod csv;
mod fields;
mod identity;
mod json;
mod markdown;
mod model;
mod number;
mod sql;
mod text;

use crate::error::HistoryError;
use crate::import::{Form, Rejected};
use crate::test::Test;

use fields::Fields;

/// What a file of another tool holds, as far as it can be read.
#[derive(Debug)]
pub(crate) struct Foreign {
    form: Form,
    rows: Vec<Row>,
    rejected: Vec<Rejected>,
    notes: Vec<String>,
}

/// A row that was read. Its test has no run yet.
#[derive(Debug)]
struct Row {
    line: usize,
    /// The table of the file it stands in, where a file may have several.
    table: usize,
    test: Test,
}

/// What the reader of one format found.
#[derive(Debug, Default)]
struct Found {
    rows: Vec<Fields>,
    rejected: Vec<Rejected>,
}

impl Found {
    fn reject(&mut self, line: usize, reason: impl Into<String>) {
        self.rejected.push(Rejected {
            run: None,
            line: Some(line),
            reason: reason.into(),
        });
    }
}

impl Foreign {
    /// Errors: [`HistoryError::NothingFound`] where nothing in the file looks like a result.
    pub(crate) fn read(file: &[u8]) -> Result<Self, HistoryError> {
        let (text, mut notes) = text::decode(file);
        let (form, found) = json::read(&text)
            .or_else(|| sql::read(&text))
            .or_else(|| markdown::read(&text))
            .or_else(|| csv::read(&text))
            .ok_or(HistoryError::NothingFound)?;
        let mut foreign = Self {
            form,
            rows: Vec::new(),
            rejected: found.rejected,
            notes: Vec::new(),
        };
        for fields in found.rows {
            let (line, table) = (fields.line, fields.table);
            let read = match form {
                Form::Batched => batched::test(fields),
                _ => bench::test(fields),
            };
            match read {
                Ok(test) => foreign.rows.push(Row { line, table, test }),
                Err(reason) => foreign.rejected.push(Rejected {
                    run: None,
                    line: Some(line),
                    reason,
                }),
            }
        }
        foreign.rejected.sort_by_key(|rejected| rejected.line);
        if foreign.rows.is_empty() && foreign.rejected.is_empty() {
            notes.push("It has no rows: the program ended before its first result.".into());
        }
        if (foreign.rows.iter()).any(|row| row.test.record.model.name.contains(text::LOST)) {
            notes.push(format!(
                "Letters of a file name were lost by the program that wrote it; {} stands for each byte.",
                text::LOST
            ));
        }
        foreign.notes = notes;
        Ok(foreign)
    }
}
