//! `twospeed export`: results whole, in one of llama-bench's formats, or as a table by kind.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use twospeed_history::llama_bench::{self, Row};
use twospeed_history::tables::{self, TableForm};
use twospeed_history::{History, RunFilter, WholeRun};
use uuid::Uuid;

use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A run: its id, or a part of it [default: all runs]
    #[arg(long = "run", value_name = "ID", num_args = 1..)]
    runs: Vec<String>,
    /// Format: results (everything, to import elsewhere), md, json, jsonl, csv, sql
    #[arg(short, long, value_name = "FORMAT", default_value = "results", hide_possible_values = true, value_parser = crate::bench::EXPORTS)]
    output: String,
    /// Which tests: speeds go into all formats, users into md, csv and jsonl (as llama-batched-bench
    /// writes it), the others into md and csv
    #[arg(long, value_name = "KIND", value_enum, default_value = "speed")]
    kind: KindName,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A kind of test as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// Prefill and decode, as llama-bench measures them
    Speed,
    /// From asking for the model to the first token
    FirstToken,
    /// The same prompt again and with a changed tail
    PrefixCache,
    /// Several users side by side
    Users,
    /// Perplexity and divergence
    Quality,
}

impl KindName {
    const ALL: [Self; 5] = [
        Self::Speed,
        Self::FirstToken,
        Self::PrefixCache,
        Self::Users,
        Self::Quality,
    ];

    /// As the history stores it.
    fn key(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::FirstToken => "first_token",
            Self::PrefixCache => "prefix_cache",
            Self::Users => "users",
            Self::Quality => "quality",
        }
    }

    /// As it is typed.
    fn name(self) -> String {
        self.key().replace('_', "-")
    }
}

/// How tests of a kind are written.
enum Form {
    Whole,
    Rows(Box<dyn llama_bench::Format>),
    Batched,
    Table(TableForm),
}

impl Form {
    fn of(args: &ExportArgs) -> Result<Self, Failure> {
        Ok(match (args.kind, args.output.as_str()) {
            (_, "results") => Self::Whole,
            (KindName::Users, "jsonl") => Self::Batched,
            (KindName::Speed, format) => match llama_bench::format(format) {
                Some(format) => Self::Rows(format),
                None => Self::Whole,
            },
            (_, "csv") => Self::Table(TableForm::Csv),
            (_, "md") => Self::Table(TableForm::Markdown),
            (kind, format) => {
                return Err(Failure::Usage(format!(
                    "{} tests cannot be written as {format}: choose csv or md.",
                    kind.name()
                )));
            }
        })
    }
}

/// Writes results.
pub fn run(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let form = Form::of(args)?;
    let text = context.block_on(async {
        let history = context.open_history().await?;
        let ids = ids(&history, &args.runs).await?;
        let mut text = Vec::new();
        if let Form::Whole = form {
            let left_out = history.export(&ids, Timestamp::now(), &mut text).await;
            for part in left_out.map_err(Failure::of)? {
                say(format!("Left out: {}.", part.reason));
            }
            return Ok(text);
        }
        let runs = whole(&history, &ids).await?;
        let written = match form {
            Form::Rows(mut format) => rows(format.as_mut(), &runs, &mut text),
            Form::Batched => batched(&runs, &mut text),
            Form::Table(form) => tables::write(args.kind.key(), form, &runs, &mut text).map(drop),
            Form::Whole => Ok(()),
        };
        written.map_err(|error| Failure::of_output(&error))?;
        say_what_is_left_out(&runs, args.kind);
        Ok(text)
    })?;
    match &args.out {
        None => crate::print(&text),
        Some(path) => super::write_file(path, &text),
    }
}

/// Names the kinds that are there too, and results that cannot be right.
fn say_what_is_left_out(runs: &[WholeRun], wanted: KindName) {
    let tests = || runs.iter().flat_map(|run| &run.tests);
    for kind in KindName::ALL.into_iter().filter(|kind| *kind != wanted) {
        let count = tests()
            .filter(|test| test.record.kind.key() == kind.key())
            .count();
        if count > 0 {
            let tests = if count == 1 { "test is" } else { "tests are" };
            say(format!(
                "{count} {} {tests} not among these; -o results has everything, --kind {} those alone.",
                kind.name(),
                kind.name()
            ));
        }
    }
    for part in runs.iter().flat_map(|run| &run.unreadable) {
        say(format!("Left out: {}.", part.reason));
    }
    let suspect = tests().filter(|test| !test.counts()).count();
    if suspect > 0 {
        say(format!(
            "Results that cannot be right are among these: {suspect}. -o results says why."
        ));
    }
}

/// Ids of the runs that were named, or of all, oldest first.
pub async fn ids(history: &History, named: &[String]) -> Result<Vec<Uuid>, Failure> {
    if named.is_empty() {
        let runs = history
            .runs(&RunFilter::default())
            .await
            .map_err(Failure::of)?;
        return Ok(runs.iter().rev().map(|overview| overview.run.id).collect());
    }
    let mut ids = Vec::new();
    for name in named {
        ids.push(history.find_run(name).await.map_err(Failure::of)?);
    }
    Ok(ids)
}

/// The runs with everything, in that order.
pub async fn whole(history: &History, ids: &[Uuid]) -> Result<Vec<WholeRun>, Failure> {
    let mut runs = Vec::new();
    for id in ids {
        runs.extend(history.run(*id).await.map_err(Failure::of)?);
    }
    Ok(runs)
}

fn rows(
    format: &mut dyn llama_bench::Format,
    runs: &[WholeRun],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let tests = runs.iter().flat_map(|run| &run.tests);
    let rows: Vec<Row> = tests.filter_map(Row::of_test).collect();
    llama_bench::write(format, &rows, out)
}

fn batched(runs: &[WholeRun], out: &mut dyn Write) -> std::io::Result<()> {
    runs.iter()
        .flat_map(|run| &run.tests)
        .try_for_each(|test| llama_bench::write_batched(test, out))
}
