//! What explains a result: statements with their numbers, chosen from what is there.

use twospeed_chart::{Measured, clearly};

use super::compare::{Ceiling, Entry};
use crate::compare::Statement;
use crate::measure::PhaseName;

/// Statements beside a figure.
const MOST: usize = 3;
/// An everyday request: a long prompt and a short answer.
const PROMPT: u32 = 2000;
const ANSWER: u32 = 200;

/// The three statements that say most of the focused result, in the order they are read.
///
/// First how its two speeds stand to each other, then what decode reached of what the machine
/// allows, then the result beside its nearest, or else what its speeds mean for a request. What
/// cannot be said makes room for: the time of a token, a request, that the ceiling is unknown.
pub(super) fn statements(entries: &[Entry<'_>], focus: usize) -> Vec<Statement> {
    let Some(entry) = entries.get(focus) else {
        return Vec::new();
    };
    let share = ceiling_share(entry);
    let against = against(entries, focus);
    let first = [
        ratio(entry),
        share.clone(),
        against.clone().or_else(|| request(entry)),
        token_time(entry),
        against.and_then(|_| request(entry)),
        (share.is_none() && entry.decode.is_some()).then_some(Statement::NoCeiling),
    ];
    first.into_iter().flatten().take(MOST).collect()
}

fn mean(measured: Option<&Measured>) -> Option<f64> {
    let mean = measured?.mean;
    (mean.is_finite() && mean > 0.0).then_some(mean)
}

fn ratio(entry: &Entry<'_>) -> Option<Statement> {
    let (prefill, decode) = (mean(entry.prefill.as_ref())?, mean(entry.decode.as_ref())?);
    Some(Statement::Ratio {
        prefill,
        decode,
        ratio: prefill / decode,
    })
}

fn ceiling_share(entry: &Entry<'_>) -> Option<Statement> {
    let decode = mean(entry.decode.as_ref())?;
    let Ceiling {
        speed,
        weight_bytes,
        read_bytes_s,
    } = entry.ceiling?;
    Some(Statement::CeilingShare {
        decode,
        ceiling: speed,
        share: decode / speed,
        weight_bytes,
        read_bytes_s,
    })
}

/// Not where decode is faster than the ceiling: then the ceiling is wrong, and the share says so.
fn token_time(entry: &Entry<'_>) -> Option<Statement> {
    let decode = mean(entry.decode.as_ref())?;
    let (token_ms, weights_ms) = (1e3 / decode, 1e3 / entry.ceiling?.speed);
    (weights_ms <= token_ms).then_some(Statement::TokenTime {
        token_ms,
        weights_ms,
    })
}

fn request(entry: &Entry<'_>) -> Option<Statement> {
    let (prefill, decode) = (mean(entry.prefill.as_ref())?, mean(entry.decode.as_ref())?);
    Some(Statement::Request {
        prompt: PROMPT,
        answer: ANSWER,
        prefill_s: f64::from(PROMPT) / prefill,
        decode_s: f64::from(ANSWER) / decode,
    })
}

/// A phase of two results that was measured alike.
struct Pair<'a> {
    phase: PhaseName,
    this: &'a Measured,
    other: &'a Measured,
}

impl Pair<'_> {
    fn within_noise(&self) -> bool {
        clearly(self.this, self.other).is_none()
    }

    fn distance(&self) -> f64 {
        (self.this.mean / self.other.mean).ln().abs()
    }
}

fn against(entries: &[Entry<'_>], focus: usize) -> Option<Statement> {
    let this = &entries[focus];
    let (_, other, pair) = entries
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != focus)
        .filter_map(|(_, other)| Some((farness(this, other), other, pair(this, other)?)))
        .min_by(|(a, ..), (b, ..)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    Some(Statement::Against {
        phase: pair.phase,
        this: this.name.clone(),
        other: other.name.clone(),
        ratio: pair.this.mean / pair.other.mean,
        size_ratio: this.bar.model.file_bytes as f64 / other.bar.model.file_bytes.max(1) as f64,
        within_noise: pair.within_noise(),
    })
}

/// How far from comparable two results are: first in kind, then in size.
fn farness(this: &Entry<'_>, other: &Entry<'_>) -> (u32, f64) {
    let (a, b) = (&this.bar, &other.bar);
    let here = a.run.run.machine.id == b.run.run.machine.id;
    let same_settings = a.settings == b.settings && a.variant == b.variant;
    let kind = match (
        a.model.fingerprint == b.model.fingerprint,
        a.name() == b.name(),
    ) {
        // Another quantization of the same model.
        (false, true) => 0,
        (false, false) => 1,
        (true, _) => 2,
    };
    let kind = kind + if same_settings { 0 } else { 3 } + if here { 0 } else { 6 };
    let size = |bytes: u64| bytes.max(1) as f64;
    let sizes = (size(a.model.file_bytes) / size(b.model.file_bytes))
        .ln()
        .abs();
    (kind, sizes)
}

/// The phase in which two results differ most, where a clear difference goes before one within
/// noise; `None` where no phase was measured alike.
fn pair<'a>(this: &'a Entry<'_>, other: &'a Entry<'_>) -> Option<Pair<'a>> {
    let spec = |test: Option<&twospeed_history::Test>| test.map(|test| test.record.spec);
    let of = |phase, this: Option<&'a Measured>, other: Option<&'a Measured>, alike: bool| {
        let (this, other) = (this?, other?);
        let sound = mean(Some(this)).is_some() && mean(Some(other)).is_some();
        (alike && sound).then_some(Pair { phase, this, other })
    };
    let decode = of(
        PhaseName::Decode,
        this.decode.as_ref(),
        other.decode.as_ref(),
        spec(this.bar.decode) == spec(other.bar.decode),
    );
    let prefill = of(
        PhaseName::Prefill,
        this.prefill.as_ref(),
        other.prefill.as_ref(),
        spec(this.bar.prefill) == spec(other.bar.prefill),
    );
    let (decode, prefill) = match (decode, prefill) {
        (Some(decode), Some(prefill)) => (decode, prefill),
        (one, other) => return one.or(other),
    };
    Some(match (decode.within_noise(), prefill.within_noise()) {
        (true, false) => prefill,
        (false, false) if prefill.distance() > decode.distance() => prefill,
        _ => decode,
    })
}
