//! A run's page: everything that is known of it, in words where a page needs no number.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_engine::protocol::BufferUse;
use twospeed_engine::settings::FlashAttention;
use twospeed_history::llama_bench::{Value, settings_fields};
use twospeed_history::{Origin, Run, RunStatus, Test, WholeRun};
use twospeed_library::display::{shown, shown_path, size};
use twospeed_measure::energy::joules_per_token;
use twospeed_measure::machine::{Machine, MachineState};
use twospeed_measure::stats::tokens_per_second;
use twospeed_measure::{SampleRecord, TestEnd as Ended, TestStatus, summary};

use super::plan::{full_name, phase_of};
use super::readings::readings;
use super::results::time;
use super::run_teller::test_end;
use crate::compare::*;

/// Everything.
pub(super) fn run_page(whole: &WholeRun) -> RunPage {
    let run = &whole.run;
    RunPage {
        id: run.id.to_string(),
        origin: origin(run),
        preset: preset(&run.preset),
        started_at: time(run.started_at),
        ended_at: run.ended_at.map(time),
        status: match run.status {
            RunStatus::Running => "running",
            RunStatus::Complete => "complete",
            RunStatus::Stopped => "stopped",
            RunStatus::Interrupted => "interrupted",
        }
        .to_owned(),
        note: run.note.clone().unwrap_or_default(),
        app_version: shown(&run.app_version),
        machine: machine(&run.machine),
        tests: whole.tests.iter().map(test).collect(),
    }
}

fn origin(run: &Run) -> String {
    match run.origin {
        Origin::Measured => "Measured here".to_owned(),
        Origin::Imported | Origin::LlamaBench | Origin::LlamaBatchedBench => {
            let machine = run.machine.name.as_deref().unwrap_or(&run.machine.cpu);
            let tool = match run.origin {
                Origin::LlamaBench => " by llama-bench",
                Origin::LlamaBatchedBench => " by llama-batched-bench",
                Origin::Measured | Origin::Imported => "",
            };
            let day = run.imported_at.map(day);
            match day {
                Some(day) => format!("Imported {day}, measured{tool} on {}", shown(machine)),
                None => format!("Imported, measured{tool} on {}", shown(machine)),
            }
        }
    }
}

fn day(at: Timestamp) -> String {
    at.to_zoned_datetime(TimeZone::system())
        .strftime("%-d %B %Y")
        .to_string()
}

fn preset(name: &str) -> String {
    match name {
        "quick" => "Quick".to_owned(),
        "article" => "Article".to_owned(),
        "own" => "Own tests".to_owned(),
        "sustained" => "Sustained".to_owned(),
        "bench" => "twospeed bench".to_owned(),
        other => shown(other),
    }
}

pub(super) fn pair(name: &str, value: Option<String>) -> Pair {
    Pair {
        name: name.to_owned(),
        value,
    }
}

fn machine(machine: &Machine) -> Vec<Pair> {
    vec![
        pair("Name", machine.name.as_deref().map(shown)),
        pair("CPU", Some(shown(&machine.cpu))),
        pair("Physical cores", number(machine.physical_cores)),
        pair("Logical cores", number(machine.logical_cores)),
        pair("Last-level cache", machine.last_level_cache_bytes.map(size)),
        pair("Memory", machine.memory_bytes.map(size)),
        pair(
            "System",
            Some(shown(&machine.os)).filter(|os| !os.is_empty()),
        ),
    ]
}

