//! The view Models: what is on disk, what can be made of it, what can be fetched.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use twospeed_library::display::{shown, shown_path};
use twospeed_library::download::OFFER;
use twospeed_library::{Role, Shelf, arrange, builtin};

use super::App;
use super::catalogue::{CONTEXT, Entry, MadeOf, RANDOM_WEIGHTS, id_of};
use super::folders::on_a_thread;
use super::measured::Known;
use crate::Problem;
use crate::desk::locked;
use crate::estimate::MemoryFrom;
use crate::models::*;

/// How long a plan waits for the built-in model: it is made in a second or a few, unless something
/// is being measured meanwhile.
const PATIENCE: Duration = Duration::from_secs(15);

/// A source with fewer bits than this costs quality beyond that of what is made of it.
const COARSE_BITS: f64 = 8.0;

/// A row of the list, by name.
pub(crate) struct KnownRow {
    /// Name of the base model.
    pub(crate) name: String,
    /// Quantization label.
    pub(crate) quantization: String,
    /// Its file; `None` where none is there yet.
    pub(crate) entry: Option<Arc<Entry>>,
}

impl App {
    /// Every model that is known.
    pub async fn models(self: &Arc<Self>) -> Result<ModelsView, Problem> {
        let app = self.clone();
        let view = on_a_thread(move || Ok(app.view(app.free_memory()))).await?;
        if view.scanning.is_none() {
            self.ask_for_the_list();
        }
        Ok(view)
    }

    /// The row, wherever it is in the list; `None` = there is no such row.
    pub(crate) fn known_row(&self, row: &str) -> Option<KnownRow> {
        let view = self.view(None);
        let known = |group: &ModelGroup, found: &ModelRow| KnownRow {
            name: group.name.clone(),
            quantization: found.quantization.clone(),
            entry: self.catalogue.entry(row),
        };
        view.groups.iter().find_map(|group| {
            let found = group.rows.iter().find(|found| found.id == row)?;
            Some(known(group, found))
        })
    }

    /// The file behind a row, to be measured. The built-in model is made where it is not there yet,
    /// as a job that the page sees; who waits for that must not hold the machine's lease.
    ///
    /// Errors: `row_unknown`, `row_not_there`, or why the model cannot be made.
    pub(crate) async fn subject_of_row(self: &Arc<Self>, row: &str) -> Result<PathBuf, Problem> {
        self.keep_builtin();
        let there = self.catalogue.entry(row).filter(|entry| !entry.is_unmade);
        let is_built_in = row == id_of(&builtin::path(&self.data_folder));
        match there {
            Some(entry) if !is_built_in || entry.item.path.exists() => Ok(entry.item.path.clone()),
            _ if is_built_in => self.made(row.to_owned()).await,
            _ => Err(match self.known_row(row) {
                Some(known) => Problem::new(
                    "row_not_there",
                    format!(
                        "{} {} is not on this disk. Make it first.",
                        known.name, known.quantization
                    ),
                ),
                None => unknown_row(),
            }),
        }
    }

    /// The file of a row that is made meanwhile, if that does not take long.
    async fn made(self: &Arc<Self>, row: String) -> Result<PathBuf, Problem> {
        let job = self.make(row.clone()).await?;
        let ended = self.ended(&job.id, PATIENCE).await;
        // It may have ended before it could be waited for.
        match self.catalogue.entry(&row).filter(|entry| !entry.is_unmade) {
            Some(entry) => Ok(entry.item.path.clone()),
            None => Err(ended.err().unwrap_or_else(unknown_row)),
        }
    }

    pub(super) fn view(&self, free: Option<u64>) -> ModelsView {
        self.keep_builtin();
        // Before the entries: a list that says that no scan goes on has all that the scan found.
        let (notes, scanning) = {
            let state = locked(&self.catalogue.state);
            let beginning = Scanning { read: 0, of: None };
            let scanning = state.scan.as_ref();
            let scanning = scanning.map(|scan| scan.progress.unwrap_or(beginning));
            (state.notes.clone(), scanning)
        };
        let entries = self.catalogue.entries();
        let items: Vec<_> = entries.iter().map(|entry| &entry.item).collect();
        let shelf = arrange(&items);
        let known = self.known();
        let mut view = ModelsView {
            groups: self.groups(&shelf, &entries, &known, free),
            broken: self.odd(&shelf.broken, &entries),
            helpers: self.odd(&shelf.helpers, &entries),
            folders: self.folders_shown(&entries),
            free_memory_bytes: free,
            context: CONTEXT,
            notes,
            scanning,
        };
        self.offer(&mut view);
        view
    }

