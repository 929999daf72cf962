//! `twospeed estimate`: what theory allows.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use twospeed_engine::Start;
use twospeed_engine::process::WorkerProcess;
use twospeed_estimate::{
    Allocation, Bandwidth, BandwidthFrom, Bytes, BytesPerSecond, ContextSettings, Estimate, KvType,
    Memory, MemorySource, Note, Question, TokensPerSecond, device, estimate,
};
use twospeed_gguf::Model;
use twospeed_history::History;
use twospeed_measure::machine::Probe;
use twospeed_measure::platform::{self, Host};
use twospeed_workbench::{
    Allocated, Foreseer, Grounds, Unforeseen, basis_words, flash_attention, foresee_context,
    lease_place,
};

use twospeed_library::display::shown;

use crate::Failure;
use crate::bench::args::FlashFlag;
use crate::context::Context;
use crate::source;

/// Arguments of `estimate`.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    /// Model file, or "builtin" for the built-in model; a header alone is enough, also of a model
    /// elsewhere: an address (https://..), or OWNER/NAME:FILE on Hugging Face
    file: PathBuf,
    /// Prompt tokens
    #[arg(short = 'p', long, value_name = "N", default_value_t = 512)]
    n_prompt: u32,
    /// Generated tokens
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    n_gen: u32,
    /// Tokens already in the cache
    #[arg(short = 'd', long, value_name = "N", default_value_t = 0)]
    n_depth: u32,
    /// Context in tokens, all users together; 0 is what the model was trained for
    #[arg(short, long, value_name = "N", default_value_t = 4096)]
    ctx_size: u32,
    /// Micro-batch size (-ub)
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    ubatch_size: u32,
    /// Type of the K cache (-ctk)
    #[arg(long, value_name = "TYPE", default_value = "f16")]
    cache_type_k: KvType,
    /// Type of the V cache (-ctv)
    #[arg(long, value_name = "TYPE", default_value = "f16")]
    cache_type_v: KvType,
    /// Flash attention (-fa): auto, 0, 1
    #[arg(
        long,
        value_name = "MODE",
        default_value = "auto",
        allow_hyphen_values = true
    )]
    flash_attn: FlashFlag,
    /// Users at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    parallel: u32,
    /// Each user has a cache of its own
    #[arg(long)]
    split_kv: bool,
    /// Tokens of a micro-batch whose logits are kept
    #[arg(long, value_name = "N", default_value_t = 512)]
    outputs: u32,
    /// Layers on the GPU (-ngl)
    #[arg(long, value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    n_gpu_layers: i32,
    /// Another device, by the published bandwidth of its preset
    #[arg(long, value_name = "NAME", conflicts_with = "bandwidth")]
    device: Option<String>,
    /// Memory bandwidth in GB/s (10^9 bytes) [default: what was measured here]
    #[arg(long, value_name = "GB/S")]
    bandwidth: Option<f64>,
    /// Everything as JSON
    #[arg(long)]
    json: bool,
}

/// Prints what theory allows and what the engine would allocate.
pub fn run(context: &Context, args: &EstimateArgs) -> Result<(), Failure> {
    let found = source::model(context, &args.file)?;
    let model = &found.model;
    model.check_whole().map_err(Failure::of)?;
    let question = question(args)?;
    let grounds = grounds(context, args.ubatch_size);
    let question = grounds.ask(model, question);
    let allocated = allocated(context, model, &question);
    let estimate = answer(model, question, &allocated);
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        serde_json::to_string_pretty(&estimate)
            .map_err(std::io::Error::other)
            .and_then(|text| writeln!(out, "{text}"))
    } else {
        words(&mut out, &estimate, allocated.ok().as_ref())
            .and_then(|()| expected(&mut out, &estimate, &grounds))
            .and_then(|()| notes(&mut out, &estimate))
    };
    written.map_err(|error| Failure::of_output(&error))
}

