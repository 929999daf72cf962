//! The `quantization` figure from results.

use jiff::tz::TimeZone;
use twospeed_chart::{Divergence, Quality, QuantizationRow, Quantizations};
use twospeed_engine::protocol::{QualityReading, Reading};
use twospeed_history::{Test, WholeRun};
use twospeed_measure::Kind;

use super::words::{footer, grouped, models, samples, subject};
use super::{Source, names, newest_quality, span};
use crate::speeds::measured;

/// The figure. Qualities are those of the newest tests in `runs`, of a base model also what tests
/// against it say.
pub(super) fn quantizations(
    sources: &[Source<'_>],
    runs: &[WholeRun],
    zone: &TimeZone,
) -> Quantizations {
    let names = names(sources, zone, |_| None);
    let found: Vec<Option<&Test>> = sources
        .iter()
        .map(|source| newest_quality(runs, &source.model().fingerprint))
        .collect();
    let bases = bases(&found);
    let rows = sources
        .iter()
        .zip(names)
        .zip(&found)
        .map(|((source, name), found)| {
            let speed = |is_prefill: bool| {
                let mut tests = source
                    .tests
                    .iter()
                    .filter(|test| test.record.kind.is_speed());
                tests
                    .find(|test| (test.record.spec.n_prompt > 0) == is_prefill)
                    .and_then(|test| measured(test))
            };
            let fingerprint = &source.model().fingerprint;
            QuantizationRow {
                group: name.group,
                label: name.label,
                file_bytes: source
                    .knows("file_bytes")
                    .then_some(source.model().file_bytes),
                detail: name.detail,
                prefill: speed(true),
                decode: speed(false),
                quality: quality(*found, fingerprint, &bases),
            }
        });
    Quantizations {
        subject: subject(sources),
        subtitle: subtitle(sources, &found),
        rows: rows.collect(),
        footer: footer(sources, None, zone),
    }
}

fn reading(test: &Test) -> Option<&QualityReading> {
    test.samples
        .iter()
        .find_map(|record| match &record.sample.reading {
            Some(Reading::Quality(reading)) => Some(reading),
            _ => None,
        })
}

/// Each base model's fingerprint, with its perplexity on the same tokens.
fn bases(found: &[Option<&Test>]) -> Vec<(String, f64)> {
    found
        .iter()
        .flatten()
        .filter_map(|test| {
            let Kind::Quality {
                base: Some(base), ..
            } = &test.record.kind
            else {
                return None;
            };
            let against = reading(test)?.against_base?;
            Some((base.fingerprint.clone(), against.base_perplexity))
        })
        .collect()
}

fn quality(found: Option<&Test>, fingerprint: &str, bases: &[(String, f64)]) -> Option<Quality> {
    let as_base = bases.iter().find(|(base, _)| base == fingerprint);
    let reading = found.and_then(reading);
    let (perplexity, error) = match (reading, as_base) {
        (Some(reading), _) => (reading.perplexity, Some(reading.perplexity_error)),
        (None, Some((_, perplexity))) => (*perplexity, None),
        (None, None) => return None,
    };
    Some(Quality {
        perplexity,
        perplexity_error: error,
        divergence: match reading.and_then(|reading| reading.against_base) {
            Some(against) => Some(Divergence::Nats {
                mean: against.kl_mean,
                error: against.kl_error,
            }),
            None => as_base.map(|_| Divergence::Base),
        },
    })
}

fn subtitle(sources: &[Source<'_>], found: &[Option<&Test>]) -> String {
    let specs = || {
        sources
            .iter()
            .flat_map(|source| &source.tests)
            .filter(|test| test.record.kind.is_speed())
            .map(|test| test.record.spec)
    };
    let test = |name: &str, n: Option<String>| n.map(|n| format!("{name}{n}"));
    let tests: Vec<String> = [
        test(
            "pp",
            span(specs().map(|spec| spec.n_prompt).filter(|n| *n > 0)),
        ),
        test(
            "tg",
            span(specs().map(|spec| spec.n_gen).filter(|n| *n > 0)),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let tests = match tests.is_empty() {
        true => String::new(),
        false => format!(" {}.", tests.join(", ")),
    };
    let readings: Vec<&QualityReading> = found
        .iter()
        .flatten()
        .filter_map(|test| reading(test))
        .collect();
    let quality = readings
        .iter()
        .map(|reading| reading.n_scored)
        .max()
        .map_or_else(String::new, |scored| {
            format!(
                " Perplexity of {} tokens of text: lower is better.",
                grouped(scored)
            )
        });
    format!("{} {}{tests}{quality}", models(sources), samples(sources))
}
