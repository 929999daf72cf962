//! What own results say beside what the calibration expects of them.
//!
//! Only the header of a model is read for it, and what was worked out is kept as long as this
//! program runs.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use twospeed_engine::Settings;
use twospeed_estimate::learn::{Conditions, ModelKey, Phase, Residual};
use twospeed_estimate::{BandwidthFrom, Calibration, Estimate, Question, estimate};
use twospeed_gguf::Model;
use twospeed_history::{AlikeFilter, History, HistoryError, Test};
use twospeed_measure::Warning;
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use uuid::Uuid;

use crate::subject::context_settings;

/// The newest results that are looked at.
const RESULTS: u32 = 200;

/// How long headers are read for one answer; a header takes some milliseconds. What is left is for
/// the next answer.
const PATIENCE: Duration = Duration::from_millis(40);

/// Headers that are kept.
const HEADERS: usize = 48;

/// Calibrations whose residuals are kept.
const CALIBRATIONS: usize = 4;

/// What was worked out before, newest last.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Residuals of one calibration in one history.
struct Known {
    history: PathBuf,
    calibration: String,
    by_test: HashMap<Uuid, Option<Residual>>,
}

/// The newest own results that were made with what `calibration` was made with, each beside what it
/// expects; the newest first.
///
/// Left out are results that something disturbed, that were made with settings of which the estimate
/// knows nothing, and those of models whose file is not there any more.
pub(crate) async fn residuals(
    history: &History,
    machine: &Machine,
    calibration: &Arc<Calibration>,
    bandwidth: &BandwidthFrom,
) -> Result<Vec<Residual>, HistoryError> {
    let ids = history
        .tests_alike(&AlikeFilter {
            machine: machine.id.clone(),
            build: calibration.build,
            variant: calibration.variant.clone(),
            backend: calibration.backend.clone(),
            threads: calibration.threads,
            limit: RESULTS,
        })
        .await?;
    let mut known = take(history.path(), &calibration.id);
    let missing: Vec<_> = ids
        .iter()
        .filter(|id| !known.by_test.contains_key(id))
        .copied()
        .collect();
    if !missing.is_empty() {
        let tests = history.tests(&missing).await?;
        let (calibration, bandwidth) = (calibration.clone(), bandwidth.clone());
        let worked_out = tokio::task::spawn_blocking(move || {
            let mut headers = Headers::until(Instant::now() + PATIENCE);
            let tests = newest_first(tests);
            let of_test = |test: &Test| {
                let residual = of_test(test, &calibration, &bandwidth, &mut headers)?;
                Some((test.record.id, residual))
            };
            tests.iter().filter_map(of_test).collect::<Vec<_>>()
        });
        known.by_test.extend(worked_out.await.unwrap_or_default());
    }
    let wanted: HashSet<_> = ids.iter().collect();
    known.by_test.retain(|id, _| wanted.contains(id));
    let found = ids
        .iter()
        .filter_map(|id| known.by_test.get(id).copied().flatten())
        .collect();
    keep(known);
    Ok(found)
}

/// What is known of a calibration's residuals, until it is put back.
fn take(history: &Path, calibration: &str) -> Known {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = all
        .iter()
        .position(|known| known.history == history && known.calibration == calibration);
    match place {
        Some(place) => all.remove(place),
        None => Known {
            history: history.to_owned(),
            calibration: calibration.to_owned(),
            by_test: HashMap::new(),
        },
    }
}

fn keep(known: Known) {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same =
        |other: &Known| other.history == known.history && other.calibration == known.calibration;
    all.retain(|other| !same(other));
    all.push(known);
    if all.len() > CALIBRATIONS {
        all.remove(0);
    }
}

fn newest_first(mut tests: Vec<Test>) -> Vec<Test> {
    tests.sort_by_key(|test| std::cmp::Reverse((test.record.started_at, test.record.id)));
    tests
}

/// What a test teaches, the inner `None` where that is nothing; `None` where there was no time to
/// look at its model.
fn of_test(
    test: &Test,
    calibration: &Arc<Calibration>,
    bandwidth: &BandwidthFrom,
    headers: &mut Headers,
) -> Option<Option<Residual>> {
    let Some(question) = question(test, calibration, bandwidth) else {
        return Some(None);
    };
    let header = headers.of(&test.record.model)?;
    Some(header.and_then(|header| residual(test, &header, &question, estimate)))
}

/// What a test would have asked of the estimate; `None` where it is none to learn from.
fn question(
    test: &Test,
    calibration: &Arc<Calibration>,
    bandwidth: &BandwidthFrom,
) -> Option<Question> {
    let record = &test.record;
    let is_one_speed = (record.spec.n_prompt == 0) != (record.spec.n_gen == 0);
    let is_sound = record.kind.is_speed()
        && record.warmup
        && test.counts()
        && test.end.as_ref().is_some_and(|end| {
            let disturbs = |warning: &Warning| is_disturbance(warning);
            !end.warnings.iter().any(disturbs)
        });
    if !is_one_speed || !is_sound || !is_usual(&record.settings) {
        return None;
    }
    Some(Question {
        prompt: record.spec.n_prompt.into(),
        generate: record.spec.n_gen.into(),
        depth: record.spec.n_depth.into(),
        context: context_settings(&record.settings, record.kind.context(record.spec))?,
        outputs: record.settings.n_outputs.into(),
        gpu_layers: record.settings.n_gpu_layers,
        bandwidth: bandwidth.clone(),
        calibration: Some(calibration.clone()),
        ..Question::default()
    })
}

