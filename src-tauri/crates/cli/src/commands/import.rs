//! `twospeed import`: results of another history, of llama-bench and of llama-batched-bench.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use twospeed_history::{Form, History, HistoryError, Imported};
use twospeed_library::display::{shown, shown_path};

use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files of twospeed export, llama-bench (json, jsonl, csv, md, sql) or llama-batched-bench
    /// (jsonl); what each is, is told by what stands in it
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Let results that cannot be right stand in figures all the same
    #[arg(long)]
    allow: bool,
    /// What came of each file as JSON
    #[arg(long)]
    json: bool,
}

/// What came of a file.
struct Report {
    file: String,
    imported: Option<Imported>,
    /// Why nothing could be read.
    error: Option<String>,
}

impl Report {
    fn json(&self) -> Result<Value, serde_json::Error> {
        let mut report = json!({ "file": self.file, "error": self.error });
        if let (Value::Object(report), Some(imported)) = (&mut report, &self.imported)
            && let Value::Object(imported) = serde_json::to_value(imported)?
        {
            report.extend(imported);
        }
        Ok(report)
    }
}

/// Takes in what can be taken in, and names each part that cannot. Fails where a file gives nothing.
pub fn run(context: &Context, args: &ImportArgs) -> Result<(), Failure> {
    let reports = context.block_on(async {
        let history = context.open_history().await?;
        let mut reports = Vec::new();
        for file in &args.files {
            let report = report_of(&history, file, args.allow).await?;
            if !args.json {
                words(&report, args.allow);
            }
            reports.push(report);
        }
        Ok(reports)
    })?;
    if args.json {
        let reports: Result<Vec<Value>, _> = reports.iter().map(Report::json).collect();
        let text = reports
            .and_then(|reports| serde_json::to_string_pretty(&reports))
            .map_err(Failure::of)?;
        crate::print(format!("{text}\n").as_bytes())?;
    }
    match reports.iter().all(gave_something) {
        true => Ok(()),
        false => Err(Failure::Said),
    }
}

/// Errors: of the history itself, which no other file would escape.
async fn report_of(history: &History, file: &Path, allow: bool) -> Result<Report, Failure> {
    let name = shown_path(file);
    let refused = |error: String| Report {
        file: name.clone(),
        imported: None,
        error: Some(error),
    };
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(refused(format!("It cannot be read: {error}."))),
    };
    let now = Timestamp::now();
    let imported = match history.import(bytes, now).await {
        Ok(imported) => imported,
        Err(
            error @ (HistoryError::NothingFound
            | HistoryError::NotAnExport { .. }
            | HistoryError::NewerExport { .. }),
        ) => return Ok(refused(error.to_string())),
        Err(error) => return Err(Failure::of(error)),
    };
    if allow {
        let tests: Vec<_> = imported
            .flagged
            .iter()
            .map(|flagged| flagged.test)
            .collect();
        history
            .allow(&tests, Some(now))
            .await
            .map_err(Failure::of)?;
    }
    Ok(Report {
        file: name,
        imported: Some(imported),
        error: None,
    })
}

/// An export without runs is whole; a table without rows is not.
fn gave_something(report: &Report) -> bool {
    report.imported.as_ref().is_some_and(|imported| {
        let is_empty_export = imported.form == Form::Results && imported.rejected.is_empty();
        !imported.runs.is_empty() || is_empty_export
    })
}

fn words(report: &Report, allowed: bool) {
    let file = &report.file;
    if let Some(error) = &report.error {
        say(format!("{file}: {error}"));
    }
    let Some(imported) = &report.imported else {
        return;
    };
    let sum = |of: fn(&twospeed_history::ImportedRun) -> usize| -> usize {
        imported.runs.iter().map(of).sum()
    };
    let (taken, known) = (sum(|run| run.taken), sum(|run| run.known));
    let results = if taken == 1 { "result" } else { "results" };
    say(format!(
        "{file}: {}: {taken} {results} taken in, {known} there already.",
        imported.form
    ));
    for note in &imported.notes {
        say(format!("{file}: {}", shown(note)));
    }
    let at_line = |line: Option<usize>| match line {
        Some(line) => format!("{file}, line {line}"),
        None => file.clone(),
    };
    for rejected in &imported.rejected {
        let place = match rejected.run {
            Some(run) => format!("{file}, run {run}"),
            None => at_line(rejected.line),
        };
        say(format!("{place}: left out: {}", shown(&rejected.reason)));
    }
    for flagged in &imported.flagged {
        let place = at_line(flagged.line);
        let kept = match allowed {
            true => "It stands in figures all the same, as was asked.".to_owned(),
            false => format!(
                "It stays out of figures; twospeed runs --allow {} lets it in.",
                super::runs::tail(&flagged.run.to_string())
            ),
        };
        say(format!(
            "{place}: {}: {}. {kept}",
            shown(&flagged.name),
            shown(&flagged.reason)
        ));
    }
}
