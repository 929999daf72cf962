//! A plan made of what the person asked for.

mod choice;
mod sweep;
pub(super) mod tuning;

use std::collections::BTreeSet;

use twospeed_engine::protocol::{Ability, PageCache};
use twospeed_engine::{Settings, TestSpec};
use twospeed_history::Test;
use twospeed_library::display::shown;
use twospeed_library::names::without_quantization;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::{MAX_THREADS, Order, Plan, presets};
use twospeed_measure::{Kind, PlannedTest, RunRecord};
use twospeed_workbench::{Subject, grouped, needs};

pub(super) use self::choice::Choice;
use self::choice::Limits;
use super::eta::Forecast;
use super::found;
use super::run_log::STILL;
use crate::Problem;
use crate::measure::*;

/// More tests than anyone waits for: a typed list that got out of hand.
const MOST_TESTS: usize = 500;
/// Context of a model that does not say for how much it was made, tokens.
const SOME_CONTEXT: u32 = 4096;

/// Threads that the engine can run.
pub(super) fn check_threads(threads: u32) -> Result<u32, Problem> {
    match threads {
        0 => Err(Problem::new(
            "threads_too_few",
            "Threads must be at least 1.",
        )),
        1..=MAX_THREADS => Ok(threads),
        _ => Err(Problem::new(
            "threads_too_many",
            format!("{threads} threads are more than the engine runs: take at most {MAX_THREADS}."),
        )),
    }
}

/// A row of Models that is to be measured, as far as it could be read.
#[derive(Clone)]
pub(super) struct Candidate {
    /// Row of Models.
    pub(super) row: String,
    /// Name of the base model and quantization, as Models shows them; `None` where the row is not
    /// listed.
    pub(super) name: Option<(String, String)>,
    /// Its header.
    pub(super) read: Result<Subject, Problem>,
}

/// A plan that can be run, and how the page sees it.
pub(super) struct Prepared {
    pub(super) how: How,
    pub(super) plan: Plan,
    pub(super) subjects: Vec<Subject>,
    pub(super) view: PlanView,
    pub(super) forecast: Forecast,
}

/// How a plan is run.
pub(super) enum How {
    /// From its beginning.
    Whole,
    /// Each model's settings are raced for this.
    Tune(TuneFor),
    /// Where a run was stopped or cut off.
    Resume(Box<Resumed>),
}

/// A run that goes on.
pub(super) struct Resumed {
    /// The run as it is stored.
    pub(super) run: RunRecord,
    /// Positions of its plan that are missing.
    pub(super) missing: BTreeSet<u32>,
    /// Its tests that are not.
    pub(super) kept: Vec<Test>,
}

/// What a plan is made with beside what was asked for.
pub(super) struct Around<'a> {
    /// What was asked for.
    pub(super) asked: Option<&'a PlanRequest>,
    /// Threads of the engine.
    pub(super) threads: u32,
    /// Bytes of memory that are free.
    pub(super) available: Option<u64>,
    /// Finished tests on this machine, newest first, those of these models before others.
    pub(super) earlier: &'a [Test],
    /// What decode of a model cannot exceed here.
    pub(super) ceiling: &'a dyn Fn(&MeasuredModel) -> Option<f64>,
    /// CPU variants that the engine has here, as far as is known.
    pub(super) variants: usize,
    /// The model whose predictions are taken for right, for each of these.
    pub(super) base: &'a dyn Fn(&MeasuredModel) -> Option<MeasuredModel>,
}

