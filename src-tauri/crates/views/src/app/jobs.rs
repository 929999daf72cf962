//! Work that takes a while and is no run: quantizing, downloading, making the built-in model, trying
//! a twin, calibrating. A job and a measurement never run at the same time on a machine.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use twospeed_library::download::{self, Doing, Hub, OFFER, Request};
use twospeed_library::{FileType, builtin, quantized_path};
use twospeed_measure::Stop;
use twospeed_workbench::{
    QuantizeProgress, QuantizeRequest, hold_lease, plan_quantize, waiting_sentence,
};
use uuid::Uuid;

use super::App;
use super::catalogue::{Entry, id_of};
use super::folders::on_a_thread;
use super::models::{offer_id, unknown_row};
use crate::Problem;
use crate::desk::locked;
use crate::frame::AppEvent;
use crate::jobs::{Job, JobKind, JobState};

/// The page hears of a job's progress this often at most; first and last always.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How long the end of the program waits for the end of what goes on.
const FAREWELL: Duration = Duration::from_secs(3);

/// Pause before the second try of a download.
const PAUSE: Duration = Duration::from_millis(500);

/// Jobs that are not ended.
#[derive(Default)]
pub(crate) struct Jobs {
    live: Mutex<Vec<Live>>,
    /// One job computes at a time; downloads only wait for bytes.
    turn: tokio::sync::Mutex<()>,
}

struct Live {
    job: Job,
    stop: Stop,
    told: Option<Instant>,
    ended: watch::Sender<Option<Result<String, Problem>>>,
}

/// What a job is to do.
enum Task {
    Quantize(QuantizeRequest),
    Download,
    Builtin,
    Twin,
    Calibrate,
}

impl App {
    /// Makes or fetches a row that is not there yet. A row that is being made is not made twice:
    /// its job is the answer.
    ///
    /// Errors: `row_unknown`, `row_is_there`, and those of planning a quantization.
    pub async fn make(self: &Arc<Self>, row: String) -> Result<Job, Problem> {
        if let Some(job) = self.making(&row) {
            return Ok(job);
        }
        let app = self.clone();
        let asked = row.clone();
        let (task, kind, title) = on_a_thread(move || app.task(&asked)).await?;
        Ok(self.begin(row, task, kind, title))
    }

    /// Tries a twin of a model: measures shallower models of the same shapes and types, which tells
    /// what the model itself would run at. Of a header that was looked at, or of a row of Models; one
    /// that can be downloaded is looked at first.
    ///
    /// Errors: `row_unknown`, `busy` while a run of this window goes on.
    pub async fn twin(self: &Arc<Self>, of: String) -> Result<Job, Problem> {
        self.free_to_measure("try a twin")?;
        let title = self.title_of(&of).await?;
        Ok(self.begin(of, Task::Twin, JobKind::Twin, title))
    }

    /// Measures what ceilings and expected speeds stand on: some seconds, when nothing else is being
    /// measured.
    ///
    /// Errors: `busy` while a run of this window goes on.
    pub async fn calibrate(self: &Arc<Self>) -> Result<Job, Problem> {
        self.free_to_measure("calibrate")?;
        let title = "This machine".to_owned();
        Ok(self.begin(String::new(), Task::Calibrate, JobKind::Calibrate, title))
    }

    fn free_to_measure(&self, what: &str) -> Result<(), Problem> {
        match self.is_measuring() {
            true => Err(Problem::new(
                "busy",
                format!("A run is being measured: {what} when it has ended."),
            )),
            false => Ok(()),
        }
    }

    /// Begins a job; one that does the same already is the answer.
    fn begin(self: &Arc<Self>, row: String, task: Task, kind: JobKind, title: String) -> Job {
        let job = Job {
            id: Uuid::now_v7().to_string(),
            kind,
            title,
            row: row.clone(),
            state: JobState::Waiting {
                why: "Begins in a moment.".into(),
            },
        };
        let stop = Stop::new();
        {
            let mut live = locked(&self.jobs.live);
            let is_same = |live: &&Live| live.job.row == row && does_the_same(live.job.kind, kind);
            if let Some(other) = live.iter().find(is_same) {
                return other.job.clone();
            }
            live.push(Live {
                job: job.clone(),
                stop: stop.clone(),
                told: None,
                ended: watch::Sender::new(None),
            });
        }
        self.tell(AppEvent::Job { job: job.clone() });
        let (app, id) = (self.clone(), job.id.clone());
        self.runtime.spawn(async move {
            let done = app.work(&id, task, &stop).await;
            app.end_job(&id, done);
        });
        job
    }

