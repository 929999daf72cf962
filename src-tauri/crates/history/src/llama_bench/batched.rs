//! llama-batched-bench's JSON lines: a line for each run with sequences side by side.

use std::io::{self, Write};

use serde_json::Value;
use twospeed_engine::protocol::{Reading, UsersReading};
use twospeed_measure::{Kind, TestStatus};

use crate::test::Test;

/// Writes a line for each repetition of a finished `users` test, as llama-batched-bench would
/// have printed each; others are left out.
pub fn write_batched(test: &Test, out: &mut dyn Write) -> io::Result<()> {
    let Kind::Users {
        users,
        shared_prompt,
        ..
    } = test.record.kind
    else {
        return Ok(());
    };
    let is_done = |status: &TestStatus| *status == TestStatus::Done;
    if !test.end.as_ref().is_some_and(|end| is_done(&end.status)) {
        return Ok(());
    }
    for sample in &test.samples {
        if let Some(Reading::Users(reading)) = &sample.sample.reading {
            let fields = fields(test, users, shared_prompt, reading);
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("{}: {value}", Value::from(name.as_str())))
                .collect();
            writeln!(out, "{{{}}}", fields.join(", "))?;
        }
    }
    Ok(())
}

/// Each field with its value as JSON, in llama-batched-bench's order.
fn fields(
    test: &Test,
    users: u32,
    shared_prompt: bool,
    reading: &UsersReading,
) -> Vec<(String, String)> {
    let record = &test.record;
    let settings = &record.settings;
    let (pp, tg) = (
        u64::from(record.spec.n_prompt),
        u64::from(record.spec.n_gen),
    );
    let pl = u64::from(users);
    let prompts = if shared_prompt { pp } else { pl * pp };
    let n_kv = prompts + pl * tg;
    let (t_pp, t_tg) = (seconds(reading.prefill_ns), seconds(reading.decode_ns));
    let told = |name: &str| test.extra.get(name).map(Value::to_string);
    let known = |name: &str, value: String| match test.knows(name) {
        true => value,
        false => told(name).unwrap_or_else(|| "null".to_owned()),
    };
    // As many as it decodes with unless another tool said otherwise.
    let threads = known("n_threads", settings.n_threads.to_string());
    let context = (test.end.as_ref())
        .and_then(|end| end.placement.as_ref())
        .map(|placement| placement.n_ctx.to_string());
    let mut fields: Vec<(String, String)> = [
        (
            "n_kv_max",
            told("n_kv_max")
                .or(context)
                .unwrap_or_else(|| "null".to_owned()),
        ),
        ("n_batch", known("n_batch", settings.n_batch.to_string())),
        ("n_ubatch", known("n_ubatch", settings.n_ubatch.to_string())),
        (
            "flash_attn",
            known("flash_attn", settings.flash_attn.number().to_string()),
        ),
        ("is_pp_shared", u8::from(shared_prompt).to_string()),
        (
            "n_gpu_layers",
            known("n_gpu_layers", settings.n_gpu_layers.to_string()),
        ),
        ("n_threads", threads.clone()),
        (
            "n_threads_batch",
            told("n_threads_batch").unwrap_or(threads),
        ),
        ("pp", pp.to_string()),
        ("tg", tg.to_string()),
        ("pl", pl.to_string()),
        ("n_kv", n_kv.to_string()),
        ("t_pp", format!("{t_pp:.6}")),
        ("speed_pp", speed(prompts, t_pp)),
        ("t_tg", format!("{t_tg:.6}")),
        ("speed_tg", speed(pl * tg, t_tg)),
        ("t", format!("{:.6}", t_pp + t_tg)),
        ("speed", speed(n_kv, t_pp + t_tg)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for (name, value) in &test.extra {
        if !fields.iter().any(|(field, _)| field == name) {
            fields.push((name.clone(), value.to_string()));
        }
    }
    fields
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Tokens per second; null where nothing was timed.
fn speed(tokens: u64, seconds: f64) -> String {
    match tokens > 0 && seconds > 0.0 {
        true => format!("{:.6}", tokens as f64 / seconds),
        false => "null".to_owned(),
    }
}
