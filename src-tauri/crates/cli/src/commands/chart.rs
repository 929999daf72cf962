//! `twospeed chart`: figures from the history.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_chart::{Figure, Frame, Overlays, PngSize, Theme};
use twospeed_estimate::Question;
use twospeed_gguf::Model;
use twospeed_history::{History, LatestFilter, RunFilter, WholeRun};
use twospeed_library::display::shown_path;
use twospeed_measure::machine::Machine;
use twospeed_measure::platform;
use twospeed_workbench::figures::{
    Predicted, PredictedKind, PredictedOptions, Predictor, expected_source,
};
use twospeed_workbench::{FigureInput, FigureKind, Grounds, SpeedsOptions, figures};

use super::export;
use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Arguments of `chart`.
#[derive(Debug, Args)]
pub struct ChartArgs {
    /// Which figure
    #[arg(value_enum)]
    kind: Kind,
    /// A run: its id, or a part of it [default: the newest result of each test of each model]
    #[arg(long = "run", value_name = "ID", num_args = 1..)]
    runs: Vec<String>,
    /// A file of results, drawn without being kept: what twospeed import reads
    #[arg(long = "import", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    /// Model files, measured or not: roofline, estimate and breakdown say what is expected of them
    #[arg(short = 'm', long = "model", value_name = "FILE", num_args = 1..)]
    models: Vec<PathBuf>,
    /// Where to: the name's ending says what is written (.svg, .png, .pdf)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Predictions to draw with the measurements
    #[arg(long, value_enum, value_delimiter = ',')]
    overlay: Vec<Overlay>,
    /// Colours
    #[arg(long, value_enum, default_value_t = ThemeName::Light)]
    theme: ThemeName,
    /// Width of the figure
    #[arg(long, value_name = "PX", default_value_t = 640)]
    width: u32,
    /// Everything so many times larger: 1.5 for a projector
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// Pixels of a PNG for each unit of the figure
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0)]
    pixels: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Prefill and decode of each model and quantization
    Speeds,
    /// Prefill and decode as the cache fills
    Context,
    /// Users at once: decode of all and of each, and how long they wait
    Users,
    /// What the wait for the first token consists of, and what a cached prompt saves
    FirstToken,
    /// Speeds of each quantization, and what they cost in quality
    Quantization,
    /// Speeds over time, with clock and temperature
    Sustained,
    /// Speed of arithmetic against work per byte, under the limits of this machine
    Roofline,
    /// What theory allows, what is expected here and what was measured
    Estimate,
    /// Where the time of a prompt and of a token goes
    Breakdown,
}

/// What a figure is made of.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// Results alone.
    Results(FigureKind),
    /// What is expected, beside results where there are some.
    Expected(PredictedKind),
}

