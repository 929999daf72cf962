//! The window's work without a window: an app on temporary folders, a scripted engine, no desktop.
#![allow(clippy::unwrap_used, clippy::panic)]

mod compare;
mod estimate;
mod expected;
mod figures;
mod frame;
mod jobs;
mod kinds;
mod measure;
mod measured;
mod models;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::watch;
use twospeed_engine::{Engine, FakeEngine};
use twospeed_library::{FileType, LlamaShape};
use twospeed_views::app::{App, AppOptions, Environment};
use twospeed_views::desk::Headless;
use twospeed_views::frame::AppEvent;
use twospeed_views::models::{ModelRow, ModelsView};

/// An app with everything around it.
struct Window {
    app: Arc<App>,
    desk: Arc<Headless>,
    heard: watch::Receiver<Vec<AppEvent>>,
    /// Home, data and models of the person.
    around: Arc<TempDir>,
}

impl Window {
    /// On a machine where nothing is yet.
    async fn new() -> Self {
        Self::with(
            Arc::new(FakeEngine::new()),
            Arc::new(tempfile::tempdir().unwrap()),
        )
        .await
    }

    /// With this engine, in this folder.
    async fn with(engine: Arc<dyn Engine>, around: Arc<TempDir>) -> Self {
        let desk = Arc::new(Headless::default());
        let at = around.path().to_owned();
        let app = App::open(AppOptions {
            data_folder: at.join("data"),
            engine,
            desk: desk.clone(),
            runtime: Handle::current(),
            environment: Environment {
                home: Some(at.join("home")),
                variable: Arc::new(|_| None),
                lease: at.join("lease"),
            },
        });
        let (say, heard) = watch::channel(Vec::new());
        let say = Arc::new(Mutex::new(say));
        let follower = app.clone();
        tokio::spawn(async move {
            let tell = Arc::new(move |event| {
                say.lock()
                    .unwrap()
                    .send_modify(|heard: &mut Vec<AppEvent>| heard.push(event));
            });
            follower.follow_app(tell).await.unwrap();
        });
        Self {
            app,
            desk,
            heard,
            around,
        }
    }

    /// A path beside the data folder.
    fn path(&self, name: &str) -> PathBuf {
        self.around.path().join(name)
    }

    /// Waits for an event; what it wants of it is the answer.
    async fn hear<T>(&mut self, wanted: impl Fn(&AppEvent) -> Option<T>) -> T {
        let found = self
            .heard
            .wait_for(|heard| heard.iter().any(|event| wanted(event).is_some()));
        let found = tokio::time::timeout(Duration::from_secs(30), found).await;
        let heard = found.expect("it never happened").unwrap();
        heard.iter().find_map(wanted).unwrap()
    }

    /// The list of models when the scan has come to its end.
    async fn scanned(&self) -> ModelsView {
        for _ in 0..1500 {
            let view = self.app.models().await.unwrap();
            if view.scanning.is_none() {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the scan never ended");
    }
}

/// A small Llama of random weights, sound to the last byte.
fn write_model(path: &Path, name: &str, file_type: FileType) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let shape = LlamaShape {
        width: 256,
        layers: 1,
        heads: 4,
        kv_heads: 4,
        feed_forward: 512,
        vocabulary: 512,
        context: 2048,
    };
    let mut file = BufWriter::new(File::create(path).unwrap());
    shape
        .model(name, file_type, 1)
        .write(&mut file, &mut |_, _| true)
        .unwrap();
    file.flush().unwrap();
}

/// The row of this quantization in the group of this name.
fn row<'a>(view: &'a ModelsView, group: &str, quantization: &str) -> &'a ModelRow {
    let group = view.groups.iter().find(|found| found.name == group);
    let group = group.unwrap_or_else(|| {
        let names: Vec<_> = view.groups.iter().map(|group| &group.name).collect();
        panic!("only {names:?}")
    });
    let rows = &group.rows;
    rows.iter()
        .find(|row| row.quantization == quantization)
        .unwrap_or_else(|| panic!("only {rows:?}"))
}
