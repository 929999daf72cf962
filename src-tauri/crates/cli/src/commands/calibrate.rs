//! `twospeed calibrate`: what this machine's engine can do.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};
use twospeed_engine::process::WorkerProcess;
use twospeed_estimate::{Bytes, BytesPerSecond, Calibration, Flops, KernelReading};
use twospeed_library::display::shown;
use twospeed_measure::Stop;
use twospeed_measure::machine::{Machine, Probe};
use twospeed_measure::platform::{self, Host};
use twospeed_workbench::calibration::{
    AttentionRate, CalibrateProgress, CalibrateRequest, HeldDown, Rates, UBATCH, calibrate,
    kernel_name, set_sizes,
};
use twospeed_workbench::{hold_lease, lease_place, waiting_sentence};

use crate::Failure;
use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::progress::ProgressLine;
use crate::say::say;
use crate::table::Table;

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Threads [default: the physical cores this process may use]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    threads: Option<u32>,
    /// Micro-batch size (-ub)
    #[arg(long, value_name = "N", default_value_t = UBATCH, value_parser = clap::value_parser!(u32).range(1..=8192))]
    ubatch_size: u32,
    /// Everything as JSON
    #[arg(long)]
    json: bool,
}

/// Measures anew and prints what was found.
pub fn run(context: &Context, args: &CalibrateArgs) -> Result<(), Failure> {
    let machine = platform::machine();
    let available = Host::new().state(None).memory_available_bytes;
    let found = context.block_on(measure(context, args, &machine))?;
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        as_json(&machine, &found)
            .and_then(|value| serde_json::to_string_pretty(&value))
            .map_err(std::io::Error::other)
            .and_then(|text| writeln!(out, "{text}"))
    } else {
        words(&mut out, &machine, available, &found)
    };
    written.map_err(|error| Failure::of_output(&error))
}

async fn measure(
    context: &Context,
    args: &CalibrateArgs,
    machine: &Machine,
) -> Result<Calibration, Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    let history = context.open_history().await?;
    let lease = hold_lease(&lease_place(), "calibration", |holder| {
        say(waiting_sentence(holder.as_ref()));
    })
    .await
    .map_err(Failure::of)?;
    let stop = Stop::new();
    let mut interrupts = Interrupts::new().map_err(Failure::of)?;
    let request = CalibrateRequest {
        engine: &engine,
        history: &history,
        machine,
        threads: args.threads.unwrap_or_else(platform::default_threads),
        ubatch: args.ubatch_size,
        stop: &stop,
    };
    say("Calibrating: about fifteen seconds. Other programs at work would slow it down.");
    let mut line = ProgressLine::new();
    let mut progress = |step: CalibrateProgress| match step {
        CalibrateProgress::Memory => line.show("Reading memory"),
        CalibrateProgress::Kernels { done, of } => {
            line.show(&format!("Timing the engine's operations: {done} of {of}"));
        }
        CalibrateProgress::Said(sentence) => {
            line.show("");
            say(shown(&sentence));
        }
    };
    let found = {
        let work = calibrate(&request, &lease, &mut progress);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => break done,
                () = interrupts.next() => stop.now(),
            }
        }
    };
    drop(line);
    let found = found.map_err(Failure::of)?;
    history.close().await;
    Ok(found)
}

/// The record as it is kept, the machine, and the rates that it comes to.
fn as_json(machine: &Machine, found: &Calibration) -> serde_json::Result<Value> {
    let rates = Rates::of(found);
    let matrices: Vec<_> = rates
        .matrices
        .iter()
        .map(|rate| {
            json!({
                "type": rate.tensor_type.name(),
                "cached_bytes_s": rate.cached,
                "memory_bytes_s": rate.memory,
                "batch_flops_s": rate.batch,
                "repacked": rate.repacked,
            })
        })
        .collect();
    let attention: Vec<_> = rates
        .attention
        .iter()
        .map(|rate| {
            json!({
                "head": rate.head,
                "type_k": rate.type_k,
                "type_v": rate.type_v,
                "flash": rate.flash,
                "cells": rate.cells,
                "tokens": rate.columns,
                "reads_bytes_s": rate.reads,
                "flops_s": rate.computes,
            })
        })
        .collect();
    let mut value = serde_json::to_value(found)?;
    value["machine"] = json!(machine.id);
    value["rates"] = json!({ "matrices": matrices, "attention": attention });
    Ok(value)
}

