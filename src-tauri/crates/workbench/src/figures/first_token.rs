//! The `first_token` figure from results.

use jiff::tz::TimeZone;
use twospeed_chart::{FirstToken, Name, Part, Request, Wait};
use twospeed_engine::protocol::{LoadReading, PageCache, Reading, ServedReading};
use twospeed_history::Test;
use twospeed_measure::{Kind, stats};

use super::users::measured_of;
use super::words::{distinct, footer, grouped, models, samples, subject};
use super::{Source, names, span};

/// The figure.
pub(super) fn first_token(sources: &[Source<'_>], zone: &TimeZone) -> FirstToken {
    let prompts = || {
        sources
            .iter()
            .map(|source| source.first().record.spec.n_prompt)
    };
    let names = names(sources, zone, |source| {
        let prompt = source.first().record.spec.n_prompt;
        (distinct(prompts()).len() > 1).then(|| format!("prompt {}", grouped(prompt)))
    });
    let changed = distinct(
        sources
            .iter()
            .flat_map(|source| &source.tests)
            .filter_map(|test| match test.record.kind {
                Kind::PrefixCache { changed } => Some(changed),
                _ => None,
            }),
    );
    let changed = match span(changed.into_iter()) {
        Some(n) => format!(" Of the changed prompt the last {n} are others."),
        None => String::new(),
    };
    FirstToken {
        subject: match sources {
            [one] => format!("{} {}", one.name(), one.quantization()),
            _ => subject(sources),
        },
        subtitle: format!(
            "{} A prompt of {} tokens.{changed} {}",
            models(sources),
            span(prompts()).unwrap_or_else(|| "no".to_owned()),
            samples(sources)
        ),
        waits: sources
            .iter()
            .zip(names)
            .flat_map(|(source, name)| waits(source, &name))
            .collect(),
        footer: footer(sources, None, zone),
    }
}

/// The source of each row: those that load first, as the figure has them.
pub(super) fn row_sources(sources: &[Source<'_>]) -> Vec<usize> {
    let requests = |source: &Source<'_>| waits(source, &Name::default());
    let rows = |loads: bool| {
        sources.iter().enumerate().flat_map(move |(index, source)| {
            let of = requests(source).into_iter();
            of.filter(move |wait| wait.request.loads() == loads)
                .map(move |_| index)
        })
    };
    rows(true).chain(rows(false)).collect()
}

/// The waits of a source: cold before warm, then new, repeated, changed.
fn waits(source: &Source<'_>, name: &Name) -> Vec<Wait> {
    let mut waits: Vec<Wait> = source
        .tests
        .iter()
        .flat_map(|test| match test.record.kind {
            Kind::FirstToken { page_cache } => {
                let request = match page_cache {
                    PageCache::Drop => Request::Cold,
                    PageCache::Warm => Request::Warm,
                    PageCache::AsIs => Request::AsItWas,
                };
                wait(test, name, request, 0).into_iter().collect::<Vec<_>>()
            }
            Kind::PrefixCache { .. } => [Request::New, Request::Repeated, Request::ChangedTail]
                .into_iter()
                .enumerate()
                .filter_map(|(index, request)| wait(test, name, request, index))
                .collect(),
            _ => Vec::new(),
        })
        .collect();
    waits.sort_by_key(|wait| wait.request);
    waits
}

/// One request of one repetition.
struct Served<'a> {
    load: Option<&'a LoadReading>,
    request: &'a ServedReading,
}

fn served(test: &Test, index: usize) -> Vec<Served<'_>> {
    test.samples
        .iter()
        .filter_map(|record| match &record.sample.reading {
            Some(Reading::Served { load, requests }) => Some(Served {
                load: load.as_ref(),
                request: requests.get(index)?,
            }),
            _ => None,
        })
        .collect()
}

/// A wait with the means of its parts; `None` where no repetition has this request.
fn wait(test: &Test, name: &Name, request: Request, index: usize) -> Option<Wait> {
    let all = served(test, index);
    let ms = |ns: u64| ns as f64 / 1e6;
    let total = |one: &Served<'_>| {
        let loading = one.load.map_or(0, |load| load.load_ns + load.context_ns);
        ms(loading + one.request.ttft_ns)
    };
    let mean = |part: fn(&Served<'_>) -> Option<u64>| {
        let values: Option<Vec<f64>> = all.iter().map(|one| part(one).map(ms)).collect();
        Some(stats::spread(&values?)?.mean)
    };
    let parts = [
        (Part::Load, mean(|one| Some(one.load?.load_ns))),
        (Part::Context, mean(|one| Some(one.load?.context_ns))),
        (Part::Tokenize, mean(|one| Some(one.request.tokenize_ns))),
        (Part::Prefill, mean(|one| Some(one.request.prefill_ns))),
        (
            Part::FirstSample,
            mean(|one| Some(one.request.first_sample_ns)),
        ),
        (Part::FirstDecode, mean(|one| one.request.first_decode_ns)),
    ];
    let first = all.first()?.request;
    Some(Wait {
        name: name.clone(),
        request,
        total_ms: measured_of(all.iter().map(total).collect()),
        parts: parts
            .into_iter()
            .filter_map(|(part, mean)| Some((part, mean?)))
            .collect(),
        prompt_tokens: u64::from(first.n_prompt),
        // The fewest: what was reused each time.
        reused_tokens: u64::from(all.iter().map(|one| one.request.n_reused).min()?),
    })
}