    /// Stops a job; what was unfinished is removed, a download can be gone on with.
    pub async fn cancel_job(&self, job: String) -> Result<(), Problem> {
        // One that has just ended needs no stopping.
        if let Some(live) = locked(&self.jobs.live)
            .iter()
            .find(|live| live.job.id == job)
        {
            live.stop.now();
        }
        Ok(())
    }

    /// Waits for the end of a job; its row is the answer.
    ///
    /// Errors: why nothing came of it; `row_not_there` where it takes longer than that.
    pub(super) async fn ended(&self, id: &str, patience: Duration) -> Result<String, Problem> {
        let live = {
            let live = locked(&self.jobs.live);
            let found = live.iter().find(|live| live.job.id == id);
            found.map(|live| (live.ended.subscribe(), live.job.clone()))
        };
        let gone = || Problem::new("row_unknown", "The job is over. Scan the folders again.");
        let (mut ended, job) = live.ok_or_else(gone)?;
        match tokio::time::timeout(patience, ended.wait_for(Option::is_some)).await {
            Ok(Ok(ended)) => ended.clone().ok_or_else(gone)?,
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(Problem::new(
                "row_not_there",
                format!(
                    "{} is still being made. Wait for it, or go on without it.",
                    job.title
                ),
            )),
        }
    }

    /// Ends what goes on and closes the history: the window is being closed. Takes at most
    /// a few seconds; what is not over by then is cut off, which nothing stored minds.
    pub async fn close(&self) {
        // Stopped at once: this is where the program ends.
        let _ = self.stop_run(crate::measure::StopHow::Now).await;
        let waits: Vec<_> = locked(&self.jobs.live)
            .iter()
            .map(|live| {
                live.stop.now();
                live.ended.subscribe()
            })
            .collect();
        let jobs = async {
            for mut ended in waits {
                // An end that was missed is an end.
                let _ = ended.wait_for(Option::is_some).await;
            }
            while self.is_measuring() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, jobs).await;
        self.close_history().await;
    }

    /// What a job is about.
    pub(super) fn row_of_job(&self, id: &str) -> Option<String> {
        let live = locked(&self.jobs.live);
        let found = live.iter().find(|live| live.job.id == id);
        found.map(|live| live.job.row.clone())
    }

    /// Jobs that are not ended.
    pub(super) fn open_jobs(&self) -> Vec<Job> {
        locked(&self.jobs.live)
            .iter()
            .map(|live| live.job.clone())
            .collect()
    }

    /// The job that makes a row.
    fn making(&self, row: &str) -> Option<Job> {
        let makes = |job: &Job| job.row == row && does_the_same(job.kind, JobKind::Quantize);
        self.open_jobs().into_iter().find(makes)
    }

    /// What making a row means; blocks.
    fn task(&self, row: &str) -> Result<(Task, JobKind, String), Problem> {
        if row == offer_id() {
            return Ok((Task::Download, JobKind::Download, OFFER.name.to_owned()));
        }
        let built_in = builtin::path(&self.data_folder);
        if row == id_of(&built_in) {
            return Ok((Task::Builtin, JobKind::Builtin, builtin::NAME.to_owned()));
        }
        let known = self.known_row(row).ok_or_else(unknown_row)?;
        if known.entry.is_some() {
            return Err(Problem::new(
                "row_is_there",
                format!(
                    "{} {} is on this disk already.",
                    known.name, known.quantization
                ),
            ));
        }
        let made = row.strip_prefix("make:").and_then(|rest| {
            let (source, label) = rest.split_once(':')?;
            Some((self.catalogue.entry(source)?, FileType::named(label).ok()?))
        });
        let (source, file_type) = made.ok_or_else(unknown_row)?;
        let request = QuantizeRequest {
            target: self.place_for(&source, file_type)?,
            source: source.item.path.clone(),
            file_type,
            overwrite: false,
            threads: None,
        };
        plan_quantize(&request)?;
        let title = format!("{} {}", known.name, known.quantization);
        Ok((Task::Quantize(request), JobKind::Quantize, title))
    }

