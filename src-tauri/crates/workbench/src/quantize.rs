//! A model file quantized on this machine, in a worker, under the machine's lease.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use twospeed_engine::protocol::{Event, FailureCode, Quantize, Request};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Engine, Incoming, Session, Start};
use twospeed_estimate::Bytes;
use twospeed_gguf::Model;
use twospeed_library::display::{shown, shown_path};
use twospeed_library::{FileType, landing, quantized, quantized_size, requantizes};
use twospeed_measure::{Stop, platform};

use crate::{Problem, hold_lease, waiting_sentence};

/// What is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantizeRequest {
    /// The model; of a split set any part.
    pub source: PathBuf,
    /// The file to make.
    pub target: PathBuf,
    /// What to make.
    pub file_type: FileType,
    /// Overwrite a file that is there.
    pub overwrite: bool,
    /// Threads; `None` = the physical cores this process may use.
    pub threads: Option<u32>,
}

/// A request that was looked at and may be carried out.
#[derive(Debug, Clone)]
pub struct QuantizePlan {
    request: QuantizeRequest,
    model: Model,
    /// Size of the file that comes of it; `None` where it cannot be told before.
    pub bytes: Option<u64>,
    /// What the person should know before it begins, a sentence each.
    pub warnings: Vec<String>,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub enum QuantizeProgress {
    /// Another measurement runs; the sentence says which.
    Waiting(String),
    /// Part of the weights that is done, 0 to 1; at most ten a second, first and last always.
    Working(f32),
}

/// A file that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it is, by its header.
    pub quantization: Option<String>,
    /// How long it took.
    pub took: Duration,
    /// Tensors that got another type than the one meant for them, since their rows are no whole
    /// blocks of it; `None` = not known.
    pub fallbacks: Option<u32>,
}

/// End of the name under which the file grows.
const UNFINISHED: &str = ".quantize.part";

/// Looks at a request without starting anything: reads the source's header, foresees the size.
///
/// Errors: `file_unusable` for a source that the engine could not load; `quantize_same`,
/// `quantize_impossible`, `target_exists`, `target_unusable`, `disk_too_small`.
pub fn plan_quantize(request: &QuantizeRequest) -> Result<QuantizePlan, Problem> {
    let unusable =
        |error: twospeed_gguf::Error| Problem::new("file_unusable", shown(&error.to_string()));
    let model = twospeed_gguf::read(&request.source).map_err(unusable)?;
    model.check_loads().map_err(unusable)?;
    let name = shown_path(Path::new(
        request
            .source
            .file_name()
            .unwrap_or(request.source.as_os_str()),
    ));
    let file_type = request.file_type;
    if model.quantization.as_deref() == Some(file_type.name()) {
        return Err(Problem::new(
            "quantize_same",
            format!("{name} is {file_type} already: name another quantization."),
        ));
    }
    check_target(request, &model)?;
    let bytes = quantized_size(&model, file_type);
    if bytes.is_none() && model.metadata().architecture().is_some() {
        return Err(Problem::new(
            "quantize_impossible",
            format!(
                "{name} cannot be made {file_type}: its rows are no whole blocks of that type. Take another quantization."
            ),
        ));
    }
    if let (Some(need), Some(free)) = (
        bytes,
        landing::free_bytes(landing::folder_of(&request.target)),
    ) && need + landing::SPARE_BYTES > free
    {
        return Err(Problem::new(
            "disk_too_small",
            format!(
                "{} needs {} and {} are free there. Free some space or name another folder.",
                shown_path(&request.target),
                Bytes(need).decimal(),
                Bytes(free).decimal()
            ),
        ));
    }
    Ok(QuantizePlan {
        warnings: warnings(&model, file_type, &name, bytes),
        request: request.clone(),
        model,
        bytes,
    })
}