/// The test beside what is expected; `expects` is [`estimate`].
fn residual(
    test: &Test,
    header: &Model,
    question: &Question,
    expects: impl Fn(&Model, &Question) -> Estimate,
) -> Option<Residual> {
    let phase = match test.record.spec.n_gen {
        0 => Phase::Prefill,
        _ => Phase::Decode,
    };
    let said = expects(header, question);
    let expected = match phase {
        Phase::Prefill => said.prefill.expected_tok_s,
        Phase::Decode => said.decode.expected_tok_s,
    }?
    .0;
    let measured = median(test.speed()?.samples)?;
    let ratio = measured / expected;
    (ratio.is_finite() && ratio > 0.0).then(|| Residual {
        run: test.record.run.as_u128(),
        model: ModelKey::of(header),
        phase,
        conditions: Conditions::of(question, phase),
        ratio,
    })
}

/// A few samples far from the others do not move it.
fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let upper = *samples.get(samples.len() / 2)?;
    Some(match samples.len().is_multiple_of(2) {
        true => (samples[samples.len() / 2 - 1] + upper) / 2.0,
        false => upper,
    })
}

/// Whether nothing is set of which the estimate knows nothing.
pub(crate) fn is_usual(settings: &Settings) -> bool {
    let known = Settings {
        n_batch: settings.n_batch,
        n_ubatch: settings.n_ubatch,
        n_threads: settings.n_threads,
        type_k: settings.type_k.clone(),
        type_v: settings.type_v.clone(),
        n_gpu_layers: settings.n_gpu_layers,
        flash_attn: settings.flash_attn,
        n_outputs: settings.n_outputs,
        // How the file is read has no part in what is timed.
        load_mode: settings.load_mode.clone(),
        lazy_mode: settings.lazy_mode.clone(),
        fit_target: settings.fit_target,
        fit_min_ctx: settings.fit_min_ctx,
        ..Settings::default()
    };
    known == *settings
}

/// Whether it says that something else than model and machine decided the speed.
pub fn is_disturbance(warning: &Warning) -> bool {
    match warning {
        Warning::HighVariance { .. }
        | Warning::Trend { .. }
        | Warning::SwapInUse { .. }
        | Warning::OtherLoad { .. }
        | Warning::Steal { .. }
        | Warning::CpuQuota { .. }
        | Warning::Drift { .. }
        | Warning::OnBattery
        | Warning::SoftwareGpu { .. }
        | Warning::PageFaults { .. }
        | Warning::NotSettled { .. }
        | Warning::Throttled { .. }
        | Warning::PowerSaver { .. } => true,
        // The median hardly feels the first, and the others say what ran.
        Warning::SlowFirstSample { .. }
        | Warning::Outliers { .. }
        | Warning::VariantSetAside { .. }
        | Warning::NothingOffloaded { .. } => false,
    }
}

/// Headers of files that were measured.
struct Headers {
    read: HashMap<PathBuf, Option<Arc<Model>>>,
    until: Instant,
}

impl Headers {
    /// Reads headers until then.
    fn until(until: Instant) -> Self {
        Self {
            read: HashMap::new(),
            until,
        }
    }

    /// The header of a model that was measured, the inner `None` where its file is gone or is another
    /// one; `None` where the time is up.
    fn of(&mut self, measured: &MeasuredModel) -> Option<Option<Arc<Model>>> {
        let path = &measured.path.0;
        if !self.read.contains_key(path) {
            if !self.read.is_empty() && Instant::now() >= self.until {
                return None;
            }
            self.read.insert(path.clone(), read(path));
        }
        let header = self.read.get(path)?.as_ref();
        Some(header.filter(|header| is_of(header, measured)).cloned())
    }
}

/// Reads a header, unless it was read before and the file is as it was.
fn read(path: &Path) -> Option<Arc<Model>> {
    type Seen = HashMap<PathBuf, (u64, SystemTime, Arc<Model>)>;
    static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
    let facts = std::fs::metadata(path).ok()?;
    let (bytes, modified) = (facts.len(), facts.modified().ok()?);
    let seen = || SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((was, at, model)) = seen().get_or_insert_default().get(path)
        && (*was, *at) == (bytes, modified)
    {
        return Some(model.clone());
    }
    let model = Arc::new(twospeed_gguf::read(path).ok()?);
    let mut seen = seen();
    let seen = seen.get_or_insert_default();
    if seen.len() >= HEADERS {
        seen.clear();
    }
    seen.insert(path.to_owned(), (bytes, modified, model.clone()));
    Some(model)
}

/// The header of a model that was measured; `None` where its file is gone or is another one.
pub fn header_of(measured: &MeasuredModel) -> Option<Arc<Model>> {
    read(&measured.path.0).filter(|header| is_of(header, measured))
}

/// Whether this header is that of the model as it was measured, as far as speed goes. Weights make
/// no speed, so its content need not be looked at.
fn is_of(header: &Model, measured: &MeasuredModel) -> bool {
    header.file_bytes == measured.file_bytes
        && header.parameters == measured.parameters
        && header.architecture == measured.architecture
        && header.quantization == measured.quantization
}

#[cfg(test)]
mod tests;