fn words(
    out: &mut dyn Write,
    machine: &Machine,
    available: Option<u64>,
    found: &Calibration,
) -> std::io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12} {value}");
    line("machine", shown(&machine.cpu))?;
    line(
        "engine",
        format!(
            "{}, llama.cpp {}, {}",
            shown(&found.variant),
            found.build,
            shown(&found.backend)
        ),
    )?;
    line("threads", found.threads.to_string())?;
    line("micro-batch", format!("{} tokens", found.ubatch))?;
    line("memory", memory(machine, available))?;
    line("noise", noise(&found.kernels))?;
    let rates = Rates::of(found);
    let speed = |speed: Option<BytesPerSecond>| speed.map_or_else(unknown, |one| one.to_string());
    let work = |work: Option<Flops>| work.map_or_else(unknown, |one| format!("{one}/s"));

    let mut table = Table::new(&[">buffer", ">read speed"]);
    for read in &found.reads {
        table.row(vec![
            read.buffer.binary().to_string(),
            read.rate.to_string(),
        ]);
    }
    writeln!(out)?;
    table.write(out)?;

    let mut table = Table::new(&["weights", ">from caches", ">from memory", ">micro-batch"]);
    for rate in &rates.matrices {
        table.row(vec![
            rate.tensor_type.name().to_owned(),
            speed(rate.cached),
            speed(rate.memory),
            work(rate.batch),
        ]);
    }
    writeln!(out)?;
    table.write(out)?;

    let mut table = Table::new(&["attention", ">cells", ">one token", ">micro-batch"]);
    for rate in &rates.attention {
        table.row(vec![
            attention(rate),
            rate.cells.to_string(),
            rate.reads
                .map_or_else(String::new, |reads| reads.to_string()),
            rate.computes
                .map_or_else(String::new, |work| format!("{work}/s")),
        ]);
    }
    writeln!(out)?;
    table.write(out)
}

fn unknown() -> String {
    "not measured".to_owned()
}

/// `heads of 128, f16` or `heads of 128, f16, plain`.
fn attention(rate: &AttentionRate) -> String {
    let types = match rate.type_k == rate.type_v {
        true => rate.type_k.to_string(),
        false => format!("{} and {}", rate.type_k, rate.type_v),
    };
    let way = if rate.flash { "" } else { ", not flash" };
    format!("heads of {}, {types}{way}", rate.head)
}

/// How far beyond the cache memory was read, and why no farther.
fn memory(machine: &Machine, available: Option<u64>) -> String {
    let sizes = set_sizes(machine, available);
    let set = Bytes(sizes.beyond).binary();
    let Some(cache) = machine.last_level_cache_bytes.filter(|cache| *cache > 0) else {
        return format!(
            "weights from memory are {set}; the size of the last-level cache is not known"
        );
    };
    let times = sizes.beyond as f64 / cache as f64;
    let why = match sizes.held_down_by {
        None => "",
        Some(HeldDown::Time) => " (more would take too long)",
        Some(HeldDown::Memory) => " (no more memory is free)",
    };
    format!(
        "weights from memory are {set}, {times:.1} times the last-level cache of {}{why}",
        Bytes(cache).binary()
    )
}

/// How far apart the runs of a kernel were.
fn noise(kernels: &[KernelReading]) -> String {
    let mut spreads: Vec<_> = kernels
        .iter()
        .map(|reading| (reading.spread_ns / reading.ns, reading))
        .collect();
    spreads.sort_by(|a, b| a.0.total_cmp(&b.0));
    match (spreads.get(spreads.len() / 2), spreads.last()) {
        (Some((middle, _)), Some((most, reading))) => format!(
            "runs of an operation are {:.1} % apart in the middle, {:.0} % at most ({})",
            100.0 * middle,
            100.0 * most,
            kernel_name(&reading.kernel)
        ),
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cache: Option<u64>) -> Machine {
        Machine {
            id: "m".into(),
            name: None,
            cpu: "c".into(),
            physical_cores: None,
            logical_cores: None,
            last_level_cache_bytes: cache,
            memory_bytes: None,
            os: String::new(),
        }
    }

    #[test]
    fn how_far_memory_was_read_is_said_with_what_held_it_down() {
        assert_eq!(
            memory(&machine(Some(96 << 20)), None),
            "weights from memory are 384 MiB, 4.0 times the last-level cache of 96.0 MiB"
        );
        assert_eq!(
            memory(&machine(Some(300 << 20)), None),
            "weights from memory are 1.00 GiB, 3.4 times the last-level cache of 300 MiB (more would take too long)"
        );
        assert_eq!(
            memory(&machine(Some(300 << 20)), Some(2 << 30)),
            "weights from memory are 512 MiB, 1.7 times the last-level cache of 300 MiB (no more memory is free)"
        );
        assert!(memory(&machine(None), None).contains("is not known"));
    }

    #[test]
    fn the_record_comes_with_its_rates_in_units_of_their_names() {
        let found: Calibration = serde_json::from_value(json!({
            "id": "i", "at": "2026-12-01T12:00:00Z", "backend": "CPU", "variant": "zen4",
            "threads": 2, "build": 11434, "ubatch": 512, "last_level_cache": 96 << 20,
            "reads": [],
            "kernels": [{
                "kernel": { "kernel": "matrix", "tensor_type": "Q4_0", "inner": 2048,
                            "rows": 1024, "columns": 1, "set_bytes": 1 << 30 },
                // 1,179,648 bytes at 10 GB/s.
                "ns": 117_964.8, "spread_ns": 1179.648, "repacked": true,
            }],
        }))
        .unwrap();
        let value = as_json(&machine(None), &found).unwrap();
        let rate = &value["rates"]["matrices"][0];
        assert_eq!(rate["type"], "Q4_0");
        assert_eq!(rate["memory_bytes_s"], 10_000_000_000_u64);
        assert_eq!(rate["cached_bytes_s"], Value::Null);
        assert_eq!(value["kernels"][0]["ns"], 117_964.8);
        assert_eq!(value["machine"], "m");
        assert_eq!(
            noise(&found.kernels),
            "runs of an operation are 1.0 % apart in the middle, 1 % at most (Q4_0 matrix, 1 column)"
        );
    }
}
