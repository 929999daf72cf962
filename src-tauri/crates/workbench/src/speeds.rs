//! The `speeds` figure from results.

use std::collections::BTreeMap;

use jiff::ZonedDateTime;
use jiff::tz::TimeZone;
use twospeed_chart::{Measured, Overlays, Phase, Row, Speeds};
use twospeed_engine::{FlashAttention, Settings, TestSpec};
use twospeed_history::{Test, WholeRun};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{TestStatus, summary};

/// What the figure needs beside the results.
pub struct SpeedsOptions<'a> {
    /// The decode ceiling of a model on a machine, tokens per second; `None` = not known.
    pub ceiling: &'a dyn Fn(&Machine, &MeasuredModel) -> Option<f64>,
    /// Where the ceilings of these models come from, a statement for the footer.
    pub ceiling_source: &'a dyn Fn(&[&MeasuredModel]) -> Option<String>,
    /// Which predictions are shown.
    pub overlays: Overlays,
    /// Zone of the times in the footer.
    pub time_zone: TimeZone,
}

/// One row of the figure to be: the tests of one model under one choice of settings in one run.
struct Bar<'a> {
    run: &'a WholeRun,
    model: &'a MeasuredModel,
    settings: &'a Settings,
    depth: u32,
    variant: Option<&'a str>,
    prefill: Option<&'a Test>,
    decode: Option<&'a Test>,
}

/// The figure of the finished tests of `runs`; `None` when none has a sample.
///
/// Tests of prompt and generation in one (pg) have no place in it. Of several prompt lengths, the
/// one most tests share comes first and each other gets a row of its own.
pub fn speeds(runs: &[WholeRun], options: &SpeedsOptions<'_>) -> Option<Speeds> {
    let tests: Vec<(&WholeRun, &Test)> = runs
        .iter()
        .flat_map(|run| run.tests.iter().map(move |test| (run, test)))
        .filter(|(_, test)| is_done(test) && !test.samples.is_empty())
        .collect();
    let prompt = most_common(tests.iter().map(|(_, test)| test.record.spec.n_prompt));
    let generate = most_common(tests.iter().map(|(_, test)| test.record.spec.n_gen));
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for (run, test) in &tests {
        add(&mut bars, run, test);
    }
    if bars.is_empty() {
        return None;
    }
    bars.sort_by(|a, b| order(a).cmp(&order(b)));
    let rows = bars
        .iter()
        .map(|bar| row(bar, &bars, (prompt, generate), options))
        .collect();
    Some(Speeds {
        subject: subject(&bars),
        subtitle: subtitle(&bars, (prompt, generate)),
        prefill_test: prompt.map(|n| format!("reading a {}-token prompt", grouped(n))),
        decode_test: generate.map(|n| format!("writing {} tokens", grouped(n))),
        rows,
        footer: footer(&bars, options),
        overlays: options.overlays,
    })
}

/// The number that is not zero and comes most often, the smallest of equals.
fn most_common(numbers: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts = BTreeMap::new();
    for number in numbers.filter(|number| *number > 0) {
        *counts.entry(number).or_insert(0u32) += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(number, count)| (*count, std::cmp::Reverse(*number)))
        .map(|(number, _)| number)
}

/// Puts a test to the bar it belongs to, or begins one.
fn add<'a>(bars: &mut Vec<Bar<'a>>, run: &'a WholeRun, test: &'a Test) {
    let record = &test.record;
    let TestSpec {
        n_prompt,
        n_gen,
        n_depth,
    } = record.spec;
    if n_prompt > 0 && n_gen > 0 {
        return;
    }
    let variant = variant(test);
    let same = |bar: &Bar<'_>| {
        std::ptr::eq(bar.run, run)
            && bar.model.fingerprint == record.model.fingerprint
            && *bar.settings == record.settings
            && bar.depth == n_depth
            && bar.variant == variant
    };
    let free = |bar: &Bar<'_>| {
        if n_prompt > 0 {
            bar.prefill.is_none()
        } else {
            bar.decode.is_none()
        }
    };
    let index = bars
        .iter()
        .position(|bar| same(bar) && free(bar))
        .unwrap_or_else(|| {
            bars.push(Bar {
                run,
                model: &record.model,
                settings: &record.settings,
                depth: n_depth,
                variant,
                prefill: None,
                decode: None,
            });
            bars.len() - 1
        });
    if n_prompt > 0 {
        bars[index].prefill = Some(test);
    } else {
        bars[index].decode = Some(test);
    }
}

