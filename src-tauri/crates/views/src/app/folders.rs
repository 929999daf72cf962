//! The folders and files that the person added.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use twospeed_library::display::shown_path;

use super::App;
use super::catalogue::{Entry, id_of};
use crate::Problem;
use crate::desk::locked;
use crate::frame::AppEvent;
use crate::models::{Added, Folder};

/// What the person added.
#[derive(Default)]
pub(crate) struct Places {
    state: Mutex<State>,
    /// Held while the list here and the list in the history become one.
    change: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// In order.
    places: Vec<Place>,
    /// Those that the history could not keep: they last as long as the window.
    of_this_session: Vec<PathBuf>,
    /// Files that the program was started with, as rows, until the page has heard of them.
    opened: Vec<String>,
    has_started: bool,
}

impl State {
    fn paths(&self) -> Vec<PathBuf> {
        self.places.iter().map(|place| place.path.clone()).collect()
    }

    /// The list of the history, and what it could not keep.
    fn now_are(&mut self, kept: Vec<PathBuf>) {
        let before = std::mem::take(&mut self.places);
        let all = kept.iter().chain(&self.of_this_session);
        for path in all {
            if !self.places.iter().any(|place| place.path == *path) {
                let known = before.iter().find(|place| place.path == *path);
                self.places.push(known.cloned().unwrap_or_else(|| Place {
                    path: path.clone(),
                    exists: true,
                    is_file: is_named_gguf(path),
                }));
            }
        }
    }

    /// What was seen of them.
    fn are_found(&mut self, looked: Vec<Place>) {
        for found in looked {
            let place = self
                .places
                .iter_mut()
                .find(|place| place.path == found.path);
            if let Some(place) = place {
                *place = found;
            }
        }
    }
}

fn is_named_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
}

#[derive(Clone)]
struct Place {
    path: PathBuf,
    exists: bool,
    is_file: bool,
}

impl Place {
    /// Asks the disk.
    fn look(path: PathBuf) -> Self {
        let facts = fs::metadata(&path);
        Self {
            exists: facts.is_ok(),
            is_file: match &facts {
                Ok(facts) => facts.is_file(),
                Err(_) => is_named_gguf(&path),
            },
            path,
        }
    }

    fn shown(&self, app: &App, entries: &[Arc<Entry>]) -> Folder {
        let models = entries.iter().filter(|entry| {
            !entry.is_unmade
                && entry.item.role() == twospeed_library::Role::Model
                && entry.item.path.starts_with(&self.path)
        });
        Folder {
            id: id_of(&self.path),
            path: app.may_reveal(&self.path),
            exists: self.exists,
            models: u32::try_from(models.count()).unwrap_or(u32::MAX),
            is_file: self.is_file,
        }
    }
}

impl App {
    /// The places as the page lists them.
    pub(super) fn folders_shown(&self, entries: &[Arc<Entry>]) -> Vec<Folder> {
        let places = locked(&self.places.state).places.clone();
        places
            .iter()
            .map(|place| place.shown(self, entries))
            .collect()
    }

    /// Reads the list again, which another window may have changed, and looks at each place, off
    /// this thread: one may lie on a disk that does not answer.
    pub(super) async fn load_places(&self) {
        // What fails was said when the history was opened; what was known stays.
        if let Ok(history) = self.history().await {
            let _change = self.places.change.lock().await;
            if let Ok(paths) = history.folders().await {
                locked(&self.places.state).now_are(paths);
            }
        }
        let paths = locked(&self.places.state).paths();
        let look = move || paths.into_iter().map(Place::look).collect::<Vec<_>>();
        if let Ok(looked) = tokio::task::spawn_blocking(look).await {
            locked(&self.places.state).are_found(looked);
        }
    }

    /// What a scan looks through: the places, the data folder's models, other programs' folders.
    pub(super) fn folders_to_scan(&self) -> Vec<PathBuf> {
        let places = locked(&self.places.state).places.clone();
        let mut folders: Vec<_> = places.into_iter().map(|place| place.path).collect();
        folders.extend(Some(self.own_models()).filter(|folder| folder.is_dir()));
        if self.looks_at_known_places() {
            folders.extend(self.known_folders());
        }
        folders
    }

    /// Where models go that are made here or fetched.
    pub(super) fn own_models(&self) -> PathBuf {
        self.data_folder.join("models")
    }

    /// Whether the next scan will find what lies in this folder.
    pub(super) fn is_scanned(&self, folder: &Path) -> bool {
        self.folders_to_scan()
            .iter()
            .any(|scanned| folder.starts_with(scanned))
    }

    /// Adds a folder or a file to the list.
    ///
    /// Errors: `path_unusable`, `path_missing`, `path_forbidden`, `file_unusable`, a sentence each.
    pub async fn add_path(self: &Arc<Self>, path: String) -> Result<Added, Problem> {
        let path = self.path_of(&path)?;
        let added = self.add(path).await?;
        self.tell(AppEvent::ModelsChanged);
        Ok(added)
    }

    /// Takes a folder out of the list; its files stay where they are.
    pub async fn remove_folder(self: &Arc<Self>, folder: String) -> Result<(), Problem> {
        let change = self.places.change.lock().await;
        let place = {
            let mut state = locked(&self.places.state);
            let Some(at) = state
                .places
                .iter()
                .position(|place| id_of(&place.path) == folder)
            else {
                return Ok(());
            };
            let place = state.places.remove(at);
            state.of_this_session.retain(|path| *path != place.path);
            place
        };
        let removed = match self.history().await {
            Ok(history) => history
                .remove_folder(&place.path)
                .await
                .map(drop)
                .map_err(Problem::from),
            Err(problem) => Err(problem),
        };
        drop(change);
        self.begin_scan(true);
        self.tell(AppEvent::ModelsChanged);
        removed.map_err(|problem| Problem {
            message: format!(
                "{} will be in the list again next time: {}",
                shown_path(&place.path),
                problem.message
            ),
            ..problem
        })
    }

