//! Which tests make up a line or a row of a figure.

use twospeed_engine::protocol::Reading;
use twospeed_history::{Test, WholeRun};
use twospeed_measure::Kind;
use twospeed_measure::plan::Order;

use super::source::{Source, alike, is_done};
use crate::speeds::bars;

/// A figure that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FigureKind {
    /// Both speeds of each result.
    Speeds,
    /// Both speeds at growing depth.
    Context,
    /// Users at once.
    Users,
    /// Parts of the wait for the first token.
    FirstToken,
    /// Both speeds of each quantization, and its quality.
    Quantization,
    /// Both speeds over time.
    Sustained,
}

impl FigureKind {
    /// Every figure, in the order in which faces offer them.
    pub const ALL: [Self; 6] = [
        Self::Speeds,
        Self::Context,
        Self::Users,
        Self::FirstToken,
        Self::Quantization,
        Self::Sustained,
    ];

    /// Keys of the [kinds](Kind::key) of tests that it is made of.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Speeds | Self::Context | Self::Sustained => &["speed"],
            Self::Users => &["users"],
            Self::FirstToken => &["first_token", "prefix_cache"],
            Self::Quantization => &["speed", "quality"],
        }
    }

    /// What is missing where there is nothing to draw, and how to measure it.
    pub fn nothing(self) -> String {
        let (what, flags) = match self {
            Self::Speeds => ("no measured prefill or decode", ""),
            Self::Context => (
                "no model measured at two depths or more",
                " --context-curve",
            ),
            Self::Users => ("no measurement of users at once", " --users 1,2,4"),
            Self::FirstToken => (
                "no measured wait for a first token",
                " --ttft --prefix-cache",
            ),
            Self::Quantization => (
                "no model measured in two quantizations or more",
                " -m OTHER.gguf, and what it costs: the same with --quality",
            ),
            Self::Sustained => ("no measurement over time", " --sustained 10m"),
        };
        format!("There is {what} to draw. Measure first: twospeed bench -m MODEL.gguf{flags}")
    }
}

/// The results of a figure in these runs, in its order: models by size, then files by size, then
/// as they were run. A test that failed or cannot be right is none.
pub fn series(kind: FigureKind, runs: &[WholeRun]) -> Vec<Source<'_>> {
    let mut found = match kind {
        FigureKind::Speeds => return bars(runs).iter().map(|bar| bar.source()).collect(),
        FigureKind::Quantization => return quantizations(runs),
        FigureKind::Context => context(runs),
        FigureKind::Users => grouped(runs, is_users, |a, b| {
            a.record.spec == b.record.spec && same_sharing(&a.record.kind, &b.record.kind)
        }),
        FigureKind::FirstToken => grouped(runs, is_wait, |a, b| {
            a.record.spec.n_prompt == b.record.spec.n_prompt
        }),
        FigureKind::Sustained => {
            let lasting: Vec<&WholeRun> = runs.iter().filter(|run| is_sustained(run)).collect();
            grouped_in(lasting.into_iter(), is_speed, |a, b| {
                a.record.spec.n_depth == b.record.spec.n_depth
            })
        }
    };
    in_order(&mut found);
    found
}

fn in_order(sources: &mut [Source<'_>]) {
    sources.sort_by_cached_key(|source| {
        let model = source.model();
        let began = source.run.run.started_at;
        (model.parameters, source.name(), model.file_bytes, began)
    });
}

fn is_speed(test: &Test) -> bool {
    let spec = test.record.spec;
    test.record.kind.is_speed() && (spec.n_prompt == 0 || spec.n_gen == 0) && test.speed().is_some()
}

fn is_users(test: &Test) -> bool {
    let has_reading = |test: &Test| {
        let mut readings = test.samples.iter().map(|record| &record.sample.reading);
        readings.any(|reading| matches!(reading, Some(Reading::Users(_))))
    };
    matches!(test.record.kind, Kind::Users { .. }) && has_reading(test)
}

fn is_wait(test: &Test) -> bool {
    matches!(
        test.record.kind,
        Kind::FirstToken { .. } | Kind::PrefixCache { .. }
    ) && !test.samples.is_empty()
}

/// Whether users share prompt and cache alike; how many there are is what a line goes along.
fn same_sharing(one: &Kind, other: &Kind) -> bool {
    let sharing = |kind: &Kind| match kind {
        Kind::Users {
            split_kv,
            shared_prompt,
            ..
        } => Some((*split_kv, *shared_prompt)),
        _ => None,
    };
    sharing(one) == sharing(other)
}

/// Whether two tests would stand at the same place of a line.
fn same_place(one: &Test, other: &Test) -> bool {
    one.record.kind == other.record.kind && one.record.spec == other.record.spec
}

/// Whether its tests were made in turn until a time was up.
pub fn is_sustained(run: &WholeRun) -> bool {
    match &run.plan {
        Some(plan) => matches!(plan.order, Order::Sustained { .. }),
        // Of an imported run the plan is not known, its preset is.
        None => run.run.preset == "sustained",
    }
}

fn grouped<'a>(
    runs: &'a [WholeRun],
    belongs: fn(&Test) -> bool,
    together: fn(&Test, &Test) -> bool,
) -> Vec<Source<'a>> {
    grouped_in(runs.iter(), belongs, together)
}

