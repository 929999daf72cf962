//! `twospeed bench`: llama-bench's conventions and formats, with a history behind it.

pub mod args;
mod base;
mod grid;
mod instead;
mod lists;
mod measuring;
mod output;
mod planned;
mod profile;
mod report;
mod resume;
mod status;
mod tables;

use std::path::{Path, PathBuf};

use twospeed_library::display::shown_path;
use twospeed_measure::machine::Probe;
use twospeed_measure::plan::{FEWEST_UNTIL, Order, Until};
use twospeed_measure::platform::{self, Host};
use twospeed_measure::tune::Choice;
use twospeed_measure::{Kind, Plan, Stop};
use twospeed_workbench::Subject;

use self::args::{BenchArgs, HowArgs};
use self::base::Bases;
use self::measuring::Measuring;
use self::output::Output;
use self::planned::Circumstances;
use self::report::report;
use crate::Failure;
use crate::context::Context;

/// What results are exported as: llama-bench's formats and our own.
pub const EXPORTS: [&str; 6] = ["md", "json", "jsonl", "csv", "sql", "results"];
/// What `-o` takes: these, or nothing.
pub const OUTPUTS: [&str; 7] = ["md", "json", "jsonl", "csv", "sql", "none", "results"];
/// What `-oe` takes.
pub const OUTPUTS_ERR: [&str; 6] = ["md", "json", "jsonl", "csv", "sql", "none"];

/// What stands below the flags.
pub const EXAMPLES: &str = "\
Examples:
  twospeed bench -m a.gguf -m b.gguf                  two models, both speeds of each
  twospeed bench -m a.gguf --until 1%                 repeated until the figures stand
  twospeed bench -m a.gguf --context-curve            both speeds as the context fills
  twospeed bench -m a.gguf --users 1,2,4,8            a service for several people
  twospeed bench -m a.gguf -t 1-8 --interleave        threads, whatever the machine drifts
  twospeed bench -m a.gguf -m b.gguf --quality --speeds   what a quantization gains and costs";

/// llama-bench's number of repetitions.
const REPETITIONS: u32 = 5;

/// Measures and prints.
pub fn run(context: &Context, args: &BenchArgs) -> Result<(), Failure> {
    if args.instead.version {
        return instead::version();
    }
    if args.instead.list_devices {
        return instead::list_devices(context);
    }
    if args.out.no_save && args.out.output == "results" {
        return Err(Failure::Usage(
            "-o results prints what the history keeps: leave out --no-save.".into(),
        ));
    }
    if let Some(wanted) = &args.stored.resume {
        return resume::run(context, args, wanted);
    }
    let (plan, subjects) = match &args.stored.plan {
        Some(file) => stored(context, file)?,
        None => asked(context, args)?,
    };
    plan.check()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    if args.instead.print_plan {
        return instead::print_plan(&plan);
    }
    let stop = Stop::new();
    let mut output = Output::new(&args.out, &plan, platform::default_threads(), stop.clone())?;
    let measuring = Measuring {
        context,
        args: &args.out,
        plan: &plan,
        subjects: &subjects,
        stop: &stop,
    };
    let outcome = context.block_on(measuring.run(&mut output, None))?;
    let done = report::done(&outcome.tests);
    output.end(&done)?;
    report(&outcome, &outcome.tests, !args.out.no_save)
}

/// The plan that the flags ask for, and its models.
fn asked(context: &Context, args: &BenchArgs) -> Result<(Plan, Vec<Subject>), Failure> {
    let subjects = subjects(context, &args.what.model)?;
    let folders = match args.kinds.quality {
        true => context.block_on(folders(context))?,
        false => Vec::new(),
    };
    let bases = Bases::find(context, &args.kinds, &subjects, &folders)?;
    let profiles = match &args.settings.profile {
        Some(profile) => context.block_on(profile.of(context, &subjects))?,
        None => Vec::new(),
    };
    let circumstances = Circumstances {
        default_threads: platform::default_threads(),
        memory_available: Host::new().state(None).memory_available_bytes,
        base: &|subject| bases.of(subject),
        profile: &|subject| {
            let of =
                |(fingerprint, _): &&(String, Choice)| *fingerprint == subject.measured.fingerprint;
            profiles.iter().find(of).map(|(_, choice)| choice.clone())
        },
    };
    let tests = planned::tests(args, &subjects, &circumstances)?;
    let HowArgs {
        repetitions,
        until,
        until_max,
        interleave,
        sustained,
        delay,
        no_warmup,
    } = &args.how;
    let plan = Plan {
        repetitions: repetitions.unwrap_or(match until {
            Some(_) => FEWEST_UNTIL,
            None => REPETITIONS,
        }),
        until: until.map(|percent| Until {
            relative: percent.0,
            at_most: *until_max,
        }),
        order: match (interleave, sustained) {
            (_, Some(time)) => Order::Sustained { seconds: time.0 },
            (true, None) => Order::Interleaved,
            (false, None) => Order::OneByOne,
        },
        warmup: !no_warmup,
        delay_ms: u64::from(*delay) * 1000,
        ..Plan::new("bench", tests)
    };
    Ok((plan, subjects))
}

/// A plan from a file, its models read anew: they may have moved or changed since it was written.
fn stored(context: &Context, file: &Path) -> Result<(Plan, Vec<Subject>), Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!(
            "{} is no plan: {error}. Write one with twospeed bench ... --print-plan.",
            shown_path(file)
        ))
    };
    let text = std::fs::read(file).map_err(|error| {
        Failure::Failed(format!("{} cannot be read: {error}.", shown_path(file)))
    })?;
    let mut plan: Plan = serde_json::from_slice(&text).map_err(|error| unusable(&error))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for test in &plan.tests {
        if !paths.contains(&test.model.path.0) {
            paths.push(test.model.path.0.clone());
        }
    }
    let subjects = subjects(context, &paths)?;
    for test in &mut plan.tests {
        let at = paths.iter().position(|path| *path == test.model.path.0);
        if let Some(subject) = at.and_then(|at| subjects.get(at)) {
            test.model = subject.measured.clone();
        }
        if let Kind::Quality {
            base: Some(base), ..
        } = &mut test.kind
        {
            **base = Subject::read(&base.path.0).map_err(Failure::of)?.measured;
        }
    }
    Ok((plan, subjects))
}

/// The models that were named, each read once.
fn subjects(context: &Context, named: &[PathBuf]) -> Result<Vec<Subject>, Failure> {
    context
        .model_paths(named)?
        .iter()
        .map(|path| Subject::read(path).map_err(Failure::of))
        .collect()
}

/// The person's own model folders, where a history keeps them.
async fn folders(context: &Context) -> Result<Vec<PathBuf>, Failure> {
    if !twospeed_history::History::exists(context.data_folder()?.path()) {
        return Ok(Vec::new());
    }
    let history = context.open_history().await?;
    let folders = history.folders().await.map_err(Failure::of);
    history.close().await;
    folders
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    /// The flags of a command line that begins behind `twospeed bench -m x.gguf`.
    pub fn args(line: &str) -> BenchArgs {
        let line = format!("twospeed bench -m x.gguf {line}");
        let words: Vec<_> = line
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(Into::into)
            .collect();
        let words = crate::flags::with_long_names(&words).unwrap();
        Line::parse_from(&words[1..]).bench
    }
}
