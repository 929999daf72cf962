//! One attempt at one test.

use std::time::Duration;

use twospeed_engine::protocol::{Event, Hello, Loaded, Measure, Phase, Placement, Request, Sample};
use uuid::Uuid;

use super::worker::{Trouble, Worker};
use crate::machine::{MachineState, Probe};
use crate::plan::{Plan, PlannedTest};
use crate::progress::Progress;
use crate::record::{Conditions, Recorder, SampleRecord};
use crate::stats::tokens_per_second;
use crate::stop::Stop;

/// What an attempt found, as far as it came.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) samples: Vec<SampleRecord>,
    pub(super) worker: Option<Hello>,
    pub(super) loaded: Option<Loaded>,
    pub(super) placement: Option<Placement>,
    pub(super) anchor_before_ns: Option<u64>,
    pub(super) anchor_after_ns: Option<u64>,
    pub(super) before: Option<MachineState>,
    pub(super) after: Option<MachineState>,
    pub(super) peak_rss_bytes: Option<u64>,
}

pub(super) struct Attempt<'r, 'w> {
    pub(super) id: Uuid,
    pub(super) plan: &'r Plan,
    pub(super) test: &'r PlannedTest,
    pub(super) worker: &'r mut Worker<'w>,
    pub(super) recorder: &'r dyn Recorder,
    pub(super) probe: &'r mut dyn Probe,
    pub(super) stop: &'r Stop,
    pub(super) progress: &'r mut (dyn FnMut(Progress) + Send),
}

impl Attempt<'_, '_> {
    /// Measures; what was found before a trouble is in `findings`.
    ///
    /// The machine is read before and after the request, never while it is served: its timed
    /// sections are in there.
    pub(super) async fn measure(&mut self, findings: &mut Findings) -> Result<(), Trouble> {
        let (hello, is_new) = self.worker.ensure(self.test).await?;
        findings.worker = Some(hello.clone());
        if is_new {
            (self.progress)(Progress::EngineStarted {
                worker: Box::new(hello),
            });
        }
        let test = self.id;
        let progress = &mut *self.progress;
        let loaded = self
            .worker
            .load(self.test, self.plan.page_cache, |fraction| {
                progress(Progress::Loading { test, fraction });
            })
            .await?;
        findings.loaded = Some(loaded);
        pause(Duration::from_millis(self.plan.delay_ms), self.stop).await?;
        let n_threads = self.test.settings.n_threads;
        if self.plan.anchor {
            findings.anchor_before_ns = self.worker.anchor(n_threads).await?;
        }
        findings.before = Some(self.probe.state(self.worker.pid()));
        let measured = self.repetitions(findings).await;
        findings.after = Some(self.probe.state(self.worker.pid()));
        measured
    }

    /// The anchor after a test that is done.
    pub(super) async fn anchor_after(&mut self, findings: &mut Findings) -> Result<(), Trouble> {
        if self.plan.anchor {
            let n_threads = self.test.settings.n_threads;
            findings.anchor_after_ns = self.worker.anchor(n_threads).await?;
        }
        Ok(())
    }

    async fn repetitions(&mut self, findings: &mut Findings) -> Result<(), Trouble> {
        self.worker.send(Request::Measure(Measure {
            spec: self.test.spec,
            settings: self.test.settings.clone(),
            repetitions: self.plan.repetitions,
            warmup: self.plan.warmup,
            seed: self.plan.seed,
        }));
        loop {
            match self.worker.hear().await? {
                Event::Placed(placement) => findings.placement = Some(placement),
                Event::Phase(phase) => self.phase(phase),
                Event::Sample(sample) => self.sample(sample, findings).await?,
                Event::Measured(measured) => {
                    findings.peak_rss_bytes = measured.peak_rss_bytes;
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// Tells the phase, and only then lets a timed section begin: the sample before is stored, the
    /// faces have been told, and this process goes to sleep on the pipe.
    fn phase(&mut self, phase: Phase) {
        (self.progress)(Progress::Phase {
            test: self.id,
            phase,
        });
        if matches!(phase, Phase::Repetition { .. }) && !self.stop.is_now() {
            self.worker.send(Request::Go);
        }
    }

    async fn sample(&mut self, sample: Sample, findings: &mut Findings) -> Result<(), Trouble> {
        let ns = sample.ns;
        let record = SampleRecord {
            test: self.id,
            sample,
            at: self.probe.now(),
            conditions: Conditions::default(),
        };
        self.recorder.sample(&record).await?;
        findings.samples.push(record.clone());
        (self.progress)(Progress::Sample {
            sample: record,
            tokens_per_second: tokens_per_second(self.test.spec.tokens(), ns),
        });
        Ok(())
    }
}

/// The plan's delay before a test; a run that is stopped does not get past it.
async fn pause(delay: Duration, stop: &Stop) -> Result<(), Trouble> {
    if delay.is_zero() && !stop.is_now() {
        return Ok(());
    }
    tokio::select! {
        biased;
        () = stop.asked_now() => Err(Trouble::Cancelled),
        () = tokio::time::sleep(delay) => Ok(()),
    }
}
