//! What a run says, step by step, and the stillness around its timed sections.

mod beside;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use twospeed_engine::protocol::{DeviceKind, Hello, Phase, Sample};
use twospeed_library::display::shown;
use twospeed_measure::machine::MachineState;
use twospeed_measure::{
    Conditions, Plan, Progress, SampleRecord, Stop, TestEnd as Ended, TestRecord, TestStatus,
};
use uuid::Uuid;

use super::App;
use super::eta::{Eta, Forecast};
use super::found;
use super::quiet::Timed;
use super::run_log::{Pass, RunLog};
use crate::measure::*;

/// How long a page may take to paint before a section is timed.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same for the first section of a run: the page has the whole view to lay out.
const FIRST_PATIENCE: Duration = Duration::from_millis(300);
/// Sections shorter than this follow each other unseen ..
const SEEN: Duration = Duration::from_millis(100);
/// .. for so long: showing one takes longer than many of them.
const SHOWN_EVERY: Duration = Duration::from_secs(2);

/// A test on its way.
struct Running {
    record: TestRecord,
    samples: Vec<Sample>,
}

/// Tells a run, and sees to it that nothing of ours moves while something is timed.
pub(super) struct Teller<'a> {
    app: &'a App,
    log: &'a RunLog,
    stop: &'a Stop,
    asked_at: Instant,
    eta: Eta,
    running: HashMap<Uuid, Running>,
    timed: Option<Timed>,
    /// A section was timed in this run.
    has_timed: bool,
    /// The test before was not even tried.
    skipped: bool,
    last_sample: Option<Duration>,
    /// When a page was last given time to paint.
    shown_at: Option<Instant>,
    /// The test whose model was loaded last.
    loading_test: Option<Uuid>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        app: &'a App,
        plan: &Plan,
        forecast: Forecast,
        log: &'a RunLog,
        stop: &'a Stop,
    ) -> Self {
        Self {
            app,
            log,
            stop,
            asked_at: Instant::now(),
            eta: Eta::new(plan, forecast),
            running: HashMap::new(),
            timed: None,
            has_timed: false,
            skipped: false,
            last_sample: None,
            shown_at: None,
            loading_test: None,
        }
    }

    /// Seconds since the run was asked for.
    pub(super) fn now(&self) -> f64 {
        self.asked_at.elapsed().as_secs_f64()
    }

    fn event(&self, step: RunStep) -> RunEvent {
        let at_s = self.now();
        RunEvent {
            at_s,
            left_s: self.eta.left(at_s),
            step,
        }
    }

    pub(super) fn tell(&self, step: RunStep) {
        self.pass(step, Pass::Now);
    }

    fn pass(&self, step: RunStep, pass: Pass) {
        self.log.push(self.event(step), pass);
    }

    pub(super) fn end(mut self, step: RunStep) {
        self.loud();
        let event = RunEvent {
            left_s: Some(0.0),
            ..self.event(step)
        };
        self.app.measuring.ends(self.log, event);
    }

    /// Nothing of the app moves from here on, but for what the run itself tells.
    fn quiet(&mut self) {
        self.timed.get_or_insert_with(|| self.app.quiet.begin());
        self.app.quiet.settle();
    }

    pub(super) fn loud(&mut self) {
        self.log.set_still(false);
        self.timed = None;
    }

    /// Gives pages time to paint what they were told; then nothing moves and nothing is told.
    fn let_paint(&mut self) {
        if self.log.is_followed() {
            std::thread::sleep(PATIENCE);
        }
        self.quiet();
        self.log.set_still(true);
    }

    /// The read speed is measured next.
    pub(super) fn reads(&mut self) {
        self.tell(RunStep::ReadSpeed);
        self.let_paint();
    }

    /// A step of the run. While this has not returned, the run does not go on.
    pub(super) fn step(&mut self, step: Progress) {
        // Samples and the sections between them see to it themselves.
        let is_timed = matches!(
            step,
            Progress::Sample { .. }
                | Progress::Phase {
                    phase: Phase::Repetition { .. },
                    ..
                }
        );
        if !is_timed {
            self.loud();
        }
        match step {
            Progress::RunStarted { run, .. } => self.tell(RunStep::Started {
                run: run.to_string(),
            }),
            Progress::EngineStarted { worker } => self.tell(engine(&worker)),
            Progress::TestStarted { test } => self.test_started(*test),
            Progress::Loading { test, fraction } => self.loading(test, fraction),
            Progress::Phase { test, phase } => self.phase(test, phase),
            Progress::Sample { sample, .. } => self.sample(sample),
            Progress::TestEnded { end } => self.test_ended(&end),
            // It is told when everything is stored.
            Progress::RunEnded { .. } => {}
        }
    }

    fn test_started(&mut self, record: TestRecord) {
        self.eta.begins(record.position, self.now());
        self.tell(RunStep::TestStarted {
            position: record.position,
            test: record.id.to_string(),
        });
        self.last_sample = None;
        let samples = Vec::new();
        self.running.insert(record.id, Running { record, samples });
        // The anchor may come next, and it is a measurement too. Tests that are not even tried
        // come one after the other: none of them is waited for.
        if !self.stop.is_asked() && !self.skipped {
            self.let_paint();
        }
    }

    /// Where tests take turns, any of those that have begun may be the one that goes on.
    fn turn(&mut self, test: Uuid) -> Option<u32> {
        let position = self.running.get(&test)?.record.position;
        self.eta.turns(position);
        Some(position)
    }

    fn loading(&mut self, test: Uuid, fraction: f32) {
        let Some(position) = self.turn(test) else {
            return;
        };
        self.eta.loads(self.now());
        let step = RunStep::Doing {
            position,
            what: Doing::Loading {
                fraction: f64::from(fraction),
            },
        };
        // The anchor follows the last one, so that waits for the warm-up.
        let pass = if fraction >= 1.0 {
            Pass::WithNext
        } else if self.is_first_loading(test) {
            Pass::Now
        } else {
            Pass::Loose
        };
        self.pass(step, pass);
        if pass == Pass::WithNext {
            self.quiet();
            self.log.set_still(true);
        }
    }

    /// Whether this is the first loading step of the test.
    fn is_first_loading(&mut self, test: Uuid) -> bool {
        self.loading_test.replace(test) != Some(test)
    }

    fn phase(&mut self, test: Uuid, phase: Phase) {
        let Some(position) = self.turn(test) else {
            return;
        };
        let doing = |what| RunStep::Doing { position, what };
        match phase {
            Phase::Warmup => self.tell(doing(Doing::Warmup)),
            Phase::Depth { restored } => {
                // What was kept is there in a moment: that is told with the next step.
                let pass = if restored { Pass::WithNext } else { Pass::Now };
                self.pass(doing(Doing::Depth { restored }), pass);
            }
            Phase::Text { done, chunks } => {
                let share = f64::from(done) / f64::from(chunks.max(1));
                self.eta.reads(share, self.now());
                self.tell(doing(Doing::Text { done, chunks }));
            }
            Phase::Repetition { number } => {
                self.eta.times(self.now());
                let ticket = self.app.measuring.painting.ticket();
                let step = doing(Doing::Timing { number, ticket });
                if self.is_too_short_to_see() {
                    self.quiet();
                    self.pass(step, Pass::LeftOut);
                } else {
                    self.show(step, ticket);
                }
                self.log.set_still(true);
            }
        }
    }

    /// Samples that are over in a moment are told together: the page would paint inside of them.
    fn is_too_short_to_see(&self) -> bool {
        let short = self.last_sample.is_some_and(|last| last < SEEN);
        short && self.shown_at.is_some_and(|at| at.elapsed() < SHOWN_EVERY)
    }

    /// Tells that a section is about to be timed, and waits until a page has painted that.
    fn show(&mut self, step: RunStep, ticket: u32) {
        // What waited may go out now, and then nothing else while the page paints.
        self.loud();
        self.quiet();
        self.tell(step);
        // Who comes while the page comes to rest would make it paint again.
        self.log.set_still(true);
        if self.log.is_followed() {
            let patience = if self.has_timed {
                PATIENCE
            } else {
                FIRST_PATIENCE
            };
            self.app.measuring.painting.wait(ticket, patience);
        }
        self.has_timed = true;
        self.shown_at = Some(Instant::now());
    }

    fn sample(&mut self, made: SampleRecord) {
        let at = self.now();
        let Some(position) = self.turn(made.test) else {
            return;
        };
        let Some(running) = self.running.get_mut(&made.test) else {
            return;
        };
        let SampleRecord {
            sample, conditions, ..
        } = made;
        let (number, ns) = (sample.index + 1, sample.ns);
        self.last_sample = Some(Duration::from_nanos(ns));
        let (kind, spec) = (&running.record.kind, running.record.spec);
        let value = found::value(kind, spec, &sample);
        let found = found::found(kind, spec, std::slice::from_ref(&sample));
        running.samples.push(sample);
        let within = found::values(kind, spec, &running.samples)
            .as_ref()
            .and_then(found::within);
        let Some((value, found)) = value.zip(found) else {
            return;
        };
        self.eta.sampled(value, at);
        // The next step follows at once, and what is told now goes with it: after the last one
        // the anchor runs first.
        let step = RunStep::Sample {
            position,
            number,
            value,
            found,
            seconds: ns as f64 / 1e9,
            within,
            around: around(&conditions),
        };
        self.pass(step, Pass::WithNext);
    }

    fn test_ended(&mut self, end: &Ended) {
        let Some(Running { record, samples }) = self.running.remove(&end.test) else {
            return;
        };
        self.skipped = matches!(end.status, TestStatus::Skipped { .. });
        let measured = end.status == TestStatus::Done;
        self.eta
            .ends(record.position, self.now(), &samples, measured);
        let values = found::values(&record.kind, record.spec, &samples);
        let state = end.state_after.as_ref().or(end.state_before.as_ref());
        self.tell(RunStep::TestEnded {
            position: record.position,
            end: test_end(&end.status).unwrap_or(TestEnd::Cancelled),
            mean: values.map(|values| values.mean),
            deviation: values.and_then(|values| values.standard_deviation),
            found: found::found(&record.kind, record.spec, &samples),
            seconds: end
                .ended_at
                .duration_since(record.started_at)
                .as_secs_f64()
                .max(0.0),
            warnings: end.warnings.clone(),
            machine: state.map(machine_now).unwrap_or_default(),
        });
    }
}

