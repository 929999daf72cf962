//! `twospeed`: everything the window can do on data, without a screen.
//!
//! Data goes to standard output, words and progress to standard error. Exit codes: 0, 1 (failed),
//! 2 (usage). Every failure is one sentence that names the thing and says what to do.

mod bench;
mod commands;
mod context;
mod failure;
mod flags;
mod interrupt;
mod progress;
mod say;
mod source;
mod table;
mod usage;
mod words;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{CommandFactory, Parser, Subcommand};

pub use failure::Failure;
use say::say;

/// Both speeds of a local language model: prefill (reading the prompt) and decode (writing the answer).
#[derive(Debug, Parser)]
#[command(
    name = "twospeed",
    version,
    about,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Cli {
    /// Folder that holds the history and the built-in model
    // An empty variable is one that is not set.
    #[arg(long, global = true, value_name = "FOLDER", env = "TWOSPEED_DATA_DIR",
        value_parser = OsStringValueParser::new().map(PathBuf::from))]
    data_dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the models of a folder
    Models(commands::models::ModelsArgs),
    /// Say what is in a model file
    Inspect(commands::inspect::InspectArgs),
    /// Say what theory allows: memory and the decode ceiling
    Estimate(commands::estimate::EstimateArgs),
    /// Measure prefill and decode by llama-bench's conventions, and more
    ///
    /// Several values are given with commas (512,1024), by ranges (0-4096+1024, 1-64*2) or by
    /// repeating the flag; every combination is measured. llama-bench's short names are taken too
    /// (-ngl, -ctk, ...).
    #[command(after_help = bench::EXAMPLES)]
    Bench(Box<bench::args::BenchArgs>),
    /// Find the fastest settings by measuring
    Tune(commands::tune::TuneArgs),
    /// Predict both speeds of a model from its header alone
    Twin(commands::twin::TwinArgs),
    /// List what was measured
    Runs(commands::runs::RunsArgs),
    /// Write results in one of llama-bench's formats, or whole
    Export(commands::export::ExportArgs),
    /// Take in results that `export -o results` wrote
    Import(commands::import::ImportArgs),
    /// Draw a figure
    Chart(commands::chart::ChartArgs),
    /// Measure what expected speeds on this machine rest on: about fifteen seconds
    Calibrate(commands::calibrate::CalibrateArgs),
    /// Answer one prompt, each part timed
    Generate(commands::generate::GenerateArgs),
    /// Make a smaller quantization of a model file
    Quantize(commands::quantize::QuantizeArgs),
    /// Fetch a model from Hugging Face
    Download(commands::download::DownloadArgs),
    /// The process that runs the engine: started by Twospeed itself
    #[command(hide = true)]
    Worker {
        /// Handed on
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// The whole command line, for what describes it: the manual pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line with `arguments` (the program's name first).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let done = match parse(&arguments) {
        Ok(Some(Cli {
            command: Command::Worker { arguments },
            ..
        })) => return twospeed_worker::main(arguments),
        Ok(Some(cli)) => dispatch(cli),
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(sentence) = failure.sentence() {
                say(sentence);
            }
            failure.exit_code()
        }
    }
}

/// Writes to standard output, to the last byte.
fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::of_output(&error))
}

/// What was asked for; `None` when it was help or the version, which are printed.
fn parse(arguments: &[OsString]) -> Result<Option<Cli>, Failure> {
    let known = flags::with_long_names(arguments).map_err(Failure::Usage)?;
    match Cli::try_parse_from(known) {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if usage::is_an_answer(&error) => error
            .print()
            .map(|()| None)
            .map_err(|error| Failure::of_output(&error)),
        Err(error) => Err(Failure::Usage(usage::sentence(&error, arguments))),
    }
}

fn dispatch(cli: Cli) -> Result<(), Failure> {
    let context = context::Context::new(cli.data_dir);
    if let Ok(folder) = context.data_folder() {
        // Of a prediction that was killed, some GB may be left.
        twospeed_workbench::twin::remove_left_twins(folder.path());
    }
    match cli.command {
        Command::Models(args) => commands::models::run(&context, &args),
        Command::Inspect(args) => commands::inspect::run(&context, &args),
        Command::Estimate(args) => commands::estimate::run(&context, &args),
        Command::Bench(args) => bench::run(&context, &args),
        Command::Tune(args) => commands::tune::run(&context, &args),
        Command::Twin(args) => commands::twin::run(&context, &args),
        Command::Runs(args) => commands::runs::run(&context, &args),
        Command::Export(args) => commands::export::run(&context, &args),
        Command::Import(args) => commands::import::run(&context, &args),
        Command::Chart(args) => commands::chart::run(&context, &args),
        Command::Calibrate(args) => commands::calibrate::run(&context, &args),
        Command::Generate(args) => commands::generate::run(&context, &args),
        Command::Quantize(args) => commands::quantize::run(&context, &args),
        Command::Download(args) => commands::download::run(&context, &args),
        Command::Worker { .. } => unreachable!("BUG: the worker was started before"),
    }
}