fn check_target(request: &QuantizeRequest, model: &Model) -> Result<(), Problem> {
    let target = &request.target;
    let shown = shown_path(target);
    let is_source = target.canonicalize().is_ok_and(|target| {
        let parts = model
            .parts
            .iter()
            .filter_map(|part| part.path.canonicalize().ok());
        parts
            .chain(request.source.canonicalize())
            .any(|part| part == target)
    });
    if is_source {
        return Err(Problem::new(
            "target_unusable",
            format!("{shown} is the file to be quantized: name another to write to."),
        ));
    }
    if target.is_dir() || target.file_name().is_none() {
        return Err(Problem::new(
            "target_unusable",
            format!("{shown} is a folder: name the file to write to."),
        ));
    }
    if !request.overwrite && fs::symlink_metadata(target).is_ok() {
        return Err(Problem::new(
            "target_exists",
            format!("{shown} is there already: name another file, or overwrite it (--force)."),
        ));
    }
    if !landing::folder_of(target).is_dir() {
        return Err(Problem::new(
            "target_unusable",
            format!(
                "{shown} cannot be written: there is no folder {}. Make it or name another.",
                shown_path(landing::folder_of(target))
            ),
        ));
    }
    Ok(())
}

fn warnings(model: &Model, file_type: FileType, name: &str, bytes: Option<u64>) -> Vec<String> {
    let mut warnings = Vec::new();
    if requantizes(model, file_type) {
        let label = model.quantization.as_deref().unwrap_or("quantized");
        warnings.push(format!(
            "{name} is {label} already: quantizing it again costs quality. Speeds are real; for text, quantize the original (F16 or BF16)."
        ));
    }
    if let Some(bytes) = bytes.filter(|bytes| *bytes > model.bytes_expected) {
        warnings.push(format!(
            "The result will be larger ({} instead of {}) and hold no more than {name} does.",
            Bytes(bytes).decimal(),
            Bytes(model.bytes_expected).decimal()
        ));
    }
    warnings
}

/// Quantizes a file: waits for the machine's lease, runs a worker, checks what it wrote, and puts
/// it in its place whole or not at all.
///
/// Errors: those of [`plan_quantize`]; `cancelled`; the worker's end or failure as a sentence with
/// its own code; `quantize_failed`, `disk_full`, `target_exists`, `target_unusable`.
pub async fn quantize(
    engine: &dyn Engine,
    request: &QuantizeRequest,
    stop: &Stop,
    progress: &mut (dyn FnMut(QuantizeProgress) + Send),
) -> Result<QuantizedFile, Problem> {
    plan_quantize(request)?
        .run(engine, &crate::lease_place(), stop, progress)
        .await
}

impl QuantizePlan {
    /// What [`quantize`] does after planning; `lease` is the file of the lease to wait for.
    pub async fn run(
        &self,
        engine: &dyn Engine,
        lease: &Path,
        stop: &Stop,
        progress: &mut (dyn FnMut(QuantizeProgress) + Send),
    ) -> Result<QuantizedFile, Problem> {
        let lease = {
            let held = hold_lease(lease, "quantize", |holder| {
                progress(QuantizeProgress::Waiting(waiting_sentence(holder.as_ref())));
            });
            tokio::select! {
                biased;
                () = stop.asked_now() => return Err(cancelled()),
                lease = held => lease?,
            }
        };
        let unfinished = Unfinished(landing::beside(&self.request.target, UNFINISHED));
        let started = std::time::Instant::now();
        let fallbacks = self.work(engine, &unfinished.0, stop, progress).await?;
        drop(lease);
        let made = self.check(&unfinished.0)?;
        landing::land(&unfinished.0, &self.request.target, self.request.overwrite)
            .map_err(|error| self.not_landed(&error))?;
        Ok(QuantizedFile {
            path: self.request.target.clone(),
            bytes: made.file_bytes,
            quantization: made.quantization,
            took: started.elapsed(),
            fallbacks,
        })
    }

