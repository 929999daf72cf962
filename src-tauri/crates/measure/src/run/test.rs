//! Repetitions of one test.

use std::time::Duration;

use twospeed_engine::protocol::{
    Event, Hello, LoadReading, Loaded, Phase, Placement, Reading, Request, Sample,
};

use super::request::request;
use super::worker::{Trouble, Worker};
use crate::figure::rates;
use crate::kind::Kind;
use crate::machine::{MachineState, Probe, Snapshot};
use crate::plan::{Plan, PlannedTest};
use crate::progress::Progress;
use crate::record::{Recorder, SampleRecord, TestRecord};
use crate::settle::settled;
use crate::stats::tokens_per_second;
use crate::stop::Stop;

/// What a test found, as far as it came.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) samples: Vec<SampleRecord>,
    pub(super) worker: Option<Hello>,
    pub(super) loaded: Option<Loaded>,
    pub(super) placement: Option<Placement>,
    pub(super) anchor_before_ns: Option<u64>,
    pub(super) anchor_after_ns: Option<u64>,
    pub(super) before: Option<Snapshot>,
    pub(super) after: Option<MachineState>,
    pub(super) peak_rss_bytes: Option<u64>,
}

impl Findings {
    pub(super) fn samples_only(&self) -> Vec<Sample> {
        let samples = self.samples.iter().map(|kept| kept.sample.clone());
        samples.collect()
    }
}

/// A test that has begun.
#[derive(Debug)]
pub(super) struct Open<'p> {
    pub(super) record: TestRecord,
    pub(super) test: &'p PlannedTest,
    pub(super) findings: Findings,
}

impl<'p> Open<'p> {
    pub(super) fn new(record: TestRecord, test: &'p PlannedTest) -> Self {
        Self {
            record,
            test,
            findings: Findings::default(),
        }
    }

    /// Whether it has all of its repetitions, or as many as are enough.
    pub(super) fn is_complete(&self, plan: &Plan) -> bool {
        let made = self.findings.samples.len();
        let most = plan.most(self.test);
        most.is_some_and(|most| made >= most as usize) || self.is_enough(plan)
    }

    fn is_enough(&self, plan: &Plan) -> bool {
        let Some(until) = plan.until else {
            return false;
        };
        let samples = self.findings.samples_only();
        let rates = rates(&self.test.kind, self.test.spec, &samples);
        settled(&rates, until, plan.fewest()).is_some()
    }
}

/// What making repetitions takes.
pub(super) struct Attempt<'r, 'w> {
    pub(super) plan: &'r Plan,
    pub(super) worker: &'r mut Worker<'w>,
    pub(super) recorder: &'r dyn Recorder,
    pub(super) probe: &'r mut dyn Probe,
    pub(super) stop: &'r Stop,
    pub(super) progress: &'r mut (dyn FnMut(Progress) + Send),
}

impl Attempt<'_, '_> {
    /// Makes repetitions; what was found before a trouble is in the test's findings.
    ///
    /// The whole state of the machine is read before and after requests; while one is served, only
    /// what [`Probe`] has for it, between the sections that are timed.
    pub(super) async fn make(
        &mut self,
        open: &mut Open<'_>,
        repetitions: u32,
    ) -> Result<(), Trouble> {
        self.engine(open).await?;
        if let Kind::FirstToken { page_cache } = open.test.kind {
            self.before(open).await?;
            for _ in 0..repetitions {
                if open.is_enough(self.plan) {
                    break;
                }
                // Nothing is said of how far it is: the load is a part of what is measured.
                let loaded = self.worker.load_anew(open.test, page_cache, |_| {}).await?;
                open.findings.loaded = Some(loaded);
                self.serve(open, 1).await?;
            }
            return Ok(());
        }
        let test = open.record.id;
        let progress = &mut *self.progress;
        let loaded = self
            .worker
            .load(open.test, self.plan.page_cache, |fraction| {
                progress(Progress::Loading { test, fraction });
            })
            .await?;
        open.findings.loaded = Some(loaded);
        self.before(open).await?;
        self.serve(open, repetitions).await
    }

    /// Sees to it that a worker is there.
    async fn engine(&mut self, open: &mut Open<'_>) -> Result<(), Trouble> {
        let (hello, is_new) = self.worker.ensure(open.test).await?;
        let findings = &mut open.findings;
        if is_new {
            (self.progress)(Progress::EngineStarted {
                worker: Box::new(hello.clone()),
            });
        }
        if let Some(before) = &findings.worker
            && before.variant.name != hello.variant.name
            && !findings.samples.is_empty()
        {
            // The samples of two variants are not those of one test.
            return Err(Trouble::OtherVariant {
                before: before.variant.name.clone(),
                now: hello.variant.name,
            });
        }
        findings.worker = Some(hello);
        Ok(())
    }