    async fn add(self: &Arc<Self>, path: PathBuf) -> Result<Added, Problem> {
        let place = on_a_thread(move || checked(&path)).await?;
        let listed = self.listed(&place);
        if listed.is_none() {
            let _change = self.places.change.lock().await;
            self.keep_place(&place).await;
            locked(&self.places.state).places.push(place.clone());
        }
        // After it is in the list: a scan that knows nothing of it does not throw it out then.
        let row = match place.is_file {
            true => self.row_at(place.path.clone()).await?,
            false => None,
        };
        if listed.is_none() {
            self.begin_scan(true);
        }
        Ok(Added {
            known: listed.is_some(),
            folder: listed.unwrap_or_else(|| place.shown(self, &self.catalogue.entries())),
            row,
        })
    }

    /// Puts a file into the list; its row where it is a model.
    async fn row_at(self: &Arc<Self>, path: PathBuf) -> Result<Option<String>, Problem> {
        let app = self.clone();
        let entry = on_a_thread(move || app.take_in(&path)).await?;
        let is_model = entry.item.role() == twospeed_library::Role::Model;
        Ok(is_model.then(|| entry.id.clone()))
    }

    /// The line of the list that has this place already: itself, or for a file its folder.
    fn listed(&self, place: &Place) -> Option<Folder> {
        let places = locked(&self.places.state).places.clone();
        let found = places.iter().find(|listed| {
            listed.path == place.path || (place.is_file && place.path.starts_with(&listed.path))
        })?;
        Some(found.shown(self, &self.catalogue.entries()))
    }

    /// Keeps a place in the history, or at least as long as the window.
    async fn keep_place(&self, place: &Place) {
        let kept = match self.history().await {
            Ok(history) => {
                let kept = history.add_folder(&place.path, Timestamp::now()).await;
                kept.map(drop).map_err(Problem::from)
            }
            Err(problem) => Err(problem),
        };
        if let Err(problem) = kept {
            locked(&self.places.state)
                .of_this_session
                .push(place.path.clone());
            self.tell(AppEvent::Notice {
                message: format!(
                    "{} stays in the list only until Twospeed is closed: {}",
                    shown_path(&place.path),
                    problem.message
                ),
                failed: true,
            });
        }
    }

    /// Files and folders that the program was started with, that were dropped on its window, or
    /// that a second start handed over. The page hears of them when they are in the list.
    pub fn opened(self: &Arc<Self>, paths: Vec<PathBuf>) {
        if paths.is_empty() {
            return;
        }
        let app = self.clone();
        self.runtime.spawn(async move {
            let mut rows = Vec::new();
            let mut is_some = false;
            for path in paths {
                match app.add(path).await {
                    Ok(added) => {
                        is_some = true;
                        rows.extend(added.row.filter(|row| !rows.contains(row)));
                    }
                    Err(problem) => app.tell(AppEvent::Notice {
                        message: problem.message,
                        failed: true,
                    }),
                }
            }
            if is_some {
                app.say_opened(rows);
            }
        });
    }

    fn say_opened(&self, rows: Vec<String>) {
        {
            let mut state = locked(&self.places.state);
            if !state.has_started {
                state.opened.extend(rows);
                return;
            }
        }
        self.tell(AppEvent::ModelsChanged);
        self.tell(AppEvent::Opened { rows });
    }

    /// For `start`: what was opened before there was a page.
    pub(super) fn take_opened(&self) -> Vec<String> {
        let mut state = locked(&self.places.state);
        state.has_started = true;
        std::mem::take(&mut state.opened)
    }
}

/// Runs what may block where it may.
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(Problem::new(
            "broken",
            "This ended by a fault of the program. Try again, and please report it.",
        ))
    })
}

/// The place at a path, if it can be looked into.
fn checked(path: &Path) -> Result<Place, Problem> {
    // The same place by another way is still the same place; links keep the person's own words.
    let path = match path.components().any(|part| part.as_os_str() == "..") {
        true => fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        false => path.components().collect(),
    };
    let shown = shown_path(&path);
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Problem::new(
            "path_missing",
            format!("{shown} is not there. Check the spelling, or whether its disk is connected."),
        ),
        ErrorKind::PermissionDenied => Problem::new(
            "path_forbidden",
            format!("{shown} may not be read by you. Change its permissions or take another."),
        ),
        _ => Problem::new("path_unusable", format!("{shown} cannot be read: {error}.")),
    };
    let facts = fs::metadata(&path).map_err(refused)?;
    if facts.is_dir() {
        fs::read_dir(&path).map_err(refused)?;
    } else if !facts.is_file() {
        return Err(Problem::new(
            "path_unusable",
            format!(
                "{shown} is neither a folder nor a file. Name a folder of models or a model file."
            ),
        ));
    } else {
        fs::File::open(&path).map_err(refused)?;
        twospeed_gguf::read(&path).map_err(|error| {
            Problem::new(
                "file_unusable",
                twospeed_library::display::shown(&error.to_string()),
            )
        })?;
    }
    Ok(Place {
        exists: true,
        is_file: facts.is_file(),
        path,
    })
}
