//! What is expected of results and of model files, for figures that show it.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_chart::{Cause, Expected, Measured, Name, Phase, Row, TimePart};
use twospeed_estimate::roofline::{self, Roofline};
use twospeed_estimate::{
    Calibration, Corrections, Estimate, Question, Term, TokensPerSecond, What, estimate,
};
use twospeed_gguf::Model;
use twospeed_history::{Test, WholeRun};
use twospeed_library::names::without_quantization;
use twospeed_measure::machine::Machine;
use twospeed_measure::stats;

use super::series::steps_alike;
use super::words::{self, distinct, grouped, subject};
use super::{FigureInput, Source, names, span};
use crate::Grounds;
use crate::learn::{header_of, is_usual};
use crate::speeds::{Bar, bars, measured};
use crate::subject::context_settings;

/// A figure that shows what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PredictedKind {
    /// Speed of arithmetic against work per byte.
    Roofline,
    /// Ceiling, expected and measured beside each other.
    Estimate,
    /// Where the time of a prompt and of a token goes.
    Breakdown,
}

/// A row of such a figure: a result, a model file, or both.
#[derive(Debug, Clone)]
pub struct Predicted<'a> {
    /// What was measured.
    pub source: Option<Source<'a>>,
    /// What is expected; `None` where nothing can be: another machine, a file that is gone, no
    /// calibration of the settings.
    pub estimate: Option<Estimate>,
    /// The steps of a roofline, where the figure is one.
    pub roofline: Option<Roofline>,
    /// What arithmetic allows of prefill, tokens per second.
    pub prefill_ceiling: Option<f64>,
    /// Name of the file that the row is of.
    pub file: Option<String>,
}

/// Works out what is expected on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Predictor<'a> {
    /// What is known of this machine.
    pub grounds: &'a Grounds,
    /// This machine.
    pub machine: &'a Machine,
}

impl<'a> Predictor<'a> {
    /// What is to be asked about a result: its model with its settings on this machine.
    ///
    /// From the calibration alone: a result never corrects what it is held against. `None` where the
    /// calibration is of something else or the file is not there any more.
    pub fn of_result(&self, source: &Source<'_>) -> Option<(Arc<Model>, Question)> {
        let calibration = self.grounds.calibration().ok()?;
        let settings = source.settings();
        let is_like = source.run.run.machine.id == self.machine.id
            && settings.n_threads == calibration.threads
            && source.variant() == Some(calibration.variant.as_str())
            && is_usual(settings);
        let header = header_of(source.model()).filter(|_| is_like)?;
        let specs = || source.tests.iter().map(|test| test.record.spec);
        let most = |of: fn(&Test) -> u32| source.tests.iter().map(|test| of(test)).max();
        let (prompt, answer) = (
            most(|test| test.record.spec.n_prompt).filter(|n| *n > 0),
            most(|test| test.record.spec.n_gen).filter(|n| *n > 0),
        );
        let usual = Question::default();
        let context = specs().map(|spec| spec.context()).max().unwrap_or(0);
        let question = Question {
            prompt: prompt.map_or(usual.prompt, u64::from),
            generate: answer.map_or(usual.generate, u64::from),
            depth: specs().map(|spec| spec.n_depth).max().unwrap_or(0).into(),
            context: context_settings(settings, context)?,
            outputs: settings.n_outputs.into(),
            gpu_layers: settings.n_gpu_layers,
            ..usual
        };
        let question = Question {
            corrections: Corrections::default(),
            ..self.grounds.ask(&header, question)
        };
        Some((header, question))
    }

    /// What is expected of a result, as [`Self::of_result`] asks.
    pub fn estimate_of(&self, source: &Source<'_>) -> Option<Estimate> {
        let (header, question) = self.of_result(source)?;
        Some(estimate(&header, &question))
    }

