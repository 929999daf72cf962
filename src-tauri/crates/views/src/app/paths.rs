//! Paths as they come from the page, and those that the person may be shown in a file manager.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use twospeed_library::display::shown_path;

use super::App;
use crate::Problem;
use crate::compare::Form;
use crate::desk::locked;

/// Paths that the page knows by their text alone, which need not be the whole truth: a path may
/// be any bytes.
#[derive(Default)]
pub(crate) struct Paths {
    picked: Mutex<BTreeMap<String, PathBuf>>,
    revealable: Mutex<BTreeMap<String, PathBuf>>,
}

impl App {
    /// Lets the person pick a folder.
    pub async fn pick_folder(&self) -> Result<Option<String>, Problem> {
        Ok(self.desk.pick_folder().await.map(|path| self.picked(path)))
    }

    /// Lets the person pick a model file.
    pub async fn pick_file(&self) -> Result<Option<String>, Problem> {
        Ok(self.desk.pick_file().await.map(|path| self.picked(path)))
    }

    /// Lets the person say where to save.
    pub async fn pick_save(
        &self,
        suggested: String,
        form: Form,
    ) -> Result<Option<String>, Problem> {
        let suggested = self.path_of(&suggested)?;
        let picked = self.desk.pick_save(&suggested, form).await;
        Ok(picked.map(|path| self.picked(path)))
    }

    /// Shows a file of ours in the file manager: one that was exported here or is listed in Models.
    pub async fn reveal(&self, path: String) -> Result<(), Problem> {
        let known = locked(&self.paths.revealable).get(&path).cloned();
        let Some(known) = known else {
            return Err(Problem::new(
                "path_unknown",
                format!(
                    "{path} is neither a listed model nor a file saved here, so it is not shown."
                ),
            ));
        };
        if !known.exists() {
            return Err(Problem::new(
                "path_gone",
                format!("{} is not there any more.", shown_path(&known)),
            ));
        }
        self.desk.reveal(&known).await
    }

    /// From now on `reveal` shows this path; gives its text for the page.
    pub(crate) fn may_reveal(&self, path: &Path) -> String {
        let text = shown_path(path);
        locked(&self.paths.revealable).insert(text.clone(), path.to_owned());
        text
    }

    fn picked(&self, path: PathBuf) -> String {
        let text = shown_path(&path);
        locked(&self.paths.picked).insert(text.clone(), path);
        text
    }

    /// The path that a person means who typed, pasted or picked it: `~`, quotes, `file://` and
    /// blanks around it are understood.
    ///
    /// Errors: `path_unusable` for nothing at all and for a path that begins nowhere.
    pub(crate) fn path_of(&self, typed: &str) -> Result<PathBuf, Problem> {
        if let Some(picked) = locked(&self.paths.picked).get(typed) {
            return Ok(picked.clone());
        }
        super::typed::typed_path(typed, self.environment.home.as_deref())
    }
}
