//! The desktop: pickers, clipboard, file manager, choices that are kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tauri::image::Image;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_clipboard_manager::ClipboardExt;
use tauri_plugin_dialog::{DialogExt, FileDialogBuilder, FilePath};
use tauri_plugin_opener::OpenerExt;
use tauri_plugin_store::{Store, StoreBuilder};
use tokio::sync::oneshot;
use twospeed_views::Problem;
use twospeed_views::compare::Form;
use twospeed_views::desk::Desk;
use twospeed_views::frame::Theme;

use crate::appearance::Appearance;
use crate::{preferences, window};

/// The desktop that the window stands on.
pub struct Desktop {
    app: AppHandle,
    choices: Arc<Store<Wry>>,
}

impl Desktop {
    /// With the choices kept in the data folder.
    pub fn new(app: AppHandle, data: &Path) -> Result<Self, tauri_plugin_store::Error> {
        let choices = StoreBuilder::new(&app, preferences::file(data))
            .auto_save(Duration::ZERO)
            .build()?;
        Ok(Self { app, choices })
    }

    fn dialog(&self) -> FileDialogBuilder<Wry> {
        let dialog = self.app.dialog().file();
        match self.app.get_webview_window(window::LABEL) {
            Some(window) => dialog.set_parent(&window),
            None => dialog,
        }
    }
}

/// Waits for a picker's answer.
async fn picked(ask: impl FnOnce(Box<dyn FnOnce(Option<FilePath>) + Send>)) -> Option<PathBuf> {
    let (answer, answered) = oneshot::channel();
    ask(Box::new(move |path| {
        let _ = answer.send(path);
    }));
    answered.await.ok()??.into_path().ok()
}

fn clipboard_problem(error: tauri_plugin_clipboard_manager::Error) -> Problem {
    Problem {
        details: Some(error.to_string()),
        ..Problem::new(
            "clipboard",
            "The clipboard of this desktop did not take it. Save it to a file instead.",
        )
    }
}

#[async_trait]
impl Desk for Desktop {
    async fn pick_folder(&self) -> Option<PathBuf> {
        let dialog = self.dialog().set_title("Add a folder of models");
        picked(|answer| dialog.pick_folder(answer)).await
    }

    async fn pick_file(&self) -> Option<PathBuf> {
        let dialog = self
            .dialog()
            .set_title("Add a model")
            .add_filter("Models (.gguf)", &["gguf"])
            .add_filter("All files", &["*"]);
        picked(|answer| dialog.pick_file(answer)).await
    }

    async fn pick_save(&self, suggested: &Path, form: Form) -> Option<PathBuf> {
        let (name, ending) = form_filter(form);
        let mut dialog = self
            .dialog()
            .set_title("Save")
            .set_can_create_directories(true)
            .add_filter(name, &[ending]);
        if let Some(folder) = suggested.parent().filter(|folder| folder.is_dir()) {
            dialog = dialog.set_directory(folder);
        }
        if let Some(name) = suggested.file_name() {
            dialog = dialog.set_file_name(name.to_string_lossy());
        }
        picked(|answer| dialog.save_file(answer)).await
    }

    async fn copy_text(&self, text: &str) -> Result<(), Problem> {
        let clipboard = self.app.clipboard();
        clipboard.write_text(text).map_err(clipboard_problem)
    }

    async fn copy_picture(&self, png: &[u8]) -> Result<(), Problem> {
        let picture = Image::from_bytes(png).map_err(|error| {
            Problem::new("clipboard", format!("The picture is broken: {error}."))
        })?;
        let clipboard = self.app.clipboard();
        clipboard.write_image(&picture).map_err(clipboard_problem)
    }

    async fn reveal(&self, path: &Path) -> Result<(), Problem> {
        let app = self.app.clone();
        let path = path.to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            let opener = app.opener();
            opener.reveal_item_in_dir(&path).or_else(|error| {
                // Where no file manager can be asked over the bus, its folder is opened.
                let folder = path.parent().ok_or(error)?;
                opener.open_path(folder.to_string_lossy(), None::<&str>)
            })
        });
        let problem = match asked.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Problem {
            details: Some(problem),
            ..Problem::new(
                "file_manager",
                "No file manager answered. The path is shown so that you can open it yourself.",
            )
        })
    }

    fn choice(&self, key: &str) -> Option<Value> {
        self.choices.get(key)
    }

    fn keep_choice(&self, key: &str, value: Value) {
        self.choices.set(key, value);
    }

    fn set_theme(&self, theme: Theme) {
        let chosen = match theme {
            Theme::System => None,
            Theme::Light => Some(tauri::Theme::Light),
            Theme::Dark => Some(tauri::Theme::Dark),
        };
        self.app.state::<Appearance>().choose(&self.app, chosen);
    }

    fn show_window(&self) {
        window::show(&self.app);
    }
}

/// Name and ending of what is saved.
fn form_filter(form: Form) -> (&'static str, &'static str) {
    match form {
        Form::Svg => ("Vector graphics (.svg)", "svg"),
        Form::Png => ("Picture (.png)", "png"),
        Form::Pdf => ("PDF (.pdf)", "pdf"),
        Form::Csv => ("Table (.csv)", "csv"),
        Form::Markdown => ("Markdown (.md)", "md"),
        Form::Json => ("Results (.json)", "json"),
    }
}
