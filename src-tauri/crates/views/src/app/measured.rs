//! What the history knows of this machine and these models: read speed, the engine that ran last,
//! the newest speeds.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use twospeed_engine::protocol::{DeviceKind, Hello};
use twospeed_estimate::{Bytes, Calibration};
use twospeed_history::{History, HistoryError, LatestFilter, RunFilter, Test};
use twospeed_library::display::shown;
use twospeed_measure::model::MeasuredModel;
use twospeed_workbench::calibration::UBATCH;
use twospeed_workbench::{Grounds, ReadSpeed};

use super::App;
use super::catalogue::Entry;
use crate::desk::locked;
use crate::frame::AppEvent;
use crate::models::Speed;

/// What the history said when it was asked last.
#[derive(Default, PartialEq)]
pub(crate) struct Known {
    pub(super) read_speed: Option<ReadSpeed>,
    /// `zen4, llama.cpp 11434`.
    pub(super) engine: Option<String>,
    by_fingerprint: HashMap<String, Speeds>,
    /// The newest finished tests of every model here: what a model that was never measured may
    /// take is told from them.
    pub(super) latest: Vec<Test>,
    /// What estimates rest on.
    pub(super) grounds: Grounds,
    /// The newest calibration of this machine, whether it holds now or not.
    pub(super) calibration: Option<Calibration>,
    /// CPU variants and GPUs that the engine named last.
    pub(super) variants: Vec<String>,
    pub(super) gpus: Vec<String>,
    /// Sizes of the files that were measured: others need no look at their content.
    sizes: HashSet<u64>,
}

/// The newest speeds of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Speeds {
    pub(crate) prefill: Option<Speed>,
    pub(crate) decode: Option<Speed>,
}

impl Known {
    /// The newest speeds of a file, as far as its content has been looked at.
    pub(super) fn speeds(&self, entry: &Entry) -> Speeds {
        let fingerprint = entry.fingerprint.get().and_then(Option::as_ref);
        let speeds = fingerprint.and_then(|fingerprint| self.by_fingerprint.get(fingerprint));
        speeds.cloned().unwrap_or_default()
    }

    /// When the calibration that holds now was made.
    pub(super) fn calibration_at(&self) -> Option<&str> {
        let holds = self.grounds.calibration().ok()?;
        Some(&holds.at)
    }

    /// What decode cannot exceed here, tokens per second.
    pub(crate) fn decode_ceiling(&self, weight_bytes_per_token: Option<u64>) -> Option<f64> {
        let weights = Bytes(weight_bytes_per_token?);
        let bandwidth = self.read_speed.as_ref()?.for_working_set(weights)?;
        Some(bandwidth.rate.reads_of(weights)?.0)
    }
}

/// The last answer, and who is asking.
#[derive(Default)]
pub(crate) struct Memory {
    known: Mutex<Arc<Known>>,
    asking: tokio::sync::Mutex<()>,
}

impl App {
    /// What the history said when it was asked last.
    pub(crate) fn known(&self) -> Arc<Known> {
        locked(&self.memory.known).clone()
    }

    /// Asks the history again in the background, and tells the page what changed.
    pub(crate) fn refresh_known(self: &Arc<Self>) {
        let app = self.clone();
        self.runtime.spawn(async move { app.ask_history().await });
    }

    /// Asks the history again, outside timed sections. Where it cannot be read, what was known
    /// stays: the reason was said when it was opened.
    pub(super) async fn ask_history(self: &Arc<Self>) {
        let Ok(history) = self.history().await else {
            return;
        };
        let _one = self.memory.asking.lock().await;
        let quiet = self.quiet.clone();
        let Ok(work) = tokio::task::spawn_blocking(move || quiet.work()).await else {
            return;
        };
        let Ok(known) = self.read_known(&history).await else {
            return;
        };
        let known = Arc::new(known);
        let before = std::mem::replace(&mut *locked(&self.memory.known), known.clone());
        let app = self.clone();
        let sizes = known.clone();
        let looked = tokio::task::spawn_blocking(move || app.look_at_contents(&sizes.sizes, &work));
        let is_new = looked.await.unwrap_or(false);
        if before.read_speed != known.read_speed
            || before.engine != known.engine
            || before.calibration_at() != known.calibration_at()
        {
            let machine = self.card().await;
            self.tell(AppEvent::Machine { machine });
        }
        if is_new || before != known {
            self.tell(AppEvent::ModelsChanged);
        }
    }

