//! What the figure says in words: what sets rows apart, what was measured, where it comes from.

use jiff::tz::TimeZone;
use twospeed_history::Test;
use twospeed_measure::model::MeasuredModel;

use super::{Bar, SpeedsOptions, sources};
use crate::figures::Source;
use crate::figures::words::{self, conditions, grouped, models, moment, samples};

/// What sets a bar apart from the others, beyond model and quantization.
pub(super) fn detail(
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
    let (source, sources) = (bar.source(), sources(bars));
    parts.extend(conditions(&source, &sources));
    // Equal in all of that: only the time tells them apart.
    let twins: Vec<_> = bars
        .iter()
        .filter(|other| {
            other.model.fingerprint == bar.model.fingerprint
                && other.depth == bar.depth
                && other.variant == bar.variant
                && other.source().first().same_settings(source.first())
                && length(other.prefill) == length(bar.prefill)
                && length(other.decode) == length(bar.decode)
        })
        .map(Bar::source)
        .collect();
    parts.extend(moment(&source, &twins, zone, |_| true));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What tells a result from others of the same model beside its quantization, for a list that says
/// the time anyway: `d4096`, `4 threads`, ...
pub fn differs(bar: &Bar<'_>, bars: &[Bar<'_>]) -> Vec<String> {
    let usual = super::usual(bars);
    let spec = |test: Option<&Test>| test.map(|test| test.record.spec);
    let mut parts = Vec::new();
    if let Some(spec) = spec(bar.prefill).filter(|spec| Some(spec.n_prompt) != usual.0) {
        parts.push(format!("pp{}", spec.n_prompt));
    }
    if let Some(spec) = spec(bar.decode).filter(|spec| Some(spec.n_gen) != usual.1) {
        parts.push(format!("tg{}", spec.n_gen));
    }
    if bar.depth > 0 {
        parts.push(format!("d{}", bar.depth));
    }
    parts.extend(conditions(&bar.source(), &sources(bars)));
    parts
}

pub(super) fn subtitle(sources: &[Source<'_>], usual: (Option<u32>, Option<u32>)) -> String {
    let tests = match usual {
        (Some(p), Some(g)) => format!(" pp{p}, tg{g}."),
        (Some(p), None) => format!(" pp{p}."),
        (None, Some(g)) => format!(" tg{g}."),
        (None, None) => String::new(),
    };
    format!("{} {}{tests}", models(sources), samples(sources))
}

/// The models that have a ceiling.
fn with_ceiling<'a>(bars: &[Bar<'a>], options: &SpeedsOptions<'_>) -> Vec<&'a MeasuredModel> {
    bars.iter()
        .filter(|bar| (options.ceiling)(&bar.run.run.machine, bar.model).is_some())
        .map(|bar| bar.model)
        .collect()
}

pub(super) fn footer(bars: &[Bar<'_>], options: &SpeedsOptions<'_>) -> Vec<String> {
    let source = options
        .overlays
        .ceiling
        .then(|| (options.ceiling_source)(&with_ceiling(bars, options)))
        .flatten();
    let overlays = options.overlays;
    let expected = options.expected_source.clone();
    let expected = expected.filter(|_| overlays.expected || overlays.breakdown);
    let says: Vec<String> = source.into_iter().chain(expected).collect();
    let says = (!says.is_empty()).then(|| says.join(" "));
    words::footer(&sources(bars), says, &options.time_zone)
}
