//! `twospeed import`: results of another history.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use twospeed_history::Outcome;
use twospeed_library::display::{shown, shown_path};

use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files that `twospeed export -o results` wrote
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Takes in what can be taken in, and names each run that cannot.
pub fn run(context: &Context, args: &ImportArgs) -> Result<(), Failure> {
    context.block_on(async {
        let history = context.open_history().await?;
        let mut failed = false;
        for file in &args.files {
            let place = shown_path(file);
            let bytes = match std::fs::read(file) {
                Ok(bytes) => bytes,
                Err(error) => {
                    say(format!("{place} cannot be read: {error}."));
                    failed = true;
                    continue;
                }
            };
            let imported = match history.import(bytes, Timestamp::now()).await {
                Ok(imported) => imported,
                Err(error) => {
                    say(format!("{place}: {error}"));
                    failed = true;
                    continue;
                }
            };
            let fresh = imported
                .runs
                .iter()
                .filter(|run| run.outcome != Outcome::AlreadyThere)
                .count();
            let known = imported.runs.len() - fresh;
            say(format!(
                "{place}: {fresh} runs taken in, {known} were there already."
            ));
            for rejected in &imported.rejected {
                let place = match (rejected.run, rejected.line) {
                    (Some(run), _) => format!("{place}, run {run}"),
                    (None, Some(line)) => format!("{place}, line {line}"),
                    (None, None) => place.clone(),
                };
                say(format!("{place}: {}", shown(&rejected.reason)));
                failed = true;
            }
        }
        if failed { Err(Failure::Said) } else { Ok(()) }
    })
}