    /// What comes before a test's first repetition: the delay, the anchor, the machine.
    async fn before(&mut self, open: &mut Open<'_>) -> Result<(), Trouble> {
        let findings = &mut open.findings;
        if findings.before.is_some() {
            return Ok(());
        }
        pause(Duration::from_millis(self.plan.delay_ms), self.stop).await?;
        if self.plan.anchor {
            let n_threads = open.test.settings.n_threads;
            findings.anchor_before_ns = self.worker.anchor(n_threads).await?;
        }
        findings.before = Some(self.probe.read(self.worker.pid()));
        Ok(())
    }

    /// The anchor after a test that is done.
    pub(super) async fn anchor_after(&mut self, open: &mut Open<'_>) -> Result<(), Trouble> {
        if self.plan.anchor {
            let n_threads = open.test.settings.n_threads;
            open.findings.anchor_after_ns = self.worker.anchor(n_threads).await?;
        }
        Ok(())
    }

    /// One request and what is said to it.
    async fn serve(&mut self, open: &mut Open<'_>, repetitions: u32) -> Result<(), Trouble> {
        let served = self.repetitions(open, repetitions).await;
        let now = self.probe.read(self.worker.pid());
        let findings = &mut open.findings;
        findings.after = findings.before.as_ref().map(|before| now.since(before));
        served
    }

    async fn repetitions(&mut self, open: &mut Open<'_>, repetitions: u32) -> Result<(), Trouble> {
        let test = open.test;
        // Each request is served from a context of its own, whose memory nothing has touched yet.
        let warmup = self.plan.warmup && test.warms_up();
        self.worker
            .send(request(self.plan, test, repetitions, warmup));
        loop {
            match self.worker.hear().await? {
                Event::Placed(placement) => open.findings.placement = Some(placement),
                Event::Phase(Phase::Repetition { .. }) => self.repetition(open),
                Event::Phase(phase) => self.tell(open, phase),
                Event::Sample(sample) => self.sample(sample, open).await?,
                Event::Measured(measured) => {
                    let findings = &mut open.findings;
                    findings.peak_rss_bytes = findings.peak_rss_bytes.max(measured.peak_rss_bytes);
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    fn tell(&mut self, open: &Open<'_>, phase: Phase) {
        (self.progress)(Progress::Phase {
            test: open.record.id,
            phase,
        });
    }

    /// Lets a timed section begin, or says that it is enough. The sample before is stored, the
    /// faces have been told, and this process goes to sleep on the pipe.
    fn repetition(&mut self, open: &Open<'_>) {
        if open.is_enough(self.plan) {
            self.worker.send(Request::Enough);
            return;
        }
        let made = open.findings.samples.len();
        let number = u32::try_from(made + 1).unwrap_or(u32::MAX);
        self.tell(open, Phase::Repetition { number });
        if !self.stop.is_now() {
            self.probe.section_begins();
            self.worker.send(Request::Go);
        }
    }

    async fn sample(&mut self, mut sample: Sample, open: &mut Open<'_>) -> Result<(), Trouble> {
        let conditions = self.probe.section_ended();
        let findings = &mut open.findings;
        // A request counts its own repetitions; a test may take several requests.
        sample.index = u32::try_from(findings.samples.len()).unwrap_or(u32::MAX);
        if matches!(open.test.kind, Kind::FirstToken { .. })
            && let Some(Reading::Served { load, .. }) = &mut sample.reading
        {
            *load = findings.load_reading();
        }
        let speed = tokens_per_second(open.test.spec.tokens(), sample.ns);
        let record = SampleRecord {
            test: open.record.id,
            sample,
            at: self.probe.now(),
            conditions,
        };
        self.recorder.sample(&record).await?;
        findings.samples.push(record.clone());
        (self.progress)(Progress::Sample {
            sample: record,
            tokens_per_second: speed.filter(|_| open.test.kind.is_speed()),
        });
        Ok(())
    }
}

impl Findings {
    /// The load right before a repetition, and the context that came with it.
    fn load_reading(&self) -> Option<LoadReading> {
        let loaded = self.loaded.as_ref()?;
        Some(LoadReading {
            load_ns: loaded.load_ns,
            context_ns: self.placement.as_ref()?.context_ns,
            resident_before: loaded.resident_before,
            page_cache: loaded.page_cache,
        })
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