/// Whether it came to its end: the samples of one that did not are kept, and are no result.
fn is_done(test: &Test) -> bool {
    test.end
        .as_ref()
        .is_some_and(|end| end.status == TestStatus::Done)
}

fn variant(test: &Test) -> Option<&str> {
    let worker = test.end.as_ref()?.worker.as_ref()?;
    Some(&worker.variant.name)
}

/// Models by size, then files by size, then as they were run.
fn order<'a>(bar: &Bar<'a>) -> (u64, &'a str, u64, u32, jiff::Timestamp) {
    (
        bar.model.parameters,
        &bar.model.name,
        bar.model.file_bytes,
        bar.depth,
        bar.run.run.started_at,
    )
}

fn row(
    bar: &Bar<'_>,
    bars: &[Bar<'_>],
    usual: (Option<u32>, Option<u32>),
    options: &SpeedsOptions<'_>,
) -> Row {
    let several_models = bars.iter().any(|other| other.model.name != bar.model.name);
    Row {
        group: several_models.then(|| bar.model.name.clone()),
        label: bar
            .model
            .quantization
            .clone()
            .unwrap_or_else(|| "unknown".to_owned()),
        file_bytes: Some(bar.model.file_bytes),
        detail: detail(bar, bars, usual, &options.time_zone),
        prefill: Phase {
            measured: bar.prefill.and_then(measured),
            ..Phase::default()
        },
        decode: Phase {
            measured: bar.decode.and_then(measured),
            ceiling: (options.ceiling)(&bar.run.run.machine, bar.model),
            ..Phase::default()
        },
    }
}

fn measured(test: &Test) -> Option<Measured> {
    let samples: Vec<_> = test.samples.iter().map(|record| record.sample).collect();
    let spread = summary(test.record.spec, &samples)?.tokens_per_second;
    let tokens = test.record.spec.tokens();
    Some(Measured {
        mean: spread.mean,
        deviation: spread.standard_deviation,
        samples: samples
            .iter()
            .filter_map(|sample| twospeed_measure::stats::tokens_per_second(tokens, sample.ns))
            .collect(),
    })
}

/// A setting of a bar in words.
type Of<'f> = &'f dyn Fn(&Bar<'_>) -> String;

/// What sets a bar apart from the others, beyond model and quantization.
fn detail(
    bar: &Bar<'_>,
    bars: &[Bar<'_>],
    usual: (Option<u32>, Option<u32>),
    zone: &TimeZone,
) -> Option<String> {
    let mut parts = Vec::new();
    let length = |test: Option<&Test>| test.map(|test| test.record.spec.tokens() as u32);
    if let Some(n) = length(bar.prefill).filter(|n| Some(*n) != usual.0) {
        parts.push(format!("prompt {}", grouped(n)));
    }
    if let Some(n) = length(bar.decode).filter(|n| Some(*n) != usual.1) {
        parts.push(format!("answer {}", grouped(n)));
    }
    if bar.depth > 0 {
        parts.push(format!("depth {}", grouped(bar.depth)));
    }
    let varies = |of: Of<'_>| {
        let own = of(bar);
        bars.iter().any(|other| of(other) != own).then_some(own)
    };
    let settings: [(&str, Of<'_>); 7] = [
        ("", &|bar| threads(bar.settings.n_threads)),
        ("ubatch ", &|bar| bar.settings.n_ubatch.to_string()),
        ("batch ", &|bar| bar.settings.n_batch.to_string()),
        ("KV ", &|bar| kv(bar.settings)),
        ("flash attention ", &|bar| flash(bar.settings).to_owned()),
        ("GPU layers ", &|bar| bar.settings.n_gpu_layers.to_string()),
        ("CPU ", &|bar| bar.variant.unwrap_or("unknown").to_owned()),
    ];
    for (name, of) in settings {
        if let Some(value) = varies(of) {
            parts.push(format!("{name}{value}"));
        }
    }
    // Equal in all of that: only the time tells them apart.
    let twins = bars.iter().filter(|other| {
        other.model.fingerprint == bar.model.fingerprint
            && other.settings == bar.settings
            && other.depth == bar.depth
            && other.variant == bar.variant
            && length(other.prefill) == length(bar.prefill)
            && length(other.decode) == length(bar.decode)
    });
    let moments: Vec<_> = twins.map(|twin| began(twin, zone)).collect();
    if moments.len() > 1 {
        let minute = |moment: &ZonedDateTime| moment.strftime("%Y-%m-%d %H:%M").to_string();
        let own = began(bar, zone);
        let same = moments
            .iter()
            .filter(|moment| minute(moment) == minute(&own));
        parts.push(match same.count() {
            1 => minute(&own),
            _ => own.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        });
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// When the first test of a bar began.
fn began(bar: &Bar<'_>, zone: &TimeZone) -> ZonedDateTime {
    let tests = [bar.prefill, bar.decode];
    let first = tests
        .iter()
        .flatten()
        .map(|test| test.record.started_at)
        .min();
    first
        .unwrap_or(bar.run.run.started_at)
        .to_zoned_datetime(zone.clone())
}

fn threads(number: u32) -> String {
    format!(
        "{number} {}",
        if number == 1 { "thread" } else { "threads" }
    )
}

fn kv(settings: &Settings) -> String {
    if settings.type_k == settings.type_v {
        settings.type_k.clone()
    } else {
        format!("{}/{}", settings.type_k, settings.type_v)
    }
}

fn flash(settings: &Settings) -> &'static str {
    match settings.flash_attn {
        FlashAttention::Auto => "auto",
        FlashAttention::Off => "off",
        FlashAttention::On => "on",
    }
}

/// Values in the order they come, each once.
fn distinct<'a, T: PartialEq + 'a>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

fn subject(bars: &[Bar<'_>]) -> String {
    let models = distinct(bars.iter().map(|bar| bar.model.name.as_str()));
    match models[..] {
        [model] => model.to_owned(),
        _ => format!("{} models", models.len()),
    }
}

fn subtitle(bars: &[Bar<'_>], usual: (Option<u32>, Option<u32>)) -> String {
    let models = distinct(bars.iter().map(|bar| bar.model.name.as_str()));
    let files = distinct(bars.iter().map(|bar| bar.model.fingerprint.as_str()));
    let what = match (models.len(), files.len()) {
        (1, 1) => match &bars[0].model.quantization {
            Some(quantization) => format!("{} {quantization}.", models[0]),
            None => format!("{}.", models[0]),
        },
        (1, n) => format!("{} in {n} quantizations, smallest file first.", models[0]),
        (n, _) => format!("{n} models, smallest first."),
    };
    let counts = distinct(
        bars.iter()
            .flat_map(|bar| [bar.prefill, bar.decode])
            .flatten()
            .map(|test| test.samples.len()),
    );
    let samples = match counts[..] {
        [1] => "One sample".to_owned(),
        [n] => format!("Mean of {n} samples"),
        _ => {
            let (least, most) = (counts.iter().min(), counts.iter().max());
            match (least, most) {
                (Some(least), Some(most)) => format!("Mean of {least} to {most} samples"),
                _ => "Mean".to_owned(),
            }
        }
    };
    let counts = distinct(bars.iter().map(|bar| bar.settings.n_threads));
    let threads = match counts[..] {
        [n] => format!(", {}", threads(n)),
        _ => String::new(),
    };
    let tests = match usual {
        (Some(p), Some(g)) => format!(" pp{p}, tg{g}."),
        (Some(p), None) => format!(" pp{p}."),
        (None, Some(g)) => format!(" tg{g}."),
        (None, None) => String::new(),
    };
    format!("{what} {samples}{threads}.{tests}")
}

/// The models that have a ceiling.
fn with_ceiling<'a>(bars: &[Bar<'a>], options: &SpeedsOptions<'_>) -> Vec<&'a MeasuredModel> {
    bars.iter()
        .filter(|bar| (options.ceiling)(&bar.run.run.machine, bar.model).is_some())
        .map(|bar| bar.model)
        .collect()
}

fn footer(bars: &[Bar<'_>], options: &SpeedsOptions<'_>) -> Vec<String> {
    let mut statements = Vec::new();
    let files = distinct(bars.iter().filter_map(|bar| {
        let name = bar.model.path.0.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }));
    let engines = distinct(bars.iter().filter_map(|bar| {
        let test = bar.prefill.or(bar.decode)?;
        let worker = test.end.as_ref()?.worker.as_ref()?;
        Some(format!(
            "llama.cpp build {}, {} {}",
            worker.engine.build_number, worker.backends, worker.variant.name
        ))
    }));
    let files = match files.len() {
        0..=4 => files.join(", "),
        n => format!("{n} model files"),
    };
    statements.push(format!("{files}. {}.", engines.join("; ")));
    if bars.iter().any(|bar| bar.model.synthetic) {
        statements.push(
            "The built-in model has random weights: its speed is real, its text is noise."
                .to_owned(),
        );
    }
    if options.overlays.ceiling
        && let Some(source) = (options.ceiling_source)(&with_ceiling(bars, options))
    {
        statements.push(source);
    }
    let machines = distinct(bars.iter().map(|bar| machine(&bar.run.run.machine)));
    let versions = distinct(bars.iter().map(|bar| bar.run.run.app_version.as_str()));
    statements.push(format!(
        "{}. {} Twospeed {}.",
        machines.join("; "),
        when(bars, &options.time_zone),
        versions.join(", ")
    ));
    statements
}

fn machine(machine: &Machine) -> String {
    let mut parts = vec![machine.cpu.clone()];
    if let Some(cores) = machine.physical_cores {
        parts.push(format!(
            "{cores} {}",
            if cores == 1 { "core" } else { "cores" }
        ));
    }
    if let Some(bytes) = machine.memory_bytes {
        parts.push(format!("{:.0} GB", bytes as f64 / 1e9));
    }
    parts.join(", ")
}

/// `Measured 30 November 2026, 14:02 to 14:09.`
fn when(bars: &[Bar<'_>], zone: &TimeZone) -> String {
    let moments = || {
        bars.iter()
            .flat_map(|bar| [bar.prefill, bar.decode])
            .flatten()
            .flat_map(|test| {
                [
                    Some(test.record.started_at),
                    test.end.as_ref().map(|end| end.ended_at),
                ]
            })
            .flatten()
            .map(|moment| moment.to_zoned_datetime(zone.clone()))
    };
    let (Some(first), Some(last)) = (moments().min(), moments().max()) else {
        return "Measured at an unknown time.".to_owned();
    };
    let day = |moment: &jiff::ZonedDateTime| moment.strftime("%-d %B %Y").to_string();
    let time = |moment: &jiff::ZonedDateTime| moment.strftime("%H:%M").to_string();
    let text = if day(&first) != day(&last) {
        format!("{} to {}", day(&first), day(&last))
    } else if time(&first) == time(&last) {
        format!("{}, {}", day(&first), time(&first))
    } else {
        format!("{}, {} to {}", day(&first), time(&first), time(&last))
    };
    format!("Measured {text}.")
}

/// `4,096`.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
