//! The `speeds` figure from results.

mod bar;
mod words;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use twospeed_chart::{Measured, Overlays, Phase, Row, Speeds};
use twospeed_estimate::Estimate;
use twospeed_history::{Test, WholeRun};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;

pub use bar::{Bar, ResultId, bars};
pub use words::differs;

use crate::figures::Source;
use crate::figures::predicted::add_expected;
use crate::figures::words::{grouped, subject};
use words::{detail, footer, subtitle};

/// What the figure needs beside the results.
pub struct SpeedsOptions<'a> {
    /// The decode ceiling of a model on a machine, tokens per second; `None` = not known.
    pub ceiling: &'a dyn Fn(&Machine, &MeasuredModel) -> Option<f64>,
    /// Where the ceilings of these models come from, a statement for the footer.
    pub ceiling_source: &'a dyn Fn(&[&MeasuredModel]) -> Option<String>,
    /// What is expected of a result; `None` = not known, or not asked for.
    pub expected: &'a dyn Fn(&Source<'_>) -> Option<Estimate>,
    /// Where that comes from, a statement for the footer.
    pub expected_source: Option<String>,
    /// Which predictions are shown.
    pub overlays: Overlays,
    /// Zone of the times in the footer.
    pub time_zone: TimeZone,
}

/// The figure of the finished tests of `runs`; `None` when none has a sample.
///
/// Tests of prompt and generation in one (pg) have no place in it. Of several prompt lengths, the
/// one most tests share comes first and each other gets a row of its own.
pub fn speeds(runs: &[WholeRun], options: &SpeedsOptions<'_>) -> Option<Speeds> {
    speeds_of(&bars(runs), options)
}

/// The figure of these bars, one row for each, in their order; `None` without any.
pub fn speeds_of(bars: &[Bar<'_>], options: &SpeedsOptions<'_>) -> Option<Speeds> {
    if bars.is_empty() {
        return None;
    }
    let usual = usual(bars);
    let (prompt, generate) = usual;
    let rows = bars
        .iter()
        .map(|bar| row(bar, bars, usual, options))
        .collect();
    Some(Speeds {
        subject: subject(&sources(bars)),
        subtitle: subtitle(&sources(bars), usual),
        prefill_test: prompt.map(|n| format!("reading a {}-token prompt", grouped(n))),
        decode_test: generate.map(|n| format!("writing {} tokens", grouped(n))),
        rows,
        footer: footer(bars, options),
        overlays: options.overlays,
    })
}

/// The prompt and the answer that most of these were measured with.
fn usual(bars: &[Bar<'_>]) -> (Option<u32>, Option<u32>) {
    let tests = || bars.iter().flat_map(Bar::tests);
    (
        most_common(tests().map(|test| test.record.spec.n_prompt)),
        most_common(tests().map(|test| test.record.spec.n_gen)),
    )
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

fn row(
    bar: &Bar<'_>,
    bars: &[Bar<'_>],
    usual: (Option<u32>, Option<u32>),
    options: &SpeedsOptions<'_>,
) -> Row {
    let several_models = bars.iter().any(|other| other.name() != bar.name());
    let mut row = Row {
        group: several_models.then(|| bar.name()),
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
    };
    let overlays = options.overlays;
    if overlays.expected || overlays.breakdown {
        let estimate = (options.expected)(&bar.source());
        add_expected(&mut row, bar, estimate.as_ref());
    }
    row
}

/// Where the numbers of each bar come from.
fn sources<'a>(bars: &[Bar<'a>]) -> Vec<Source<'a>> {
    bars.iter().map(Bar::source).collect()
}

/// A test's speed as every face shows it; another tool's mean alone where it gave no samples.
pub fn measured(test: &Test) -> Option<Measured> {
    let speed = test.speed()?;
    Some(Measured {
        mean: speed.mean,
        deviation: speed.standard_deviation,
        samples: speed.samples,
    })
}
