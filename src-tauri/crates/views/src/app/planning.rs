//! Plans of what is chosen, with everything around them.

use std::path::Path;
use std::sync::Arc;

use twospeed_gguf::Model;
use twospeed_history::{LatestFilter, Test};
use twospeed_library::display::shown_path;
use twospeed_library::names::without_quantization;
use twospeed_measure::machine::{Machine, Probe};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::platform::Host;
use twospeed_workbench::{ReadSpeed, Subject};

use super::App;
use super::catalogue::Entry;
use super::plan::{Around, Candidate, Choice, Prepared, check_threads, prepare};
use crate::Problem;
use crate::measure::*;

impl App {
    /// Makes a plan ready, without running it.
    pub async fn plan(self: &Arc<Self>, request: PlanRequest) -> Result<PlanView, Problem> {
        Ok(self.made_ready(&request).await?.view)
    }

    /// What several choices of tests would take, without making more than their plans.
    ///
    /// Errors: as `plan`, where that concerns all choices.
    pub async fn offers(self: &Arc<Self>, request: OffersRequest) -> Result<Offers, Problem> {
        let picked = self.to_measure(&request.models, request.threads).await?;
        let mut offers = Vec::with_capacity(request.tests.len());
        for tests in &request.tests {
            let prepared = match Choice::of(tests) {
                Ok(choice) => self.prepared(&picked, &choice, None).await,
                Err(problem) => Err(problem),
            };
            offers.push(match prepared {
                Ok(Prepared { view, .. }) => Offer {
                    tests: u32::try_from(view.rows.len()).unwrap_or(u32::MAX),
                    seconds: view.seconds,
                    why_not: view
                        .hindrances
                        .first()
                        .filter(|_| view.rows.is_empty())
                        .map(|why| why.sentence.clone()),
                },
                Err(problem) => Offer {
                    tests: 0,
                    seconds: None,
                    why_not: Some(problem.message),
                },
            });
        }
        let known = self.known();
        Ok(Offers {
            offers,
            variants: known.variants.clone(),
            gpus: known.gpus.clone(),
        })
    }

    pub(super) async fn made_ready(
        self: &Arc<Self>,
        request: &PlanRequest,
    ) -> Result<Prepared, Problem> {
        let choice = Choice::of(&request.tests)?;
        let picked = self.to_measure(&request.models, request.threads).await?;
        self.prepared(&picked, &choice, Some(request)).await
    }

    /// What plans of these models need to know.
    async fn to_measure(
        self: &Arc<Self>,
        models: &[String],
        threads: Option<u32>,
    ) -> Result<Picked, Problem> {
        let threads = check_threads(threads.unwrap_or_else(|| self.threads()))?;
        let mut rows: Vec<&String> = Vec::new();
        for row in models {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Err(Problem::new(
                "no_models",
                "There is nothing to measure: choose a model.",
            ));
        }
        let mut candidates = Vec::with_capacity(rows.len());
        for row in rows {
            candidates.push(self.candidate(row).await);
        }
        let fingerprints: Vec<String> = candidates
            .iter()
            .filter_map(|candidate| {
                Some(candidate.read.as_ref().ok()?.measured.fingerprint.clone())
            })
            .collect();
        Ok(Picked {
            candidates,
            threads,
            beside: self.beside(&fingerprints).await,
        })
    }

    /// What is known beside the files of these models. Times and ceilings are extras: a history that
    /// cannot be read hinders no plan.
    pub(super) async fn beside(self: &Arc<Self>, fingerprints: &[String]) -> Beside {
        let (mut earlier, mut read_speed) = (Vec::new(), None);
        if let Ok(history) = self.history().await {
            let filter = LatestFilter {
                machine: Some(self.machine.id.clone()),
                models: Some(fingerprints.to_vec()),
            };
            earlier = history.finished_tests(&filter).await.unwrap_or_default();
            read_speed = ReadSpeed::load(&history, &self.machine).await.ok();
        }
        let known = self.known();
        let others = known.latest.iter();
        earlier.extend(
            others
                .filter(|test| !fingerprints.contains(&test.record.model.fingerprint))
                .cloned(),
        );
        Beside {
            available: Host::new().state(None).memory_available_bytes,
            earlier,
            read_speed,
            variants: known.variants.len(),
        }
    }

    async fn prepared(
        self: &Arc<Self>,
        picked: &Picked,
        choice: &Choice,
        asked: Option<&PlanRequest>,
    ) -> Result<Prepared, Problem> {
        let bases = match choice.needs_base() {
            true => self.bases(picked, choice.base()).await?,
            false => Vec::new(),
        };
        let beside = &picked.beside;
        let around = Around {
            asked,
            threads: picked.threads,
            available: beside.available,
            earlier: &beside.earlier,
            ceiling: &|model| beside.ceiling(&self.machine, model),
            variants: beside.variants,
            base: &|model| base_of(model, &bases),
        };
        prepare(picked.candidates.clone(), choice, &around)
    }

