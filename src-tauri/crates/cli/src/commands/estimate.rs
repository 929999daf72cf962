//! `twospeed estimate`: what theory allows.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use twospeed_estimate::{
    Bandwidth, BandwidthFrom, Bytes, BytesPerSecond, ContextSettings, Estimate, KvType, Question,
    device, estimate,
};
use twospeed_history::History;
use twospeed_measure::machine::Probe;
use twospeed_measure::platform::{self, Host};
use twospeed_workbench::{ReadSpeed, flash_attention};

use crate::Failure;
use crate::bench::args::FlashFlag;
use crate::context::Context;

/// Arguments of `estimate`.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    /// Model file, or "builtin" for the built-in model; a header alone is enough
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
    /// Context in tokens, all users together
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

/// Prints what theory allows.
pub fn run(context: &Context, args: &EstimateArgs) -> Result<(), Failure> {
    let model = twospeed_gguf::read(&context.model_path(&args.file)?).map_err(Failure::of)?;
    model.check().map_err(Failure::of)?;
    let question = question(context, args)?;
    let estimate = estimate(&model, &question);
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        serde_json::to_string_pretty(&estimate)
            .map_err(std::io::Error::other)
            .and_then(|text| writeln!(out, "{text}"))
    } else {
        words(&mut out, &estimate)
    };
    written.map_err(|error| Failure::of_output(&error))
}

fn question(context: &Context, args: &EstimateArgs) -> Result<Question, Failure> {
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
        (None, None) => measured_here(context),
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

/// What the probe found on this machine. An estimate needs no history: where there is none or it
/// cannot be read, ceilings are unknown.
fn measured_here(context: &Context) -> BandwidthFrom {
    let known = context.block_on(async {
        let folder = context.data_folder()?;
        if !History::exists(folder.path()) {
            return Ok(BandwidthFrom::Unknown);
        }
        let history = context.open_history().await?;
        let known = ReadSpeed::load(&history, &platform::machine()).await;
        Ok(known.map_err(Failure::of)?.bandwidth())
    });
    known.unwrap_or(BandwidthFrom::Unknown)
}

fn words(out: &mut dyn Write, estimate: &Estimate) -> std::io::Result<()> {
    let unknown = || "unknown".to_owned();
    let bytes =
        |bytes: Option<Bytes>| bytes.map_or_else(unknown, |bytes| bytes.binary().to_string());
    let speed = |speed: Option<twospeed_estimate::TokensPerSecond>| {
        speed.map_or_else(unknown, |speed| format!("{:.1} tok/s", speed.0))
    };
    let mut line = |name: &str, value: String| writeln!(out, "{name:<28} {value}");
    line(
        "model",
        twospeed_library::display::shown(&estimate.model.name),
    )?;
    line("context", format!("{} tokens", estimate.at.context))?;
    line("weights", bytes(estimate.memory.weights_bytes))?;
    line("KV cache", bytes(estimate.memory.kv_bytes))?;
    line(
        "KV cache of one token",
        match estimate.memory.kv_bytes_per_cached_token {
            Some(bytes) => format!("{} bytes", bytes.0),
            None => unknown(),
        },
    )?;
    if estimate.memory.state_bytes != Some(Bytes::ZERO) {
        line("recurrent state", bytes(estimate.memory.state_bytes))?;
    }
    line("memory free", bytes(estimate.memory.available_bytes))?;
    line(
        "fits",
        match estimate.memory.fits {
            Some(true) => "yes".into(),
            Some(false) => "no".into(),
            None => "not known: working buffers come on top".into(),
        },
    )?;
    line(
        "weights read for a token",
        bytes(estimate.decode.weight_bytes_per_token),
    )?;
    line(
        "bandwidth",
        match estimate.at.bandwidth_bytes_s {
            Some(rate) => rate.to_string(),
            None => "unknown: measure it with twospeed calibrate, or give --bandwidth or --device"
                .into(),
        },
    )?;
    line("decode ceiling", speed(estimate.decode.ceiling_tok_s))?;
    line(
        "decode ceiling by file size",
        speed(estimate.decode.ceiling_file_tok_s),
    )?;
    for note in &estimate.basis.notes {
        line("note", note.to_string())?;
    }
    Ok(())
}
