//! What is expected of results, and why of some nothing is.
//!
//! An expectation takes a calibration of the machine that the result comes from, of as many threads,
//! and the header of its model. What the history keeps of a model suffices for what needs no layers.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use twospeed_estimate::explain::{Beside, Facts, Measured, ModelKnown, Says};
use twospeed_estimate::{
    Bytes, Calibration, ContextSettings, Corrections, Estimate, Question, estimate, explain,
};
use twospeed_gguf::Model;
use twospeed_history::History;
use twospeed_library::display::{shown, shown_path};
use twospeed_measure::machine::Machine;
use twospeed_workbench::calibration::NotCalibrated;
use twospeed_workbench::figures::{Predicted, PredictedKind, Predictor, expected_source};
use twospeed_workbench::{
    Bar, Grounds, ResultId, Source, context_settings, header_of, is_disturbance,
};

use super::mean;
use crate::Problem;
use crate::app::App;
use crate::app::catalogue;
use crate::app::compare::{Entry, history_problem};
use crate::compare::{Statement, Unexpected};

/// A cache is told of at this context at least: results of a few hundred tokens say little about it.
const CONTEXT: u64 = catalogue::CONTEXT as u64;

/// What is expected of the results of a figure.
#[derive(Default)]
pub(in crate::app) struct Expectations {
    machine: Option<Machine>,
    known: Vec<Known>,
    by_result: HashMap<ResultId, Expectation>,
}

/// What is expected of a result.
#[derive(Default)]
struct Expectation {
    header: Option<Arc<Model>>,
    estimate: Option<Estimate>,
    calibration: Option<Arc<Calibration>>,
    /// Why nothing is expected of it; where there is an estimate all the same, it is of other
    /// circumstances, which what is said of it says.
    unexpected: Option<Unexpected>,
}

/// What estimates stand on for so many threads and a micro-batch.
struct Known {
    threads: u32,
    ubatch: u32,
    grounds: Grounds,
    /// Those of the nearest number of threads, where there are none of these.
    nearest: Option<Grounds>,
}

impl Known {
    async fn load(app: &App, history: &History, bar: &Bar<'_>) -> Result<Self, Problem> {
        let (threads, ubatch) = (bar.settings.n_threads, bar.settings.n_ubatch);
        let grounds = load(app, history, threads, ubatch).await?;
        let nearest = match grounds.calibration() {
            Err(NotCalibrated::Threads { calibrated, .. }) => calibrated
                .iter()
                .copied()
                .min_by_key(|other| other.abs_diff(threads)),
            _ => None,
        };
        let nearest = match nearest {
            Some(threads) => Some(load(app, history, threads, ubatch).await?),
            None => None,
        };
        Ok(Self {
            threads,
            ubatch,
            grounds,
            nearest,
        })
    }

    fn is_of(&self, source: &Source<'_>) -> bool {
        let settings = source.settings();
        (self.threads, self.ubatch) == (settings.n_threads, settings.n_ubatch)
    }
}

async fn load(app: &App, history: &History, threads: u32, ubatch: u32) -> Result<Grounds, Problem> {
    Grounds::load(history, &app.machine, threads, ubatch.into(), None)
        .await
        .map_err(history_problem)
}

