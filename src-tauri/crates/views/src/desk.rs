//! What the app needs of a desktop: pickers, the clipboard, a file manager, small choices kept.
//!
//! Two implementers: the window's own, and [`Headless`] for tests and whatever runs without one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use crate::Problem;
use crate::compare::Form;
use crate::frame::Theme;

/// A desktop.
#[async_trait]
pub trait Desk: Send + Sync {
    /// Lets the person pick a folder; `None` = they picked none.
    async fn pick_folder(&self) -> Option<PathBuf>;
    /// Lets the person pick a model file; `None` = they picked none.
    async fn pick_file(&self) -> Option<PathBuf>;
    /// Lets the person say where to save; `None` = nowhere.
    async fn pick_save(&self, suggested: &Path, form: Form) -> Option<PathBuf>;
    /// Puts text on the clipboard.
    async fn copy_text(&self, text: &str) -> Result<(), Problem>;
    /// Puts a picture on the clipboard: the bytes of a PNG file.
    async fn copy_picture(&self, png: &[u8]) -> Result<(), Problem>;
    /// Shows a file or folder in the file manager.
    async fn reveal(&self, path: &Path) -> Result<(), Problem>;
    /// What was kept under a key; it may be anything, since the person may edit the file.
    fn choice(&self, key: &str) -> Option<Value>;
    /// Keeps a choice under a key.
    fn keep_choice(&self, key: &str, value: Value);
    /// Gives the window's own frame the colours that were chosen.
    fn set_theme(&self, theme: Theme);
    /// Shows the window: its first view is painted.
    fn show_window(&self);
}

/// No desktop: answers what it was made with and keeps what it is told.
#[derive(Debug, Default)]
pub struct Headless {
    /// What the next picker answers; taken by it.
    pub pick: Mutex<Option<PathBuf>>,
    /// Choices.
    pub choices: Mutex<BTreeMap<String, Value>>,
    /// Text on the clipboard.
    pub text: Mutex<Option<String>>,
    /// Picture on the clipboard.
    pub picture: Mutex<Option<Vec<u8>>>,
    /// Paths that were revealed, in order.
    pub revealed: Mutex<Vec<PathBuf>>,
    /// The colours that were set last.
    pub theme: Mutex<Option<Theme>>,
    /// Times the window was shown.
    pub shown: Mutex<u32>,
}

/// What is behind the lock, whatever happened to who held it before.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Desk for Headless {
    async fn pick_folder(&self) -> Option<PathBuf> {
        locked(&self.pick).take()
    }

    async fn pick_file(&self) -> Option<PathBuf> {
        locked(&self.pick).take()
    }

    async fn pick_save(&self, _suggested: &Path, _form: Form) -> Option<PathBuf> {
        locked(&self.pick).take()
    }

    async fn copy_text(&self, text: &str) -> Result<(), Problem> {
        *locked(&self.text) = Some(text.to_owned());
        Ok(())
    }

    async fn copy_picture(&self, png: &[u8]) -> Result<(), Problem> {
        *locked(&self.picture) = Some(png.to_owned());
        Ok(())
    }

    async fn reveal(&self, path: &Path) -> Result<(), Problem> {
        locked(&self.revealed).push(path.to_owned());
        Ok(())
    }

    fn choice(&self, key: &str) -> Option<Value> {
        locked(&self.choices).get(key).cloned()
    }

    fn keep_choice(&self, key: &str, value: Value) {
        locked(&self.choices).insert(key.to_owned(), value);
    }

    fn set_theme(&self, theme: Theme) {
        *locked(&self.theme) = Some(theme);
    }

    fn show_window(&self) {
        *locked(&self.shown) += 1;
    }
}
