//! A plan made of what the person asked for.

use twospeed_engine::protocol::Ability;
use twospeed_engine::{Settings, TestSpec};
use twospeed_history::Test;
use twospeed_library::display::shown;
use twospeed_library::names::without_quantization;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::PlannedTest;
use twospeed_measure::plan::presets::{article, quick};
use twospeed_measure::plan::{MAX_THREADS, Plan, Preset};
use twospeed_workbench::{Subject, grouped, needs};

use super::eta;
use crate::Problem;
use crate::measure::*;

/// More tests than anyone waits for: a typed list that got out of hand.
const MOST_TESTS: usize = 500;
/// More repetitions than anyone waits for.
const MOST_REPETITIONS: u32 = 1000;

/// What is measured of each model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    /// Name of the preset, as stored with the run.
    pub(super) preset: String,
    /// The tests in the order that reloads and refills least.
    pub(super) specs: Vec<TestSpec>,
    /// Timed repetitions.
    pub(super) repetitions: u32,
}

impl Choice {
    /// The tests that were asked for.
    ///
    /// Errors: one sentence for what can never be measured.
    pub(super) fn of(tests: &Tests) -> Result<Self, Problem> {
        let preset = |preset: Preset| Self {
            preset: preset.name.to_owned(),
            specs: preset.tests.iter().map(|(spec, _)| *spec).collect(),
            repetitions: preset.repetitions,
        };
        match tests {
            Tests::Quick => Ok(preset(quick())),
            Tests::Article => Ok(preset(article())),
            Tests::Own {
                prompt,
                generate,
                depth,
                repetitions,
            } => Self::own(prompt, generate, depth, *repetitions),
        }
    }

    /// Depths outermost, prompts before answers: llama-bench's order.
    fn own(
        prompt: &[u32],
        generate: &[u32],
        depth: &[u32],
        repetitions: u32,
    ) -> Result<Self, Problem> {
        if repetitions == 0 {
            return Err(Problem::new(
                "no_repetitions",
                "Repetitions must be at least 1.",
            ));
        }
        if repetitions > MOST_REPETITIONS {
            return Err(Problem::new(
                "too_many_repetitions",
                format!(
                    "{repetitions} repetitions are more than anyone waits for: take at most {MOST_REPETITIONS}."
                ),
            ));
        }
        let of = |n_prompt, n_gen| TestSpec {
            n_prompt,
            n_gen,
            n_depth: 0,
        };
        let timed: Vec<TestSpec> = prompt
            .iter()
            .map(|tokens| of(*tokens, 0))
            .chain(generate.iter().map(|tokens| of(0, *tokens)))
            .filter(|spec| spec.tokens() > 0)
            .collect();
        if timed.is_empty() {
            return Err(Problem::new(
                "no_tests",
                "There is nothing to measure: give at least one prompt length or answer length above 0.",
            ));
        }
        let depths = if depth.is_empty() { &[0] } else { depth };
        let mut specs = Vec::new();
        for n_depth in depths {
            for spec in &timed {
                let spec = TestSpec {
                    n_depth: *n_depth,
                    ..*spec
                };
                // What is written twice is measured once.
                if !specs.contains(&spec) {
                    specs.push(spec);
                }
            }
        }
        Ok(Self {
            preset: "own".to_owned(),
            specs,
            repetitions,
        })
    }
}

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
    pub(super) plan: Plan,
    pub(super) subjects: Vec<Subject>,
    pub(super) view: PlanView,
}

/// What a plan is made with beside what was asked for.
pub(super) struct Around<'a> {
    /// Threads of the engine.
    pub(super) threads: u32,
    /// Bytes of memory that are free.
    pub(super) available: Option<u64>,
    /// Finished tests of these models here, newest first.
    pub(super) earlier: &'a [Test],
    /// What decode of a model cannot exceed here.
    pub(super) ceiling: &'a dyn Fn(&MeasuredModel) -> Option<f64>,
}