/// Words of the workbench as a sentence of their own.
fn sentence(words: &str) -> String {
    let mut letters = words.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

impl Expectations {
    /// Works out what each of these is expected to do.
    ///
    /// Errors: the history's.
    pub(in crate::app) async fn of(
        app: &App,
        history: &History,
        bars: &[Bar<'_>],
    ) -> Result<Self, Problem> {
        let mut found = Self {
            machine: Some(app.machine.clone()),
            ..Self::default()
        };
        for bar in bars {
            let Some(id) = bar.id() else { continue };
            let is_here = bar.run.run.machine.id == app.machine.id;
            if is_here && !found.known.iter().any(|known| known.is_of(&bar.source())) {
                found.known.push(Known::load(app, history, bar).await?);
            }
            let expectation = found.expect(bar);
            found.by_result.insert(id, expectation);
        }
        Ok(found)
    }

    /// What is known of the machine with the settings of a result of it.
    fn known(&self, source: &Source<'_>) -> Option<(&Known, &Machine)> {
        let machine = self.machine.as_ref()?;
        let is_here = source.run.run.machine.id == machine.id;
        let known = self
            .known
            .iter()
            .find(|known| is_here && known.is_of(source))?;
        Some((known, machine))
    }

    fn expect(&self, bar: &Bar<'_>) -> Expectation {
        let source = bar.source();
        let header = header_of(bar.model);
        let mut found = Expectation::default();
        match self.known(&source) {
            None => {
                let machine = &bar.run.run.machine;
                found.unexpected = Some(Unexpected::OtherMachine {
                    name: machine.name.as_deref().map(shown),
                });
            }
            Some((known, machine)) => {
                let predictor = Predictor {
                    grounds: &known.grounds,
                    machine,
                };
                found.estimate = predictor.estimate_of(&source);
                found.calibration = known.grounds.calibration().ok().cloned();
                let is_expected = found.estimate.as_ref().is_some_and(is_expected);
                if !is_expected {
                    let why = why_not(bar, known, header.as_deref(), found.estimate.as_ref());
                    found.unexpected = Some(why);
                    let others = known.nearest.as_ref().unwrap_or(&known.grounds);
                    if let (Some(header), Ok(calibration)) = (&header, others.calibration()) {
                        found.estimate = Some(estimate(header, &of_others(bar, header, others)));
                        found.calibration = Some(calibration.clone());
                    }
                }
            }
        }
        found.header = header;
        found
    }

    /// Whether something is expected of one of them that can be drawn.
    pub(in crate::app) fn any(&self) -> bool {
        let mut all = self.by_result.values();
        all.any(|expectation| expectation.drawn().is_some())
    }

    /// What is expected of a result, as far as it can be drawn beside it.
    pub(in crate::app) fn drawn(&self, source: &Source<'_>) -> Option<Estimate> {
        self.by_result.get(&source.id())?.drawn().cloned()
    }

    /// Where that comes from, a statement for the footer.
    pub(in crate::app) fn source(&self, zone: &TimeZone) -> Option<String> {
        Some(expected_source(self.calibration()?, zone))
    }

    /// The calibration that drawn expectations stand on.
    pub(in crate::app) fn calibration(&self) -> Option<&Calibration> {
        let mut all = self.by_result.values();
        let drawn = all.find(|expectation| expectation.drawn().is_some())?;
        drawn.calibration.as_deref()
    }

    /// The rows of a figure that is made of expectations.
    pub(in crate::app) fn rows<'a>(
        &self,
        kind: PredictedKind,
        sources: Vec<Source<'a>>,
    ) -> Vec<Predicted<'a>> {
        let row = |source: Source<'a>| match self.known(&source) {
            None => vec![Predicted {
                source: Some(source),
                ..Predicted::default()
            }],
            Some((known, machine)) => {
                let predictor = Predictor {
                    grounds: &known.grounds,
                    machine,
                };
                predictor.rows(kind, vec![source], &[], &Question::default())
            }
        };
        sources.into_iter().flat_map(row).collect()
    }

    /// Why nothing is expected of a result.
    pub(in crate::app) fn unexpected(&self, id: ResultId) -> Option<Unexpected> {
        self.by_result.get(&id)?.unexpected.clone()
    }

    /// What the estimator says of a result. Of the other quantizations of its model the one is
    /// taken that explains most: the first whose speeds differ the other way round.
    pub(super) fn statements(&self, entries: &[Entry<'_>], focus: usize) -> Vec<Statement> {
        let Some(entry) = entries.get(focus) else {
            return Vec::new();
        };
        let alone = self.facts(entry, None);
        let mut besides = entries
            .iter()
            .enumerate()
            .filter(|(index, other)| *index != focus && are_beside(entry, other))
            .filter_map(|(_, other)| {
                Some(explain::statements(
                    &self.facts(entry, Some(self.beside(other)?)),
                ))
            });
        let explains = |said: &Vec<explain::Statement>| {
            said.iter()
                .any(|said| matches!(said.says, Says::Rates { .. }))
        };
        let said = besides.find(explains);
        said.unwrap_or_else(|| explain::statements(&alone))
            .into_iter()
            .map(Statement::from)
            .collect()
    }

    fn beside<'a>(&'a self, other: &'a Entry<'_>) -> Option<Beside<'a>> {
        Some(Beside {
            quantization: other.bar.model.quantization.as_deref()?,
            estimate: self.by_result.get(&other.bar.id()?)?.estimate.as_ref()?,
            prefill: mean(other.prefill.as_ref()),
            decode: mean(other.decode.as_ref()),
        })
    }

    fn facts<'a>(&'a self, entry: &'a Entry<'_>, beside: Option<Beside<'a>>) -> Facts<'a> {
        let bar = &entry.bar;
        let expectation = bar.id().and_then(|id| self.by_result.get(&id));
        let model = bar.model;
        let header = expectation.and_then(|found| found.header.as_deref());
        let worker = || {
            bar.tests()
                .find_map(|test| test.end.as_ref()?.worker.as_ref())
        };
        let warnings = bar
            .tests()
            .filter_map(|test| test.end.as_ref())
            .flat_map(|end| &end.warnings);
        Facts {
            model: ModelKnown {
                quantization: model.quantization.as_deref(),
                parameters: known(model.parameters),
                active_parameters: model.active_parameters,
                file_bytes: known(model.file_bytes).map(Bytes),
                weight_bytes_per_token: model.weight_bytes_per_token.map(Bytes),
            },
            header,
            context: context(bar),
            estimate: expectation.and_then(|found| found.estimate.as_ref()),
            calibration: expectation.and_then(|found| found.calibration.as_deref()),
            result: Measured {
                prefill: mean(entry.prefill.as_ref()),
                decode: mean(entry.decode.as_ref()),
                threads: known(bar.settings.n_threads),
                variant: bar.variant,
                build: worker().map(|worker| worker.engine.build_number),
                disturbed: warnings.into_iter().any(is_disturbance),
            },
            last_level_cache: bar.run.run.machine.last_level_cache_bytes.map(Bytes),
            beside,
        }
    }
}

