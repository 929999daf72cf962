//! The speed of a model from its header alone: twins with its real shapes and tensor types and
//! random weights are built, measured and removed, and what they cost is extrapolated to all
//! layers.
//!
//! Nothing of it is kept as a result: no number here was measured with the model itself.

mod file;
mod folder;
mod times;

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use twospeed_engine::{Engine, Settings};
use twospeed_estimate::{Bytes, Depths, TooLarge, TwinLayers, TwinPrediction, TwinTime};
use twospeed_gguf::{Data, Kind, Model, read_from};
use twospeed_history::History;
use twospeed_library::display::size;
use twospeed_library::landing::{SPARE_BYTES, free_bytes};
use twospeed_library::{ModelHeader, Synthetic, twin::twin};
use twospeed_measure::machine::Probe;
use twospeed_measure::platform::{self, Host};
use twospeed_measure::{Lease, Stop};

pub use self::folder::remove_left_twins;

use self::file::TwinFile;
use self::folder::TwinFolder;
use self::times::{Asked, Bench, Work};
use crate::{Problem, Subject, Unsaved, hold_lease, waiting_sentence};

/// What of the free memory a twin may take: its weights may be there twice, in the page cache and
/// rearranged by the engine.
const SHARE_OF_MEMORY: f64 = 0.4;

/// Between two words on how far a file is.
const TELL: Duration = Duration::from_millis(100);

/// Where the system does not say how much memory is free.
const USUAL_MEMORY: u64 = 4 << 30;

/// What is to be predicted, with what.
pub struct TwinRequest<'a> {
    /// The model's header.
    pub header: &'a ModelHeader,
    /// The data folder; twins lie below it while they are measured.
    pub folder: &'a Path,
    /// Tokens of the prompt; 0 leaves prefill out.
    pub prompt: u32,
    /// Tokens written; 0 leaves decode out.
    pub generate: u32,
    /// Tokens in the cache before.
    pub depth: u32,
    /// Repetitions of each test, at least 1.
    pub repetitions: u32,
    /// Every setting.
    pub settings: Settings,
    /// Runs the twins.
    pub engine: &'a dyn Engine,
    /// Knows CPU variants that died here, where there is one. No result goes into it.
    pub history: Option<&'a History>,
    /// The machine's lease ([`crate::lease_place`]).
    pub lease: &'a Path,
    /// Stops it.
    pub stop: &'a Stop,
}

