//! A run that was stopped or cut off goes on.

use std::collections::HashMap;
use std::sync::Arc;

use twospeed_history::{Resumable, RunFilter, RunStatus, Test};
use twospeed_library::display::shown;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Plan, resume};
use twospeed_workbench::{Subject, tune};

use super::App;
use super::catalogue::id_of;
use super::plan::{Around, How, Prepared, Resumed, base_name, full_name, prepared, quantization};
use crate::Problem;
use crate::measure::*;

impl App {
    /// The newest run here, where tests of it are missing.
    pub async fn resumable(self: &Arc<Self>) -> Result<Option<ResumableRun>, Problem> {
        let history = self.history().await?;
        let newest = history.runs(&RunFilter::default()).await?;
        let here = |id: &str| id == self.machine.id;
        let Some(newest) = newest.iter().find(|run| here(&run.run.machine.id)) else {
            return Ok(None);
        };
        let found = history.resumable().await?;
        let found = found
            .into_iter()
            .find(|run| run.record.id == newest.run.id && run.record.preset != tune::PRESET);
        Ok(found.and_then(|run| {
            let plan = run.record.plan.as_ref()?;
            let missing = missing(&run, plan);
            let mut models: Vec<String> = Vec::new();
            for test in &plan.tests {
                let name = full_name(&test.model);
                if !models.contains(&name) {
                    models.push(name);
                }
            }
            (!missing.is_empty()).then(|| ResumableRun {
                run: run.record.id.to_string(),
                at: run.record.started_at.to_string(),
                models,
                missing: count(missing.len()),
                of: count(plan.tests.len()),
                interrupted: run.status == RunStatus::Interrupted,
            })
        }))
    }

    /// Goes on with a run, into the same run.
    ///
    /// Errors: `busy` while another goes on; what `History::resume_of` says; `model_gone` with the
    /// model whose file is not there any more.
    pub async fn resume_run(self: &Arc<Self>, run: String) -> Result<(), Problem> {
        let reserved = self.reserve_run()?;
        let history = self.history().await?;
        let found = history.resume_of(Some(&run)).await?;
        let Some(plan) = found.record.plan.clone() else {
            return Err(Problem::new(
                "not_resumable",
                "This run does not keep its plan, so it cannot be resumed. Measure again.",
            ));
        };
        let missing = missing(&found, &plan);
        let whole = history.run(found.record.id).await?;
        let tests = whole.map(|whole| whole.tests).unwrap_or_default();
        let kept: Vec<Test> = tests
            .into_iter()
            .filter(|test| !missing.contains(&test.record.position))
            .collect();
        let needed: Vec<&MeasuredModel> = (0..)
            .zip(&plan.tests)
            .filter(|(position, _)| missing.contains(position))
            .map(|(_, test)| &test.model)
            .collect();
        let mut subjects: HashMap<String, Subject> = HashMap::new();
        for model in needed {
            if !subjects.contains_key(&model.fingerprint) {
                let subject = self.subject_of(model.clone()).await?;
                subjects.insert(model.fingerprint.clone(), subject);
            }
        }
        let prepared = self.goes_on(plan, subjects.into_values().collect()).await;
        let how = How::Resume(Box::new(Resumed {
            run: found.record,
            missing,
            kept,
        }));
        self.begin_run(reserved, Prepared { how, ..prepared }, history)
    }

    /// The file that a model was measured from, if it still holds the same.
    async fn subject_of(self: &Arc<Self>, model: MeasuredModel) -> Result<Subject, Problem> {
        let name = full_name(&model);
        let wanted = model.fingerprint.clone();
        let read = self
            .runtime
            .spawn_blocking(move || Subject::read(&model.path.0))
            .await;
        match read {
            Ok(Ok(subject)) if subject.measured.fingerprint == wanted => Ok(subject),
            _ => Err(Problem::new(
                "model_gone",
                format!(
                    "{name} is not where it was, or another file is there, so this run cannot go on. Put it back, or measure again."
                ),
            )),
        }
    }

    async fn goes_on(self: &Arc<Self>, plan: Plan, subjects: Vec<Subject>) -> Prepared {
        let names = plan
            .tests
            .iter()
            .map(|test| {
                let model = &test.model;
                (id_of(&model.path.0), base_name(model), quantization(model))
            })
            .collect();
        let threads = plan.tests.first().map_or(1, |test| test.settings.n_threads);
        let fingerprints: Vec<String> = subjects
            .iter()
            .map(|subject| subject.measured.fingerprint.clone())
            .collect();
        let beside = self.beside(&fingerprints).await;
        let around = Around {
            asked: None,
            threads,
            available: beside.available,
            earlier: &beside.earlier,
            ceiling: &|model| beside.ceiling(&self.machine, model),
            variants: beside.variants,
            base: &|_| None,
        };
        prepared(plan, subjects, names, Vec::new(), &around)
    }
}

/// Positions of the plan that are missing.
fn missing(run: &Resumable, plan: &Plan) -> std::collections::BTreeSet<u32> {
    let tried = run.tests.iter();
    resume::missing(
        plan,
        tried.map(|test| (test.position, test.status.as_ref())),
    )
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl TestEnd {
    /// Of what was not begun when the person stopped a run.
    pub(super) fn skipped_since_stopped() -> Self {
        Self::Skipped {
            reason: shown("Not tried, since the run was stopped before."),
        }
    }
}