/// What the engine would allocate, or why it does not say.
fn allocated(
    context: &Context,
    model: &Model,
    question: &Question,
) -> Result<Allocated, Unforeseen> {
    let asked = context.block_on(async {
        let engine = match WorkerProcess::find() {
            Ok(engine) => engine,
            Err(error) => return Ok(Err(Unforeseen::NotAsked(error.to_string()))),
        };
        let mut foreseer = Foreseer::new(Start::default()).yielding_to(lease_place());
        let contexts = [foresee_context(question)];
        let answer = foreseer.ask(&engine, model, &contexts).await.pop();
        foreseer.close().await;
        Ok(answer.unwrap_or_else(|| Err(Unforeseen::NotAsked(NO_ANSWER.into()))))
    });
    asked.unwrap_or_else(|failure| {
        let why = failure.sentence().unwrap_or(NO_ANSWER);
        Err(Unforeseen::NotAsked(why.to_owned()))
    })
}

const NO_ANSWER: &str = "The engine gave no answer.";

/// The estimate, with the engine's count where there is one and why not where there is none.
fn answer(
    model: &Model,
    question: Question,
    allocated: &Result<Allocated, Unforeseen>,
) -> Estimate {
    let host = question.available;
    let elsewhere = question.device.is_some();
    let question = match allocated {
        Ok(allocated) => Question {
            available: host.and_then(|host| allocated.available(Some(host))),
            allocation: Some(allocated.sum()),
            ..question
        },
        Err(_) => question,
    };
    let mut estimate = estimate(model, &question);
    let notes = &mut estimate.basis.notes;
    match allocated {
        Ok(_) if elsewhere => notes.push(Note::CountedHere),
        Ok(allocated) => {
            estimate.memory.fits = allocated.fits(host);
            notes.extend(allocated.too_full());
        }
        Err(why) => notes.push(Note::NotForeseen(why.to_string())),
    }
    estimate
}

fn question(args: &EstimateArgs) -> Result<Question, Failure> {
    let bandwidth = match (args.bandwidth, &args.device) {
        (Some(gb_s), _) => {
            let rate = BytesPerSecond::from_gb_s(gb_s).ok_or_else(|| {
                Failure::Usage(format!(
                    "--bandwidth {gb_s} is no speed: give GB/s above 0."
                ))
            })?;
            BandwidthFrom::Known(Bandwidth::given(rate))
        }
        (None, Some(name)) => {
            let device = device::find(name).map_err(|error| Failure::Usage(error.to_string()))?;
            BandwidthFrom::Known(Bandwidth::published(device))
        }
        // What was measured here, where anything was.
        (None, None) => BandwidthFrom::Unknown,
    };
    // Another device has other memory free; how much is not known.
    let available = match args.device {
        Some(_) => None,
        None => Host::new().state(None).memory_available_bytes.map(Bytes),
    };
    Ok(Question {
        prompt: args.n_prompt.into(),
        generate: args.n_gen.into(),
        depth: args.n_depth.into(),
        context: ContextSettings {
            context: args.ctx_size.into(),
            ubatch: args.ubatch_size.into(),
            sequences: args.parallel.into(),
            split: args.split_kv,
            type_k: args.cache_type_k,
            type_v: args.cache_type_v,
            flash_attention: flash_attention(args.flash_attn.0),
            ..ContextSettings::default()
        },
        outputs: args.outputs.into(),
        gpu_layers: args.n_gpu_layers,
        device: args.device.clone(),
        bandwidth,
        available,
        ..Question::default()
    })
}