    /// The rows of a figure: results first, then model files, each asked as `question` says.
    pub fn rows<'r>(
        &self,
        kind: PredictedKind,
        sources: Vec<Source<'r>>,
        models: &[(String, Model)],
        question: &Question,
    ) -> Vec<Predicted<'r>> {
        let results = sources.into_iter().map(|source| {
            let asked = self.of_result(&source);
            let file = file_name(&source);
            let row = asked.map(|(header, question)| predict(kind, &header, &question));
            Predicted {
                source: Some(source),
                file,
                ..row.unwrap_or_default()
            }
        });
        let files = models.iter().map(|(file, header)| Predicted {
            file: Some(file.clone()),
            ..predict(kind, header, &self.grounds.ask(header, question.clone()))
        });
        results.chain(files).collect()
    }
}

/// Nothing is expected of nothing.
impl Default for Predicted<'_> {
    fn default() -> Self {
        Self {
            source: None,
            estimate: None,
            roofline: None,
            prefill_ceiling: None,
            file: None,
        }
    }
}

/// What is expected of a model with a question.
fn predict(kind: PredictedKind, header: &Model, question: &Question) -> Predicted<'static> {
    let calibration = question.calibration.as_deref();
    let steps = |steps: &[u64], expects: bool| {
        let expected = |tokens| {
            expects
                .then(|| roofline::expected_step(header, question, tokens))
                .flatten()
        };
        roofline::roofline(header, question, calibration?, steps, &expected).ok()
    };
    let together = question.prompt.min(question.context.ubatch).max(1);
    let prefill_ceiling = (kind == PredictedKind::Estimate)
        .then(|| {
            let one = steps(&[together], false)?;
            let flops = one.steps.first()?.flops_per_token();
            one.arithmetic.map(|roof| roof / flops)
        })
        .flatten();
    Predicted {
        estimate: Some(estimate(header, question)),
        roofline: (kind == PredictedKind::Roofline)
            .then(|| steps(&steps_of(question), true))
            .flatten(),
        prefill_ceiling,
        ..Predicted::default()
    }
}

/// Tokens per step that fit the micro-batch.
fn steps_of(question: &Question) -> Vec<u64> {
    let most = question.context.ubatch.min(question.context.batch).max(1);
    let fits = roofline::STEPS.into_iter().filter(|tokens| *tokens <= most);
    fits.collect()
}

fn file_name(source: &Source<'_>) -> Option<String> {
    let name = source.model().path.0.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// The results that a figure of this kind shows.
pub fn predicted_series(kind: PredictedKind, runs: &[WholeRun]) -> Vec<Source<'_>> {
    match kind {
        PredictedKind::Estimate | PredictedKind::Breakdown => {
            bars(runs).iter().map(|bar| bar.source()).collect()
        }
        PredictedKind::Roofline => steps_alike(runs),
    }
}

impl PredictedKind {
    /// What is missing where there is nothing to draw.
    pub fn nothing(self) -> &'static str {
        "There is no result and no model file to draw. Name a file: -m MODEL.gguf, or measure first: \
         twospeed bench -m MODEL.gguf"
    }
}

/// What the figure says beside its rows.
#[derive(Debug, Clone, Copy)]
pub struct PredictedOptions<'a> {
    /// The calibration that it stands on, for the footer.
    pub calibration: Option<&'a Calibration>,
    /// Also where the expected time goes, under each row of [`PredictedKind::Estimate`].
    pub breakdown: bool,
    /// Zone of the times.
    pub time_zone: &'a TimeZone,
}