/// What is being done.
#[derive(Debug, Clone, PartialEq)]
pub enum TwinProgress {
    /// Another measurement runs; this one waits. A sentence.
    Waiting(String),
    /// A twin is being written: bytes of so many.
    Building {
        /// Written.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// A twin is being measured.
    Measuring {
        /// Layers of it.
        layers: usize,
        /// The test, by llama-bench's name.
        test: String,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TwinOutcome {
    /// What was built, the shallower first.
    pub twins: Vec<MeasuredTwin>,
    /// Layers of the model itself.
    pub layers: usize,
    /// Prefill of the whole model; `None` where it was not asked for.
    pub prefill: Option<TwinPrediction>,
    /// Decode of the whole model; `None` where it was not asked for, and for a model that does not
    /// write token by token.
    pub decode: Option<TwinPrediction>,
    /// Milliseconds that one more layer costs a token of the prompt; `None` from one twin alone.
    pub prefill_layer_ms: Option<f64>,
    /// Milliseconds that one more layer costs a written token; `None` from one twin alone.
    pub decode_layer_ms: Option<f64>,
    /// Tokens of the prompts that were measured: fewer than asked for where that would take long.
    pub measured_prompt: u32,
    /// Tokens written in the measurement, about the middle of those asked for.
    pub measured_generate: u32,
    /// The model chooses among experts; random routers choose evenly, as trained ones about do.
    pub experts: bool,
    /// The CPU variant that ran.
    pub variant: Option<String>,
    /// From the lease to the prediction.
    pub seconds: f64,
}

/// A twin that was built and measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredTwin {
    /// Its layers.
    pub layers: usize,
    /// Bytes of its file.
    pub bytes: u64,
    /// Prompt tokens per second.
    pub prefill_tok_s: Option<f64>,
    /// Written tokens per second.
    pub decode_tok_s: Option<f64>,
}

/// Predicts both speeds of a model from its header.
///
/// Errors: a code and one sentence: it is no model, not even the smallest twins fit, the engine's
/// own words, `cancelled`. Nothing stays on disk either way.
pub async fn predict(
    request: &TwinRequest<'_>,
    progress: &mut (dyn FnMut(TwinProgress) + Send),
) -> Result<TwinOutcome, Problem> {
    let plan = Planned::of(request)?;
    let lease = {
        let held = hold_lease(request.lease, "twin", |holder| {
            progress(TwinProgress::Waiting(waiting_sentence(holder.as_ref())));
        });
        tokio::select! {
            biased;
            () = request.stop.asked_now() => return Err(cancelled()),
            lease = held => lease?,
        }
    };
    let begun = Instant::now();
    remove_left_twins(request.folder);
    let folder = TwinFolder::new(request.folder).map_err(|error| {
        Problem::new(
            "twin_not_written",
            format!(
                "A twin cannot be written below {}: {error}. Choose another data folder (--data-dir).",
                twospeed_library::display::shown_path(request.folder)
            ),
        )
    })?;
    let path = folder.file();
    let mut work = Run {
        request,
        plan: &plan,
        file: Some(TwinFile::new(path.clone())),
        path: &path,
        unsaved: Unsaved::new(request.history),
        lease: &lease,
        progress,
        variant: None,
    };
    let mut outcome = work.all().await?;
    outcome.seconds = begun.elapsed().as_secs_f64();
    Ok(outcome)
}

fn cancelled() -> Problem {
    Problem::new("cancelled", "Cancelled: nothing was predicted.")
}

/// What is to be built of a model.
struct Planned {
    /// The twins, the shallower first; one with all layers, or two.
    twins: Vec<PlannedTwin>,
    layers: usize,
    experts: bool,
    decodes: bool,
}

/// A twin to be built.
struct PlannedTwin {
    layers: usize,
    recipe: Synthetic,
    /// What its header says.
    model: Model,
}

impl Planned {
    fn of(request: &TwinRequest<'_>) -> Result<Self, Problem> {
        let model = &request.header.model;
        // What the engine would refuse of the real file it refuses of a twin.
        let mut whole = model.clone();
        whole.data = Data::Complete;
        whole
            .check_loads()
            .map_err(|error| Problem::new("file_unusable", error))?;
        let layers = TwinLayers::of(model);
        let cache = platform::machine().last_level_cache_bytes.map(Bytes);
        let room = Room::of(request.folder);
        let too_large = |TooLarge { needs }: TooLarge| room.too_small_for(&model.name, needs.0);
        let depths = layers
            .depths(cache, Bytes(room.at_most()))
            .map_err(too_large)?;
        let twins = match depths {
            Depths::All => None,
            Depths::Two { shallow, deep } => {
                let twins = [shallow, deep].map(|depth| cut(request.header, &layers, depth));
                let [shallow, deep] = twins;
                // Where layers cannot be left out, all have to be built.
                shallow?
                    .zip(deep?)
                    .map(|(shallow, deep)| vec![shallow, deep])
            }
        };
        let twins = match twins {
            Some(twins) => twins,
            None => {
                let bytes = layers.bytes(layers.count()).0;
                if bytes > room.at_most() {
                    return Err(room.too_small_for(&model.name, bytes));
                }
                vec![planned(request.header, None, layers.count())?]
            }
        };
        Ok(Self {
            twins,
            layers: layers.count(),
            experts: layers.has_experts(),
            decodes: model.kind == Kind::Generates,
        })
    }
}

/// A twin of so many layers; `None` where the engine would take its layers for others.
fn cut(
    header: &ModelHeader,
    layers: &TwinLayers,
    depth: usize,
) -> Result<Option<PlannedTwin>, Problem> {
    let choice = layers.choice(depth);
    let twin = planned(header, Some(&choice), depth)?;
    Ok(TwinLayers::same_kinds(&header.model, &twin.model, &choice).then_some(twin))
}

fn planned(
    header: &ModelHeader,
    choice: Option<&[u32]>,
    layers: usize,
) -> Result<PlannedTwin, Problem> {
    let impossible = |error: &dyn std::fmt::Display| Problem::new("twin_impossible", error);
    let recipe = twin(header, choice).map_err(|error| impossible(&error))?;
    let bytes = recipe.bytes().map_err(|error| impossible(&error))?;
    let head = recipe.header().map_err(|error| impossible(&error))?;
    let model = read_from(&head[..], "twin.gguf", bytes).map_err(|error| impossible(&error))?;
    Ok(PlannedTwin {
        layers,
        recipe,
        model,
    })
}

/// What there is room for.
struct Room {
    disk: Option<u64>,
    memory: Option<u64>,
}

impl Room {
    fn of(folder: &Path) -> Self {
        Self {
            disk: free_bytes(folder).map(|free| free.saturating_sub(SPARE_BYTES)),
            memory: Host::new().state(None).memory_available_bytes,
        }
    }

    /// Bytes that a twin's file may have.
    fn at_most(&self) -> u64 {
        let memory = self.memory.unwrap_or(USUAL_MEMORY) as f64 * SHARE_OF_MEMORY;
        (memory as u64).min(self.disk.unwrap_or(u64::MAX))
    }

    fn too_small_for(&self, model: &str, needs: u64) -> Problem {
        let (code, what, free) = match self.disk {
            Some(disk) if disk < needs => ("disk_too_small", "the disk of the data folder", disk),
            _ => (
                "memory_too_small",
                "memory",
                self.memory.unwrap_or(USUAL_MEMORY),
            ),
        };
        let needed = match code {
            "disk_too_small" => needs,
            _ => (needs as f64 / SHARE_OF_MEMORY) as u64,
        };
        Problem::new(
            code,
            format!(
                "The smallest twin of {model} that says anything needs {} of {what}; {} are free. Free some, or take a smaller quantization.",
                size(needed),
                size(free)
            ),
        )
    }
}

/// A prediction at work.
struct Run<'a, 'p> {
    request: &'a TwinRequest<'a>,
    plan: &'a Planned,
    /// Not here while something else writes it.
    file: Option<TwinFile>,
    path: &'a Path,
    unsaved: Unsaved<'a>,
    lease: &'a Lease,
    progress: &'p mut (dyn FnMut(TwinProgress) + Send),
    variant: Option<String>,
}

/// What was found with one twin.
struct Found {
    prefill: Option<TwinTime>,
    decode: Option<TwinTime>,
}

impl Run<'_, '_> {
    async fn all(&mut self) -> Result<TwinOutcome, Problem> {
        let request = self.request;
        let mut asked = Asked {
            prompt: request.prompt,
            generate: match self.plan.decodes {
                true => request.generate,
                false => 0,
            },
            depth: request.depth,
            repetitions: request.repetitions.max(1),
        };
        if asked.prompt == 0 && asked.generate == 0 {
            return Err(Problem::new(
                "nothing_asked",
                "There is nothing to predict: ask for prompt tokens (-p) or, of a model that writes, for generated ones (-n).",
            ));
        }
        // The deeper one is written first: the shallower is its beginning.
        if let Some(deep) = self.plan.twins.last() {
            self.build(deep).await?;
        }
        let work = |model: &Model| Work::of(model, &request.settings);
        let whole = work(&request.header.model);
        let question = asked;
        let mut found = Vec::new();
        for (index, twin) in self.plan.twins.iter().enumerate() {
            self.build(twin).await?;
            let subject = Subject::read(self.path)?;
            if index == 0 {
                let probe = self.measure(twin, &subject, asked.probe()).await?;
                let works: Vec<Work> = self.plan.twins.iter().map(|t| work(&t.model)).collect();
                asked = asked.affordable(&probe, &works);
            }
            let times = self.measure(twin, &subject, asked).await?;
            let here = work(&twin.model);
            found.push(Found {
                prefill: times.prefill(here.prefill(asked.prompt, asked.depth)),
                decode: times.decode(here.decode(asked.decode_depth())),
            });
        }
        Ok(self.outcome(&question, &asked, &found, &whole))
    }

    fn outcome(
        &self,
        question: &Asked,
        asked: &Asked,
        found: &[Found],
        whole: &Work,
    ) -> TwinOutcome {
        let predict = |of: &dyn Fn(&Found) -> Option<TwinTime>, work: f64| match found {
            [only] => TwinPrediction::of_whole(of(only)?, work),
            [shallow, deep] => TwinPrediction::of_two(of(shallow)?, of(deep)?, work),
            _ => None,
        };
        let layer_ms = |of: &dyn Fn(&Found) -> Option<TwinTime>| match (found, &self.plan.twins[..])
        {
            ([a, b], [shallow, deep]) => {
                let seconds = of(b)?.seconds - of(a)?.seconds;
                Some(1e3 * seconds / (deep.layers - shallow.layers) as f64)
            }
            _ => None,
        };
        let prefill = |found: &Found| found.prefill;
        let decode = |found: &Found| found.decode;
        let speed = |time: Option<TwinTime>| time.map(|time| 1.0 / time.seconds);
        TwinOutcome {
            twins: found
                .iter()
                .zip(&self.plan.twins)
                .map(|(found, twin)| MeasuredTwin {
                    layers: twin.layers,
                    bytes: twin.recipe.bytes().unwrap_or(twin.model.bytes_expected),
                    prefill_tok_s: speed(found.prefill),
                    decode_tok_s: speed(found.decode),
                })
                .collect(),
            layers: self.plan.layers,
            prefill: predict(&prefill, whole.prefill(question.prompt, question.depth)),
            decode: predict(&decode, whole.decode(question.decode_depth())),
            prefill_layer_ms: layer_ms(&prefill),
            decode_layer_ms: layer_ms(&decode),
            measured_prompt: asked.prompt,
            measured_generate: asked.generate,
            experts: self.plan.experts,
            variant: self.variant.clone(),
            seconds: 0.0,
        }
    }

    /// Makes the file this twin, off the runtime's own threads.
    async fn build(&mut self, twin: &PlannedTwin) -> Result<(), Problem> {
        let mut file = self.file.take().expect("BUG: one twin at a time");
        let (recipe, stop) = (twin.recipe.clone(), self.request.stop.clone());
        let (sender, mut steps) = mpsc::unbounded_channel();
        let work = tokio::task::spawn_blocking(move || {
            let mut told = Instant::now();
            let made = file.become_twin(&recipe, &mut |done, total| {
                if done == total || told.elapsed() >= TELL {
                    told = Instant::now();
                    let _ = sender.send(TwinProgress::Building { done, total });
                }
                !stop.is_now()
            });
            (file, made)
        });
        while let Some(step) = steps.recv().await {
            (self.progress)(step);
        }
        match work.await {
            Ok((file, made)) => {
                self.file = Some(file);
                made
            }
            Err(_) => Err(Problem::new(
                "twin_broken",
                "Building a twin ended by a fault of its own. Try again, and please report this.",
            )),
        }
    }

    async fn measure(
        &mut self,
        twin: &PlannedTwin,
        subject: &Subject,
        asked: Asked,
    ) -> Result<times::Times, Problem> {
        let bench = Bench {
            engine: self.request.engine,
            recorder: &self.unsaved,
            settings: &self.request.settings,
            lease: self.lease,
            stop: self.request.stop,
        };
        let layers = twin.layers;
        let progress = &mut *self.progress;
        let mut tell = |test: String| progress(TwinProgress::Measuring { layers, test });
        let times = bench.measure(subject, asked, &mut tell).await?;
        self.variant = times.variant.clone().or(self.variant.take());
        Ok(times)
    }
}
