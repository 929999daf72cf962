//! Finds the fastest settings of a model on this machine by measuring, in a part of the time that
//! all combinations would take.
//!
//! What is tried and what wins is decided by [`twospeed_measure::tune`]; here it is measured.
//! Everything that is measured is kept, as one run with the preset `tune`.

mod one_run;
mod profile;
mod rounds;
mod search;

use jiff::Timestamp;
use twospeed_engine::{Engine, Settings};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::threads::{Topology, default_threads};
use twospeed_measure::tune::{Choice, Decision, Searched, Share, Stage, Target, TuneProgress};
use twospeed_measure::{Lease, Need, PlannedTest, Recorder, Stop};
use uuid::Uuid;

pub use self::profile::{Tuned, keep, profile};

use self::one_run::OneRun;
use self::search::Search;
use crate::Problem;

/// Preset under which the run is kept.
pub const PRESET: &str = "tune";

/// What is to be tuned, with what.
pub struct TuneRequest<'a> {
    /// The model.
    pub model: &'a MeasuredModel,
    /// What is to be fast.
    pub target: Target,
    /// The part of the full grid's time that it may take.
    pub share: Share,
    /// The machine.
    pub machine: &'a Machine,
    /// Its processors, and what this process may use of them.
    pub topology: &'a Topology,
    /// Runs the model.
    pub engine: &'a dyn Engine,
    /// Keeps what happens.
    pub recorder: &'a dyn Recorder,
    /// The memory a test needs at least; `None` = unknown.
    pub needs: &'a (dyn Fn(&PlannedTest) -> Option<Need> + Sync),
    /// Stops it; what was measured stays.
    pub stop: &'a Stop,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneOutcome {
    /// The run that keeps everything.
    pub run: Uuid,
    /// What was to be fast.
    pub target: Target,
    /// llama-bench's defaults here: what `twospeed bench` runs when nothing else is said.
    pub defaults: Choice,
    /// The defaults' speeds, the grid and the time there was; `None` when it was stopped before.
    pub searched: Option<Searched>,
    /// Seconds it took, from the lease to the decision.
    pub seconds: f64,
    /// Stages whose time was up before their choices were measured.
    pub untried: Vec<Stage>,
    /// What was decided.
    pub decision: Decision,
}

/// Races settings against each other, then the winner against the defaults.
///
/// Errors: the defaults cannot be measured (the engine's own sentence), there is no engine, or
/// something could not be stored. What was measured before stays.
pub async fn tune(
    request: &TuneRequest<'_>,
    lease: &Lease,
    progress: &mut (dyn FnMut(TuneProgress) + Send),
) -> Result<TuneOutcome, Problem> {
    let recorder = OneRun::new(request.recorder);
    let defaults = Choice {
        variant: None,
        settings: Settings {
            n_threads: default_threads(request.topology),
            ..Settings::default()
        },
    };
    progress(TuneProgress::Started {
        run: recorder.id(),
        target: request.target,
        defaults: defaults.clone(),
    });
    let mut search = Search::new(request, &recorder, lease, &defaults, progress);
    let decided = search.run().await;
    let (searched, seconds) = (search.searched(), search.elapsed());
    let untried = search.untried();
    let complete = matches!(&decided, Ok(decision) if *decision != Decision::Stopped);
    let ended = recorder.end(Timestamp::now(), complete).await;
    let decision = decided?;
    ended.map_err(|error| Problem::new("not_stored", error))?;
    progress(TuneProgress::Decided(decision.clone()));
    Ok(TuneOutcome {
        run: recorder.id(),
        target: request.target,
        defaults,
        searched,
        seconds,
        untried,
        decision,
    })
}
