//! `twospeed export`: results in one of llama-bench's formats, or whole.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use twospeed_history::llama_bench::{self, Row};
use twospeed_history::{History, RunFilter, WholeRun};
use uuid::Uuid;

use crate::Failure;
use crate::context::Context;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A run: its id, or a part of it [default: all runs]
    #[arg(long = "run", value_name = "ID", num_args = 1..)]
    runs: Vec<String>,
    /// Format: results (everything, to import elsewhere), md, json, jsonl, csv, sql
    #[arg(short, long, value_name = "FORMAT", default_value = "results", value_parser = crate::bench::OUTPUTS)]
    output: String,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes results.
pub fn run(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let text = context.block_on(async {
        let history = context.open_history().await?;
        let ids = ids(&history, &args.runs).await?;
        let mut text = Vec::new();
        match llama_bench::format(&args.output) {
            None => history
                .export(&ids, Timestamp::now(), &mut text)
                .await
                .map_err(Failure::of)?,
            Some(mut format) => {
                let runs = whole(&history, &ids).await?;
                rows(format.as_mut(), &runs, &mut text)
                    .map_err(|error| Failure::of_output(&error))?;
            }
        }
        Ok(text)
    })?;
    match &args.out {
        None => crate::print(&text),
        Some(path) => super::write_file(path, &text),
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
    let rows: Vec<Row> = runs
        .iter()
        .flat_map(|run| &run.tests)
        .filter_map(|test| {
            let samples: Vec<_> = test.samples.iter().map(|record| record.sample).collect();
            Row::of(&test.record, test.end.as_ref()?, &samples)
        })
        .collect();
    llama_bench::write(format, &rows, out)
}
