//! The models that are known: what the last scan found, what came since, and the scan itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use twospeed_estimate::{Bytes, ContextSettings, Corrections, Question, Weights, estimate};
use twospeed_gguf::Model;
use twospeed_library::{
    FileType, Item, Limits, Makeable, Progress, Reading, as_quantized, builtin,
    types_that_can_be_made,
};

use super::App;
use super::estimate::RowExpected;
use super::measured::Known;
use crate::Problem;
use crate::desk::locked;
use crate::frame::AppEvent;
use crate::models::Scanning;

/// Context that memory is counted for, tokens.
pub(crate) const CONTEXT: u32 = 4096;

/// The page is told of a scan's progress this often at most.
const TELL_EVERY: Duration = Duration::from_millis(300);

/// Where the built-in model comes from, to show.
pub(super) const RANDOM_WEIGHTS: &str = "random weights";

/// A file (set) with what is worked out of its header once.
pub(crate) struct Entry {
    /// Its row: the same for the same path, today and tomorrow.
    pub(crate) id: String,
    pub(crate) item: Item,
    /// Why it cannot be measured; `None` = it can.
    pub(crate) hindrance: Option<String>,
    /// The built-in model before it was made: only its header is known.
    pub(crate) is_unmade: bool,
    /// Weights as they are loaded, bytes.
    pub(crate) weights_bytes: Option<u64>,
    /// Cache and state at [`CONTEXT`], bytes.
    pub(crate) context_bytes: Option<u64>,
    /// Weights that a decoded token reads, bytes.
    pub(crate) weight_bytes_per_token: Option<u64>,
    /// Cache that a token adds, bytes.
    pub(crate) kv_bytes_per_token: Option<u64>,
    /// Name of its content, once somebody needed it; the inner `None`: it could not be read.
    pub(crate) fingerprint: OnceLock<Option<String>>,
    makeable: OnceLock<Vec<MadeOf>>,
    /// Expected speeds, by quantization that it is or would be made into, with what they rest on.
    expected: Mutex<HashMap<String, (Resting, RowExpected)>>,
}

/// A quantization that can be made.
pub(crate) struct MadeOf {
    pub(crate) makeable: Makeable,
    /// Weights that a decoded token would read, bytes.
    pub(crate) weight_bytes_per_token: Option<u64>,
}

/// What expected speeds rest on: the calibration's id, and what own runs teach.
type Resting = (String, Corrections);

impl Entry {
    pub(crate) fn of(item: Item) -> Self {
        let mut entry = Self {
            id: id_of(&item.path),
            hindrance: item.hindrance(),
            item,
            is_unmade: false,
            weights_bytes: None,
            context_bytes: None,
            weight_bytes_per_token: None,
            kv_bytes_per_token: None,
            fingerprint: OnceLock::new(),
            makeable: OnceLock::new(),
            expected: Mutex::default(),
        };
        if let Some(model) = entry.item.model().filter(|model| model.kind.is_model()) {
            let question = Question {
                context: ContextSettings {
                    context: CONTEXT.into(),
                    ..ContextSettings::default()
                },
                ..Question::default()
            };
            let said = estimate(model, &question);
            let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
            entry.weights_bytes = bytes(said.memory.weights_bytes);
            entry.context_bytes = said
                .memory
                .kv_bytes
                .zip(said.memory.state_bytes)
                .map(|(kv, state)| kv.0.saturating_add(state.0));
            entry.weight_bytes_per_token = bytes(said.decode.weight_bytes_per_token);
            entry.kv_bytes_per_token = bytes(said.memory.kv_bytes_per_cached_token);
        }
        entry
    }

    /// The built-in model as long as it has not been made.
    fn unmade(model: Model) -> Self {
        let item = Item {
            path: model.path.clone(),
            label: super::models::shown_file_name(&model.path),
            files: Vec::new(),
            reading: Reading::Read(Box::new(model)),
        };
        Self {
            hindrance: None,
            is_unmade: true,
            fingerprint: OnceLock::from(Some(builtin::FINGERPRINT.to_owned())),
            ..Self::of(item)
        }
    }

    /// Quantizations that can be made of it, worked out when first asked for.
    pub(crate) fn makeable(&self) -> &[MadeOf] {
        self.makeable.get_or_init(|| {
            let Some(model) = self.item.model() else {
                return Vec::new();
            };
            let made_of = |makeable: Makeable| {
                let made = as_quantized(model, makeable.file_type);
                let weights = made.and_then(|made| Weights::of(&made).ok());
                MadeOf {
                    makeable,
                    weight_bytes_per_token: weights.map(|weights| weights.bytes_per_token().0),
                }
            };
            types_that_can_be_made(model)
                .into_iter()
                .map(made_of)
                .collect()
        })
    }