    /// Where a quantization goes: beside its source where the next scan finds it there, else among
    /// the models of the data folder.
    fn place_for(&self, source: &Entry, file_type: FileType) -> Result<PathBuf, Problem> {
        let model = source.item.model().ok_or_else(unknown_row)?;
        let beside = quantized_path(model, file_type, &self.data_folder);
        let own = self.own_models();
        let name = beside.file_name().map(PathBuf::from).unwrap_or_default();
        let is_found = beside
            .parent()
            .is_some_and(|folder| self.is_scanned(folder));
        let places = [is_found.then(|| beside.clone()), Some(own.join(&name))];
        let is_free = |place: &PathBuf| std::fs::symlink_metadata(place).is_err();
        let place = places.into_iter().flatten().find(is_free).ok_or_else(|| {
            Problem::new(
                "target_exists",
                format!(
                    "{} is there already and is no {} of this model. Rename or remove it.",
                    twospeed_library::display::shown_path(&own.join(&name)),
                    file_type.name()
                ),
            )
        })?;
        if place.starts_with(&own) {
            std::fs::create_dir_all(&own).map_err(|error| {
                Problem::new(
                    "target_unusable",
                    format!(
                        "{} cannot be made: {error}. Free some space or make the folder writable.",
                        twospeed_library::display::shown_path(&own)
                    ),
                )
            })?;
        }
        Ok(place)
    }

    async fn work(self: &Arc<Self>, id: &str, task: Task, stop: &Stop) -> Result<String, Problem> {
        let path = match task {
            Task::Download => self.fetch(id, stop).await?,
            Task::Quantize(request) => {
                let _turn = self.turn(id, stop).await?;
                self.quantize(id, &request, stop).await?
            }
            Task::Builtin => {
                let _turn = self.turn(id, stop).await?;
                self.make_builtin(id, stop).await?
            }
            Task::Twin => {
                let _turn = self.turn(id, stop).await?;
                return self.try_twin(id, stop).await;
            }
            Task::Calibrate => {
                let _turn = self.turn(id, stop).await?;
                return self.calibrate_now(id, stop).await;
            }
        };
        let app = self.clone();
        let entry = on_a_thread(move || app.take_in(&path)).await?;
        self.tell(AppEvent::ModelsChanged);
        Ok(entry.id.clone())
    }

