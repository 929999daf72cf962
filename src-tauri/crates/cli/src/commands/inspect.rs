//! `twospeed inspect`: what is in a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use twospeed_estimate::Bytes;
use twospeed_gguf::{Data, Model};
use twospeed_library::display::{shown, shown_path};

use crate::Failure;
use crate::context::Context;
use crate::source::{self, Found};

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Model file, or "builtin" for the built-in model; also a model elsewhere, of which the header
    /// alone is read: an address (https://..), or OWNER/NAME:FILE on Hugging Face
    file: PathBuf,
    /// All facts as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the facts of one file.
pub fn run(context: &Context, args: &InspectArgs) -> Result<(), Failure> {
    let Found {
        path,
        called,
        model,
        ..
    } = &source::model(context, &args.file)?;
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        let mut facts = serde_json::to_value(model).map_err(Failure::of)?;
        facts["path"] = json!(path.to_string_lossy());
        writeln!(out, "{facts:#}")
    } else {
        words(&mut out, called, model)
    };
    written.map_err(|error| Failure::of_output(&error))?;
    // What is known of a file that is not whole is told before the sentence that says so.
    model
        .check()
        .map_err(|error| Failure::Failed(shown(&error.to_string())))
}

fn words(out: &mut dyn Write, called: &Path, model: &Model) -> std::io::Result<()> {
    let unknown = || "unknown".to_owned();
    let mut line = |name: &str, value: String| writeln!(out, "{name:<18} {value}");
    line("file", shown_path(called))?;
    line("holds", model.kind.words().into())?;
    line("name", shown(&model.name))?;
    line(
        "architecture",
        model.architecture.as_deref().map_or_else(unknown, shown),
    )?;
    line("parameters", count(model.parameters))?;
    if model.active_parameters != Some(model.parameters) {
        line(
            "active per token",
            model.active_parameters.map_or_else(unknown, count),
        )?;
    }
    line(
        "quantization",
        model.quantization.as_deref().map_or_else(unknown, shown),
    )?;
    line(
        "bits per weight",
        model
            .bits_per_weight
            .map_or_else(unknown, |bits| format!("{bits:.2}")),
    )?;
    for share in &model.types {
        line(
            "",
            format!(
                "{:<8} {:>4} tensors  {}",
                share.name(),
                share.tensors,
                Bytes(share.bytes).decimal()
            ),
        )?;
    }
    line(
        "layers",
        model
            .layers
            .map_or_else(unknown, |layers| layers.to_string()),
    )?;
    line(
        "context length",
        model
            .context_length
            .map_or_else(unknown, |tokens| format!("{tokens} tokens")),
    )?;
    line(
        "size",
        match model.data {
            Data::Absent => format!(
                "{} of header; the whole file has {}",
                Bytes(model.header_bytes).decimal(),
                Bytes(model.bytes_expected).decimal()
            ),
            Data::Complete | Data::Truncated => Bytes(model.file_bytes).decimal().to_string(),
        },
    )?;
    if let Some(split) = &model.split {
        line("split", format!("{} parts", split.parts))?;
    }
    for warning in &model.warnings {
        line("note", shown(&warning.to_string()))?;
    }
    Ok(())
}

/// `134.5 M`, `30.5 B`.
pub fn count(parameters: u64) -> String {
    let number = parameters as f64;
    match parameters {
        0..=999_999 => parameters.to_string(),
        1_000_000..=999_949_999 => format!("{:.1} M", number / 1e6),
        _ => format!("{:.1} B", number / 1e9),
    }
}
