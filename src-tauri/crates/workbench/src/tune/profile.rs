//! What tuning found, kept for a machine and a model and offered as the profile "tuned".

use jiff::Timestamp;
use twospeed_history::{History, HistoryError, TunedRecord};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::tune::{Choice, Decision, Target};
use uuid::Uuid;

use super::TuneOutcome;
use crate::Problem;

/// The profile "tuned" of a model on a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// What it is for.
    pub target: Target,
    /// The settings and the CPU variant.
    pub choice: Choice,
    /// Median of its speed / the defaults'; `None` where the defaults were found fastest and are
    /// what `choice` holds.
    pub gain: Option<f64>,
    /// Lower 95 % bound of the gain.
    pub gain_low: Option<f64>,
    /// When it was found.
    pub at: Timestamp,
}

/// Keeps what was found as the newest of its machine, model and target; the defaults too where
/// they are the fastest, so that they replace what was found before. Nothing where tuning was
/// stopped, or found nothing faster before its time was up.
///
/// Errors: the history's.
pub async fn keep(
    history: &History,
    machine: &Machine,
    model: &MeasuredModel,
    outcome: &TuneOutcome,
) -> Result<(), Problem> {
    let (choice, gain, gain_low) = match &outcome.decision {
        Decision::Tuned {
            choice, verdict, ..
        } => (choice, verdict.median, verdict.lower),
        // Nobody knows whether they are the fastest.
        Decision::Defaults { .. } if !outcome.untried.is_empty() => return Ok(()),
        // Against themselves.
        Decision::Defaults { .. } => (&outcome.defaults, 1.0, None),
        Decision::Stopped => return Ok(()),
    };
    let record = TunedRecord {
        id: Uuid::now_v7(),
        at: Timestamp::now(),
        machine: machine.id.clone(),
        model: model.fingerprint.clone(),
        target: outcome.target.to_string(),
        variant: choice.variant.clone(),
        settings: choice.settings.clone(),
        gain,
        gain_low,
        run: Some(outcome.run),
    };
    history
        .keep_tuned(&record)
        .await
        .map_err(|error| Problem::new("not_stored", error))
}

/// What tuning found last for a model on a machine: for `target`, or for whatever was tuned last.
pub async fn profile(
    history: &History,
    machine: &Machine,
    model: &MeasuredModel,
    target: Option<Target>,
) -> Result<Option<Tuned>, HistoryError> {
    let records = history.tuned_for(&machine.id, &model.fingerprint).await?;
    let newest = records
        .into_iter()
        .filter_map(|record| Some((record.target.parse::<Target>().ok()?, record)))
        .find(|(its, _)| target.is_none_or(|wanted| wanted == *its));
    Ok(newest.map(|(target, record)| tuned(target, record)))
}

fn tuned(target: Target, record: TunedRecord) -> Tuned {
    let TunedRecord {
        at,
        variant,
        settings,
        gain,
        gain_low,
        ..
    } = record;
    Tuned {
        target,
        choice: Choice { variant, settings },
        // What is kept as tuned always has a bound.
        gain: gain_low.map(|_| gain),
        gain_low,
        at,
    }
}