    /// Waits until no other job computes.
    async fn turn(
        &self,
        id: &str,
        stop: &Stop,
    ) -> Result<tokio::sync::MutexGuard<'_, ()>, Problem> {
        if let Ok(turn) = self.jobs.turn.try_lock() {
            return Ok(turn);
        }
        self.wait_for(id, "Waits for the job before it.".into());
        tokio::select! {
            biased;
            () = stop.asked_now() => Err(cancelled()),
            turn = self.jobs.turn.lock() => Ok(turn),
        }
    }

    async fn quantize(
        &self,
        id: &str,
        request: &QuantizeRequest,
        stop: &Stop,
    ) -> Result<PathBuf, Problem> {
        let asked = request.clone();
        // Again: the disk may have filled up while this job waited.
        let plan = on_a_thread(move || Ok(plan_quantize(&asked)?)).await?;
        let mut told = |progress: QuantizeProgress| match progress {
            QuantizeProgress::Waiting(why) => self.wait_for(id, why),
            QuantizeProgress::Working(fraction) => self.progress(id, Some(fraction.into()), None),
        };
        let made = plan
            .run(
                self.engine.as_ref(),
                &self.environment.lease,
                stop,
                &mut told,
            )
            .await?;
        Ok(made.path)
    }

    async fn make_builtin(self: &Arc<Self>, id: &str, stop: &Stop) -> Result<PathBuf, Problem> {
        let lease = {
            let held = hold_lease(&self.environment.lease, "built-in model", |holder| {
                self.wait_for(id, waiting_sentence(holder.as_ref()));
            });
            tokio::select! {
                biased;
                () = stop.asked_now() => return Err(cancelled()),
                lease = held => lease?,
            }
        };
        self.progress(id, Some(0.0), None);
        let (app, job, stop) = (self.clone(), id.to_owned(), stop.clone());
        on_a_thread(move || {
            let _lease = lease;
            let made = builtin::ensure(&app.data_folder, &mut |done, of| {
                app.progress(&job, Some(done as f64 / of.max(1) as f64), None);
                !stop.is_now()
            });
            made.map_err(|error| match error {
                builtin::BuiltinError::Stopped => cancelled(),
                error => Problem::new("builtin_not_made", error),
            })
        })
        .await
    }

    async fn fetch(&self, id: &str, stop: &Stop) -> Result<PathBuf, Problem> {
        let from_hub = |error: download::DownloadError| Problem::new(error.code(), &error);
        let request = Request {
            hub: Hub::from_environment(|name| (self.environment.variable)(name))
                .map_err(from_hub)?,
            wanted: format!("{}:{}", OFFER.repo, OFFER.file)
                .parse()
                .map_err(from_hub)?,
            folder: self.own_models(),
            overwrite: false,
            pause: PAUSE,
        };
        let lease = self.environment.lease.clone();
        let mut told = |step: download::Progress| match step.doing {
            Doing::Paused => self.wait_for(
                id,
                "A measurement runs on this machine: the download waits until it ends.".into(),
            ),
            Doing::Retrying => self.wait_for(
                id,
                "The connection broke: it is tried again in a moment.".into(),
            ),
            _ if step.total == 0 => self.progress(id, None, None),
            _ => {
                let fraction = step.done as f64 / step.total as f64;
                self.progress(id, Some(fraction), Some((step.done, step.total)));
            }
        };
        let downloaded = twospeed_workbench::download(request, lease, stop, &mut told).await;
        Ok(downloaded
            .map_err(|problem| match stop.is_now() {
                true => cancelled(),
                false => problem.into(),
            })?
            .path)
    }

    pub(super) fn wait_for(&self, id: &str, why: String) {
        self.set_state(id, JobState::Waiting { why });
    }

    pub(super) fn progress(&self, id: &str, fraction: Option<f64>, bytes: Option<(u64, u64)>) {
        self.set_state(
            id,
            JobState::Running {
                fraction: fraction.map(|fraction| fraction.clamp(0.0, 1.0)),
                bytes: bytes.map(|(done, _)| done),
                bytes_total: bytes.map(|(_, total)| total),
            },
        );
    }

    /// A new state of a job; the page hears of every change of kind, and of progress now and then.
    fn set_state(&self, id: &str, state: JobState) {
        let job = {
            let mut live = locked(&self.jobs.live);
            let Some(live) = live.iter_mut().find(|live| live.job.id == id) else {
                return;
            };
            if live.job.state == state {
                return;
            }
            let is_progress =
                std::mem::discriminant(&live.job.state) == std::mem::discriminant(&state);
            let is_whole = matches!(
                state,
                JobState::Running {
                    fraction: Some(1.0),
                    ..
                }
            );
            live.job.state = state;
            let is_soon = live.told.is_some_and(|told| told.elapsed() < TELL_EVERY);
            if is_progress && is_soon && !is_whole {
                return;
            }
            live.told = Some(Instant::now());
            live.job.clone()
        };
        self.tell(AppEvent::Job { job });
    }

    fn end_job(&self, id: &str, done: Result<String, Problem>) {
        let ended = {
            let mut live = locked(&self.jobs.live);
            let at = live.iter().position(|live| live.job.id == id);
            at.map(|at| live.remove(at))
        };
        let Some(Live { mut job, ended, .. }) = ended else {
            return;
        };
        ended.send_replace(Some(done.clone()));
        job.state = match done {
            Ok(row) => JobState::Done { row },
            Err(problem) if problem.code == "cancelled" => JobState::Cancelled,
            Err(problem) => JobState::Failed { problem },
        };
        self.tell(AppEvent::Job { job });
    }
}

/// Whether two jobs about one row would do the same: what makes it, makes it, in whichever way.
fn does_the_same(one: JobKind, other: JobKind) -> bool {
    let makes = |kind| !matches!(kind, JobKind::Twin | JobKind::Calibrate);
    one == other || (makes(one) && makes(other))
}

pub(super) fn cancelled() -> Problem {
    Problem::new("cancelled", "Cancelled: nothing was made.")
}
