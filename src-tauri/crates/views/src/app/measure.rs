//! The view Measure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use twospeed_gguf::Model;
use twospeed_history::{LatestFilter, Test};
use twospeed_library::display::shown_path;
use twospeed_library::names::without_quantization;
use twospeed_measure::Stop;
use twospeed_measure::machine::Probe;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::platform::Host;
use twospeed_workbench::{ReadSpeed, Subject};

use super::catalogue::Entry;
use super::plan::{Around, Candidate, Choice, Prepared, check_threads, prepare};
use super::run::Run;
use super::run_log::{Painting, RunLog};
use super::{App, Tell};
use crate::Problem;
use crate::desk::locked;
use crate::measure::*;

/// State of the measuring half.
#[derive(Default)]
pub(crate) struct Measuring {
    /// The newest run.
    run: Mutex<Newest>,
    /// Pages say when they have painted.
    pub(super) painting: Painting,
}

#[derive(Default)]
struct Newest {
    /// Goes on, or is about to begin.
    goes_on: bool,
    /// There was one: `log` has its steps.
    was_begun: bool,
    stop: Stop,
    log: Arc<RunLog>,
}

impl Measuring {
    /// Takes the place of the one run that may go on.
    fn reserve(&self) -> Result<Reserved<'_>, Problem> {
        let mut run = locked(&self.run);
        if run.goes_on {
            return Err(Problem::new(
                "busy",
                "A run of this window is going on: wait for it, or stop it.",
            ));
        }
        run.goes_on = true;
        Ok(Reserved {
            measuring: self,
            is_used: false,
        })
    }

    /// The run is over; who asks for another at this news gets it.
    pub(super) fn ends(&self, log: &RunLog, last: RunEvent) {
        locked(&self.run).goes_on = false;
        log.end(last);
    }
}

/// A place that is free again if nothing comes of it.
struct Reserved<'a> {
    measuring: &'a Measuring,
    is_used: bool,
}

impl Reserved<'_> {
    fn begin(mut self) -> (Arc<RunLog>, Stop) {
        self.is_used = true;
        let mut run = locked(&self.measuring.run);
        run.was_begun = true;
        run.stop = Stop::new();
        run.log = Arc::default();
        (run.log.clone(), run.stop.clone())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            locked(&self.measuring.run).goes_on = false;
        }
    }
}

impl App {
    /// A run of this window is going on.
    pub(crate) fn is_measuring(&self) -> bool {
        locked(&self.measuring.run).goes_on
    }

    /// Makes a plan ready, without running it.
    pub async fn plan(self: &Arc<Self>, request: PlanRequest) -> Result<PlanView, Problem> {
        Ok(self.made_ready(&request).await?.view)
    }

    /// Begins a run.
    ///
    /// Errors: `busy` while another goes on; `nothing_to_measure` with the reason; what `plan` says.
    pub async fn start_run(self: &Arc<Self>, request: PlanRequest) -> Result<(), Problem> {
        let reserved = self.measuring.reserve()?;
        let prepared = self.made_ready(&request).await?;
        if prepared.plan.tests.is_empty() {
            let why = prepared.view.hindrances.first();
            return Err(Problem::new(
                "nothing_to_measure",
                why.map_or("There is nothing to measure: choose a model.", |why| {
                    why.sentence.as_str()
                }),
            ));
        }
        let history = self.history().await?;
        if !history.path().exists() {
            // What is open is a file without a name: all that is stored there would be lost with it.
            return Err(Problem::new(
                "history_gone",
                format!(
                    "{} was removed while Twospeed was open, so nothing could be kept. Put it back, or close Twospeed and start it again: a fresh history then begins.",
                    shown_path(history.path())
                ),
            ));
        }
        let (log, stop) = reserved.begin();
        let run = Run {
            app: self.clone(),
            prepared,
            history,
            log: log.clone(),
            stop,
        };
        let runtime = self.runtime.clone();
        let thread = std::thread::Builder::new().name("run".into());
        let measuring = self.clone();
        let begun = thread.spawn(move || {
            let run = AssertUnwindSafe(|| runtime.block_on(run.run()));
            if catch_unwind(run).is_err() {
                measuring.measuring.ends(&log, broken());
            }
        });
        begun.map(drop).map_err(|error| {
            locked(&self.measuring.run).goes_on = false;
            Problem::new(
                "no_thread",
                format!("The run cannot begin: the system gives no thread ({error}). Close other programs and try again."),
            )
        })
    }

    /// Tells the newest run from its start.
    pub async fn follow_run(&self, events: Tell<RunEvent>) -> Result<(), Problem> {
        let log = {
            let run = locked(&self.measuring.run);
            run.was_begun.then(|| run.log.clone())
        };
        if let Some(log) = log {
            log.follow(events).await;
        }
        Ok(())
    }

    /// Stops the run.
    pub async fn stop_run(&self, how: StopHow) -> Result<(), Problem> {
        let stop = locked(&self.measuring.run).stop.clone();
        match how {
            StopHow::Now => stop.now(),
            StopHow::AfterTest => stop.after_test(),
        }
        Ok(())
    }

    /// The page has painted and stands still.
    pub async fn painted(&self, ticket: u32) -> Result<(), Problem> {
        self.measuring.painting.painted(ticket);
        Ok(())
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

    async fn made_ready(self: &Arc<Self>, request: &PlanRequest) -> Result<Prepared, Problem> {
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
        // Times and ceilings are extras: a history that cannot be read hinders no plan.
        let (mut earlier, mut read_speed) = (Vec::new(), None);
        if let Ok(history) = self.history().await {
            let filter = LatestFilter {
                machine: Some(self.machine.id.clone()),
                models: Some(fingerprints.clone()),
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
        Ok(Picked {
            candidates,
            threads,
            available: Host::new().state(None).memory_available_bytes,
            earlier,
            read_speed,
        })
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
        let around = Around {
            asked,
            threads: picked.threads,
            available: picked.available,
            earlier: &picked.earlier,
            ceiling: &|model| {
                let read_speed = picked.read_speed.as_ref()?;
                read_speed.decode_ceiling(&self.machine, model)
            },
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
    available: Option<u64>,
    earlier: Vec<Test>,
    read_speed: Option<ReadSpeed>,
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

/// A fault in this program must not keep the place of a run for ever.
fn broken() -> RunEvent {
    RunEvent {
        at_s: 0.0,
        left_s: None,
        step: RunStep::Ended {
            end: RunEnd::Failed {
                code: "internal".to_owned(),
                message: "The run ended by a fault of its own; what was measured is kept. Start it again, and please report this.".to_owned(),
            },
            results: Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::*;

    /// The window asks from whatever thread is free.
    #[allow(dead_code)]
    fn what_is_asked_may_cross_threads(app: &Arc<App>) {
        fn sent<T: Send>(_: impl Future<Output = T> + Send) {}
        let request: fn() -> PlanRequest = || unreachable!();
        sent(app.plan(request()));
        let several: fn() -> OffersRequest = || unreachable!();
        sent(app.offers(several()));
        sent(app.start_run(request()));
        sent(app.stop_run(StopHow::Now));
        sent(app.results());
        let request: fn() -> FigureRequest = || unreachable!();
        sent(app.figure(request()));
        let request: fn() -> ExportRequest = || unreachable!();
        sent(app.export(request()));
        sent(app.copy(request(), CopyWhat::Table));
        sent(app.delete_runs(Vec::new()));
        sent(app.run_page(String::new()));
    }
}