/// What is known of this machine. An estimate needs no history: where there is none or it cannot be
/// read, nothing is known.
fn grounds(context: &Context, ubatch: u32) -> Grounds {
    let known = context.block_on(async {
        let folder = context.data_folder()?;
        if !History::exists(folder.path()) {
            return Ok(Grounds::default());
        }
        let history = context.open_history().await?;
        let build = twospeed_worker::engine_build().build_number;
        let threads = platform::default_threads();
        Grounds::load(
            &history,
            &platform::machine(),
            threads,
            ubatch.into(),
            Some(build),
        )
        .await
        .map_err(Failure::of)
    });
    known.unwrap_or_default()
}

/// Names are this wide.
const NAME: usize = 28;

fn words(
    out: &mut dyn Write,
    estimate: &Estimate,
    allocated: Option<&Allocated>,
) -> std::io::Result<()> {
    let speed = |speed: Option<twospeed_estimate::TokensPerSecond>| {
        speed.map_or_else(unknown, |speed| format!("{:.1} tok/s", speed.0))
    };
    let at = &estimate.at;
    let context = match at.context {
        Some(tokens) => format!("{tokens} tokens"),
        None => "unknown: the file does not say what it was trained for, give -c".into(),
    };
    line(out, "model", &shown(&estimate.model.name))?;
    line(out, "context", &context)?;
    memory(out, estimate, allocated)?;
    line(
        out,
        "weights read for a token",
        &bytes(estimate.decode.weight_bytes_per_token),
    )?;
    let bandwidth = match at.bandwidth_bytes_s {
        Some(rate) => rate.to_string(),
        None => {
            "unknown: measure it with twospeed calibrate, or give --bandwidth or --device".into()
        }
    };
    line(out, "bandwidth", &bandwidth)?;
    line(out, "decode ceiling", &speed(estimate.decode.ceiling_tok_s))?;
    line(
        out,
        "decode ceiling by file size",
        &speed(estimate.decode.ceiling_file_tok_s),
    )?;
    Ok(())
}

/// Both speeds with their bands, and what they rest on; or why none is expected.
fn expected(out: &mut dyn Write, estimate: &Estimate, grounds: &Grounds) -> std::io::Result<()> {
    let elsewhere = estimate.at.device.is_some();
    if estimate.basis.calibration.is_none() && !elsewhere {
        let why = match grounds.calibration() {
            Ok(_) => "the calibration holds for the bandwidth measured here".to_owned(),
            Err(why) => {
                format!("{why}, twospeed calibrate does it in about fifteen seconds")
            }
        };
        return line(out, "expected speeds", &format!("unknown: {why}"));
    }
    let between = |speed: Option<TokensPerSecond>, low: Option<TokensPerSecond>, high| match (
        speed, low, high,
    ) {
        (Some(TokensPerSecond(speed)), Some(TokensPerSecond(low)), Some(TokensPerSecond(high))) => {
            format!("{speed:.1} tok/s, between {low:.1} and {high:.1}")
        }
        _ => unknown(),
    };
    let (decode, prefill) = (&estimate.decode, &estimate.prefill);
    let speed = between(
        prefill.expected_tok_s,
        prefill.expected_low,
        prefill.expected_high,
    );
    line(out, "expected prefill", &speed)?;
    let speed = between(
        decode.expected_tok_s,
        decode.expected_low,
        decode.expected_high,
    );
    line(out, "expected decode", &speed)?;
    if elsewhere {
        return line(
            out,
            "which rests on",
            "published measurements: see the notes",
        );
    }
    line(out, "which rests on", &basis_words(&estimate.basis))
}

fn notes(out: &mut dyn Write, estimate: &Estimate) -> std::io::Result<()> {
    for note in &estimate.basis.notes {
        line(out, "note", &shown(&note.to_string()))?;
    }
    Ok(())
}

