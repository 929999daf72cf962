//! What the engine would allocate: asked of a worker, of a whole file or of its header alone.
//!
//! The engine refuses a file that is shorter than its header claims. So a header alone is copied
//! into a folder of its own and the copy is extended, without a byte being written, to the length
//! that it claims: a sparse file.

mod sparse;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use twospeed_engine::protocol::{
    BufferUse, Device, DeviceKind, Event, Foresee, ForeseeContext, Foreseen, Placement, Request,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Engine, Incoming, Session, Settings, Start};
use twospeed_estimate::{Allocation, Bytes, ContextSettings, FlashAttention, Note, Question};
use twospeed_gguf::{Data, Model};

use self::sparse::SparseCopy;
use crate::{measuring_now, waiting_sentence};

/// How long an answer may take. It takes milliseconds; a header that keeps the engine busy for this
/// long is no honest one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers that are remembered; then all are forgotten at once.
const REMEMBERED: usize = 4096;

/// What the engine would allocate for one context.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocated {
    /// Every buffer.
    pub placement: Placement,
    /// The devices of the engine that was asked.
    pub devices: Vec<Device>,
}

/// What one device would hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceShare {
    /// The engine's name for it.
    pub device: String,
    /// Whether this is the machine's own memory, which all processors share.
    pub host: bool,
    /// What it would hold.
    pub holds: Allocation,
    /// Memory of its own that is free; `None` for the machine's, and where it is not known.
    pub free: Option<Bytes>,
}

/// Why the engine's count is not there, as sentences for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unforeseen {
    /// The engine refuses the model or the context.
    #[error("{0}")]
    Refused(String),
    /// There is nothing to ask about.
    #[error("This file holds no language model, so the engine was not asked.")]
    NoModel,
    /// The engine could not be asked, or it ended over the question.
    #[error("{0}")]
    NotAsked(String),
}

/// Asks what contexts of a model would take, with a worker of its own. One answer for each context.
pub async fn foresee(
    engine: &dyn Engine,
    model: &Model,
    contexts: &[ForeseeContext],
) -> Vec<Result<Allocated, Unforeseen>> {
    let mut foreseer = Foreseer::new(Start::default());
    let answers = foreseer.ask(engine, model, contexts).await;
    foreseer.close().await;
    answers
}

/// The context of a question in the engine's words.
pub fn foresee_context(question: &Question) -> ForeseeContext {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let ContextSettings {
        context,
        batch,
        ubatch,
        sequences,
        split,
        type_k,
        type_v,
        flash_attention,
    } = question.context;
    ForeseeContext {
        settings: Settings {
            n_batch: number(batch),
            n_ubatch: number(ubatch),
            type_k: type_k.to_string(),
            type_v: type_v.to_string(),
            flash_attn: match flash_attention {
                FlashAttention::Auto => twospeed_engine::FlashAttention::Auto,
                FlashAttention::Off => twospeed_engine::FlashAttention::Off,
                FlashAttention::On => twospeed_engine::FlashAttention::On,
            },
            n_gpu_layers: question.gpu_layers,
            n_outputs: number(question.outputs).max(1),
            ..Settings::default()
        },
        n_ctx: number(context),
        n_seq: number(sequences),
        split_kv: split,
    }
}

/// Asks again and again: keeps the worker, the extended header of the model asked about last, and
/// every answer.
///
/// An answer belongs to the files as they were (path, size, time of change): a file that changes is
/// asked about anew.
#[derive(Debug)]
pub struct Foreseer {
    start: Start,
    yields_to: Option<PathBuf>,
    session: Option<Session>,
    copy: Option<(FileKey, SparseCopy)>,
    answers: HashMap<Key, Result<Allocated, Unforeseen>>,
}

/// Files by their places, sizes and times of change.
type FileKey = Vec<(PathBuf, u64, Option<SystemTime>)>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    files: FileKey,
    /// The context, written out: settings have no hash.
    context: String,
}

