//! A plan run with the real engine, under the machine's lease.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_engine::Engine;
use twospeed_engine::protocol::EngineBuild;
use twospeed_history::History;
use twospeed_measure::lease::{self, Holder};
use twospeed_measure::machine::Machine;
use twospeed_measure::platform::{self, Host};
use twospeed_measure::{
    Bench, InMemory, Lease, Need, Plan, PlannedTest, Progress, Recorder, RecorderError, RunOutcome,
    RunRecord, SampleRecord, Stop, TestEnd, TestRecord,
};
use uuid::Uuid;

use crate::Problem;

/// What is to be run, with what.
pub struct RunRequest<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Runs the models.
    pub engine: &'a dyn Engine,
    /// Keeps what happens.
    pub recorder: &'a dyn Recorder,
    /// The memory a test needs at least; `None` = unknown.
    pub needs: &'a (dyn Fn(&PlannedTest) -> Option<Need> + Sync),
    /// Stops it.
    pub stop: &'a Stop,
}

/// Runs a plan to its end.
///
/// Errors: `plan_impossible` before anything is started.
pub async fn run(
    request: RunRequest<'_>,
    lease: &Lease,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<RunOutcome, Problem> {
    let RunRequest {
        engine,
        recorder,
        needs,
        ..
    } = request;
    bench(engine, recorder, needs, &platform::machine(), lease)
        .run(request.plan, &mut Host::new(), request.stop, progress)
        .await
        .map_err(|error| Problem::new("plan_impossible", error))
}

/// A run that is to go on, with what.
pub struct ResumeRequest<'a> {
    /// The run as it is stored, with its plan.
    pub run: RunRecord,
    /// Positions of its plan that are to be measured: [`twospeed_measure::resume::missing`].
    pub missing: &'a BTreeSet<u32>,
    /// Runs the models.
    pub engine: &'a dyn Engine,
    /// Keeps what happens.
    pub recorder: &'a dyn Recorder,
    /// The memory a test needs at least; `None` = unknown.
    pub needs: &'a (dyn Fn(&PlannedTest) -> Option<Need> + Sync),
    /// Stops it.
    pub stop: &'a Stop,
}

/// Goes on with a run that was stopped or cut off, into the same run.
///
/// That the run is not going on in another process is the caller's to know
/// ([`twospeed_measure::interrupted`]).
///
/// Errors: `resume_impossible` before anything is started.
pub async fn resume(
    request: ResumeRequest<'_>,
    lease: &Lease,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<RunOutcome, Problem> {
    let ResumeRequest {
        engine,
        recorder,
        needs,
        ..
    } = request;
    bench(engine, recorder, needs, &platform::machine(), lease)
        .resume(
            request.run,
            request.missing,
            &mut Host::new(),
            request.stop,
            progress,
        )
        .await
        .map_err(|error| Problem::new("resume_impossible", error))
}

/// This program's bench on this machine.
fn bench<'a>(
    engine: &'a dyn Engine,
    recorder: &'a dyn Recorder,
    needs: &'a (dyn Fn(&PlannedTest) -> Option<Need> + Sync),
    machine: &'a Machine,
    lease: &'a Lease,
) -> Bench<'a> {
    Bench {
        engine,
        recorder,
        machine,
        app_version: env!("CARGO_PKG_VERSION"),
        needs,
        lease,
    }
}

/// Waits for the right to measure on this machine; `waiting` is told who has it.
///
/// Errors: the lease's own codes.
pub async fn hold_lease(
    place: &Path,
    what: &str,
    waiting: impl FnOnce(Option<Holder>),
) -> Result<Lease, Problem> {
    Lease::acquire(place, what, Timestamp::now, waiting)
        .await
        .map_err(|error| Problem::new(error.code(), &error))
}

/// Who is waited for, in a sentence that stays true while one waits.
pub fn waiting_sentence(holder: Option<&Holder>) -> String {
    sentence_in(holder, &TimeZone::system())
}

fn sentence_in(holder: Option<&Holder>, zone: &TimeZone) -> String {
    match holder {
        Some(holder) => format!(
            "Another measurement runs on this machine ({}, process {}, since {}): this one waits until it ends.",
            holder.what,
            holder.pid,
            holder
                .since
                .to_zoned_datetime(zone.clone())
                .strftime("%H:%M")
        ),
        None => {
            "Another measurement runs on this machine: this one waits until it ends.".to_owned()
        }
    }
}

/// Where the lease of this machine is.
pub fn lease_place() -> std::path::PathBuf {
    lease::place()
}

/// Keeps nothing but what outlives a run on purpose: CPU variants that died are remembered even
/// when results are not.
pub struct Unsaved<'a> {
    memory: InMemory,
    history: Option<&'a History>,
}

impl<'a> Unsaved<'a> {
    /// With the history to remember dead variants in, where there is one.
    pub fn new(history: Option<&'a History>) -> Self {
        Self {
            memory: InMemory::default(),
            history: history.filter(|history| !history.is_read_only()),
        }
    }

    fn remembering(&self) -> &dyn Recorder {
        match self.history {
            Some(history) => history,
            None => &self.memory,
        }
    }
}

#[async_trait]
impl Recorder for Unsaved<'_> {
    async fn run_started(&self, run: &RunRecord) -> Result<(), RecorderError> {
        self.memory.run_started(run).await
    }

    async fn run_resumed(&self, run: &RunRecord) -> Result<(), RecorderError> {
        self.memory.run_resumed(run).await
    }

    async fn test_started(&self, test: &TestRecord) -> Result<(), RecorderError> {
        self.memory.test_started(test).await
    }

    async fn sample(&self, sample: &SampleRecord) -> Result<(), RecorderError> {
        self.memory.sample(sample).await
    }

    async fn test_ended(&self, end: &TestEnd) -> Result<(), RecorderError> {
        self.memory.test_ended(end).await
    }

    async fn run_ended(
        &self,
        run: Uuid,
        at: Timestamp,
        complete: bool,
    ) -> Result<(), RecorderError> {
        self.memory.run_ended(run, at, complete).await
    }

    async fn variants_set_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
    ) -> Result<Vec<String>, RecorderError> {
        self.remembering().variants_set_aside(machine, engine).await
    }

    async fn set_variant_aside(
        &self,
        machine: &Machine,
        engine: &EngineBuild,
        variant: &str,
        reason: &str,
    ) -> Result<(), RecorderError> {
        self.remembering()
            .set_variant_aside(machine, engine, variant, reason)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_waited_for_is_said_with_a_time_that_does_not_grow_old() {
        let holder = Holder {
            pid: 42,
            what: "bench".into(),
            since: "2026-12-01T04:05:06Z".parse().unwrap(),
        };
        let sentence = sentence_in(Some(&holder), &TimeZone::UTC);
        assert!(
            sentence.contains("(bench, process 42, since 04:05)"),
            "{sentence}"
        );
        assert!(sentence_in(None, &TimeZone::UTC).contains("this one waits"));
    }
}