/// Makes a plan: every test that can be measured, and why the others cannot.
///
/// Errors: `too_many_tests`, `plan_impossible`. A plan without any test is no error here: its
/// hindrances say why.
pub(super) fn prepare(
    candidates: Vec<Candidate>,
    choice: &Choice,
    around: &Around<'_>,
) -> Result<Prepared, Problem> {
    let usual = Settings {
        n_threads: around.threads,
        ..Settings::default()
    };
    let mut plan = Plan {
        repetitions: choice.repetitions,
        until: choice.until,
        order: choice.order,
        ..Plan::new(&choice.preset, Vec::new())
    };
    let (mut subjects, mut names, mut hindrances) = (Vec::new(), Vec::new(), Vec::new());
    let mut count = 0;
    for candidate in candidates {
        let subject = match candidate.read {
            Ok(subject) => subject,
            Err(problem) => {
                hindrances.push(unread(candidate.row, candidate.name, problem));
                continue;
            }
        };
        let model = &subject.measured;
        let limits = limits(&subject, &usual, around.available);
        let base = (around.base)(model);
        let kinds = choice.kinds(&limits, base.as_ref());
        let settings = choice.settings(&usual, subject.header.layers);
        count += kinds.len() * settings.len();
        if count > MOST_TESTS {
            return Err(Problem::new(
                "too_many_tests",
                format!(
                    "These are {count} tests and more: take fewer models, lengths or settings, at most {MOST_TESTS} tests in all."
                ),
            ));
        }
        let tests = choice.tests_of(model, &kinds, &settings);
        let (possible, refused) = possible(&subject, tests, around.available);
        if let Some(sentence) = sentence(&refused, possible.len()) {
            let mut rows: Vec<RowKind> = Vec::new();
            for (test, said) in &refused {
                let row = row_kind(test);
                if !said.is_empty() && !rows.contains(&row) {
                    rows.push(row);
                }
            }
            hindrances.push(Hindrance {
                model: candidate.row.clone(),
                name: full_name(model),
                sentence,
                rows,
            });
        }
        let (name, quantization) = candidate
            .name
            .unwrap_or_else(|| (base_name(model), quantization(model)));
        for test in possible {
            names.push((candidate.row.clone(), name.clone(), quantization.clone()));
            plan.tests.push(test);
        }
        subjects.push(subject);
    }
    if !plan.tests.is_empty() {
        plan.check()
            .map_err(|error| Problem::new("plan_impossible", shown(&error.to_string())))?;
    }
    let mut prepared = prepared(plan, subjects, names, hindrances, around);
    if let Some(target) = choice.tunes() {
        let rows = std::mem::take(&mut prepared.view.rows);
        let rows = tuning::raced(rows, target, &prepared.forecast, around.variants);
        prepared.view.seconds = sum(&rows);
        prepared.view.rows = rows;
        prepared.how = How::Tune(target);
    }
    Ok(prepared)
}

/// Seconds of all rows; `None` where one is not known, or there is none.
fn sum(rows: &[PlannedRow]) -> Option<f64> {
    let seconds = rows.iter().map(|row| row.seconds).sum::<Option<f64>>();
    seconds.filter(|_| !rows.is_empty())
}

/// A plan with how the page sees it; each test has the row, name and quantization of its model.
pub(super) fn prepared(
    plan: Plan,
    subjects: Vec<Subject>,
    names: Vec<(String, String, String)>,
    hindrances: Vec<Hindrance>,
    around: &Around<'_>,
) -> Prepared {
    let header = |model: &MeasuredModel| {
        let of = |subject: &&Subject| subject.measured.fingerprint == model.fingerprint;
        subjects.iter().find(of).map(|subject| &subject.header)
    };
    let forecast = Forecast::new(&plan, &header, around.earlier, STILL.as_secs_f64());
    let settings = sweep::differing(&plan.tests);
    let mut rows = Vec::with_capacity(plan.tests.len());
    for (position, ((test, names), settings)) in
        plan.tests.iter().zip(names).zip(settings).enumerate()
    {
        let (model, name, quantization) = names;
        rows.push(PlannedRow {
            position: u32::try_from(position).unwrap_or(u32::MAX),
            model,
            name,
            quantization,
            what: row_kind(test),
            unit: found::unit(&test.kind),
            settings,
            seconds: forecast.whole(position),
            ceiling: match is_decode(test) {
                true => (around.ceiling)(&test.model),
                false => None,
            },
        });
    }
    let view = PlanView {
        asked: around.asked.cloned(),
        seconds: match plan.order {
            _ if rows.is_empty() => None,
            Order::Sustained { seconds } => Some(f64::from(seconds)),
            Order::OneByOne | Order::Interleaved => sum(&rows),
        },
        rows,
        repetitions: plan.fewest(),
        until: plan.until.map(|until| UntilView {
            relative: until.relative,
            at_most: until.at_most,
        }),
        order: match plan.order {
            Order::OneByOne => RowOrder::OneByOne,
            Order::Interleaved => RowOrder::Interleaved,
            Order::Sustained { seconds } => RowOrder::Sustained { seconds },
        },
        threads: around.threads,
        hindrances,
    };
    Prepared {
        how: How::Whole,
        plan,
        subjects,
        view,
        forecast,
    }
}

fn unread(row: String, name: Option<(String, String)>, problem: Problem) -> Hindrance {
    let name = name.map_or_else(
        || "A model that is not listed".to_owned(),
        |(name, quantization)| format!("{name} {quantization}"),
    );
    Hindrance {
        model: row,
        name,
        sentence: problem.message,
        rows: Vec::new(),
    }
}

/// How much context a model can hold with these settings.
fn limits(subject: &Subject, settings: &Settings, available: Option<u64>) -> Limits {
    let needs_of = |tokens: u32| {
        let test = PlannedTest {
            model: subject.measured.clone(),
            settings: settings.clone(),
            spec: TestSpec {
                n_prompt: tokens,
                n_gen: 0,
                n_depth: 0,
            },
            kind: Kind::Speed,
            variant: None,
        };
        needs(&subject.header, &test).map(|need| need.bytes)
    };
    let trained = subject.header.context_length;
    let trained = trained.map_or(SOME_CONTEXT, |tokens| {
        u32::try_from(tokens).unwrap_or(u32::MAX)
    });
    Limits {
        context: presets::context_limit(trained, needs_of, available),
    }
}

