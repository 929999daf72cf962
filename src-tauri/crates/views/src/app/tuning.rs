//! A race of settings, told step by step.

use twospeed_engine::{FlashAttention, TestSpec};
use twospeed_history::History;
use twospeed_library::display::shown;
use twospeed_measure::tune::{
    Change, Choice, Decision, Fate, Share, Speeds, Stage, Target, TuneProgress,
};
use twospeed_measure::{Lease, PlannedTest, Stop, platform};
use twospeed_workbench::tune::{TuneOutcome, TuneRequest, keep, tune};
use twospeed_workbench::{Subject, needs};

use super::App;
use super::plan::phase_of;
use super::run_teller::Teller;
use crate::Problem;
use crate::measure::*;

/// Races the settings of one model after the other; whether the person stopped it.
///
/// A model that cannot be tuned is a row that says so; the others are tuned.
pub(super) async fn race(
    app: &App,
    subjects: &[&Subject],
    target: Target,
    (history, lease, stop): (&History, &Lease, &Stop),
    teller: &mut Teller<'_>,
) -> RunEnd {
    let topology = platform::topology();
    for (position, subject) in (0..).zip(subjects) {
        if stop.is_asked() {
            teller.race_ended(position, TestEnd::skipped_since_stopped(), None, 0.0);
            continue;
        }
        let began = teller.now();
        let request = TuneRequest {
            model: &subject.measured,
            target,
            share: Share::QUARTER,
            machine: &app.machine,
            topology: &topology,
            engine: &*app.engine,
            recorder: history,
            needs: &|test: &PlannedTest| needs(&subject.header, test),
            stop,
        };
        let mut told = Told {
            position,
            rest: subjects.len() - 1 - position as usize,
            began,
            defaults: None,
        };
        let outcome = tune(&request, lease, &mut |step| told.tell(teller, step)).await;
        let kept = match outcome {
            Ok(outcome) => keep(history, &app.machine, &subject.measured, &outcome)
                .await
                .map(|()| outcome),
            Err(problem) => Err(problem),
        }
        .map_err(Problem::from);
        teller.loud();
        let seconds = teller.now() - began;
        let (end, found) = match kept {
            Ok(outcome) => ended(&outcome),
            Err(problem) => (failed(problem), None),
        };
        teller.race_ended(position, end, found, seconds);
    }
    match stop.is_asked() {
        true => RunEnd::Stopped,
        false => RunEnd::Complete,
    }
}

fn failed(problem: Problem) -> TestEnd {
    TestEnd::Failed {
        code: problem.code,
        message: shown(&problem.message),
        log: Vec::new(),
    }
}

/// How a race ended, and what it found with its gain.
fn ended(outcome: &TuneOutcome) -> (TestEnd, Option<(f64, Found)>) {
    let usual = outcome.searched.as_ref().map(|searched| searched.speeds);
    let found = match &outcome.decision {
        Decision::Stopped => return (TestEnd::Cancelled, None),
        Decision::Tuned {
            choice,
            verdict,
            default_speeds,
            speeds,
        } => (
            verdict.median,
            Found::Tuned {
                choice: settings(choice, &outcome.defaults),
                gain_low: verdict.lower,
                usual: both(*default_speeds),
                speeds: Some(both(*speeds)),
            },
        ),
        Decision::Defaults { .. } => (
            1.0,
            Found::Tuned {
                choice: Vec::new(),
                gain_low: None,
                usual: usual.map(both).unwrap_or_default(),
                speeds: None,
            },
        ),
    };
    (TestEnd::Done, Some(found))
}

/// Steps of one race as the page gets them.
struct Told {
    position: u32,
    /// Models that are raced after this one.
    rest: usize,
    began: f64,
    defaults: Option<Choice>,
}

impl Told {
    fn tell(&mut self, teller: &mut Teller<'_>, step: TuneProgress) {
        let name = |choice: &Choice| match &self.defaults {
            Some(defaults) => settings(choice, defaults),
            None => Vec::new(),
        };
        let what = match step {
            TuneProgress::Started { run, defaults, .. } => {
                self.defaults = Some(defaults);
                return teller.race_begins(self.position, run);
            }
            TuneProgress::Searching(searched) => {
                let budget = searched.budget_seconds;
                // Others of the list are taken to need as long.
                teller.ends_at(self.began + budget * (1 + self.rest) as f64);
                TuneStep::Searching {
                    speeds: both(searched.speeds),
                    combinations: searched.grid.combinations,
                    grid_s: searched.grid_seconds,
                    budget_s: budget,
                }
            }
            TuneProgress::Stage { stage, choices } => TuneStep::Stage {
                stage: match stage {
                    Stage::Variant => TuneStage::Variant,
                    Stage::Threads => TuneStage::Threads,
                    Stage::Attention => TuneStage::Attention,
                    Stage::MicroBatch => TuneStage::MicroBatch,
                },
                choices: choices.iter().map(name).collect(),
            },
            TuneProgress::Testing { choice, spec } => TuneStep::Testing {
                choice: name(&choice),
                what: speed(spec),
            },
            TuneProgress::Measured {
                choice,
                speeds,
                share,
            } => TuneStep::Measured {
                choice: name(&choice),
                speeds: both(speeds),
                share,
            },
            TuneProgress::Dropped {
                choice,
                fate,
                reason,
            } => TuneStep::Dropped {
                choice: name(&choice),
                share: match fate {
                    Fate::Slower { speed, .. } => Some(speed),
                    Fate::InRace | Fate::Failed => None,
                },
                reason: reason.as_deref().map(shown),
            },
            TuneProgress::Best {
                choice,
                out_of_time,
                ..
            } => TuneStep::Best {
                choice: name(&choice),
                out_of_time,
            },
            TuneProgress::Final { choice, pairs, .. } => TuneStep::Final {
                choice: name(&choice),
                pairs,
            },
            // It is told with the end of the row.
            TuneProgress::Decided(_) => return,
        };
        teller.race(self.position, what);
    }
}

fn both(speeds: Speeds) -> BothSpeeds {
    BothSpeeds {
        prefill: speeds.prefill,
        decode: speeds.decode,
    }
}

fn speed(spec: TestSpec) -> RowKind {
    RowKind::Speed {
        phase: phase_of(spec),
        tokens: spec.n_prompt.max(spec.n_gen),
        depth: spec.n_depth,
    }
}

/// In what a choice differs from the usual settings.
fn settings(choice: &Choice, defaults: &Choice) -> Vec<Setting> {
    let setting = |change: Change| {
        let (key, value) = match change {
            Change::Variant(name) => ("variant", name),
            Change::Threads(count) => ("n_threads", count.to_string()),
            Change::FlashAttention(mode) => (
                "flash_attn",
                match mode {
                    FlashAttention::Auto => "auto",
                    FlashAttention::Off => "off",
                    FlashAttention::On => "on",
                }
                .to_owned(),
            ),
            Change::Repack(on) => ("repack", on.to_string()),
            Change::MicroBatch(size) => ("n_ubatch", size.to_string()),
        };
        Setting {
            key: key.to_owned(),
            value,
        }
    };
    choice.changes(defaults).into_iter().map(setting).collect()
}
