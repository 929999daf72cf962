//! `twospeed runs`: what was measured and imported.

use std::io::Write;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_history::{RunFilter, RunOverview, RunStatus};
use twospeed_library::display::{shortened, shown};

use crate::Failure;
use crate::context::Context;
use crate::say::say;
use crate::table::Table;

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Everything as JSON
    #[arg(long)]
    json: bool,
    /// Let results of this run that cannot be right stand in figures all the same
    #[arg(long, value_name = "ID")]
    allow: Option<String>,
}

/// Lists runs, newest first, or allows the suspect results of one.
pub fn run(context: &Context, args: &RunsArgs) -> Result<(), Failure> {
    if let Some(wanted) = &args.allow {
        return allow(context, wanted);
    }
    let runs = context.block_on(async {
        let history = context.open_history().await?;
        history
            .runs(&RunFilter::default())
            .await
            .map_err(Failure::of)
    })?;
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        serde_json::to_string_pretty(&runs)
            .map_err(std::io::Error::other)
            .and_then(|text| writeln!(out, "{text}"))
    } else {
        words(&mut out, &runs)
    };
    written.map_err(|error| Failure::of_output(&error))
}

fn allow(context: &Context, wanted: &str) -> Result<(), Failure> {
    context.block_on(async {
        let history = context.open_history().await?;
        let id = history.find_run(wanted).await.map_err(Failure::of)?;
        let run = history.run(id).await.map_err(Failure::of)?;
        let tests = run.into_iter().flat_map(|run| run.tests);
        let suspect: Vec<_> = tests
            .filter(|test| !test.counts())
            .map(|test| test.record.id)
            .collect();
        let allowed = history
            .allow(&suspect, Some(Timestamp::now()))
            .await
            .map_err(Failure::of)?;
        say(match allowed {
            0 => format!("No result of run {wanted} is held back."),
            1 => format!("1 result of run {wanted} stands in figures now."),
            n => format!("{n} results of run {wanted} stand in figures now."),
        });
        Ok(())
    })
}

fn words(out: &mut dyn Write, runs: &[RunOverview]) -> std::io::Result<()> {
    if runs.is_empty() {
        say("Nothing was measured yet. Begin with: twospeed bench -m builtin");
        return Ok(());
    }
    let zone = TimeZone::system();
    let mut table = Table::new(&["run", "started", "models", ">tests", ">samples", "state"]);
    for overview in runs {
        let models: Vec<_> = overview
            .models
            .iter()
            .map(|model| match &model.quantization {
                Some(quantization) => format!("{} {quantization}", model.name),
                None => model.name.clone(),
            })
            .collect();
        let started = overview.run.started_at.to_zoned_datetime(zone.clone());
        table.row(vec![
            tail(&overview.run.id.to_string()),
            started.strftime("%Y-%m-%d %H:%M").to_string(),
            shortened(&shown(&models.join(", ")), 60),
            format!("{}/{}", overview.tests.done, overview.tests.total()),
            overview.samples.to_string(),
            state(overview),
        ]);
    }
    table.write(out)
}

/// The end of an id: ids of one minute begin alike.
pub fn tail(id: &str) -> String {
    id.rsplit('-').next().unwrap_or(id).to_owned()
}

fn state(overview: &RunOverview) -> String {
    let state = match overview.run.status {
        RunStatus::Running => "running",
        RunStatus::Complete if overview.tests.done == overview.tests.total() => "complete",
        RunStatus::Complete => "complete, with failures",
        RunStatus::Stopped => "stopped",
        RunStatus::Interrupted => "cut off",
    };
    match overview.suspect {
        0 => state.to_owned(),
        n => format!("{state}, {n} suspect"),
    }
}