    /// The speeds that are expected of it, or of a quantization that would be made of it; worked out
    /// once for what they rest on.
    pub(super) fn expected(&self, known: &Known, made: Option<FileType>) -> RowExpected {
        let Some(model) = self.item.model() else {
            return RowExpected::default();
        };
        let Some(resting) = known.resting(model) else {
            return RowExpected::default();
        };
        let label = made.map_or("", FileType::name).to_owned();
        let mut worked_out = locked(&self.expected);
        match worked_out.get(&label) {
            Some((on, expected)) if *on == resting => *expected,
            _ => {
                let expected = match made {
                    None => known.expected(model),
                    Some(file_type) => as_quantized(model, file_type)
                        .map(|made| known.expected(&made))
                        .unwrap_or_default(),
                };
                worked_out.insert(label, (resting, expected));
                expected
            }
        }
    }

    /// Whether a newly found item is this one, unchanged.
    fn is_still(&self, item: &Item) -> bool {
        !self.is_unmade
            && self.item.files == item.files
            && self.item.label == item.label
            && item.files.iter().all(|file| file.modified.is_some())
            && matches!(
                (&self.item.reading, &item.reading),
                (Reading::Read(_), Reading::Read(_))
            )
    }
}

/// The row of the file at a path. Any bytes make one, and it tells nothing of them.
pub(crate) fn id_of(path: &Path) -> String {
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is known of files.
#[derive(Default)]
pub(crate) struct Catalogue {
    pub(super) state: Mutex<State>,
    /// The built-in model before it was made; working it out takes some 50 ms.
    unmade: OnceLock<Option<Arc<Entry>>>,
}

#[derive(Default)]
pub(super) struct State {
    /// By path.
    pub(super) entries: BTreeMap<PathBuf, Arc<Entry>>,
    /// What the last scan passed over.
    pub(super) notes: Vec<String>,
    /// What came since the running scan began, which may have looked there before.
    fresh: BTreeSet<PathBuf>,
    pub(super) scan: Option<RunningScan>,
    begun_once: bool,
}

#[derive(Default)]
pub(super) struct RunningScan {
    pub(super) progress: Option<Scanning>,
    /// What it looks at has changed: another one follows.
    again: bool,
    /// And this one need not come to its end.
    stop: bool,
}

impl State {
    /// Keeps what was found; what did not change keeps what was worked out of it.
    fn keep(&mut self, item: &Item) -> bool {
        if self
            .entries
            .get(&item.path)
            .is_some_and(|entry| entry.is_still(item))
        {
            return false;
        }
        let entry = Arc::new(Entry::of(item.clone()));
        self.entries.insert(item.path.clone(), entry);
        true
    }
}

impl Catalogue {
    /// The file (set) of a row.
    pub(crate) fn entry(&self, row: &str) -> Option<Arc<Entry>> {
        let state = locked(&self.state);
        state
            .entries
            .values()
            .find(|entry| entry.id == row)
            .cloned()
    }

    /// Every file (set), by path.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        locked(&self.state).entries.values().cloned().collect()
    }
}

impl App {
    /// Begins the first scan; later calls do nothing.
    pub(super) fn begin_scan_once(self: &Arc<Self>) {
        let mut state = locked(&self.catalogue.state);
        if !std::mem::replace(&mut state.begun_once, true) {
            drop(state);
            self.begin_scan(false);
        }
    }

    /// Looks through the folders in the background; where a scan is at it already, another follows.
    /// `changed`: other folders than it knows of, so it ends early.
    pub(super) fn begin_scan(self: &Arc<Self>, changed: bool) {
        {
            let mut state = locked(&self.catalogue.state);
            state.begun_once = true;
            if let Some(running) = &mut state.scan {
                running.again = true;
                running.stop |= changed;
                return;
            }
            state.scan = Some(RunningScan::default());
        }
        let app = self.clone();
        self.runtime
            .spawn(async move { app.scan_until_settled().await });
        self.tell(AppEvent::ModelsChanged);
    }

    async fn scan_until_settled(self: Arc<Self>) {
        loop {
            self.load_places().await;
            let app = self.clone();
            let came_through = tokio::task::spawn_blocking(move || app.scan_now()).await;
            if came_through.is_err() {
                self.tell(AppEvent::Notice {
                    message: "Looking through the folders ended by a fault of its own. Scan again, and please report this.".into(),
                    failed: true,
                });
            }
            let mut state = locked(&self.catalogue.state);
            if state.scan.take().is_some_and(|scan| scan.again) && came_through.is_ok() {
                state.scan = Some(RunningScan::default());
            } else {
                break;
            }
        }
        self.tell(AppEvent::ModelsChanged);
        self.refresh_known();
    }

