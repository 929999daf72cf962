//! The `context` figure from results.

use jiff::tz::TimeZone;
use twospeed_chart::{At, Context, ContextSeries};
use twospeed_engine::TestSpec;

use super::words::{footer, models, samples, subject};
use super::{Source, names, span};
use crate::speeds::measured;

/// The figure.
pub(super) fn context(sources: &[Source<'_>], zone: &TimeZone) -> Context {
    let specs = || {
        sources
            .iter()
            .flat_map(|source| source.tests.iter().map(|test| test.record.spec))
    };
    let prompts = span(specs().map(|spec| spec.n_prompt).filter(|n| *n > 0));
    let answers = span(specs().map(|spec| spec.n_gen).filter(|n| *n > 0));
    let names = names(sources, zone, |source| lengths(source, sources));
    Context {
        subject: match sources {
            [one] => format!("{} {}", one.name(), one.quantization()),
            _ => subject(sources),
        },
        subtitle: format!(
            "{} The cache is filled to each depth first, untimed; depth on a logarithmic axis. {}",
            models(sources),
            samples(sources)
        ),
        prefill_test: prompts.map(|n| format!("reading {n} tokens")),
        decode_test: answers.map(|n| format!("writing {n} tokens")),
        series: sources
            .iter()
            .zip(names)
            .map(|(source, name)| ContextSeries {
                name,
                prefill: points(source, |spec| spec.n_prompt > 0),
                decode: points(source, |spec| spec.n_prompt == 0),
            })
            .collect(),
        footer: footer(sources, None, zone),
    }
}

fn points(source: &Source<'_>, of: fn(TestSpec) -> bool) -> Vec<At> {
    source
        .tests
        .iter()
        .filter(|test| of(test.record.spec))
        .map(|test| At {
            place: f64::from(test.record.spec.n_depth),
            value: measured(test),
        })
        .collect()
}

/// Prompt and answer of a line, where they are not those of all.
fn lengths(source: &Source<'_>, all: &[Source<'_>]) -> Option<String> {
    let of = |source: &Source<'_>| {
        let most =
            |n: fn(TestSpec) -> u32| source.tests.iter().map(|test| n(test.record.spec)).max();
        (most(|spec| spec.n_prompt), most(|spec| spec.n_gen))
    };
    let own = of(source);
    all.iter().any(|other| of(other) != own).then(|| {
        let (prompt, answer) = own;
        let part = |name: &str, n: Option<u32>| n.filter(|n| *n > 0).map(|n| format!("{name}{n}"));
        let parts: Vec<String> = [part("pp", prompt), part("tg", answer)]
            .into_iter()
            .flatten()
            .collect();
        parts.join(", ")
    })
}