    async fn read_known(&self, history: &History) -> Result<Known, HistoryError> {
        let filter = LatestFilter {
            machine: Some(self.machine.id.clone()),
            models: None,
        };
        let (machine, threads) = (&self.machine, self.threads());
        let calibrations = history.calibrations(&machine.id).await?;
        let mut known = Known {
            read_speed: Some(ReadSpeed::load(history, machine).await?),
            grounds: Grounds::load(history, machine, threads, UBATCH.into(), None).await?,
            calibration: calibrations.into_iter().next(),
            ..Known::default()
        };
        if let Some(worker) = self.last_worker(history).await? {
            known.engine = Some(format!(
                "{}, llama.cpp {}",
                worker.variant.name, worker.engine.build_number
            ));
            let gpus = worker.devices.iter().filter(|device| is_gpu(device.kind));
            known.gpus = gpus.map(|device| shown(&device.description)).collect();
            known.variants = worker.variants.into_iter().map(|one| one.name).collect();
        }
        // Newest first: what is there already is newer.
        for run in history.latest(&filter).await? {
            let mut of_run: HashMap<&str, Newest<'_>> = HashMap::new();
            for test in &run.tests {
                let MeasuredModel {
                    fingerprint,
                    file_bytes,
                    ..
                } = &test.record.model;
                known.sizes.insert(*file_bytes);
                of_run.entry(fingerprint).or_default().take(test);
            }
            for (fingerprint, newest) in of_run {
                let speeds = known
                    .by_fingerprint
                    .entry(fingerprint.to_owned())
                    .or_default();
                let speed = |test: Option<&Test>| test.and_then(speed);
                speeds.prefill = speeds.prefill.take().or_else(|| speed(newest.prefill));
                speeds.decode = speeds.decode.take().or_else(|| speed(newest.decode));
            }
            known.latest.extend(run.tests);
        }
        Ok(known)
    }

    /// What the worker of the newest run here said that got as far as saying hello.
    async fn last_worker(&self, history: &History) -> Result<Option<Hello>, HistoryError> {
        let runs = history.runs(&RunFilter::default()).await?;
        let here = runs
            .iter()
            .filter(|run| run.run.machine.id == self.machine.id);
        for overview in here.take(5) {
            let Some(run) = history.run(overview.run.id).await? else {
                continue;
            };
            let ends = run.tests.into_iter().rev().filter_map(|test| test.end);
            if let Some(worker) = ends.filter_map(|end| end.worker).next() {
                return Ok(Some(worker));
            }
        }
        Ok(None)
    }

    /// Names the content of files that may have been measured; true where one was new.
    fn look_at_contents(&self, sizes: &HashSet<u64>, work: &super::quiet::Work) -> bool {
        let mut is_new = false;
        for entry in self.catalogue.entries() {
            let Some(model) = entry.item.model() else {
                continue;
            };
            let may_be = entry.hindrance.is_none() && sizes.contains(&model.file_bytes);
            if may_be && entry.fingerprint.get().is_none() {
                work.make_way();
                let fingerprint = twospeed_gguf::fingerprint(model).ok();
                is_new |= entry.fingerprint.set(fingerprint).is_ok();
            }
        }
        is_new
    }
}

/// A GPU interface that the processor computes is none.
fn is_gpu(kind: DeviceKind) -> bool {
    matches!(kind, DeviceKind::Gpu | DeviceKind::IntegratedGpu)
}

/// The tests of one run that stand for a model: without depth, and nearest to the usual length.
#[derive(Default)]
struct Newest<'a> {
    prefill: Option<&'a Test>,
    decode: Option<&'a Test>,
}

impl<'a> Newest<'a> {
    fn take(&mut self, test: &'a Test) {
        if !test.record.kind.is_speed() {
            return;
        }
        let spec = test.record.spec;
        let (place, usual) = match (spec.n_prompt, spec.n_gen) {
            (_, 0) => (&mut self.prefill, 512),
            (0, _) => (&mut self.decode, 128),
            // A prompt and an answer timed as one is neither speed.
            _ => return,
        };
        let distance = |test: &Test| {
            let spec = test.record.spec;
            (spec.n_depth, spec.tokens().abs_diff(usual))
        };
        if place.is_none_or(|other| distance(test) < distance(other)) {
            *place = Some(test);
        }
    }
}

/// A test's speed, for a row; `None` without samples.
pub(crate) fn speed(test: &Test) -> Option<Speed> {
    let measured = twospeed_workbench::measured(test)?;
    let spec = test.record.spec;
    Some(Speed {
        mean: measured.mean,
        deviation: measured.deviation,
        samples: measured.samples,
        tokens: u32::try_from(spec.tokens()).unwrap_or(u32::MAX),
        depth: spec.n_depth,
        at: test.record.started_at.to_string(),
    })
}