impl Foreseer {
    /// That starts its workers so. It never asks while somebody measures under the lease of this
    /// machine: see [`Foreseer::yielding_to`].
    pub fn new(start: Start) -> Self {
        Self {
            start,
            yields_to: None,
            session: None,
            copy: None,
            answers: HashMap::new(),
        }
    }

    /// Asks no engine while somebody else holds the lease at `lease`: what is remembered is still
    /// answered.
    #[must_use]
    pub fn yielding_to(self, lease: PathBuf) -> Self {
        Self {
            yields_to: Some(lease),
            ..self
        }
    }

    /// What is remembered of a context of a model; asks nobody.
    pub fn remembered(
        &self,
        model: &Model,
        context: &ForeseeContext,
    ) -> Option<&Result<Allocated, Unforeseen>> {
        self.answers.get(&Key {
            files: file_key(model),
            context: format!("{context:?}"),
        })
    }

    /// One answer for each context, in that order; only what is not remembered is asked, in one
    /// request.
    pub async fn ask(
        &mut self,
        engine: &dyn Engine,
        model: &Model,
        contexts: &[ForeseeContext],
    ) -> Vec<Result<Allocated, Unforeseen>> {
        let files = file_key(model);
        let key = |context: &ForeseeContext| Key {
            files: files.clone(),
            context: format!("{context:?}"),
        };
        if self.answers.len() >= REMEMBERED {
            self.answers.clear();
        }
        let mut new: Vec<ForeseeContext> = Vec::new();
        for context in contexts {
            if !self.answers.contains_key(&key(context)) && !new.contains(context) {
                new.push(context.clone());
            }
        }
        let mut passing = None;
        if !new.is_empty() {
            match self.answer(engine, model, &files, &new).await {
                Ok(answers) => {
                    for (context, answer) in new.iter().zip(answers) {
                        self.answers.insert(key(context), answer);
                    }
                }
                Err(Trouble::Lasting(why)) => {
                    for context in &new {
                        self.answers.insert(key(context), Err(why.clone()));
                    }
                }
                Err(Trouble::Passing(why)) => passing = Some(why),
            }
        }
        let unknown = || {
            passing.clone().unwrap_or_else(|| {
                Unforeseen::NotAsked("The engine left this question without an answer.".into())
            })
        };
        contexts
            .iter()
            .map(|context| match self.answers.get(&key(context)) {
                Some(answer) => answer.clone(),
                None => Err(unknown()),
            })
            .collect()
    }

    /// Ends the worker and removes what was copied.
    pub async fn close(self) {
        if let Some(session) = self.session {
            session.stop().await;
        }
    }