/// Tests of a run that were made alike and stand `together`; one whose place is taken begins
/// another line.
fn grouped_in<'a>(
    runs: impl Iterator<Item = &'a WholeRun>,
    belongs: fn(&Test) -> bool,
    together: fn(&Test, &Test) -> bool,
) -> Vec<Source<'a>> {
    let mut sources: Vec<Source<'a>> = Vec::new();
    for run in runs {
        let first = sources.len();
        let tests = run
            .tests
            .iter()
            .filter(|test| is_done(test) && belongs(test));
        for test in tests {
            let fits = |source: &Source<'_>| {
                let other = source.first();
                alike(other, test)
                    && together(other, test)
                    && !source.tests.iter().any(|other| same_place(other, test))
            };
            match sources[first..].iter().position(fits) {
                Some(index) => sources[first + index].tests.push(test),
                None => sources.push(Source {
                    run,
                    tests: vec![test],
                }),
            }
        }
    }
    sources
}

/// Steps of one size each: prompts that one micro-batch holds, and answers, at an empty cache.
pub(super) fn steps_alike(runs: &[WholeRun]) -> Vec<Source<'_>> {
    let is_step = |test: &Test| {
        let (spec, settings) = (test.record.spec, &test.record.settings);
        let together = settings.n_ubatch.min(settings.n_batch);
        is_speed(test) && spec.n_depth == 0 && spec.n_prompt <= together
    };
    let mut found = grouped(runs, is_step, |_, _| true);
    in_order(&mut found);
    found
}

/// Tests at several depths; prompts of other lengths, and answers of others, are other lines.
fn context(runs: &[WholeRun]) -> Vec<Source<'_>> {
    let mut sources: Vec<Source<'_>> = Vec::new();
    for run in runs {
        let first = sources.len();
        let tests = run
            .tests
            .iter()
            .filter(|test| is_done(test) && is_speed(test));
        for test in tests {
            let spec = test.record.spec;
            let fits = |source: &Source<'_>| {
                alike(source.first(), test)
                    && source.tests.iter().all(|other| {
                        let of = other.record.spec;
                        let other_phase = (of.n_prompt > 0) != (spec.n_prompt > 0);
                        let same_test = of.n_prompt == spec.n_prompt && of.n_gen == spec.n_gen;
                        other_phase || same_test && of.n_depth != spec.n_depth
                    })
            };
            match sources[first..].iter().position(fits) {
                Some(index) => sources[first + index].tests.push(test),
                None => sources.push(Source {
                    run,
                    tests: vec![test],
                }),
            }
        }
    }
    sources.retain(|source| {
        let depths = |is_prefill: bool| {
            let of = source.tests.iter().map(|test| test.record.spec);
            of.filter(|spec| (spec.n_prompt > 0) == is_prefill).count()
        };
        depths(true) > 1 || depths(false) > 1
    });
    sources
}

/// Both speeds of each file at an empty cache, with the newest finding about its quality, where
/// the model has another quantization or a quality; a quality alone too.
fn quantizations(runs: &[WholeRun]) -> Vec<Source<'_>> {
    let quality = |fingerprint: &str| newest_quality(runs, fingerprint);
    let mut sources: Vec<Source<'_>> = bars(runs)
        .iter()
        .filter(|bar| bar.depth == 0)
        .map(|bar| bar.source())
        .collect();
    for run in runs {
        for test in run
            .tests
            .iter()
            .filter(|test| is_done(test) && is_quality(test))
        {
            let fingerprint = &test.record.model.fingerprint;
            if !sources
                .iter()
                .any(|source| source.model().fingerprint == *fingerprint)
            {
                sources.push(Source {
                    run,
                    tests: quality(fingerprint).into_iter().collect(),
                });
            }
        }
    }
    let names: Vec<(String, String)> = sources
        .iter()
        .map(|source| (source.name(), source.model().fingerprint.clone()))
        .collect();
    sources.retain(|source| {
        let name = source.name();
        let of = &source.model().fingerprint;
        names
            .iter()
            .any(|(other, file)| *other == name && file != of)
            || quality(of).is_some()
    });
    in_order(&mut sources);
    sources
}

/// The newest test of how well a file predicts a text; one against a base model goes before one
/// without.
pub fn newest_quality<'a>(runs: &'a [WholeRun], fingerprint: &str) -> Option<&'a Test> {
    runs.iter()
        .flat_map(|run| &run.tests)
        .filter(|test| {
            is_done(test) && is_quality(test) && test.record.model.fingerprint == fingerprint
        })
        .max_by_key(|test| {
            let has_base = matches!(&test.record.kind, Kind::Quality { base: Some(_), .. });
            (has_base, test.record.started_at)
        })
}

fn is_quality(test: &Test) -> bool {
    let mut readings = test.samples.iter().map(|record| &record.sample.reading);
    readings.any(|reading| matches!(reading, Some(Reading::Quality(_))))
}