    fn groups(
        &self,
        shelf: &Shelf,
        entries: &[Arc<Entry>],
        known: &Known,
        free: Option<u64>,
    ) -> Vec<ModelGroup> {
        let mut groups: Vec<ModelGroup> = Vec::new();
        for group in &shelf.groups {
            let members: Vec<_> = group.members.iter().map(|at| &entries[*at]).collect();
            let mut rows: Vec<_> = members
                .iter()
                .map(|entry| self.row(entry, known, free))
                .collect();
            if let Some(source) = best_source(&members) {
                let labels: Vec<_> = rows.iter().map(|row| row.quantization.clone()).collect();
                let made = source.makeable().iter().filter(|made| {
                    let name = made.makeable.file_type.name();
                    !labels.iter().any(|label| label.eq_ignore_ascii_case(name))
                });
                rows.extend(made.map(|made| to_be_made(&group.name, source, made, known, free)));
            }
            rows.sort_by(|a, b| {
                let bits = |row: &ModelRow| row.bits_per_weight.unwrap_or(f64::INFINITY);
                bits(a).total_cmp(&bits(b))
            });
            let architecture = group.architecture.as_deref().map(shown);
            groups.push(ModelGroup {
                id: group_id(group, &groups),
                name: group.name.clone(),
                architecture,
                parameters: Some(group.parameters).filter(|parameters| *parameters > 0),
                active_parameters: group
                    .active_parameters
                    .filter(|active| *active < group.parameters),
                context_length: group.context_length,
                synthetic: group.synthetic,
                rows,
            });
        }
        groups
    }

    fn row(&self, entry: &Entry, known: &Known, free: Option<u64>) -> ModelRow {
        let model = entry.item.model();
        let (memory, memory_source) = self.row_memory(entry);
        let there = !entry.is_unmade;
        let speeds = known.speeds(entry);
        let expected = entry.expected(known, None);
        ModelRow {
            id: entry.id.clone(),
            quantization: quantization(entry),
            place: match there {
                true => Place::OnDisk,
                false => Place::CanBeMade {
                    from: RANDOM_WEIGHTS.to_owned(),
                    lossy_source: false,
                },
            },
            file: there.then(|| entry.item.label.clone()),
            path: there.then(|| self.may_reveal(&entry.item.path)),
            file_bytes: Some(if there {
                entry.item.bytes()
            } else {
                builtin::BYTES
            }),
            bits_per_weight: model.and_then(|model| model.bits_per_weight),
            memory_bytes: memory,
            memory_source,
            fits: fits(memory, free),
            prefill: speeds.prefill.clone(),
            decode: speeds.decode.clone(),
            prefill_expected: expected.prefill,
            decode_expected: expected.decode,
            decode_ceiling: known.decode_ceiling(entry.weight_bytes_per_token),
            hindrance: entry.hindrance.clone(),
        }
    }

    /// What a row takes at the context of the list: what the engine said, where it was asked, or the
    /// closed forms without its working buffers.
    fn row_memory(&self, entry: &Entry) -> (Option<u64>, MemoryFrom) {
        match self.engines_total(entry) {
            Some(total) => (Some(total), MemoryFrom::Engine),
            None => (
                sum(entry.weights_bytes, entry.context_bytes),
                MemoryFrom::Formula,
            ),
        }
    }

    fn odd(&self, which: &[usize], entries: &[Arc<Entry>]) -> Vec<OddFile> {
        let odd = which.iter().map(|at| &entries[*at]).map(|entry| OddFile {
            id: entry.id.clone(),
            file: entry.item.label.clone(),
            path: self.may_reveal(&entry.item.path),
            sentence: match entry.item.role() {
                Role::Helper => super::facts::kind_sentence(&entry.item),
                _ => entry.hindrance.clone().unwrap_or_default(),
            },
        });
        odd.collect()
    }

    /// The one model that can be fetched, where it is not there yet.
    fn offer(&self, view: &mut ModelsView) {
        let named = OFFER.name;
        let label = twospeed_library::names::quantization_of(OFFER.file)
            .unwrap_or_default()
            .to_uppercase();
        let of_its_name = view
            .groups
            .iter_mut()
            .find(|group| group.name.eq_ignore_ascii_case(named));
        let is_there = |group: &ModelGroup| {
            group
                .rows
                .iter()
                .any(|row| row.quantization.eq_ignore_ascii_case(&label))
        };
        if of_its_name.as_deref().is_some_and(is_there)
            || self
                .catalogue
                .entries()
                .iter()
                .any(|entry| entry.item.label == OFFER.file)
        {
            return;
        }
        let row = ModelRow {
            id: offer_id(),
            quantization: label,
            place: Place::CanBeDownloaded {
                from: format!("{} / {}", OFFER.repo, OFFER.file),
            },
            file_bytes: Some(OFFER.about_bytes),
            hindrance: Some(format!("{named} is not on this disk. Fetch it first.")),
            ..empty_row()
        };
        match of_its_name {
            Some(group) => group.rows.push(row),
            None => view.groups.push(ModelGroup {
                id: offer_id(),
                name: named.to_owned(),
                architecture: None,
                parameters: None,
                active_parameters: None,
                context_length: None,
                synthetic: false,
                rows: vec![row],
            }),
        }
    }
}

