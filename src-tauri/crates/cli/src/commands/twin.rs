//! `twospeed twin`: the speed of a model from its header alone.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use twospeed_engine::Settings;
use twospeed_engine::process::WorkerProcess;
use twospeed_estimate::{KvType, Question, TwinPrediction, estimate};
use twospeed_history::History;
use twospeed_library::ModelHeader;
use twospeed_library::display::{shown, size};
use twospeed_measure::{Stop, platform};
use twospeed_workbench::lease_place;
use twospeed_workbench::twin::{TwinOutcome, TwinProgress, TwinRequest, predict};

use crate::Failure;
use crate::bench::args::FlashFlag;
use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::progress::ProgressLine;
use crate::say::say;
use crate::source;
use crate::table::Table;

/// Predict both speeds of a model from its header alone, before it is downloaded.
///
/// Builds models with its real shapes and tensor types and random weights (all layers of a small
/// one, of a large one two depths), measures them as bench does, extrapolates to all layers, and
/// removes them. Of a model elsewhere the header alone is read. Nothing is kept as a result.
#[derive(Debug, Args)]
pub struct TwinArgs {
    /// Model file, "builtin", an address (https://...) or OWNER/NAME:FILE on Hugging Face
    #[arg(value_name = "FILE|URL")]
    model: PathBuf,
    /// Prompt tokens; 0 leaves prefill out
    #[arg(short = 'p', long, value_name = "N", default_value_t = 512)]
    n_prompt: u32,
    /// Generated tokens; 0 leaves decode out
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    n_gen: u32,
    /// Tokens already in the cache
    #[arg(short = 'd', long, value_name = "N", default_value_t = 0)]
    n_depth: u32,
    /// Repetitions of each test, fewer where they would take long
    #[arg(short = 'r', long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Threads [default: the physical cores this process may use]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    threads: Option<u32>,
    /// Micro-batch size (-ub)
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    ubatch_size: u32,
    /// Type of the K cache (-ctk)
    #[arg(long, value_name = "TYPE", default_value = "f16")]
    cache_type_k: KvType,
    /// Type of the V cache (-ctv)
    #[arg(long, value_name = "TYPE", default_value = "f16")]
    cache_type_v: KvType,
    /// Flash attention (-fa): auto, on, off
    #[arg(
        long,
        value_name = "MODE",
        default_value = "auto",
        allow_hyphen_values = true
    )]
    flash_attn: FlashFlag,
    /// Everything as JSON
    #[arg(long)]
    json: bool,
}

/// Predicts, and prints what came of it.
pub fn run(context: &Context, args: &TwinArgs) -> Result<(), Failure> {
    let header = source::header(context, &args.model)?;
    let settings = Settings {
        n_threads: args.threads.unwrap_or_else(platform::default_threads),
        n_ubatch: args.ubatch_size,
        type_k: args.cache_type_k.to_string(),
        type_v: args.cache_type_v.to_string(),
        flash_attn: args.flash_attn.0,
        ..Settings::default()
    };
    let outcome = context.block_on(work(context, args, &header, &settings))?;
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        writeln!(out, "{:#}", as_json(args, &header, &settings, &outcome))
    } else {
        words(&mut out, args, &header, &outcome)
    };
    written.map_err(|error| Failure::of_output(&error))
}

async fn work(
    context: &Context,
    args: &TwinArgs,
    header: &ModelHeader,
    settings: &Settings,
) -> Result<TwinOutcome, Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    let folder = context.data_folder()?;
    // What the history knows is which CPU variants died here; where there is none, nothing did.
    let history = match History::exists(folder.path()) {
        true => context.open_history().await.ok(),
        false => None,
    };
    let stop = Stop::new();
    let mut interrupts = Interrupts::new().map_err(Failure::of)?;
    let place = lease_place();
    let request = TwinRequest {
        header,
        folder: folder.path(),
        prompt: args.n_prompt,
        generate: args.n_gen,
        depth: args.n_depth,
        repetitions: args.repetitions,
        settings: settings.clone(),
        engine: &engine,
        history: history.as_ref(),
        lease: &place,
        stop: &stop,
    };
    let mut line = ProgressLine::new();
    let mut tell = |step: TwinProgress| match step {
        TwinProgress::Waiting(sentence) => say(sentence),
        TwinProgress::Building { done, total } => {
            line.show(&format!(
                "Building a twin  {} of {}",
                size(done),
                size(total)
            ));
        }
        TwinProgress::Measuring { layers, test } => {
            line.show(&format!("Measuring a twin of {layers} layers  {test}"));
        }
    };
    let work = predict(&request, &mut tell);
    tokio::pin!(work);
    let outcome = loop {
        tokio::select! {
            done = &mut work => break done,
            () = interrupts.next() => stop.now(),
        }
    };
    outcome.map_err(|problem| match problem.code.as_str() {
        "nothing_asked" => Failure::Usage(problem.message),
        _ => Failure::Failed(shown(&problem.message)),
    })
}