/// The tests of a model that can be measured, and the others with why.
fn possible(
    subject: &Subject,
    tests: Vec<PlannedTest>,
    available: Option<u64>,
) -> (Vec<PlannedTest>, Vec<(PlannedTest, String)>) {
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for test in tests {
        match refusal(subject, &test, available) {
            None => possible.push(test),
            Some(sentence) => refused.push((test, sentence)),
        }
    }
    if possible.is_empty() && refused.iter().all(|(_, said)| said.is_empty()) {
        let name = full_name(&subject.measured);
        if let Some((_, said)) = refused.first_mut() {
            *said = format!(
                "{name} writes no text, so it has only a prefill speed: give a prompt length."
            );
        }
    }
    (possible, refused)
}

/// Why a test is left out; empty where that needs no word: a model that writes no text has no
/// decode.
fn refusal(subject: &Subject, test: &PlannedTest, available: Option<u64>) -> Option<String> {
    let model = &subject.measured;
    if test.kind.decodes(test.spec) && model.ability.is_some_and(|can| can != Ability::Generates) {
        return Some(String::new());
    }
    // Each user has a context of its own.
    let context = match test.kind {
        Kind::Users { .. } => test.spec.context(),
        _ => test.context(),
    };
    if let Some(most) = subject.header.context_length.filter(|most| context > *most) {
        return Some(format!(
            "{} was made for a context of {} tokens and {} needs {}: take shorter lengths or a lower depth.",
            full_name(model),
            grouped(most),
            test.kind.name(test.spec),
            grouped(context)
        ));
    }
    let refusal = test.refusal(needs(&subject.header, test), available)?;
    Some(shown(&refusal.to_string()))
}

/// One sentence for all tests of a model that are left out.
fn sentence(refused: &[(PlannedTest, String)], possible: usize) -> Option<String> {
    let said = || {
        refused
            .iter()
            .map(|(_, text)| text)
            .filter(|text| !text.is_empty())
    };
    let first = said().next()?;
    Some(match (said().count(), possible) {
        (_, 0) => first.clone(),
        (1, _) => format!("{first} Its other tests are measured."),
        (n, _) => format!("{first} {n} tests are left out; the others are measured."),
    })
}

/// What a test measures, for its row.
pub(super) fn row_kind(test: &PlannedTest) -> RowKind {
    let TestSpec {
        n_prompt,
        n_gen,
        n_depth,
    } = test.spec;
    match &test.kind {
        Kind::Speed if n_prompt > 0 && n_gen > 0 => RowKind::Both {
            prompt: n_prompt,
            generate: n_gen,
            depth: n_depth,
        },
        Kind::Speed => RowKind::Speed {
            phase: phase_of(test.spec),
            tokens: n_prompt.max(n_gen),
            depth: n_depth,
        },
        Kind::FirstToken { page_cache } => RowKind::FirstToken {
            prompt: n_prompt,
            cold: match page_cache {
                PageCache::Drop => Some(true),
                PageCache::Warm => Some(false),
                PageCache::AsIs => None,
            },
        },
        Kind::PrefixCache { changed } => RowKind::PrefixCache {
            prompt: n_prompt,
            changed: *changed,
        },
        Kind::Users {
            users,
            split_kv,
            shared_prompt,
        } => RowKind::Users {
            users: *users,
            prompt: n_prompt,
            generate: n_gen,
            split_kv: *split_kv,
            shared_prompt: *shared_prompt,
        },
        Kind::Quality { n_ctx, base, .. } => RowKind::Quality {
            tokens: (n_prompt > 0).then_some(n_prompt),
            chunk: *n_ctx,
            base: base.as_ref().map(|base| quantization(base)),
        },
    }
}

fn is_decode(test: &PlannedTest) -> bool {
    test.kind.is_speed() && test.spec.n_prompt == 0
}

/// Which speed a test of one phase measures.
pub(super) fn phase_of(spec: TestSpec) -> PhaseName {
    match spec.n_prompt {
        0 => PhaseName::Decode,
        _ => PhaseName::Prefill,
    }
}

/// Name of the base model, safe to show.
pub(super) fn base_name(model: &MeasuredModel) -> String {
    shown(&without_quantization(&model.name))
}

/// Quantization label, safe to show.
pub(super) fn quantization(model: &MeasuredModel) -> String {
    model
        .quantization
        .as_deref()
        .map_or_else(|| "unknown".to_owned(), shown)
}

/// `SmolLM2 135M Instruct Q4_1`.
pub(super) fn full_name(model: &MeasuredModel) -> String {
    let name = base_name(model);
    match &model.quantization {
        Some(quantization) => format!("{name} {}", shown(quantization)),
        None => name,
    }
}

#[cfg(test)]
mod tests;