/// What an import leaves unknown stands as 0.
fn known<N: PartialEq + From<u8>>(number: N) -> Option<N> {
    (number != N::from(0)).then_some(number)
}

/// Whether two results are quantizations of one model that can be held against each other.
fn are_beside(entry: &Entry<'_>, other: &Entry<'_>) -> bool {
    let (a, b) = (&entry.bar, &other.bar);
    a.name() == b.name()
        && a.model.fingerprint != b.model.fingerprint
        && a.run.run.machine.id == b.run.run.machine.id
        && a.settings == b.settings
        && a.variant == b.variant
        && a.depth == b.depth
}

/// The context that the cache of a result's model is told for.
fn context(bar: &Bar<'_>) -> ContextSettings {
    let tokens = own_context(bar).max(CONTEXT);
    context_settings(bar.settings, tokens).unwrap_or(ContextSettings {
        context: tokens,
        ..ContextSettings::default()
    })
}

impl Expectation {
    /// Of circumstances that are the result's own.
    fn drawn(&self) -> Option<&Estimate> {
        self.estimate.as_ref().filter(|_| self.unexpected.is_none())
    }
}

fn is_expected(said: &Estimate) -> bool {
    said.decode.expected_tok_s.is_some() || said.prefill.expected_tok_s.is_some()
}

/// Why nothing is expected of a result of this machine.
fn why_not(
    bar: &Bar<'_>,
    known: &Known,
    header: Option<&Model>,
    said: Option<&Estimate>,
) -> Unexpected {
    let calibration = match known.grounds.calibration() {
        Ok(calibration) => calibration,
        Err(NotCalibrated::Never) => return Unexpected::NotCalibrated,
        Err(other) => {
            return Unexpected::OtherCalibration {
                sentence: sentence(&other.to_string()),
            };
        }
    };
    let mut workers = bar
        .tests()
        .filter_map(|test| test.end.as_ref()?.worker.as_ref());
    let other = workers.find(|worker| worker.backends != calibration.backend);
    if let Some(worker) = other {
        return Unexpected::OtherBackend {
            ran: shown(&worker.backends),
        };
    }
    if header.is_none() {
        let path = &bar.model.path.0;
        return match path.as_os_str().is_empty() {
            true => Unexpected::FileUnknown,
            false => Unexpected::FileGone {
                path: shown_path(path),
            },
        };
    }
    if bar
        .variant
        .is_some_and(|variant| variant != calibration.variant)
    {
        return Unexpected::OtherCalibration {
            sentence: format!(
                "This machine was calibrated for the CPU variant {}.",
                shown(&calibration.variant)
            ),
        };
    }
    let notes = said.into_iter().flat_map(|said| &said.basis.notes);
    Unexpected::NotEstimated {
        why: notes.map(|note| shown(&note.to_string())).collect(),
    }
}

/// What a result would have asked of an estimate on other grounds than its own. Never corrected:
/// what teaches is what it is held against.
fn of_others(bar: &Bar<'_>, header: &Model, grounds: &Grounds) -> Question {
    let usual = Question::default();
    let spec = |test: Option<&twospeed_history::Test>| test.map(|test| test.record.spec);
    let question = Question {
        prompt: spec(bar.prefill).map_or(usual.prompt, |spec| spec.n_prompt.into()),
        generate: spec(bar.decode).map_or(usual.generate, |spec| spec.n_gen.into()),
        depth: bar.depth.into(),
        context: context_settings(bar.settings, own_context(bar)).unwrap_or_default(),
        outputs: bar.settings.n_outputs.into(),
        gpu_layers: bar.settings.n_gpu_layers,
        ..usual
    };
    Question {
        corrections: Corrections::default(),
        ..grounds.ask(header, question)
    }
}

/// Tokens of context that its tests took.
fn own_context(bar: &Bar<'_>) -> u64 {
    let own = bar
        .tests()
        .map(|test| test.record.kind.context(test.record.spec));
    own.max().unwrap_or(0)
}
