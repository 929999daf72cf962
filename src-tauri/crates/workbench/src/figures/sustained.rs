//! The `sustained` figure from results.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use twospeed_chart::{Sustained, SustainedSeries};
use twospeed_engine::TestSpec;
use twospeed_measure::Conditions;
use twospeed_measure::plan::Order;
use twospeed_measure::stats::tokens_per_second;

use super::words::{footer, models, subject, with_threads};
use super::{Source, names, span};

/// The figure.
pub(super) fn sustained(sources: &[Source<'_>], zone: &TimeZone) -> Sustained {
    let specs = || {
        sources
            .iter()
            .flat_map(|source| source.tests.iter().map(|test| test.record.spec))
    };
    let names = names(sources, zone, |_| None);
    let seconds = sources
        .iter()
        .filter_map(|source| match source.run.plan.as_ref()?.order {
            Order::Sustained { seconds } => Some(seconds),
            _ => None,
        });
    let time = seconds
        .max()
        .map_or_else(String::new, |seconds| format!(" for {}", length(seconds)));
    Sustained {
        subject: match sources {
            [one] => format!("{} {}", one.name(), one.quantization()),
            _ => subject(sources),
        },
        subtitle: format!(
            "{} Tests in turn{time}{}.",
            models(sources),
            with_threads(sources)
        ),
        prefill_test: span(specs().map(|spec| spec.n_prompt).filter(|n| *n > 0))
            .map(|n| format!("reading {n} tokens")),
        decode_test: span(specs().map(|spec| spec.n_gen).filter(|n| *n > 0))
            .map(|n| format!("writing {n} tokens")),
        series: sources
            .iter()
            .zip(names)
            .map(|(source, name)| SustainedSeries {
                name,
                prefill: course(source, |spec| spec.n_prompt > 0),
                decode: course(source, |spec| spec.n_prompt == 0),
                clock_ghz: conditions(source, |at| Some(at.clock_hz? / 1e9)),
                temperature_c: conditions(source, |at| at.temperature_c),
            })
            .collect(),
        footer: footer(sources, None, zone),
    }
}

/// `10 minutes`, `90 seconds`.
fn length(seconds: u32) -> String {
    match (seconds / 60, seconds % 60) {
        (1, 0) => "1 minute".to_owned(),
        (minutes, 0) if minutes > 0 => format!("{minutes} minutes"),
        _ => format!("{seconds} seconds"),
    }
}

/// The moment that seconds are counted from: when the first of its samples began.
fn start(source: &Source<'_>) -> Timestamp {
    let began = source
        .tests
        .iter()
        .flat_map(|test| &test.samples)
        .map(|record| {
            let took = i64::try_from(record.sample.ns).unwrap_or(i64::MAX);
            record
                .at
                .saturating_sub(SignedDuration::from_nanos(took))
                .unwrap_or(record.at)
        });
    began.min().unwrap_or(source.run.run.started_at)
}

fn seconds(from: Timestamp, at: Timestamp) -> f64 {
    at.duration_since(from).as_secs_f64()
}

/// Speed of each sample against the second it ended in.
fn course(source: &Source<'_>, of: fn(TestSpec) -> bool) -> Vec<(f64, f64)> {
    let from = start(source);
    source
        .tests
        .iter()
        .filter(|test| of(test.record.spec))
        .flat_map(|test| {
            let tokens = test.record.spec.tokens();
            test.samples.iter().filter_map(move |record| {
                let speed = tokens_per_second(tokens, record.sample.ns)?;
                Some((seconds(from, record.at), speed))
            })
        })
        .collect()
}

/// What was read of the machine after each sample.
fn conditions(source: &Source<'_>, of: fn(&Conditions) -> Option<f64>) -> Vec<(f64, f64)> {
    let from = start(source);
    source
        .tests
        .iter()
        .flat_map(|test| &test.samples)
        .filter_map(|record| Some((seconds(from, record.at), of(&record.conditions)?)))
        .collect()
}