    /// The models whose predictions may be taken for right: the one that was named, or of each
    /// chosen model the best source on this disk.
    async fn bases(
        self: &Arc<Self>,
        picked: &Picked,
        named: Option<&str>,
    ) -> Result<Vec<MeasuredModel>, Problem> {
        if let Some(row) = named {
            let base = self.candidate(row).await.read?;
            return Ok(vec![base.measured]);
        }
        let read = || {
            picked
                .candidates
                .iter()
                .filter_map(|one| one.read.as_ref().ok())
        };
        let mut bases: Vec<MeasuredModel> = read().map(|one| one.measured.clone()).collect();
        for entry in self.catalogue.entries() {
            let better = |model: &Model| {
                let is_better = |subject: &Subject| {
                    is_source_of(model, &subject.header)
                        && model.file_bytes > subject.header.file_bytes
                };
                entry.hindrance.is_none() && !entry.is_unmade && read().any(is_better)
            };
            if entry.item.model().is_some_and(better)
                && let Ok(base) = self.candidate(&entry.id).await.read
            {
                bases.push(base.measured);
            }
        }
        Ok(bases)
    }

    /// Reads what a row stands for.
    async fn candidate(self: &Arc<Self>, row: &str) -> Candidate {
        let name = self
            .known_row(row)
            .map(|known| (known.name, known.quantization));
        let candidate = |read| Candidate {
            row: row.to_owned(),
            name,
            read,
        };
        let file = match self.subject_of_row(row).await {
            Ok(file) => file,
            Err(problem) => return candidate(Err(problem)),
        };
        let listed = self.catalogue.entry(row);
        let read = self
            .runtime
            .spawn_blocking(move || as_listed(&file, listed.as_deref()))
            .await;
        candidate(match read {
            Ok(read) => read.inspect_err(|_| self.begin_scan(false)),
            Err(_) => Err(Problem::new(
                "file_unusable",
                "The file could not be read. Look at its folder and try again.",
            )),
        })
    }
}

/// Models that are chosen, with what plans of them need to know.
struct Picked {
    candidates: Vec<Candidate>,
    threads: u32,
    beside: Beside,
}

/// What plans need to know beside the files.
pub(super) struct Beside {
    /// Bytes of memory that are free.
    pub(super) available: Option<u64>,
    /// Finished tests on this machine, newest first, those of these models before others.
    pub(super) earlier: Vec<Test>,
    read_speed: Option<ReadSpeed>,
    /// CPU variants of the engine here, as far as is known.
    pub(super) variants: usize,
}

impl Beside {
    /// What decode of a model cannot exceed here.
    pub(super) fn ceiling(&self, machine: &Machine, model: &MeasuredModel) -> Option<f64> {
        self.read_speed.as_ref()?.decode_ceiling(machine, model)
    }
}

/// Whether one file is the same model as another, in whatever quantization.
fn is_source_of(one: &Model, other: &Model) -> bool {
    one.parameters == other.parameters
        && one.architecture == other.architecture
        && without_quantization(&one.name) == without_quantization(&other.name)
}

/// The best of these for a model: of the same model the largest file. Random weights predict
/// nothing that is right.
fn base_of(model: &MeasuredModel, bases: &[MeasuredModel]) -> Option<MeasuredModel> {
    let name = without_quantization(&model.name);
    let same = bases.iter().filter(|base| {
        base.parameters == model.parameters && without_quantization(&base.name) == name
    });
    same.max_by_key(|base| base.file_bytes)
        .filter(|_| !model.synthetic)
        .cloned()
}

/// Reads a file that is to be measured.
///
/// Errors: it is gone; it is another one than the list says, whose name its speeds would get; what
/// [`Subject::read`] says.
fn as_listed(file: &Path, listed: Option<&Entry>) -> Result<Subject, Problem> {
    if !file.exists() {
        return Err(Problem::new(
            "file_gone",
            format!(
                "{} is not there any more. Put it back, or choose another model.",
                shown_path(file)
            ),
        ));
    }
    let subject = Subject::read(file)?;
    let is_the_same = |listed: &Model| {
        let read = &subject.header;
        listed.name == read.name
            && listed.quantization == read.quantization
            && listed.parameters == read.parameters
            && listed.file_bytes == read.file_bytes
    };
    match listed.and_then(|listed| listed.item.model()) {
        Some(listed) if !is_the_same(listed) => Err(Problem::new(
            "file_changed",
            format!(
                "{} is another model than when it was listed. The list is being read again: choose it there anew.",
                shown_path(file)
            ),
        )),
        _ => Ok(subject),
    }
}