    async fn answer(
        &mut self,
        engine: &dyn Engine,
        model: &Model,
        files: &FileKey,
        contexts: &[ForeseeContext],
    ) -> Result<Vec<Result<Allocated, Unforeseen>>, Trouble> {
        if !model.kind.is_model() {
            return Err(Trouble::Lasting(Unforeseen::NoModel));
        }
        if let Some(limit) = model.limit() {
            let why = format!("The engine cannot load this file: {limit}.");
            return Err(Trouble::Lasting(Unforeseen::Refused(why)));
        }
        if let Some(holder) = self.yields_to.as_deref().and_then(measuring_now) {
            let said = waiting_sentence(Some(&holder));
            let who = said.split(": this one").next().unwrap_or(&said);
            return Err(Trouble::passing(format!(
                "{who}: the engine was not asked, so as not to disturb it."
            )));
        }
        let path = self.file(model, files).await?;
        let request = Request::Foresee(Foresee {
            model: ModelPath(path),
            contexts: contexts.to_vec(),
        });
        let session = self.session(engine, &request).await?;
        let devices = session.hello().devices.clone();
        let answer = tokio::time::timeout(PATIENCE, heard(session, &model.name)).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(Trouble::Lasting(Unforeseen::NotAsked(format!(
                "The engine did not answer within {} s.",
                PATIENCE.as_secs()
            ))))
        });
        match answer {
            Ok(foreseen) => Ok(foreseen
                .into_iter()
                .map(|foreseen| match foreseen {
                    Foreseen::Placed(placement) => Ok(Allocated {
                        placement,
                        devices: devices.clone(),
                    }),
                    Foreseen::Refused { message } => Err(Unforeseen::Refused(message)),
                })
                .collect()),
            Err(trouble) => {
                // Whatever it was: it may still be at it. Dropping a session ends its worker.
                self.session = None;
                Err(trouble)
            }
        }
    }

    /// A living worker that has been handed the request.
    async fn session(
        &mut self,
        engine: &dyn Engine,
        request: &Request,
    ) -> Result<&mut Session, Trouble> {
        let idle = self.session.take();
        let kept = idle.filter(|session| session.send(request.clone()).is_ok());
        let session = match kept {
            Some(session) => session,
            // The first, or the one before has ended meanwhile.
            None => {
                let started = engine.start(&self.start).await;
                let session = started.map_err(|error| Trouble::passing(error.to_string()))?;
                let sent = session.send(request.clone());
                sent.map_err(|error| Trouble::passing(error.to_string()))?;
                session
            }
        };
        Ok(self.session.insert(session))
    }

    /// The file to ask with: the model's own where all of it is there, else its header extended.
    async fn file(&mut self, model: &Model, files: &FileKey) -> Result<PathBuf, Trouble> {
        if model.data == Data::Complete {
            let path = std::path::absolute(&model.path);
            return Ok(path.unwrap_or_else(|_| model.path.clone()));
        }
        if let Some((_, copy)) = self.copy.as_ref().filter(|(key, _)| key == files) {
            return Ok(copy.path().to_owned());
        }
        self.copy = None;
        let plan = sparse::Plan::of(model)
            .map_err(|error| Trouble::Lasting(Unforeseen::NotAsked(error.to_string())))?;
        let made = tokio::task::spawn_blocking(move || plan.make()).await;
        let copy = match made {
            Ok(Ok(copy)) => copy,
            Ok(Err(error)) => return Err(Trouble::passing(error.to_string())),
            Err(_) => return Err(Trouble::passing("The header could not be copied.".into())),
        };
        let path = copy.path().to_owned();
        self.copy = Some((files.clone(), copy));
        Ok(path)
    }
}

/// Why a request has no answers at all.
enum Trouble {
    /// It would be the same another time.
    Lasting(Unforeseen),
    /// Another time it may be answered.
    Passing(Unforeseen),
}

impl Trouble {
    fn passing(why: String) -> Self {
        Self::Passing(Unforeseen::NotAsked(why))
    }
}

async fn heard(session: &mut Session, name: &str) -> Result<Vec<Foreseen>, Trouble> {
    loop {
        match session.next().await {
            Incoming::Event(Event::Foreseen { contexts }) => return Ok(contexts),
            Incoming::Event(Event::Failed(failure)) => {
                return Err(Trouble::passing(failure.message));
            }
            Incoming::Event(_) => {}
            Incoming::Ended(end) => {
                let why = Unforeseen::NotAsked(end.sentence(Some(name)));
                return Err(Trouble::Lasting(why));
            }
        }
    }
}

fn file_key(model: &Model) -> FileKey {
    let changed = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|facts| facts.modified())
            .ok()
    };
    let parts = model.parts.iter();
    parts
        .map(|part| (part.path.clone(), part.bytes, changed(&part.path)))
        .collect()
}

impl Allocated {
    /// All devices together.
    pub fn sum(&self) -> Allocation {
        let mut sum = NOTHING;
        for buffer in &self.placement.buffers {
            add(&mut sum, buffer.holds, buffer.bytes);
        }
        sum
    }