/// What is taken of which memory, and whether there is as much.
fn memory(
    out: &mut dyn Write,
    estimate: &Estimate,
    allocated: Option<&Allocated>,
) -> std::io::Result<()> {
    let of = &estimate.memory;
    let shares = allocated.map(Allocated::by_device).unwrap_or_default();
    // One device needs no column of its own beside the sum.
    let shares = if shares.len() > 1 { &shares[..] } else { &[] };
    let mut table = Columns::default();
    let devices = shares.iter().map(|share| share.device.clone());
    let source = match of.source {
        MemorySource::Engine => "memory, by the engine",
        MemorySource::Formula => "memory, by formula",
    };
    let heading = if shares.is_empty() { "" } else { "in all" };
    table.row(source, heading.into(), devices);
    let of_each = |part: fn(&Allocation) -> Bytes| {
        shares
            .iter()
            .map(move |share| part(&share.holds).to_string())
    };
    table.row(
        "  weights",
        bytes(of.weights_bytes),
        of_each(|of| of.weights),
    );
    let cache = match (of.kv_bytes, of.kv_low_bytes, of.kv_high_bytes) {
        (None, Some(low), Some(high)) => format!("{low} to {high}"),
        (known, ..) => bytes(known),
    };
    table.row("  KV cache", cache, of_each(|of| of.kv));
    if of.state_bytes != Some(Bytes::ZERO) {
        table.row(
            "  recurrent state",
            bytes(of.state_bytes),
            of_each(|of| of.state),
        );
    }
    table.row(
        "  working buffers",
        bytes(of.compute_bytes),
        of_each(|of| of.compute),
    );
    table.row("  logits", bytes(of.output_bytes), of_each(|of| of.output));
    let total = of.total_bytes.map_or_else(
        || format!("unknown, at least {}", of.lower_bound),
        |total| total.to_string(),
    );
    table.row("  total", total, of_each(Allocation::total));
    let free = shares.iter().map(|share| match share.host {
        true => bytes(own_memory(of, shares)),
        false => bytes(share.free),
    });
    table.row("  free", bytes(of.available_bytes), free);
    table.write(out)?;
    let fits = match of.fits {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None if of.total_bytes.is_none() => "not known: working buffers come on top".to_owned(),
        None => "not known: how much memory is free there is not known".to_owned(),
    };
    line(out, "  fits", &fits)?;
    let token = match of.kv_bytes_per_cached_token {
        Some(bytes) => format!("{} bytes", bytes.0),
        None => unknown(),
    };
    line(out, "KV cache of one token", &token)
}

/// The machine's own memory that is free: all that is free less what the devices have.
fn own_memory(of: &Memory, shares: &[twospeed_workbench::DeviceShare]) -> Option<Bytes> {
    let devices = shares.iter().filter(|share| !share.host);
    let theirs = devices.map(|share| share.free).sum::<Option<Bytes>>()?;
    of.available_bytes
        .map(|all| Bytes(all.0.saturating_sub(theirs.0)))
}

/// Names with values in columns that stand to the right where there are several.
#[derive(Default)]
struct Columns {
    rows: Vec<(&'static str, Vec<String>)>,
}

impl Columns {
    fn row(&mut self, name: &'static str, first: String, more: impl Iterator<Item = String>) {
        self.rows
            .push((name, std::iter::once(first).chain(more).collect()));
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let columns = self.rows.iter().map(|(_, values)| values.len()).max();
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .filter_map(|(_, values)| values.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns.unwrap_or(0)).map(width).collect();
        for (name, values) in &self.rows {
            let cells: Vec<String> = match &values[..] {
                [alone] => vec![alone.clone()],
                several => several
                    .iter()
                    .zip(&widths)
                    .map(|(cell, width)| format!("{cell:>width$}"))
                    .collect(),
            };
            line(out, name, &cells.join("  "))?;
        }
        Ok(())
    }
}

fn line(out: &mut dyn Write, name: &str, value: &str) -> std::io::Result<()> {
    let line = format!("{name:<NAME$} {value}");
    writeln!(out, "{}", line.trim_end())
}

fn bytes(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(unknown, |bytes| bytes.binary().to_string())
}

fn unknown() -> String {
    "unknown".to_owned()
}
