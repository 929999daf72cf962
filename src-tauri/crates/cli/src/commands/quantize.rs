//! `twospeed quantize`: a model file made smaller, here.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use twospeed_engine::process::WorkerProcess;
use twospeed_estimate::Bytes;
use twospeed_library::display::shown_path;
use twospeed_library::{FileType, quantized_path};
use twospeed_measure::Stop;
use twospeed_workbench::{
    QuantizePlan, QuantizeProgress, QuantizeRequest, QuantizedFile, lease_place, plan_quantize,
};

use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::progress::ProgressLine;
use crate::say::say;
use crate::{Failure, print};

/// Arguments of `quantize`.
#[derive(Debug, Args)]
pub struct QuantizeArgs {
    /// Model file to read, best in F16, BF16 or F32; of a split set any part
    #[arg(value_name = "IN")]
    source: PathBuf,
    /// File to write, or a folder to put it in under the usual name
    #[arg(value_name = "OUT")]
    target: PathBuf,
    /// What to make, by llama.cpp's names: Q4_K_M, Q5_K_M, Q6_K, Q8_0, F16, ...
    #[arg(value_name = "TYPE")]
    file_type: FileType,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
    /// Threads [default: the physical cores this process may use]
    #[arg(short, long, value_name = "N")]
    threads: Option<u32>,
    /// What was made as JSON
    #[arg(long)]
    json: bool,
}

/// Makes the file and says where it is.
pub fn run(context: &Context, args: &QuantizeArgs) -> Result<(), Failure> {
    if args.threads == Some(0) {
        return Err(Failure::Usage(
            "-t 0 runs nothing: give 1 thread or more.".into(),
        ));
    }
    let source = context.model_path(&args.source)?;
    let target = match args.target.is_dir() {
        true => {
            let model = twospeed_gguf::read(&source).map_err(Failure::of)?;
            let usual = quantized_path(&model, args.file_type, &args.target);
            args.target.join(usual.file_name().unwrap_or_default())
        }
        false => args.target.clone(),
    };
    let plan = plan_quantize(&QuantizeRequest {
        source,
        target,
        file_type: args.file_type,
        overwrite: args.force,
        threads: args.threads,
    })
    .map_err(Failure::of)?;
    for warning in &plan.warnings {
        say(warning);
    }
    if let Some(bytes) = plan.bytes {
        say(format!("The file will have {}.", Bytes(bytes).decimal()));
    }
    let made = context.block_on(work(&plan))?;
    tell(&plan, &made, args.json)
}

async fn work(plan: &QuantizePlan) -> Result<QuantizedFile, Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    let stop = Stop::new();
    let mut interrupts = Interrupts::new().map_err(Failure::of)?;
    let mut line = ProgressLine::new();
    let mut tell = |progress| match progress {
        QuantizeProgress::Waiting(sentence) => say(sentence),
        QuantizeProgress::Working(fraction) => {
            line.show(&format!("Quantizing, {:.0} %", fraction * 100.0));
        }
    };
    let place = lease_place();
    let work = plan.run(&engine, &place, &stop, &mut tell);
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = interrupts.next() => stop.now(),
        }
    };
    done.map_err(Failure::of)
}

fn tell(plan: &QuantizePlan, made: &QuantizedFile, json: bool) -> Result<(), Failure> {
    if json {
        let all = json!({
            "path": made.path.to_string_lossy(),
            "bytes": made.bytes,
            "bytes_foreseen": plan.bytes,
            "quantization": made.quantization,
            "seconds": made.took.as_secs_f64(),
            "fallbacks": made.fallbacks,
            "warnings": plan.warnings,
        });
        return print(format!("{all:#}\n").as_bytes());
    }
    if let Some(fallbacks) = made.fallbacks {
        say(format!(
            "{fallbacks} tensors have rows that are no whole blocks of the type meant for them and got a larger one, as in llama.cpp."
        ));
    }
    say(format!(
        "{} in {:.1} s",
        Bytes(made.bytes).decimal(),
        made.took.as_secs_f64()
    ));
    print(format!("{}\n", shown_path(&made.path)).as_bytes())
}