impl Kind {
    fn of(self) -> Of {
        match self {
            Self::Speeds => Of::Results(FigureKind::Speeds),
            Self::Context => Of::Results(FigureKind::Context),
            Self::Users => Of::Results(FigureKind::Users),
            Self::FirstToken => Of::Results(FigureKind::FirstToken),
            Self::Quantization => Of::Results(FigureKind::Quantization),
            Self::Sustained => Of::Results(FigureKind::Sustained),
            Self::Roofline => Of::Expected(PredictedKind::Roofline),
            Self::Estimate => Of::Expected(PredictedKind::Estimate),
            Self::Breakdown => Of::Expected(PredictedKind::Breakdown),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Overlay {
    /// What decode cannot exceed: read speed / weights read for a token
    Ceiling,
    /// What is expected on this machine, with its range
    Expected,
    /// What the expected time is made of
    Breakdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ThemeName {
    /// Dark on light, for paper
    Light,
    /// Light on dark
    Dark,
}

/// Draws and writes.
pub fn run(context: &Context, args: &ChartArgs) -> Result<(), Failure> {
    let form = Form::of(args)?;
    let figure = context.block_on(figure(context, args))?;
    let theme = match args.theme {
        ThemeName::Light => Theme::Light,
        ThemeName::Dark => Theme::Dark,
    };
    let bytes = match form {
        Form::Svg => figure.svg_for(theme).into_bytes(),
        Form::Png => figure
            .to_png(theme, PngSize::Scale(args.pixels))
            .map_err(Failure::of)?,
        Form::Pdf => figure.to_pdf(theme).map_err(Failure::of)?,
    };
    super::write_file(&args.out, &bytes)?;
    say(format!("{}: {}", shown_path(&args.out), figure.data.title));
    Ok(())
}

enum Form {
    Svg,
    Png,
    Pdf,
}

impl Form {
    fn of(args: &ChartArgs) -> Result<Self, Failure> {
        let ending = args
            .out
            .extension()
            .map(|ending| ending.to_ascii_lowercase());
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("pdf") => Ok(Self::Pdf),
            _ => Err(Failure::Usage(format!(
                "{} says nothing of the format: end the name with .svg, .png or .pdf.",
                shown_path(&args.out)
            ))),
        }
    }
}

async fn figure(context: &Context, args: &ChartArgs) -> Result<Figure, Failure> {
    let history = context.open_history().await?;
    let frame = Frame {
        width: f64::from(args.width) * args.scale,
        scale: args.scale,
        ..Frame::default()
    };
    let time_zone = TimeZone::system();
    let kind = match args.kind.of() {
        Of::Expected(kind) => {
            return expected(context, args, kind, &history, &time_zone)
                .await?
                .draw(&frame)
                .map_err(Failure::of);
        }
        Of::Results(kind) => kind,
    };
    if !args.models.is_empty() {
        return Err(Failure::Usage(
            "-m is for roofline, estimate and breakdown: other figures show results, which --run \
             and --import name."
                .to_owned(),
        ));
    }
    let runs = runs(&history, args, kind).await?;
    let nothing = || Failure::Failed(kind.nothing());
    if kind != FigureKind::Speeds {
        if !args.overlay.is_empty() {
            say("This figure has no overlays: --overlay is for speeds and estimate.");
        }
        let sources = figures::series(kind, &runs);
        let input = figures::figure(kind, &sources, &runs, &time_zone).ok_or_else(nothing)?;
        return input.draw(&frame).map_err(Failure::of);
    }
    let overlays = Overlays {
        ceiling: args.overlay.contains(&Overlay::Ceiling),
        expected: args.overlay.contains(&Overlay::Expected),
        breakdown: args.overlay.contains(&Overlay::Breakdown),
    };
    let (grounds, machine) = grounds(&history).await?;
    if overlays.expected || overlays.breakdown {
        say_uncalibrated(&grounds);
    }
    let predictor = Predictor {
        grounds: &grounds,
        machine: &machine,
    };
    let read_speed = grounds.read_speed();
    let options = SpeedsOptions {
        ceiling: &|machine, model| read_speed?.decode_ceiling(machine, model),
        ceiling_source: &|models| read_speed?.source(models),
        expected: &|source| predictor.estimate_of(source),
        expected_source: grounds
            .calibration()
            .ok()
            .map(|calibration| expected_source(calibration, &time_zone)),
        overlays,
        time_zone: time_zone.clone(),
    };
    let speeds = twospeed_workbench::speeds(&runs, &options).ok_or_else(nothing)?;
    twospeed_chart::speeds(&speeds, &frame).map_err(Failure::of)
}

/// What is known of this machine with its usual threads.
async fn grounds(history: &History) -> Result<(Grounds, Machine), Failure> {
    let machine = platform::machine();
    let threads = platform::default_threads();
    let ubatch = Question::default().context.ubatch;
    let grounds = Grounds::load(history, &machine, threads, ubatch, None).await;
    Ok((grounds.map_err(Failure::of)?, machine))
}

/// How to come by a calibration, where there is none.
fn uncalibrated(grounds: &Grounds) -> Option<String> {
    let why = grounds.calibration().err()?;
    Some(format!(
        "This machine is {why}, so nothing can be expected. Calibrate it first: twospeed calibrate"
    ))
}

fn say_uncalibrated(grounds: &Grounds) {
    if let Some(sentence) = uncalibrated(grounds) {
        say(sentence);
    }
}

/// A figure of what is expected: of the results that were named, of model files, or of the newest
/// results.
async fn expected(
    context: &Context,
    args: &ChartArgs,
    kind: PredictedKind,
    history: &History,
    time_zone: &TimeZone,
) -> Result<FigureInput, Failure> {
    let (grounds, machine) = grounds(history).await?;
    match (uncalibrated(&grounds), kind) {
        // Ceilings and results can be shown without.
        (Some(sentence), PredictedKind::Estimate) => say(sentence),
        (Some(sentence), _) => return Err(Failure::Failed(sentence)),
        (None, _) => {}
    }
    let breakdown = args.overlay.contains(&Overlay::Breakdown);
    if kind != PredictedKind::Estimate && !args.overlay.is_empty() {
        say("This figure has no overlays: --overlay is for speeds and estimate.");
    }
    let mut files = Vec::new();
    for path in context.model_paths(&args.models)? {
        files.push(read_model(&path)?);
    }
    let runs = runs(history, args, FigureKind::Speeds).await?;
    let mut sources = figures::predicted_series(kind, &runs);
    if !files.is_empty() && args.runs.is_empty() && args.files.is_empty() {
        // Of the newest results those of these files, and the files that have none.
        let fingerprint = |model: &Model| twospeed_gguf::fingerprint(model).ok();
        let named: Vec<_> = files.iter().map(|(_, model)| fingerprint(model)).collect();
        sources.retain(|source| named.contains(&Some(source.model().fingerprint.clone())));
        let has_result = |index: usize| {
            let of = |source: &figures::Source<'_>| {
                Some(&source.model().fingerprint) == named[index].as_ref()
            };
            sources.iter().any(of)
        };
        files = files
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !has_result(*index))
            .map(|(_, file)| file)
            .collect();
    }
    let predictor = Predictor {
        grounds: &grounds,
        machine: &machine,
    };
    let rows: Vec<Predicted<'_>> = predictor.rows(kind, sources, &files, &Question::default());
    let options = PredictedOptions {
        calibration: grounds.calibration().ok().map(AsRef::as_ref),
        breakdown,
        time_zone,
    };
    figures::predicted(kind, &rows, options)
        .ok_or_else(|| Failure::Failed(kind.nothing().to_owned()))
}

/// A model file's name and header; a header alone is enough.
fn read_model(path: &Path) -> Result<(String, Model), Failure> {
    let model = twospeed_gguf::read(path).map_err(Failure::of)?;
    model.check().map_err(Failure::of)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok((name.to_string_lossy().into_owned(), model))
}

/// The runs that were named, and those of the files; without either the newest results.
async fn runs(
    history: &History,
    args: &ChartArgs,
    kind: FigureKind,
) -> Result<Vec<WholeRun>, Failure> {
    let mut runs = Vec::new();
    if !args.runs.is_empty() {
        let ids = export::ids(history, &args.runs).await?;
        runs.extend(export::whole(history, &ids).await?);
    }
    for file in &args.files {
        runs.extend(read(file).await?);
    }
    if args.runs.is_empty() && args.files.is_empty() {
        runs = newest(history, kind).await?;
    }
    Ok(runs)
}

/// The newest results that a figure is made of.
async fn newest(history: &History, kind: FigureKind) -> Result<Vec<WholeRun>, Failure> {
    if kind == FigureKind::Sustained {
        // The newest that lasted: what was measured since at once is no part of it.
        let all = history.whole_runs(&RunFilter::default()).await;
        let all = all.map_err(Failure::of)?;
        let newest = all.into_iter().find(|run| {
            figures::is_sustained(run)
                && !figures::series(kind, std::slice::from_ref(run)).is_empty()
        });
        return Ok(newest.into_iter().collect());
    }
    let mut runs: Vec<WholeRun> = Vec::new();
    for key in kind.kinds() {
        let found = history.latest_of(key, &LatestFilter::default()).await;
        for run in found.map_err(Failure::of)? {
            match runs.iter_mut().find(|other| other.run.id == run.run.id) {
                Some(other) => other.tests.extend(run.tests),
                None => runs.push(run),
            }
        }
    }
    Ok(runs)
}

/// The runs of a file, read through a history that is thrown away.
async fn read(file: &Path) -> Result<Vec<WholeRun>, Failure> {
    let named = |reason: String| Failure::Failed(format!("{}: {reason}", shown_path(file)));
    let bytes = std::fs::read(file).map_err(|error| {
        named(format!(
            "it cannot be read ({error}). Name a file of results."
        ))
    })?;
    let folder = tempfile::tempdir().map_err(Failure::of)?;
    let history = History::open(folder.path()).await.map_err(Failure::of)?;
    let imported = history.import(bytes, Timestamp::now()).await;
    let imported = imported.map_err(|error| named(error.to_string()))?;
    for rejected in &imported.rejected {
        let line = rejected
            .line
            .map_or_else(String::new, |line| format!(" line {line}:"));
        say(format!("{}:{line} {}", shown_path(file), rejected.reason));
    }
    for flagged in &imported.flagged {
        say(format!(
            "{}: left out, {}",
            shown_path(file),
            flagged.reason
        ));
    }
    let runs = history.whole_runs(&RunFilter::default()).await;
    let runs = runs.map_err(Failure::of)?;
    history.close().await;
    Ok(runs)
}
