//! The `speeds` figure from results.

mod words;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use twospeed_chart::{Measured, Overlays, Phase, Row, Speeds};
use twospeed_engine::{Settings, TestSpec};
use twospeed_history::{Test, WholeRun};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{TestStatus, summary};

use words::{detail, footer, grouped, subject, subtitle};

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

impl<'a> Bar<'a> {
    /// Its tests, prefill first.
    fn tests(&self) -> impl Iterator<Item = &'a Test> + use<'a> {
        [self.prefill, self.decode].into_iter().flatten()
    }
}

/// The figure of the finished tests of `runs`; `None` when none has a sample.
///
/// Tests of prompt and generation in one (pg) have no place in it. Of several prompt lengths, the
/// one most tests share comes first and each other gets a row of its own.
pub fn speeds(runs: &[WholeRun], options: &SpeedsOptions<'_>) -> Option<Speeds> {
    let tests: Vec<(&WholeRun, &Test)> = runs
        .iter()
        .flat_map(|run| run.tests.iter().map(move |test| (run, test)))
        .filter(|(_, test)| is_result(test))
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
        n_prompt, n_depth, ..
    } = record.spec;
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

/// Whether it has a place in the figure: one speed, and it came to its end. The samples of a test
/// that did not are kept, and are no result.
fn is_result(test: &Test) -> bool {
    let spec = test.record.spec;
    let ended = test.end.as_ref();
    let is_done = ended.is_some_and(|end| end.status == TestStatus::Done);
    is_done && !test.samples.is_empty() && (spec.n_prompt == 0 || spec.n_gen == 0)
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