/// The figure of these rows, in their order; `None` without any.
pub fn predicted(
    kind: PredictedKind,
    rows: &[Predicted<'_>],
    options: PredictedOptions<'_>,
) -> Option<FigureInput> {
    if rows.is_empty() {
        return None;
    }
    Some(match kind {
        PredictedKind::Roofline => FigureInput::Roofline(super::roofline::roofline(rows, options)),
        PredictedKind::Estimate => FigureInput::Estimate(super::estimate::estimates(rows, options)),
        PredictedKind::Breakdown => {
            FigureInput::Breakdown(super::breakdown::breakdown(rows, options))
        }
    })
}

impl Predicted<'_> {
    /// Name of the model without its quantization.
    pub(super) fn name(&self) -> String {
        match (&self.source, &self.estimate) {
            (Some(source), _) => source.name(),
            (None, Some(estimate)) => without_quantization(&estimate.model.name),
            (None, None) => self.file.clone().unwrap_or_default(),
        }
    }

    /// Quantization label.
    pub(super) fn quantization(&self) -> String {
        let of_file = || self.estimate.as_ref()?.model.quantization.clone();
        match &self.source {
            Some(source) => source.quantization(),
            None => of_file().unwrap_or_else(|| "unknown".to_owned()),
        }
    }

    /// Bytes of the file.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        match (&self.source, &self.estimate) {
            (Some(source), _) => Some(source.model().file_bytes),
            (None, estimate) => Some(estimate.as_ref()?.model.file_bytes?.0),
        }
    }

    /// Its test of a phase: 0 prefill, 1 decode.
    pub(super) fn test(&self, phase: usize) -> Option<&Test> {
        let tests = self.source.as_ref()?.tests.iter().copied();
        tests
            .filter(|test| usize::from(test.record.spec.n_prompt == 0) == phase)
            .max_by_key(|test| test.record.spec.tokens())
    }

    /// What both speeds were, are expected to be and cannot exceed.
    pub(super) fn phases(&self) -> [Phase; 2] {
        let of = self.estimate.as_ref();
        [
            Phase {
                measured: self.test(0).and_then(measured),
                expected: of.and_then(|e| {
                    let of = &e.prefill;
                    between(of.expected_tok_s, of.expected_low, of.expected_high)
                }),
                ceiling: self.prefill_ceiling,
                parts: of.map_or_else(Vec::new, |e| time_parts(&e.prefill.breakdown)),
            },
            Phase {
                measured: self.test(1).and_then(measured),
                expected: of.and_then(|e| {
                    let of = &e.decode;
                    between(of.expected_tok_s, of.expected_low, of.expected_high)
                }),
                ceiling: of.and_then(|e| Some(e.decode.ceiling_tok_s?.0)),
                parts: of.map_or_else(Vec::new, |e| time_parts(&e.decode.breakdown)),
            },
        ]
    }

    /// Prompt and answer: those that were measured, else those that were asked about.
    pub(super) fn lengths(&self) -> (Option<u64>, Option<u64>) {
        let of = |phase: usize| self.test(phase).map(|test| test.record.spec.tokens());
        let asked = |of: fn(&Estimate) -> u64| self.estimate.as_ref().map(of);
        match self.source {
            Some(_) => (of(0), of(1)),
            None => (asked(|e| e.at.prompt), asked(|e| e.at.generate)),
        }
    }

    /// Tokens in the cache before.
    pub(super) fn depth(&self) -> u64 {
        match (&self.source, &self.estimate) {
            (Some(source), _) => source.first().record.spec.n_depth.into(),
            (None, Some(estimate)) => estimate.at.depth,
            (None, None) => 0,
        }
    }
}

/// An expected value in a figure's words.
pub(super) fn between(
    value: Option<TokensPerSecond>,
    low: Option<TokensPerSecond>,
    high: Option<TokensPerSecond>,
) -> Option<Expected> {
    Some(Expected {
        value: value?.0,
        low: low?.0,
        high: high?.0,
    })
}