    /// Has a worker write the file; it is dead when this returns.
    async fn work(
        &self,
        engine: &dyn Engine,
        unfinished: &Path,
        stop: &Stop,
        progress: &mut (dyn FnMut(QuantizeProgress) + Send),
    ) -> Result<Option<u32>, Problem> {
        let start = Start::default();
        let mut session = tokio::select! {
            biased;
            () = stop.asked_now() => return Err(cancelled()),
            session = engine.start(&start) => {
                session.map_err(|error| Problem::new(error.code(), &error))?
            }
        };
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        session
            .send(Request::Quantize(Quantize {
                input: ModelPath(absolute(&self.model.path)),
                output: ModelPath(absolute(unfinished)),
                file_type: self.request.file_type.id(),
                n_threads: self
                    .request
                    .threads
                    .unwrap_or_else(platform::default_threads),
                allow_requantize: true,
            }))
            .map_err(|error| Problem::new("engine", error))?;
        let done = tokio::select! {
            biased;
            () = stop.asked_now() => Err(cancelled()),
            done = self.listen(&mut session, progress) => done,
        };
        // The worker leaves at the end of its input, whatever it is doing; only then is the file
        // ours to remove or to keep.
        session.stop().await;
        done
    }

    async fn listen(
        &self,
        session: &mut Session,
        progress: &mut (dyn FnMut(QuantizeProgress) + Send),
    ) -> Result<Option<u32>, Problem> {
        let fractions = quantized::fractions(&self.model);
        progress(QuantizeProgress::Working(0.0));
        loop {
            match session.next().await {
                Incoming::Event(Event::QuantizeProgress { done, tensors }) => {
                    let known = fractions.get(done as usize);
                    let fraction = known
                        .copied()
                        .unwrap_or(done as f32 / tensors.max(1) as f32);
                    progress(QuantizeProgress::Working(fraction));
                }
                Incoming::Event(Event::Quantized(quantized)) => {
                    progress(QuantizeProgress::Working(1.0));
                    return Ok(quantized.fallbacks);
                }
                Incoming::Event(Event::Failed(failure)) => {
                    if failure.code == FailureCode::OutputUnwritable {
                        return Err(self.not_written(&failure.message));
                    }
                    return Err(Problem::new("quantize_failed", failure.message));
                }
                Incoming::Event(_) => {}
                Incoming::Ended(end) => {
                    return Err(Problem::new(
                        end.code(),
                        end.sentence(Some(&self.model.name)),
                    ));
                }
            }
        }
    }

    /// The engine does not notice that a disk is full, so what it wrote is read again.
    fn check(&self, unfinished: &Path) -> Result<Model, Problem> {
        let made = twospeed_gguf::read(unfinished)
            .and_then(|made| made.check_loads().map(|()| made))
            .ok()
            .filter(|made| made.tensors.len() == self.model.tensors.len());
        made.ok_or_else(|| self.not_written("What the engine wrote is not whole. Try again."))
    }

    /// Why a file is not whole: mostly the disk.
    fn not_written(&self, otherwise: &str) -> Problem {
        let target = &self.request.target;
        match landing::free_bytes(landing::folder_of(target)) {
            Some(free) if self.bytes.is_some_and(|need| free < need) => Problem::new(
                "disk_full",
                format!(
                    "{} was not made: its disk is full. Free some space or name another folder.",
                    shown_path(target)
                ),
            ),
            _ => Problem::new("quantize_failed", otherwise),
        }
    }

    fn not_landed(&self, error: &std::io::Error) -> Problem {
        let target = shown_path(&self.request.target);
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Problem::new(
                "target_exists",
                format!("{target} appeared meanwhile and was left as it is: name another file."),
            );
        }
        Problem::new(
            "target_unusable",
            format!("{target} cannot be written: {error}. Name another file or folder."),
        )
    }
}

fn cancelled() -> Problem {
    Problem::new("cancelled", "Cancelled: nothing was made.")
}

/// A file that goes with this value, unless it was put in its place before.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It is gone already where it was put in its place.
        let _ = fs::remove_file(&self.0);
    }
}
