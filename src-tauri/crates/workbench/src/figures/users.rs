//! The `users` figure from results.

use jiff::tz::TimeZone;
use twospeed_chart::{At, Measured, Users, UsersSeries};
use twospeed_engine::protocol::{Reading, UsersReading};
use twospeed_history::Test;
use twospeed_measure::{Kind, stats};

use super::words::{distinct, footer, grouped, models, samples, subject};
use super::{Source, names, span};

/// The figure.
pub(super) fn users(sources: &[Source<'_>], zone: &TimeZone) -> Users {
    let specs = || sources.iter().map(|source| source.first().record.spec);
    let sharing = distinct(sources.iter().map(sharing));
    let names = names(sources, zone, |source| {
        let spec = source.first().record.spec;
        let mut parts = Vec::new();
        if distinct(specs()).len() > 1 {
            parts.push(format!(
                "prompt {}, answer {}",
                grouped(spec.n_prompt),
                grouped(spec.n_gen)
            ));
        }
        if sharing.len() > 1 {
            parts.push(self::sharing(source));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    });
    let all = match &sharing[..] {
        [one] => format!(" {}.", capital(one)),
        _ => String::new(),
    };
    Users {
        subject: match sources {
            [one] => format!("{} {}", one.name(), one.quantization()),
            _ => subject(sources),
        },
        subtitle: format!(
            "{} {}{all} Users on a logarithmic axis.",
            models(sources),
            samples(sources)
        ),
        decode_test: span(specs().map(|spec| spec.n_gen).filter(|n| *n > 0))
            .map(|n| format!("writing {n} tokens each")),
        wait_test: span(specs().map(|spec| spec.n_prompt).filter(|n| *n > 0))
            .map(|n| format!("prompts of {n} tokens, all sent at once")),
        series: sources
            .iter()
            .zip(names)
            .map(|(source, name)| UsersSeries {
                name,
                together: points(source, |users, test, reading| {
                    let tokens = u64::from(users) * u64::from(test.record.spec.n_gen);
                    stats::tokens_per_second(tokens, reading.decode_ns)
                }),
                each: points(source, |_, test, reading| {
                    stats::tokens_per_second(u64::from(test.record.spec.n_gen), reading.decode_ns)
                }),
                median_wait_ms: points(source, |_, _, reading| stats::median(&waits(reading))),
                worst_wait_ms: points(source, |_, _, reading| {
                    waits(reading).into_iter().max_by(f64::total_cmp)
                }),
            })
            .collect(),
        footer: footer(sources, None, zone),
    }
}

/// What users share: `shared cache`, `split cache, one prompt for all`.
pub(super) fn sharing(source: &Source<'_>) -> String {
    let test = source.first();
    let Kind::Users {
        split_kv,
        shared_prompt,
        ..
    } = &test.record.kind
    else {
        return String::new();
    };
    let cache = match (test.knows("split_kv"), split_kv) {
        (false, _) => "cache not told",
        (true, true) => "split cache",
        (true, false) => "shared cache",
    };
    match shared_prompt {
        true => format!("{cache}, one prompt for all"),
        false => cache.to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Milliseconds until each user's first token.
fn waits(reading: &UsersReading) -> Vec<f64> {
    reading.ttft_ns.iter().map(|ns| *ns as f64 / 1e6).collect()
}

/// A point for each number of users, made of a value of each sample; none where no sample has one.
fn points(
    source: &Source<'_>,
    value: impl Fn(u32, &Test, &UsersReading) -> Option<f64>,
) -> Vec<At> {
    source
        .tests
        .iter()
        .filter_map(|test| {
            let users = test.record.kind.sequences();
            let values = test
                .samples
                .iter()
                .filter_map(|record| match &record.sample.reading {
                    Some(Reading::Users(reading)) => value(users, test, reading),
                    _ => None,
                });
            Some(At {
                place: f64::from(users),
                value: Some(measured_of(values.collect())?),
            })
        })
        .collect()
}

/// Mean and deviation of values; `None` of nothing.
pub(super) fn measured_of(samples: Vec<f64>) -> Option<Measured> {
    let spread = stats::spread(&samples)?;
    Some(Measured {
        mean: spread.mean,
        deviation: spread.standard_deviation,
        samples,
    })
}
