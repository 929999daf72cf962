//! `twospeed calibrate`: how fast this machine reads its memory.

use std::io::Write;

use clap::Args;
use twospeed_engine::process::WorkerProcess;
use twospeed_estimate::Bytes;
use twospeed_measure::machine::Probe;
use twospeed_measure::platform::{self, Host};
use twospeed_workbench::{
    ReadSpeed, all_sizes, hold_lease, lease_place, measure_read_speed, waiting_sentence,
};

use crate::Failure;
use crate::context::Context;
use crate::say::say;
use crate::table::Table;

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Everything as JSON
    #[arg(long)]
    json: bool,
}

/// Measures anew and prints what is known.
pub fn run(context: &Context, args: &CalibrateArgs) -> Result<(), Failure> {
    let known = context.block_on(measure(context))?;
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        serde_json::to_string_pretty(known.readings())
            .map_err(std::io::Error::other)
            .and_then(|text| writeln!(out, "{text}"))
    } else {
        let mut table = Table::new(&[">buffer", ">read speed", ">threads", "measured"]);
        for reading in known.readings() {
            table.row(vec![
                Bytes(reading.buffer_bytes).binary().to_string(),
                format!("{:.1} GB/s", reading.bytes_per_second as f64 / 1e9),
                reading.threads.to_string(),
                reading.at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
            ]);
        }
        table.write(&mut out)
    };
    written.map_err(|error| Failure::of_output(&error))
}

async fn measure(context: &Context) -> Result<ReadSpeed, Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    let history = context.open_history().await?;
    let machine = platform::machine();
    let known = ReadSpeed::load(&history, &machine)
        .await
        .map_err(Failure::of)?;
    let lease = hold_lease(&lease_place(), "calibration", |holder| {
        say(waiting_sentence(holder.as_ref()));
    })
    .await
    .map_err(Failure::of)?;
    let available = Host::new().state(None).memory_available_bytes;
    let sizes = all_sizes(&known, available);
    let threads = platform::default_threads();
    measure_read_speed(&engine, &history, &machine, &lease, &sizes, threads)
        .await
        .map_err(Failure::of)?;
    ReadSpeed::load(&history, &machine)
        .await
        .map_err(Failure::of)
}