/// The row of the download that is offered.
pub(super) fn offer_id() -> String {
    format!("get:{}:{}", OFFER.repo, OFFER.file)
}

pub(super) fn unknown_row() -> Problem {
    Problem::new(
        "row_unknown",
        "This model is not in the list any more. Scan the folders again.",
    )
}

/// Label of a file, to show.
pub(super) fn quantization(entry: &Entry) -> String {
    let label = entry
        .item
        .model()
        .and_then(|model| model.quantization.as_deref());
    label.map_or_else(|| "unknown".to_owned(), shown)
}

/// What the others are best made of: the most bits per weight, so full precision before half
/// before anything quantized.
fn best_source<'a>(members: &[&'a Arc<Entry>]) -> Option<&'a Entry> {
    let bits = |entry: &Entry| entry.item.model().and_then(|model| model.bits_per_weight);
    let usable = members
        .iter()
        .copied()
        .filter(|entry| entry.hindrance.is_none() && !entry.is_unmade);
    usable
        .max_by(|a, b| bits(a).unwrap_or(0.0).total_cmp(&bits(b).unwrap_or(0.0)))
        .map(|entry| &**entry)
}

/// A quantization that can be made of a file.
fn to_be_made(
    name: &str,
    source: &Entry,
    made: &MadeOf,
    known: &Known,
    free: Option<u64>,
) -> ModelRow {
    let weight_bytes_per_token = made.weight_bytes_per_token;
    let made = &made.makeable;
    let expected = source.expected(known, Some(made.file_type));
    let model = source.item.model();
    let header = model.map_or(0, |model| model.header_bytes);
    let weights = made.bytes.saturating_sub(header);
    let parameters = model
        .map(|model| model.parameters)
        .filter(|count| *count > 0);
    let memory = sum(Some(weights), source.context_bytes);
    let label = made.file_type.name();
    let source_bits = model.and_then(|model| model.bits_per_weight);
    ModelRow {
        id: format!("make:{}:{label}", source.id),
        quantization: label.to_owned(),
        place: Place::CanBeMade {
            from: quantization(source),
            lossy_source: made.requantizes && source_bits.is_none_or(|bits| bits < COARSE_BITS),
        },
        file_bytes: Some(made.bytes),
        bits_per_weight: parameters.map(|count| 8.0 * weights as f64 / count as f64),
        memory_bytes: memory,
        fits: fits(memory, free),
        prefill_expected: expected.prefill,
        decode_expected: expected.decode,
        decode_ceiling: known.decode_ceiling(weight_bytes_per_token),
        hindrance: Some(format!(
            "{name} {label} is not on this disk. Make it first."
        )),
        ..empty_row()
    }
}

fn empty_row() -> ModelRow {
    ModelRow {
        id: String::new(),
        quantization: String::new(),
        place: Place::OnDisk,
        file: None,
        path: None,
        file_bytes: None,
        bits_per_weight: None,
        memory_bytes: None,
        memory_source: MemoryFrom::Formula,
        fits: None,
        prefill: None,
        decode: None,
        prefill_expected: None,
        decode_expected: None,
        decode_ceiling: None,
        hindrance: None,
    }
}

/// The same for the same model at the next scan; models of one name are numbered by size.
fn group_id(group: &twospeed_library::Group, before: &[ModelGroup]) -> String {
    let named = format!(
        "{}/{}",
        group.architecture.as_deref().unwrap_or_default(),
        group.name
    );
    let alike = before
        .iter()
        .filter(|other| other.name == group.name)
        .count();
    format!("g{}{alike}", id_of(named.as_ref()))
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a?.checked_add(b?)
}

fn fits(memory: Option<u64>, free: Option<u64>) -> Option<bool> {
    Some(memory? <= free?)
}

/// The name of a file, to show.
pub(super) fn shown_file_name(path: &std::path::Path) -> String {
    let name = path.file_name().map(std::path::Path::new);
    shown_path(name.unwrap_or(path))
}