/// What an expected time is made of, in a figure's words.
pub(crate) fn time_parts(terms: &[Term]) -> Vec<TimePart> {
    terms
        .iter()
        .map(|term| {
            let (name, cause) = match term.what {
                What::Weights { tensor_type } => {
                    (format!("weights {}", tensor_type.name()), Cause::Weights)
                }
                What::Experts { tensor_type } => {
                    (format!("experts {}", tensor_type.name()), Cause::Weights)
                }
                What::Output { tensor_type } => (
                    format!("output matrix {}", tensor_type.name()),
                    Cause::Weights,
                ),
                What::Attention => ("attention".to_owned(), Cause::Cache),
                What::State => ("state".to_owned(), Cause::Cache),
                What::Layers => ("small operations".to_owned(), Cause::Fixed),
                What::Step => ("starting steps".to_owned(), Cause::Fixed),
            };
            TimePart {
                name,
                cause,
                ms: term.ns / 1e6,
            }
        })
        .collect()
}

/// The results among the rows.
pub(super) fn sources<'a>(rows: &[Predicted<'a>]) -> Vec<Source<'a>> {
    rows.iter().filter_map(|row| row.source.clone()).collect()
}

/// What each row is called beside the others.
pub(super) fn row_names(rows: &[Predicted<'_>], zone: &TimeZone) -> Vec<Name> {
    let several = rows.iter().any(|row| row.name() != rows[0].name());
    let depths = distinct(rows.iter().map(Predicted::depth)).len() > 1;
    let results = sources(rows);
    let mut of_results = names(&results, zone, |_| None).into_iter();
    let has_both = !results.is_empty() && results.len() < rows.len();
    rows.iter()
        .map(|row| {
            let mut parts = Vec::new();
            if depths && row.depth() > 0 {
                parts.push(format!("depth {}", grouped(row.depth())));
            }
            match row.source {
                Some(_) => parts.extend(of_results.next().and_then(|name| name.detail)),
                None if has_both => parts.push("not measured".to_owned()),
                None => {}
            }
            Name {
                group: several.then(|| row.name()),
                label: row.quantization(),
                detail: (!parts.is_empty()).then(|| parts.join(", ")),
            }
        })
        .collect()
}

/// The models, to name a figure.
pub(super) fn subject_of(rows: &[Predicted<'_>]) -> String {
    match rows {
        [row] => format!("{} {}", row.name(), row.quantization()),
        rows => {
            let results = sources(rows);
            if results.len() == rows.len() {
                return subject(&results);
            }
            let models = distinct(rows.iter().map(Predicted::name));
            match &models[..] {
                [model] => model.clone(),
                _ => format!("{} models", models.len()),
            }
        }
    }
}

/// The models and how they were measured, as sentences.
pub(super) fn measured_words(rows: &[Predicted<'_>]) -> String {
    let results = sources(rows);
    let files = rows.len() - results.len();
    let mut words = Vec::new();
    if results.is_empty() {
        words.push(match rows {
            [row] => format!("{} {}.", row.name(), row.quantization()),
            _ => format!("{}.", subject_of(rows)),
        });
        words.push("Nothing was measured.".to_owned());
    } else {
        words.push(words::models(&results));
        words.push(words::samples(&results));
        if files > 0 {
            words.push(format!("{files} more without a result."));
        }
    }
    words.join(" ")
}

/// Where expected speeds come from, a statement for the footer.
pub fn expected_source(calibration: &Calibration, zone: &TimeZone) -> String {
    let day = calibration.at.parse::<Timestamp>().map_or_else(
        |_| String::new(),
        |at| {
            let at = at.to_zoned_datetime(zone.clone());
            format!(" of {}", at.strftime("%-d %B %Y, %H:%M"))
        },
    );
    format!(
        "Expected: calibration{day}, {} {}, {}.",
        calibration.backend,
        calibration.variant,
        words::threads(calibration.threads)
    )
}

/// The same, and by how many own runs what is expected of files without a result was corrected.
fn basis(rows: &[Predicted<'_>], calibration: Option<&Calibration>, zone: &TimeZone) -> String {
    let Some(calibration) = calibration else {
        return "Nothing is expected: this machine is not calibrated (twospeed calibrate)."
            .to_owned();
    };
    let says = expected_source(calibration, zone);
    let corrected = rows
        .iter()
        .filter_map(|row| row.estimate.as_ref())
        .map(|estimate| estimate.basis.corrected_by_runs)
        .max();
    match corrected.unwrap_or(0) {
        0 => says,
        1 => format!("{says} Corrected by one own run where there is no result."),
        n => format!("{says} Corrected by {n} own runs where there is no result."),
    }
}

/// Where the ceilings come from.
pub(super) fn limits(rows: &[Predicted<'_>]) -> Option<String> {
    let rates = rows.iter().filter_map(|row| {
        let at = &row.estimate.as_ref()?.at;
        Some(at.bandwidth_bytes_s?.to_string())
    });
    let rates = distinct(rates);
    let read = match &rates[..] {
        [] => return None,
        [rate] => rate.clone(),
        _ => format!("{}, by what a token reads", rates.join(" and ")),
    };
    Some(format!("Read speed measured here: {read}."))
}

/// Provenance: files and engine; what the expected speeds stand on; machine, time and version.
pub(super) fn footer(
    rows: &[Predicted<'_>],
    options: PredictedOptions<'_>,
    more: Option<String>,
) -> Vec<String> {
    let zone = options.time_zone;
    let mut says = vec![basis(rows, options.calibration, zone)];
    says.extend(more);
    let says = says.join(" ");
    let results = sources(rows);
    let files = || rows.iter().filter(|row| row.source.is_none());
    let files = distinct(files().filter_map(|row| row.file.clone()));
    let files = match files.len() {
        0 => None,
        1..=4 => Some(format!("{}.", files.join(", "))),
        n => Some(format!("{n} model files.")),
    };
    if results.is_empty() {
        return files.into_iter().chain([says]).collect();
    }
    let mut statements = words::footer(&results, Some(says), zone);
    if let (Some(files), Some(first)) = (files, statements.first_mut()) {
        first.push_str(&format!(" Without a result: {files}"));
    }
    statements
}

/// Adds what is expected of a bar of the speeds figure, of the phases that it has.
pub(crate) fn add_expected(row: &mut Row, bar: &Bar<'_>, estimate: Option<&Estimate>) {
    let Some(estimate) = estimate else {
        return;
    };
    if bar.prefill.is_some() {
        let of = &estimate.prefill;
        row.prefill.expected = between(of.expected_tok_s, of.expected_low, of.expected_high);
        row.prefill.parts = time_parts(&of.breakdown);
    }
    if bar.decode.is_some() {
        let of = &estimate.decode;
        row.decode.expected = between(of.expected_tok_s, of.expected_low, of.expected_high);
        row.decode.parts = time_parts(&of.breakdown);
    }
}

/// Milliseconds of a whole prompt, or of one token of an answer; another tool's mean where it gave
/// no samples.
pub(super) fn milliseconds(test: &Test) -> Option<Measured> {
    let tokens = match test.record.spec.n_prompt {
        0 => 1.0,
        prompt => f64::from(prompt),
    };
    let speed = test.speed()?;
    if speed.samples.is_empty() {
        return (speed.mean > 0.0).then(|| Measured {
            mean: 1e3 * tokens / speed.mean,
            deviation: None,
            samples: Vec::new(),
        });
    }
    let samples: Vec<f64> = speed
        .samples
        .iter()
        .map(|speed| 1e3 * tokens / speed)
        .collect();
    let spread = stats::spread(&samples)?;
    Some(Measured {
        mean: spread.mean,
        deviation: spread.standard_deviation,
        samples,
    })
}

/// `512`, or `128 to 512` of several; `None` where nobody says.
pub(super) fn lengths(rows: &[Predicted<'_>], phase: usize) -> Option<String> {
    let of = rows.iter().filter_map(|row| match phase {
        0 => row.lengths().0,
        _ => row.lengths().1,
    });
    let lengths: Vec<u32> = of.filter_map(|n| u32::try_from(n).ok()).collect();
    span(lengths.into_iter())
}