/// Makes a plan: every test that can be measured, and why the others cannot.
///
/// Errors: `too_many_tests`. A plan without any test is no error here: its hindrances say why.
pub(super) fn prepare(
    candidates: Vec<Candidate>,
    choice: &Choice,
    around: &Around<'_>,
) -> Result<Prepared, Problem> {
    let count = candidates.len() * choice.specs.len();
    if count > MOST_TESTS {
        return Err(Problem::new(
            "too_many_tests",
            format!(
                "These are {count} tests: take fewer models or lengths, at most {MOST_TESTS} tests in all."
            ),
        ));
    }
    let settings = Settings {
        n_threads: around.threads,
        ..Settings::default()
    };
    let mut plan = Plan {
        repetitions: choice.repetitions,
        ..Plan::new(&choice.preset, Vec::new())
    };
    let (mut subjects, mut rows, mut hindrances) = (Vec::new(), Vec::new(), Vec::new());
    for candidate in candidates {
        let subject = match candidate.read {
            Ok(subject) => subject,
            Err(problem) => {
                let name = candidate.name.map_or_else(
                    || "A model that is not listed".to_owned(),
                    |(name, quantization)| format!("{name} {quantization}"),
                );
                hindrances.push(Hindrance {
                    model: candidate.row,
                    name,
                    sentence: problem.message,
                });
                continue;
            }
        };
        let (possible, refused) = possible(&subject, &settings, choice, around.available);
        if let Some(sentence) = sentence(&refused, possible.len()) {
            hindrances.push(Hindrance {
                model: candidate.row.clone(),
                name: full_name(&subject.measured),
                sentence,
            });
        }
        let (name, quantization) = candidate.name.unwrap_or_else(|| {
            let model = &subject.measured;
            (base_name(model), quantization(model))
        });
        for test in possible {
            rows.push(PlannedRow {
                position: u32::try_from(rows.len()).unwrap_or(u32::MAX),
                model: candidate.row.clone(),
                name: name.clone(),
                quantization: quantization.clone(),
                ..row(&test, choice, around)
            });
            plan.tests.push(test);
        }
        subjects.push(subject);
    }
    let view = PlanView {
        seconds: rows
            .iter()
            .map(|row: &PlannedRow| row.seconds)
            .sum::<Option<f64>>()
            .filter(|_| !rows.is_empty()),
        rows,
        repetitions: choice.repetitions,
        threads: around.threads,
        hindrances,
    };
    Ok(Prepared {
        plan,
        subjects,
        view,
    })
}

/// The tests of a model that can be measured, and why the others cannot.
fn possible(
    subject: &Subject,
    settings: &Settings,
    choice: &Choice,
    available: Option<u64>,
) -> (Vec<PlannedTest>, Vec<String>) {
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for spec in &choice.specs {
        let test = PlannedTest {
            model: subject.measured.clone(),
            settings: settings.clone(),
            spec: *spec,
            kind: twospeed_measure::Kind::Speed,
            variant: None,
        };
        match refusal(subject, &test, available) {
            None => possible.push(test),
            Some(sentence) => refused.push(sentence),
        }
    }
    if possible.is_empty() && refused.iter().all(String::is_empty) {
        let name = full_name(&subject.measured);
        refused = vec![format!(
            "{name} writes no text, so it has only a prefill speed: give a prompt length."
        )];
    }
    (possible, refused)
}

/// Why a test is left out; empty where that needs no word: a model that writes no text has no
/// decode.
fn refusal(subject: &Subject, test: &PlannedTest, available: Option<u64>) -> Option<String> {
    let model = &subject.measured;
    if test.spec.n_gen > 0 && model.ability.is_some_and(|can| can != Ability::Generates) {
        return Some(String::new());
    }
    let context = test.spec.context();
    if let Some(most) = subject.header.context_length.filter(|most| context > *most) {
        return Some(format!(
            "{} was made for a context of {} tokens and {} needs {}: take shorter lengths or a lower depth.",
            full_name(model),
            grouped(most),
            test.spec,
            grouped(context)
        ));
    }
    let refusal = test.refusal(needs(&subject.header, test), available)?;
    Some(shown(&refusal.to_string()))
}

/// One sentence for all tests of a model that are left out.
fn sentence(refused: &[String], possible: usize) -> Option<String> {
    let said: Vec<&String> = refused.iter().filter(|text| !text.is_empty()).collect();
    let first = said.first()?;
    Some(match (said.len(), possible) {
        (1, 0) | (_, 0) => (*first).clone(),
        (1, _) => format!("{first} Its other tests are measured."),
        (n, _) => format!("{first} {n} tests are left out; the others are measured."),
    })
}

/// What a test says of itself; whose it is is filled in.
fn row(test: &PlannedTest, choice: &Choice, around: &Around<'_>) -> PlannedRow {
    let phase = phase_of(test.spec);
    PlannedRow {
        position: 0,
        model: String::new(),
        name: String::new(),
        quantization: String::new(),
        phase,
        tokens: u32::try_from(test.spec.tokens()).unwrap_or(u32::MAX),
        depth: test.spec.n_depth,
        seconds: eta::expected(test, choice.repetitions, around.earlier),
        ceiling: match phase {
            PhaseName::Prefill => None,
            PhaseName::Decode => (around.ceiling)(&test.model),
        },
    }
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
