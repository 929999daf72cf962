//! Figures from results: which tests belong together, and what is said of them.

mod breakdown;
mod context;
mod estimate;
mod first_token;
pub(crate) mod predicted;
mod quantization;
mod roofline;
mod series;
mod source;
mod sustained;
mod users;
pub(crate) mod words;

use jiff::tz::TimeZone;
use twospeed_chart::{Error, Figure, Frame, Name};
use twospeed_history::WholeRun;

pub use predicted::{
    Predicted, PredictedKind, PredictedOptions, Predictor, expected_source, predicted,
    predicted_series,
};
pub use series::{FigureKind, is_sustained, newest_quality, series};
pub use source::{Source, alike, is_done, variant};
pub use words::grouped;
use words::{conditions, moment};

/// What a figure shows, before it is drawn for a place.
#[derive(Debug, Clone, PartialEq)]
pub enum FigureInput {
    /// Both speeds of each result.
    Speeds(twospeed_chart::Speeds),
    /// Both speeds at growing depth.
    Context(twospeed_chart::Context),
    /// Users at once.
    Users(twospeed_chart::Users),
    /// Parts of the wait for the first token.
    FirstToken(twospeed_chart::FirstToken),
    /// Both speeds of each quantization, and its quality.
    Quantization(twospeed_chart::Quantizations),
    /// Both speeds over time.
    Sustained(twospeed_chart::Sustained),
    /// Speed of arithmetic against work per byte.
    Roofline(twospeed_chart::Roofline),
    /// What is allowed, expected and measured.
    Estimate(twospeed_chart::Estimates),
    /// Where the time of a prompt and of a token goes.
    Breakdown(twospeed_chart::Breakdown),
}

impl FigureInput {
    /// Draws it. Errors: [`Error::Empty`] where nothing was measured.
    pub fn draw(&self, frame: &Frame) -> Result<Figure, Error> {
        match self {
            Self::Speeds(input) => twospeed_chart::speeds(input, frame),
            Self::Context(input) => twospeed_chart::context(input, frame),
            Self::Users(input) => twospeed_chart::users(input, frame),
            Self::FirstToken(input) => twospeed_chart::first_token(input, frame),
            Self::Quantization(input) => twospeed_chart::quantization(input, frame),
            Self::Sustained(input) => twospeed_chart::sustained(input, frame),
            Self::Roofline(input) => twospeed_chart::roofline(input, frame),
            Self::Estimate(input) => twospeed_chart::estimates(input, frame),
            Self::Breakdown(input) => twospeed_chart::breakdown(input, frame),
        }
    }

    /// What is compared, to name a file.
    pub fn subject(&self) -> &str {
        match self {
            Self::Speeds(input) => &input.subject,
            Self::Context(input) => &input.subject,
            Self::Users(input) => &input.subject,
            Self::FirstToken(input) => &input.subject,
            Self::Quantization(input) => &input.subject,
            Self::Sustained(input) => &input.subject,
            Self::Roofline(input) => &input.subject,
            Self::Estimate(input) => &input.subject,
            Self::Breakdown(input) => &input.subject,
        }
    }
}

/// A figure of these results, which [`series`] found for it, with the result of each of its rows;
/// `None` without any, and for [`FigureKind::Speeds`], which needs more
/// ([`speeds_of`](crate::speeds_of)).
///
/// `runs` are all that the figure may look at: a quality is that of the newest test there.
pub fn figure(
    kind: FigureKind,
    sources: &[Source<'_>],
    runs: &[WholeRun],
    zone: &TimeZone,
) -> Option<FigureInput> {
    if sources.is_empty() {
        return None;
    }
    match kind {
        FigureKind::Speeds => None,
        FigureKind::Context => Some(FigureInput::Context(context::context(sources, zone))),
        FigureKind::Users => Some(FigureInput::Users(users::users(sources, zone))),
        FigureKind::FirstToken => Some(FigureInput::FirstToken(first_token::first_token(
            sources, zone,
        ))),
        FigureKind::Quantization => Some(FigureInput::Quantization(quantization::quantizations(
            sources, runs, zone,
        ))),
        FigureKind::Sustained => Some(FigureInput::Sustained(sustained::sustained(sources, zone))),
    }
}

/// Which of the sources each row of a figure shows: those of most figures stand in their order,
/// those of waits begin with all that load a model.
pub fn row_sources(kind: FigureKind, sources: &[Source<'_>]) -> Vec<usize> {
    match kind {
        FigureKind::FirstToken => first_token::row_sources(sources),
        _ => (0..sources.len()).collect(),
    }
}

/// What a source is called beside the others: model and quantization as far as they differ, then
/// settings, then what `more` says of its test, then the time where nothing else tells it apart.
fn names(
    sources: &[Source<'_>],
    zone: &TimeZone,
    more: impl Fn(&Source<'_>) -> Option<String>,
) -> Vec<Name> {
    let several = sources
        .iter()
        .any(|source| source.name() != sources[0].name());
    let told = |source: &Source<'_>| {
        let mut parts: Vec<String> = more(source).into_iter().collect();
        parts.extend(conditions(source, sources));
        (source.model().fingerprint.clone(), parts)
    };
    sources
        .iter()
        .map(|source| {
            let own = told(source);
            let twin = moment(source, sources, zone, |other| told(other) == own);
            let mut parts = own.1;
            parts.extend(twin);
            Name {
                group: several.then(|| source.name()),
                label: source.quantization(),
                detail: (!parts.is_empty()).then(|| parts.join(", ")),
            }
        })
        .collect()
}

/// What tells a result of a figure from others of its model beside its quantization, for a list
/// that says the time anyway: what was measured, and what differs.
pub fn differs(kind: FigureKind, source: &Source<'_>, all: &[Source<'_>]) -> Vec<String> {
    let specs = || source.tests.iter().map(|test| test.record.spec);
    let mut parts: Vec<String> = Vec::new();
    match kind {
        FigureKind::Context => parts
            .extend(span(specs().map(|spec| spec.n_depth)).map(|depths| format!("depth {depths}"))),
        FigureKind::Users => {
            let users = source.tests.iter().map(|test| test.record.kind.sequences());
            parts.extend(span(users).map(|users| format!("{users} users")));
            parts.push(users::sharing(source));
        }
        FigureKind::FirstToken => {
            parts.extend(span(specs().map(|spec| spec.n_prompt)).map(|n| format!("prompt {n}")));
        }
        FigureKind::Speeds | FigureKind::Quantization | FigureKind::Sustained => {}
    }
    let group: Vec<Source<'_>> = all
        .iter()
        .filter(|other| other.name() == source.name())
        .cloned()
        .collect();
    parts.extend(conditions(source, &group));
    parts
}

/// `one`, or `one to another` of several numbers.
fn span(numbers: impl Iterator<Item = u32> + Clone) -> Option<String> {
    let (least, most) = (numbers.clone().min()?, numbers.max()?);
    Some(match least == most {
        true => grouped(least),
        false => format!("{} to {}", grouped(least), grouped(most)),
    })
}