fn number<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn test(test: &Test) -> TestPage {
    let record = &test.record;
    let spec = record.spec;
    let samples: Vec<_> = test
        .samples
        .iter()
        .map(|record| record.sample.clone())
        .collect();
    let is_speed = record.kind.is_speed();
    let of_samples = summary(spec, &samples).map(|summary| summary.tokens_per_second);
    let speed = test.speed().filter(|_| is_speed);
    let status = test.end.as_ref().map(|end| &end.status);
    TestPage {
        id: record.id.to_string(),
        model: full_name(&record.model),
        phase: (is_speed && (spec.n_prompt == 0 || spec.n_gen == 0)).then(|| phase_of(spec)),
        name: record.kind.name(spec),
        end: status.and_then(test_end),
        interrupted: status == Some(&TestStatus::Interrupted),
        mean: speed.as_ref().map(|speed| speed.mean),
        deviation: speed.as_ref().and_then(|speed| speed.standard_deviation),
        median: of_samples.filter(|_| is_speed).map(|speed| speed.median),
        readings: readings(test),
        joules_per_token: joules_per_token(&record.kind, spec, &test.samples)
            .map(|joules| joules.mean),
        suspect: test
            .suspect
            .as_ref()
            .map(|suspect| sentence(&shown(&suspect.reason))),
        allowed: test.suspect.is_some() && test.counts(),
        samples: test
            .samples
            .iter()
            .map(
                |SampleRecord {
                     sample, conditions, ..
                 }| SampleLine {
                    number: sample.index + 1,
                    tokens_per_second: tokens_per_second(spec.tokens(), sample.ns)
                        .filter(|_| is_speed),
                    clock_hz: conditions.clock_hz,
                    temperature_c: conditions.temperature_c,
                    ms: sample.ns as f64 / 1e6,
                    involuntary_switches: sample.involuntary_switches,
                    major_faults: sample.major_faults,
                },
            )
            .collect(),
        warnings: test
            .end
            .as_ref()
            .map(|end| end.warnings.clone())
            .unwrap_or_default(),
        settings: settings(test),
        environment: match &test.end {
            Some(end) => environment(test, end),
            None => file(test),
        },
        placement: test
            .end
            .as_ref()
            .and_then(|end| end.placement.as_ref())
            .map(|placement| placement.buffers.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|buffer| {
                let name = format!("{}, {}", shown(&buffer.device), holds(buffer.holds));
                pair(&name, Some(size(buffer.bytes)))
            })
            .collect(),
    }
}

/// A clause as a sentence of its own.
fn sentence(clause: &str) -> String {
    let mut letters = clause.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

fn holds(holds: BufferUse) -> &'static str {
    match holds {
        BufferUse::Model => "weights",
        BufferUse::Kv => "KV cache",
        BufferUse::State => "recurrent state",
        BufferUse::Compute => "working memory",
        BufferUse::Output => "logits",
    }
}

/// Every setting by llama-bench's name, and ours.
fn settings(test: &Test) -> Vec<Pair> {
    let record = &test.record;
    let settings = &record.settings;
    let mut pairs: Vec<Pair> = settings_fields(settings)
        .into_iter()
        .map(|(name, value)| {
            let value = match (name, value) {
                ("flash_attn", _) => match settings.flash_attn {
                    FlashAttention::Auto => "auto".to_owned(),
                    FlashAttention::Off => "off".to_owned(),
                    FlashAttention::On => "on".to_owned(),
                },
                (_, Value::Flag(flag)) => yes(flag),
                (_, value) => shown(&value.plain()),
            };
            pair(name, test.knows(name).then_some(value))
        })
        .collect();
    pairs.extend([
        pair("n_outputs", Some(settings.n_outputs.to_string())),
        pair("prio", Some(settings.prio.to_string())),
        pair("numa", Some(shown(&settings.numa))),
        pair("repetitions", Some(record.repetitions.to_string())),
        pair("warm-up", Some(yes(record.warmup))),
    ]);
    pairs
}

fn yes(flag: bool) -> String {
    if flag { "yes" } else { "no" }.to_owned()
}

fn file(test: &Test) -> Vec<Pair> {
    vec![
        pair("File", Some(shown_path(&test.record.model.path.0))),
        pair("File size", Some(size(test.record.model.file_bytes))),
    ]
}

