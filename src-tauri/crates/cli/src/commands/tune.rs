//! `twospeed tune`: the fastest settings of a model on this machine, found by measuring.

mod words;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use twospeed_engine::process::WorkerProcess;
use twospeed_measure::platform;
use twospeed_measure::tune::{Choice, Decision, Share, Speeds, Target, TuneProgress};
use twospeed_measure::{PlannedTest, Stop};
use twospeed_workbench::tune::{TuneOutcome, TuneRequest, keep, tune};
use twospeed_workbench::{Problem, Subject, hold_lease, lease_place, needs, waiting_sentence};

use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::progress::ProgressLine;
use crate::say::say;
use crate::{Failure, print};

/// Find the fastest settings by measuring, in at most a quarter of the time of all combinations.
///
/// CPU variant, threads, flash attention, repacked weights and micro-batch are raced against each
/// other; the winner meets llama-bench's defaults in alternating pairs. Only what is faster beyond
/// doubt is kept as the profile "tuned" (bench --profile tuned); otherwise the defaults stay.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Model file, or "builtin" for the built-in model; of a split set the first part
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,
    /// What is to be fast: prefill, decode, or the time to read P tokens and to write N
    #[arg(
        long = "for",
        value_name = "prefill|decode|P,N",
        default_value = "512,128"
    )]
    target: Target,
    /// Take at most an eighth of the time of all combinations
    #[arg(long)]
    quick: bool,
    /// What was found as JSON
    #[arg(long)]
    json: bool,
}

/// Tunes, keeps what was found, and prints it.
pub fn run(context: &Context, args: &TuneArgs) -> Result<(), Failure> {
    let path = context.model_path(&args.model)?;
    let subject = Subject::read(&path).map_err(Failure::of)?;
    let outcome = context.block_on(measure(context, args, &subject))?;
    let text = if args.json {
        format!("{:#}\n", as_json(&subject, &outcome))
    } else {
        words::result(&outcome)
    };
    print(text.as_bytes())?;
    match outcome.decision {
        Decision::Stopped => Err(Failure::Failed(
            "Stopped before it was decided: what was measured is kept, and the profile \"tuned\" is as it was."
                .into(),
        )),
        Decision::Tuned { .. } | Decision::Defaults { .. } => Ok(()),
    }
}

async fn measure(
    context: &Context,
    args: &TuneArgs,
    subject: &Subject,
) -> Result<TuneOutcome, Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    let history = context.open_history().await?;
    let lease = hold_lease(&lease_place(), "tune", |holder| {
        say(waiting_sentence(holder.as_ref()));
    })
    .await
    .map_err(Failure::of)?;
    let (machine, topology) = (platform::machine(), platform::topology());
    let stop = Stop::new();
    let mut interrupts = Interrupts::new().map_err(Failure::of)?;
    let mut told = words::Teller::new(ProgressLine::new());
    let mut progress = |step: TuneProgress| told.tell(&step);
    let request = TuneRequest {
        model: &subject.measured,
        target: args.target,
        share: if args.quick {
            Share::QUICK
        } else {
            Share::QUARTER
        },
        machine: &machine,
        topology: &topology,
        engine: &engine,
        recorder: &history,
        needs: &|test: &PlannedTest| needs(&subject.header, test),
        stop: &stop,
    };
    let outcome: Result<_, Problem> = {
        let work = tune(&request, &lease, &mut progress);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => break done,
                () = interrupts.next() => stop.now(),
            }
        }
    };
    let outcome = outcome.map_err(Failure::of)?;
    keep(&history, &machine, &subject.measured, &outcome)
        .await
        .map_err(Failure::of)?;
    history.close().await;
    Ok(outcome)
}

fn as_json(subject: &Subject, outcome: &TuneOutcome) -> Value {
    let searched = outcome.searched.as_ref();
    let (decision, tuned, verdict) = match &outcome.decision {
        Decision::Tuned {
            choice, verdict, ..
        } => ("tuned", Some(choice), Some(*verdict)),
        Decision::Defaults { nearest, verdict } => ("defaults", nearest.as_ref(), *verdict),
        Decision::Stopped => ("stopped", None, None),
    };
    let (default_speeds, speeds) = match &outcome.decision {
        Decision::Tuned {
            default_speeds,
            speeds,
            ..
        } => (Some(*default_speeds), Some(*speeds)),
        _ => (searched.map(|searched| searched.speeds), None),
    };
    let (prompt, generate) = outcome.target.work();
    json!({
        "decision": decision,
        "model": subject.measured.name,
        "fingerprint": subject.measured.fingerprint,
        "target": outcome.target,
        "work": {
            "prompt": prompt,
            "generate": generate,
        },
        "run": outcome.run,
        "defaults": side(&outcome.defaults, outcome, default_speeds),
        "best": tuned.map(|choice| side(choice, outcome, speeds)),
        "gain": verdict.map(|verdict| verdict.median),
        "gain_low": verdict.and_then(|verdict| verdict.lower),
        "pairs": verdict.map(|verdict| verdict.pairs),
        "untried": outcome.untried,
        "seconds": outcome.seconds,
        "budget_seconds": searched.map(|searched| searched.budget_seconds),
        "grid": searched.map(|searched| json!({
            "combinations": searched.grid.combinations,
            "prefill_tests": searched.grid.prefill_tests,
            "decode_tests": searched.grid.decode_tests,
            "loads": searched.grid.loads,
            "seconds_at_least": searched.grid_seconds,
            "space": searched.space,
            "tests": {
                "prefill": outcome.target.prefill().map(|test| test.n_prompt),
                "decode": outcome.target.decode().map(|test| test.n_gen),
            },
        })),
    })
}

fn side(choice: &Choice, outcome: &TuneOutcome, speeds: Option<Speeds>) -> Value {
    let variant = match &choice.variant {
        Some(name) => Some(name),
        None => outcome.searched.as_ref().map(|searched| &searched.variant),
    };
    json!({
        "variant": variant,
        "flags": words::flags(&choice.changes(&outcome.defaults)),
        "settings": choice.settings,
        "prefill_tok_s": speeds.and_then(|speeds| speeds.prefill),
        "decode_tok_s": speeds.and_then(|speeds| speeds.decode),
    })
}
