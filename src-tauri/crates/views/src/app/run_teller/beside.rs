//! What a run says beside the steps of its tests: a race of settings, and what was kept of a run
//! that goes on.

use std::time::Instant;

use twospeed_history::Test;
use uuid::Uuid;

use super::super::run_log::Pass;
use super::{Running, SHOWN_EVERY, Teller};
use crate::measure::*;

impl Teller<'_> {
    /// It takes so many seconds from now on, whatever its tests are; `None` = not known.
    pub(in super::super) fn ends_after(&mut self, seconds: Option<f64>) {
        let now = self.now();
        self.eta.ends_at(seconds.map(|seconds| now + seconds));
    }

    /// It ends then, seconds since it was asked for.
    pub(in super::super) fn ends_at(&mut self, at: f64) {
        self.eta.ends_at(Some(at));
    }

    /// A race of settings begins.
    pub(in super::super) fn race_begins(&mut self, position: u32, run: Uuid) {
        self.loud();
        if position == 0 {
            self.tell(RunStep::Started {
                run: run.to_string(),
            });
        }
        self.tell(RunStep::TestStarted {
            position,
            test: run.to_string(),
        });
        self.let_paint();
    }

    /// How far a race is. Showing it takes a while, so what comes soon after waits for the next.
    pub(in super::super) fn race(&mut self, position: u32, what: TuneStep) {
        let step = RunStep::Tuning { position, what };
        if self.shown_at.is_some_and(|at| at.elapsed() < SHOWN_EVERY) {
            return self.pass(step, Pass::WithNext);
        }
        self.loud();
        self.tell(step);
        self.let_paint();
        self.shown_at = Some(Instant::now());
    }

    /// A race is over: its gain and what was found.
    pub(in super::super) fn race_ended(
        &mut self,
        position: u32,
        end: TestEnd,
        found: Option<(f64, Found)>,
        seconds: f64,
    ) {
        self.loud();
        let (mean, found) = found.unzip();
        self.tell(RunStep::TestEnded {
            position,
            end,
            mean,
            deviation: None,
            found,
            seconds,
            warnings: Vec::new(),
            machine: MachineNow::default(),
        });
    }

    /// A test that was measured before its run was cut off, as it was told then.
    pub(in super::super) fn kept(&mut self, test: Test) {
        let Test {
            record,
            samples,
            end,
            ..
        } = test;
        let Some(end) = end else {
            return;
        };
        self.tell(RunStep::TestStarted {
            position: record.position,
            test: record.id.to_string(),
        });
        let id = record.id;
        let running = Running {
            record,
            samples: Vec::new(),
        };
        self.running.insert(id, running);
        for sample in samples {
            self.sample(sample);
        }
        self.test_ended(&end);
    }
}