fn around(conditions: &Conditions) -> Around {
    let seconds = conditions.energy_seconds.filter(|seconds| *seconds > 0.0);
    Around {
        clock_hz: conditions.clock_hz,
        temperature_c: conditions.temperature_c,
        watts: conditions
            .energy_j
            .zip(seconds)
            .map(|(joules, seconds)| joules / seconds),
    }
}

fn engine(worker: &Hello) -> RunStep {
    let mut devices: Vec<_> = worker.devices.iter().collect();
    devices.sort_by_key(|device| device.kind != DeviceKind::Cpu);
    RunStep::Engine {
        variant: worker.variant.name.clone(),
        build: worker.engine.build_number,
        devices: devices
            .into_iter()
            .map(|device| shown(&device.description))
            .collect(),
    }
}

/// How a test ended, as pages get it; `None` for one that was cut off with its program.
pub(super) fn test_end(status: &TestStatus) -> Option<TestEnd> {
    Some(match status {
        TestStatus::Done => TestEnd::Done,
        TestStatus::Failed { code, message, log } => TestEnd::Failed {
            code: code.clone(),
            message: shown(message),
            log: log.iter().map(|line| shown(line)).collect(),
        },
        TestStatus::Cancelled => TestEnd::Cancelled,
        TestStatus::Interrupted => return None,
        TestStatus::Skipped { reason } => TestEnd::Skipped {
            reason: shown(reason),
        },
    })
}

fn machine_now(state: &MachineState) -> MachineNow {
    MachineNow {
        swap_bytes: state.swap_used_bytes,
        clock_hz: state.clock_hz,
        temperature_c: state.temperature_c,
        other_load_cores: state.other_load_cores,
        steal: state.steal,
        memory_bytes: state.memory_available_bytes,
        on_battery: state.on_battery,
        power_profile: state.power_profile.as_deref().map(shown),
        throttles: state
            .core_throttles
            .into_iter()
            .chain(state.package_throttles)
            .reduce(u64::saturating_add),
    }
}
