//! Tests that are more than one speed as tables: a line for each repetition and request, by name.
//!
//! Columns are the same in CSV and Markdown. Names that end in `_ns` are integer nanoseconds;
//! what is unknown is empty.

use std::io::{self, Write};

use twospeed_engine::protocol::{
    LoadReading, QualityReading, Reading, ServedReading, UsersReading,
};
use twospeed_measure::stats::median;
use twospeed_measure::{Kind, TestStatus};

use crate::llama_bench::{quoted, settings_fields};
use crate::run::WholeRun;
use crate::test::Test;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableForm {
    /// Values in quotes where they need them, a header that names them.
    Csv,
    /// A Markdown table.
    Markdown,
}

/// A line: names and values, in the order of the columns.
type Line = Vec<(&'static str, String)>;

/// Writes the finished tests of a kind ([`Kind::key`]) of these runs; gives how many there were.
pub fn write(
    kind: &str,
    form: TableForm,
    runs: &[WholeRun],
    out: &mut dyn Write,
) -> io::Result<usize> {
    let mut tests = 0;
    let mut lines = Vec::new();
    for run in runs {
        for test in run.tests.iter().filter(|test| is_done(test, kind)) {
            tests += 1;
            lines.extend(readings(test).into_iter().map(|reading| {
                let mut line = leading(run, test);
                line.extend(reading);
                line
            }));
        }
    }
    let Some(first) = lines.first() else {
        return Ok(tests);
    };
    let names: Vec<_> = first.iter().map(|(name, _)| *name).collect();
    let rows = lines
        .iter()
        .map(|line| line.iter().map(|(_, value)| value.as_str()));
    match form {
        TableForm::Csv => {
            writeln!(out, "{}", names.join(","))?;
            for row in rows {
                writeln!(out, "{}", row.map(quoted).collect::<Vec<_>>().join(","))?;
            }
        }
        TableForm::Markdown => {
            writeln!(out, "| {} |", names.join(" | "))?;
            writeln!(out, "|{}", " --- |".repeat(names.len()))?;
            for row in rows {
                let cells: Vec<_> = row.map(|value| value.replace('|', "\\|")).collect();
                writeln!(out, "| {} |", cells.join(" | "))?;
            }
        }
    }
    Ok(tests)
}

fn is_done(test: &Test, kind: &str) -> bool {
    let status = test.end.as_ref().map(|end| &end.status);
    test.record.kind.key() == kind && status == Some(&TestStatus::Done)
}

/// What says which test it is: run, model, every setting.
fn leading(run: &WholeRun, test: &Test) -> Line {
    let record = &test.record;
    let known = |name: &str, value: String| {
        if test.knows(name) {
            value
        } else {
            String::new()
        }
    };
    let variant = (test.end.as_ref())
        .and_then(|end| end.worker.as_ref())
        .map(|worker| worker.variant.name.clone());
    let mut line = vec![
        ("run", run.run.id.to_string()),
        ("test", record.kind.name(record.spec)),
        (
            "test_time",
            known("started_at", format!("{:.0}", record.started_at)),
        ),
        ("model", record.model.name.clone()),
        (
            "quantization",
            record.model.quantization.clone().unwrap_or_default(),
        ),
        ("model_fingerprint", record.model.fingerprint.clone()),
        ("variant", variant.unwrap_or_default()),
    ];
    for (name, value) in settings_fields(&record.settings) {
        line.push((name, known(name, value.plain())));
    }
    line.extend([
        ("n_prompt", record.spec.n_prompt.to_string()),
        ("n_gen", record.spec.n_gen.to_string()),
        ("n_depth", record.spec.n_depth.to_string()),
    ]);
    line
}

/// The columns of each reading of a test.
fn readings(test: &Test) -> Vec<Line> {
    let mut lines = Vec::new();
    for sample in &test.samples {
        let index = ("sample", sample.sample.index.to_string());
        let of_sample: Vec<Line> = match (&test.record.kind, &sample.sample.reading) {
            (Kind::FirstToken { .. }, Some(Reading::Served { load, requests })) => requests
                .iter()
                .map(|request| [loaded(load.as_ref()), served(request)].concat())
                .collect(),
            (Kind::PrefixCache { changed }, Some(Reading::Served { requests, .. })) => {
                let names = ["cold", "repeated", "changed"].into_iter();
                let requests = names.zip(requests);
                requests
                    .map(|(name, request)| {
                        let which = vec![
                            ("request", name.to_owned()),
                            ("changed_tokens", changed.to_string()),
                        ];
                        [which, served(request)].concat()
                    })
                    .collect()
            }
            (kind, Some(Reading::Users(reading))) => vec![users(test, kind, reading)],
            (Kind::Quality { base, .. }, Some(Reading::Quality(reading))) => {
                let base = base.as_ref().map(|base| base.name.clone());
                vec![quality(base, reading)]
            }
            _ => Vec::new(),
        };
        lines.extend(
            of_sample
                .into_iter()
                .map(|line| [vec![index.clone()], line].concat()),
        );
    }
    lines
}

fn loaded(load: Option<&LoadReading>) -> Line {
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let resident = load.and_then(|load| load.resident_before);
    let page_cache = load.and_then(|load| serde_json::to_value(load.page_cache).ok());
    vec![
        (
            "page_cache",
            page_cache
                .as_ref()
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        ),
        (
            "resident_before",
            resident.map(|share| share.to_string()).unwrap_or_default(),
        ),
        ("load_ns", number(load.map(|load| load.load_ns))),
        ("context_ns", number(load.map(|load| load.context_ns))),
    ]
}

fn served(request: &ServedReading) -> Line {
    let first_decode = request.first_decode_ns.map(|ns| ns.to_string());
    vec![
        ("prompt_tokens", request.n_prompt.to_string()),
        ("reused_tokens", request.n_reused.to_string()),
        ("shared_tokens", request.n_shared.to_string()),
        ("tokenize_ns", request.tokenize_ns.to_string()),
        ("prefill_ns", request.prefill_ns.to_string()),
        ("first_sample_ns", request.first_sample_ns.to_string()),
        ("ttft_ns", request.ttft_ns.to_string()),
        ("first_decode_ns", first_decode.unwrap_or_default()),
        ("generated_tokens", request.n_generated.to_string()),
        ("decode_ns", request.decode_ns.to_string()),
    ]
}

fn users(test: &Test, kind: &Kind, reading: &UsersReading) -> Line {
    let Kind::Users {
        users,
        split_kv,
        shared_prompt,
    } = kind
    else {
        return Vec::new();
    };
    let written = u64::from(*users) * u64::from(test.record.spec.n_gen);
    let aggregate = (written > 0 && reading.decode_ns > 0)
        .then(|| 1e9 * written as f64 / reading.decode_ns as f64);
    let speed = |value: Option<f64>| value.map(|value| format!("{value:.6}")).unwrap_or_default();
    let waits: Vec<f64> = reading.ttft_ns.iter().map(|ns| *ns as f64).collect();
    let split = test
        .knows("split_kv")
        .then(|| u8::from(*split_kv).to_string());
    vec![
        ("users", users.to_string()),
        ("split_kv", split.unwrap_or_default()),
        ("shared_prompt", u8::from(*shared_prompt).to_string()),
        ("prefill_ns", reading.prefill_ns.to_string()),
        ("decode_ns", reading.decode_ns.to_string()),
        ("decode_tok_s", speed(aggregate)),
        (
            "decode_tok_s_per_user",
            speed(aggregate.map(|all| all / f64::from(*users))),
        ),
        (
            "ttft_median_ns",
            median(&waits)
                .map(|ns| format!("{ns:.0}"))
                .unwrap_or_default(),
        ),
        (
            "ttft_worst_ns",
            reading
                .ttft_ns
                .iter()
                .max()
                .map(u64::to_string)
                .unwrap_or_default(),
        ),
    ]
}

fn quality(base: Option<String>, reading: &QualityReading) -> Line {
    let against = reading.against_base;
    let of = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    vec![
        ("chunk_tokens", reading.n_ctx.to_string()),
        ("chunks", reading.chunks.to_string()),
        ("scored_tokens", reading.n_scored.to_string()),
        ("perplexity", reading.perplexity.to_string()),
        ("perplexity_error", reading.perplexity_error.to_string()),
        ("base_model", base.unwrap_or_default()),
        (
            "base_perplexity",
            of(against.map(|base| base.base_perplexity)),
        ),
        ("kl_mean", of(against.map(|base| base.kl_mean))),
        ("kl_error", of(against.map(|base| base.kl_error))),
        ("kl_median", of(against.map(|base| base.kl_median))),
        ("kl_p99", of(against.map(|base| base.kl_p99))),
        ("kl_max", of(against.map(|base| base.kl_max))),
        ("same_top", of(against.map(|base| base.same_top))),
    ]
}