fn environment(test: &Test, end: &Ended) -> Vec<Pair> {
    let worker = end.worker.as_ref();
    let loaded = end.loaded.as_ref();
    let placement = end.placement.as_ref();
    let state = end.state_after.as_ref().or(end.state_before.as_ref());
    let of = |get: fn(&MachineState) -> Option<String>| state.and_then(get);
    let mut pairs = file(test);
    pairs.extend([
        pair(
            "Engine",
            worker.map(|worker| format!("llama.cpp {}", worker.engine.build_number)),
        ),
        pair(
            "CPU variant",
            worker.map(|worker| shown(&worker.variant.name)),
        ),
        pair(
            "Devices",
            worker.map(|worker| {
                let names = worker
                    .devices
                    .iter()
                    .map(|device| shown(&device.description));
                names.collect::<Vec<_>>().join(", ")
            }),
        ),
        pair(
            "Loading took",
            loaded.map(|loaded| milliseconds(loaded.load_ns)),
        ),
        pair(
            "In the page cache before",
            loaded
                .and_then(|loaded| loaded.resident_before)
                .map(|share| percent(f64::from(share))),
        ),
        pair(
            "Context",
            placement.map(|placement| format!("{}\u{a0}tokens", placement.n_ctx)),
        ),
        pair(
            "Flash attention",
            placement
                .and_then(|placement| placement.flash_attention)
                .map(yes),
        ),
        pair(
            "Layers on a GPU",
            placement.and_then(|placement| {
                let layers = placement.offloaded_layers?;
                Some(match placement.total_layers {
                    Some(all) => format!("{layers} of {all}"),
                    None => layers.to_string(),
                })
            }),
        ),
        pair("Most memory of the engine", end.peak_rss_bytes.map(size)),
        pair("Anchor before", end.anchor_before_ns.map(milliseconds)),
        pair("Anchor after", end.anchor_after_ns.map(milliseconds)),
        pair(
            "Free memory",
            of(|state| state.memory_available_bytes.map(size)),
        ),
        pair("Swap in use", of(|state| state.swap_used_bytes.map(size))),
        pair(
            "Clock",
            of(|state| state.clock_hz.map(|hz| format!("{:.2}\u{a0}GHz", hz / 1e9))),
        ),
        pair(
            "Temperature",
            of(|state| state.temperature_c.map(|c| format!("{c:.0}\u{a0}°C"))),
        ),
        pair(
            "Other programs",
            of(|state| {
                let cores = state.other_load_cores?;
                Some(format!("{cores:.2}\u{a0}cores"))
            }),
        ),
        pair(
            "Taken by the hypervisor",
            of(|state| state.steal.map(percent)),
        ),
        pair("On battery", of(|state| state.on_battery.map(yes))),
    ]);
    pairs
}

pub(super) fn percent(share: f64) -> String {
    let digits = if share > 0.0 && share < 0.1 { 1 } else { 0 };
    format!("{:.digits$}\u{a0}%", share * 100.0)
}

pub(super) fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ms {
        ms if ms >= 9_995.0 => format!("{:.1}\u{a0}s", ms / 1e3),
        ms if ms >= 999.5 => format!("{:.2}\u{a0}s", ms / 1e3),
        ms if ms >= 99.5 => format!("{ms:.0}\u{a0}ms"),
        ms => format!("{ms:.1}\u{a0}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_change_their_unit_where_they_would_be_long() {
        for (ns, text) in [
            (0, "0.0\u{a0}ms"),
            (4_000_000, "4.0\u{a0}ms"),
            (99_400_000, "99.4\u{a0}ms"),
            (99_500_000, "100\u{a0}ms"),
            (999_400_000, "999\u{a0}ms"),
            (999_500_000, "1.00\u{a0}s"),
            (12_340_000_000, "12.3\u{a0}s"),
        ] {
            assert_eq!(milliseconds(ns), text, "{ns}");
        }
    }

    #[test]
    fn a_small_share_is_not_shown_as_none() {
        for (share, text) in [(0.0, "0"), (0.004, "0.4"), (0.0996, "10.0"), (0.57, "57")] {
            assert_eq!(percent(share), format!("{text}\u{a0}%"));
        }
    }
}
