//! `twospeed chart`: figures from the history.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use twospeed_chart::{Figure, Frame, Overlays, PngSize, Theme};
use twospeed_history::LatestFilter;
use twospeed_library::display::shown_path;
use twospeed_measure::platform;
use twospeed_workbench::{ReadSpeed, SpeedsOptions};

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Overlay {
    /// What decode cannot exceed: read speed / weights read for a token
    Ceiling,
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
    let Kind::Speeds = args.kind;
    let history = context.open_history().await?;
    let runs = if args.runs.is_empty() {
        history
            .latest(&LatestFilter::default())
            .await
            .map_err(Failure::of)?
    } else {
        let ids = export::ids(&history, &args.runs).await?;
        export::whole(&history, &ids).await?
    };
    let here = platform::machine();
    let read_speed = ReadSpeed::load(&history, &here)
        .await
        .map_err(Failure::of)?;
    let options = SpeedsOptions {
        ceiling: &|machine, model| read_speed.decode_ceiling(machine, model),
        ceiling_source: &|models| read_speed.source(models),
        overlays: Overlays {
            ceiling: args.overlay.contains(&Overlay::Ceiling),
            expected: false,
        },
        time_zone: TimeZone::system(),
    };
    let speeds = twospeed_workbench::speeds(&runs, &options).ok_or_else(|| {
        Failure::Failed(
            "There is no measured prefill or decode to draw. Measure first: twospeed bench -m builtin".into(),
        )
    })?;
    let frame = Frame {
        width: f64::from(args.width) * args.scale,
        scale: args.scale,
        ..Frame::default()
    };
    twospeed_chart::speeds(&speeds, &frame).map_err(Failure::of)
}