    /// One scan; blocks. Stands still while something is timed.
    fn scan_now(&self) {
        let work = self.quiet.work();
        let before: Vec<Item> = {
            let mut state = locked(&self.catalogue.state);
            state.fresh.clear();
            let entries = state.entries.values().filter(|entry| !entry.is_unmade);
            entries.map(|entry| entry.item.clone()).collect()
        };
        // After `fresh` begins anew: what comes into the list from here on is in one of the two.
        let folders = self.folders_to_scan();
        let go_on = || {
            work.make_way();
            let state = locked(&self.catalogue.state);
            !state.scan.as_ref().is_some_and(|scan| scan.stop)
        };
        let mut told = Instant::now();
        let mut tell = |progress: Progress<'_>| {
            self.note_progress(progress);
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                self.tell(AppEvent::ModelsChanged);
            }
        };
        let found = twospeed_library::scan(&folders, Limits::default(), &before, &go_on, &mut tell);
        let mut state = locked(&self.catalogue.state);
        if !found.stopped {
            let there: BTreeSet<_> = found.items.iter().map(|item| &item.path).collect();
            let State { entries, fresh, .. } = &mut *state;
            entries.retain(|path, _| there.contains(path) || fresh.contains(path));
            state.notes = found.notes.iter().map(ToString::to_string).collect();
        }
        drop(state);
        self.keep_builtin();
    }

    fn note_progress(&self, progress: Progress<'_>) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut state = locked(&self.catalogue.state);
        let now = match progress {
            Progress::Walking { .. } => Scanning { read: 0, of: None },
            Progress::Found { item, read, of } => {
                state.keep(item);
                Scanning {
                    read: number(read),
                    of: Some(number(of)),
                }
            }
        };
        if let Some(scan) = &mut state.scan {
            scan.progress = Some(now);
        }
    }

    /// The built-in model is always among the models.
    pub(super) fn keep_builtin(&self) {
        let path = builtin::path(&self.data_folder);
        let is_sound = |entry: &Arc<Entry>| entry.hindrance.is_none();
        let there = locked(&self.catalogue.state)
            .entries
            .get(&path)
            .is_some_and(is_sound);
        if there {
            return;
        }
        let unmade = self.catalogue.unmade.get_or_init(|| {
            let model = builtin::model(&self.data_folder)?;
            Some(Arc::new(Entry::unmade(model)))
        });
        if let Some(entry) = unmade {
            let mut state = locked(&self.catalogue.state);
            // Half a file is as good as none: making it puts a whole one in its place.
            let found = state.entries.entry(path).or_insert_with(|| entry.clone());
            if !is_sound(found) {
                *found = entry.clone();
            }
        }
    }

    /// Reads one file anew and puts it into the list; blocks.
    ///
    /// Errors: `file_unusable` where a scan would not see a model file there.
    pub(super) fn take_in(&self, path: &Path) -> Result<Arc<Entry>, Problem> {
        let paths = [path.to_owned()];
        let found = twospeed_library::scan(&paths, Limits::default(), &[], &|| true, &mut |_| {});
        let Some(item) = found.items.into_iter().next() else {
            return Err(Problem::new(
                "file_unusable",
                match found.notes.first() {
                    Some(note) => note.to_string(),
                    None => format!(
                        "{} is no GGUF file. Choose a model file that ends in .gguf.",
                        twospeed_library::display::shown_path(path)
                    ),
                },
            ));
        };
        let is_listed = locked(&self.catalogue.state)
            .entries
            .contains_key(&item.path);
        if let Some(same) = self.same_file(&item).filter(|_| !is_listed) {
            return Ok(same);
        }
        let mut state = locked(&self.catalogue.state);
        state.keep(&item);
        state.fresh.insert(item.path.clone());
        Ok(state.entries[&item.path].clone())
    }
}

impl App {
    /// The entry of a file that is in the list under another path: a link to it, or what it links
    /// to. A scan lists each file once.
    fn same_file(&self, item: &Item) -> Option<Arc<Entry>> {
        let facts = |item: &Item| item.files.first().map(|file| (file.bytes, file.modified));
        let mut alike = self.catalogue.entries();
        alike.retain(|other| facts(&other.item) == facts(item) && other.item.path != item.path);
        let real = std::fs::canonicalize(&item.path).ok()?;
        alike
            .into_iter()
            .find(|other| std::fs::canonicalize(&other.item.path).is_ok_and(|path| path == real))
    }

    /// Looks through the folders again.
    pub async fn scan(self: &Arc<Self>) -> Result<(), Problem> {
        self.begin_scan(false);
        Ok(())
    }
}