fn as_json(
    args: &TwinArgs,
    header: &ModelHeader,
    settings: &Settings,
    outcome: &TwinOutcome,
) -> Value {
    let speed = |speed: Option<TwinPrediction>| {
        speed.map(|speed| {
            json!({
                "tok_s": speed.tokens_per_second,
                "low": speed.low,
                "high": speed.high,
            })
        })
    };
    let twins: Vec<_> = outcome
        .twins
        .iter()
        .map(|twin| {
            json!({
                "layers": twin.layers,
                "bytes": twin.bytes,
                "prefill_tok_s": twin.prefill_tok_s,
                "decode_tok_s": twin.decode_tok_s,
            })
        })
        .collect();
    json!({
        "model": estimate(&header.model, &Question::default()).model,
        "at": {
            "prompt": args.n_prompt,
            "generate": args.n_gen,
            "depth": args.n_depth,
            "ubatch": settings.n_ubatch,
            "type_k": settings.type_k,
            "type_v": settings.type_v,
            "flash_attention": settings.flash_attn,
            "threads": settings.n_threads,
            "variant": outcome.variant,
            "measured_prompt": outcome.measured_prompt,
            "measured_generate": outcome.measured_generate,
        },
        "twins": twins,
        "layer": {
            "prefill_ms": outcome.prefill_layer_ms,
            "decode_ms": outcome.decode_layer_ms,
        },
        "prefill": speed(outcome.prefill),
        "decode": speed(outcome.decode),
        "took_s": outcome.seconds,
        "header_bytes_read": header.bytes_read,
    })
}

fn words(
    out: &mut dyn Write,
    args: &TwinArgs,
    header: &ModelHeader,
    outcome: &TwinOutcome,
) -> std::io::Result<()> {
    let model = &header.model;
    writeln!(
        out,
        "{}, {} layers, predicted from {} of its header in {:.0} s",
        shown(&model.name),
        outcome.layers,
        size(header.bytes_read),
        outcome.seconds
    )?;
    writeln!(out)?;
    let cell = |speed: Option<f64>| {
        speed.map_or_else(
            || "not measured".to_owned(),
            |speed| format!("{speed:.1} tok/s"),
        )
    };
    let mut table = Table::new(&["", ">layers", ">size", ">prefill", ">decode"]);
    for twin in &outcome.twins {
        table.row(vec![
            "twin, measured".into(),
            twin.layers.to_string(),
            size(twin.bytes),
            cell(twin.prefill_tok_s),
            cell(twin.decode_tok_s),
        ]);
    }
    let predicted = |speed: Option<TwinPrediction>| {
        speed.map_or_else(
            || "not predicted".to_owned(),
            |speed| format!("{:.1} tok/s", speed.tokens_per_second),
        )
    };
    let band = |speed: Option<TwinPrediction>| {
        speed.map_or_else(String::new, |speed| {
            format!("{:.1} to {:.1}", speed.low, speed.high)
        })
    };
    table.row(vec![
        "model, predicted".into(),
        outcome.layers.to_string(),
        size(model.bytes_expected),
        predicted(outcome.prefill),
        predicted(outcome.decode),
    ]);
    table.row(vec![
        "likely between".into(),
        "".into(),
        "".into(),
        band(outcome.prefill),
        band(outcome.decode),
    ]);
    table.write(out)?;
    writeln!(out)?;
    if let (Some(prefill), Some(decode)) = (outcome.prefill_layer_ms, outcome.decode_layer_ms) {
        writeln!(
            out,
            "One layer costs {prefill:.2} ms a prompt token and {decode:.2} ms a written one."
        )?;
    }
    let short = |what: &str, measured: u32, asked: u32| match measured < asked {
        true => format!("{measured} of the {asked} tokens {what}"),
        false => String::new(),
    };
    let shorter: Vec<String> = [
        short("of the prompt", outcome.measured_prompt, args.n_prompt),
        match outcome.decode {
            Some(_) => short("to write", outcome.measured_generate, args.n_gen),
            None => String::new(),
        },
    ]
    .into_iter()
    .filter(|text| !text.is_empty())
    .collect();
    if !shorter.is_empty() {
        writeln!(
            out,
            "Measured with {}, so that it does not take long.",
            shorter.join(" and ")
        )?;
    }
    if outcome.experts {
        writeln!(
            out,
            "Random routers spread tokens evenly over the experts, as trained ones about do."
        )?;
    }
    writeln!(
        out,
        "Twins have random weights: no number here was measured with the model itself."
    )
}