    /// By device, the machine's own memory first. Memory that a graphics processor shares with the
    /// machine is the machine's.
    pub fn by_device(&self) -> Vec<DeviceShare> {
        let mut shares = vec![DeviceShare {
            device: self.host_name(),
            host: true,
            holds: NOTHING,
            free: None,
        }];
        for buffer in &self.placement.buffers {
            let own = self.own_memory(&buffer.device);
            let found = shares.iter_mut().find(|share| match own {
                Some(device) => share.device == device.name,
                None => share.host,
            });
            let share = match (found, own) {
                (Some(share), _) => share,
                (None, Some(device)) => shares.push_mut(DeviceShare {
                    device: device.name.clone(),
                    host: false,
                    holds: NOTHING,
                    free: device.memory_free.map(Bytes),
                }),
                (None, None) => unreachable!("BUG: the machine's own share comes first"),
            };
            add(&mut share.holds, buffer.holds, buffer.bytes);
        }
        shares
    }

    /// Memory that is free in all: the machine's, and what graphics processors have of their own
    /// that would be used.
    pub fn available(&self, host: Option<Bytes>) -> Option<Bytes> {
        let shares = self.by_device();
        let own = shares.iter().filter(|share| !share.host);
        own.fold(host, |sum, share| Some(sum? + share.free?))
    }

    /// Whether it fits: each device holds its share. `None` where one says nothing of its memory
    /// and no other rules it out.
    pub fn fits(&self, host: Option<Bytes>) -> Option<bool> {
        let fit = self.by_device().into_iter().map(|share| {
            let free = if share.host { host } else { share.free };
            Some(share.holds.total() <= free?)
        });
        let fit: Vec<Option<bool>> = fit.collect();
        if fit.contains(&Some(false)) {
            return Some(false);
        }
        fit.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
    }

    /// The devices that cannot hold their share, where there is more than the machine's own memory:
    /// a sum that fits says nothing of them.
    pub fn too_full(&self) -> Vec<Note> {
        let shares = self.by_device().into_iter().filter(|share| !share.host);
        let full = shares.filter_map(|share| {
            let (need, free) = (share.holds.total(), share.free?);
            (need > free).then_some(Note::DeviceTooSmall {
                device: share.device,
                need,
                free,
            })
        });
        full.collect()
    }

    /// Bytes of the machine's own memory that cannot be given back and read again: all but weights
    /// that are mapped from their file.
    pub fn resident(&self, mapped: bool) -> Bytes {
        let buffers = self.placement.buffers.iter();
        let host = buffers.filter(|buffer| self.own_memory(&buffer.device).is_none());
        // Copies are made for the processor and lie in memory of their own.
        let is_mapped = |device: &str| mapped && !device.ends_with("_REPACK");
        let kept =
            host.filter(|buffer| buffer.holds != BufferUse::Model || !is_mapped(&buffer.device));
        Bytes(kept.fold(0, |sum, buffer| sum.saturating_add(buffer.bytes)))
    }

    /// The device whose own memory a buffer of this name lies in; `None` for the machine's. A
    /// buffer is named after its device (`CUDA0`, `CUDA0_Split`); `CUDA_Host` and `CPU_REPACK` are
    /// the machine's.
    fn own_memory(&self, buffer: &str) -> Option<&Device> {
        let named = |device: &&Device| {
            let rest = buffer.strip_prefix(&device.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let own = self
            .devices
            .iter()
            .filter(|device| device.kind == DeviceKind::Gpu);
        own.filter(|_| !buffer.ends_with("_Host")).find(named)
    }

    fn host_name(&self) -> String {
        let cpu = self
            .devices
            .iter()
            .find(|device| device.kind == DeviceKind::Cpu);
        cpu.map_or_else(|| "CPU".to_owned(), |device| device.name.clone())
    }
}

const NOTHING: Allocation = Allocation {
    weights: Bytes::ZERO,
    kv: Bytes::ZERO,
    state: Bytes::ZERO,
    compute: Bytes::ZERO,
    output: Bytes::ZERO,
};

fn add(sum: &mut Allocation, holds: BufferUse, bytes: u64) {
    *match holds {
        BufferUse::Model => &mut sum.weights,
        BufferUse::Kv => &mut sum.kv,
        BufferUse::State => &mut sum.state,
        BufferUse::Compute => &mut sum.compute,
        BufferUse::Output => &mut sum.output,
    } += Bytes(bytes);
}

#[cfg(test)]
mod tests;
