use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use twospeed_views::frame::{AppEvent, SettingsChange, Theme};

use crate::Window;

#[tokio::test]
async fn the_first_view_waits_for_no_folder_and_no_history() {
    let window = Window::new().await;
    // Another process holds the history while it begins: opening it waits up to ten seconds.
    fs::create_dir_all(window.path("held")).unwrap();
    let lock = fs::File::create(window.path("held/history.lock")).unwrap();
    lock.lock().unwrap();
    let around = window.around.clone();
    let app = twospeed_views::app::App::open(twospeed_views::app::AppOptions {
        data_folder: around.path().join("held"),
        engine: std::sync::Arc::new(twospeed_engine::FakeEngine::new()),
        desk: window.desk.clone(),
        runtime: tokio::runtime::Handle::current(),
        environment: twospeed_views::app::Environment {
            home: None,
            variable: std::sync::Arc::new(|_| None),
            lease: around.path().join("lease"),
        },
    });
    let begun = Instant::now();
    let start = app.start().await.unwrap();
    let models = app.models().await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert!(!start.machine.cpu.is_empty());
    assert!(start.machine.memory_bytes.is_some());
    assert_eq!(start.machine.read_bytes_s, None, "not measured here");
    assert!(
        models.scanning.is_some(),
        "the scan waits for the list of folders"
    );
    assert!(
        models.groups.iter().any(|group| group.synthetic),
        "the built-in model is always there"
    );
}

#[tokio::test]
async fn choices_hold_and_nonsense_in_their_file_is_as_if_it_were_not_there() {
    let window = Window::new().await;
    let defaults = window.app.start().await.unwrap().settings;
    assert_eq!(
        (defaults.theme, defaults.text_size, defaults.threads),
        (Theme::System, 1.0, None)
    );
    let change = SettingsChange {
        theme: Some(Theme::Dark),
        text_size: Some(9.0),
        threads: Some(1),
        known_places: Some(false),
    };
    let changed = window.app.change_settings(change).await.unwrap();
    assert_eq!(
        (
            changed.theme,
            changed.text_size,
            changed.threads,
            changed.known_places
        ),
        (Theme::Dark, 1.6, Some(1), false)
    );
    assert_eq!(*window.desk.theme.lock().unwrap(), Some(Theme::Dark));
    let back = SettingsChange {
        threads: Some(0),
        ..SettingsChange::default()
    };
    assert_eq!(
        window.app.change_settings(back).await.unwrap().threads,
        None
    );

    for nonsense in [
        json!("purple"),
        json!(-1),
        json!(1e300),
        json!([1]),
        json!(null),
    ] {
        for key in ["theme", "text_size", "threads", "known_places"] {
            window
                .desk
                .choices
                .lock()
                .unwrap()
                .insert(key.into(), nonsense.clone());
        }
        assert_eq!(
            window.app.start().await.unwrap().settings,
            defaults,
            "{nonsense}"
        );
    }
    let many = SettingsChange {
        threads: Some(100_000),
        ..SettingsChange::default()
    };
    let refused = window.app.change_settings(many).await.unwrap_err();
    assert_eq!(refused.code, "threads_too_many");
}

#[tokio::test]
async fn a_damaged_history_is_said_once_and_the_window_works() {
    let around = std::sync::Arc::new(tempfile::tempdir().unwrap());
    fs::create_dir_all(around.path().join("data")).unwrap();
    fs::write(
        around.path().join("data/history.sqlite"),
        b"this is no database at all, sorry",
    )
    .unwrap();
    let mut window = Window::with(
        std::sync::Arc::new(twospeed_engine::FakeEngine::new()),
        around,
    )
    .await;
    let start = window.app.start().await.unwrap();
    let mut sentences = start.notices;
    if sentences.is_empty() {
        let message = window.hear(|event| match event {
            AppEvent::Notice { message, .. } => Some(message.clone()),
            _ => None,
        });
        sentences.push(message.await);
    }
    assert_eq!(sentences.len(), 1);
    assert!(sentences[0].contains("history.sqlite"), "{}", sentences[0]);
    fs::create_dir(window.path("models")).unwrap();
    let path = window.path("models").to_string_lossy().into_owned();
    assert!(!window.app.add_path(path).await.unwrap().known);
}

#[tokio::test]
async fn a_history_that_cannot_be_had_leaves_a_window_whose_folders_last_until_it_is_closed() {
    let around = std::sync::Arc::new(tempfile::tempdir().unwrap());
    // A folder where the history should be.
    fs::create_dir_all(around.path().join("data/history.sqlite")).unwrap();
    let mut window = Window::with(
        std::sync::Arc::new(twospeed_engine::FakeEngine::new()),
        around,
    )
    .await;
    window.app.start().await.unwrap();
    let models = window.path("models");
    crate::write_model(
        &models.join("a.gguf"),
        "Small One",
        twospeed_library::FileType::Q8_0,
    );
    window
        .app
        .add_path(models.to_string_lossy().into_owned())
        .await
        .unwrap();
    window
        .hear(|event| match event {
            AppEvent::Notice {
                message,
                failed: true,
            } if message.contains("until Twospeed is closed") => Some(()),
            _ => None,
        })
        .await;
    let view = window.scanned().await;
    assert_eq!(view.folders.len(), 1);
    assert!(view.groups.iter().any(|group| group.name == "Small One"));
}

#[tokio::test]
async fn only_what_is_listed_or_was_saved_here_is_shown_in_the_file_manager() {
    let window = Window::new().await;
    let start = window.app.start().await.unwrap();
    window.scanned().await;
    for strange in ["/etc/passwd", "..", ""] {
        let refused = window.app.reveal(strange.into()).await.unwrap_err();
        assert_eq!(refused.code, "path_unknown");
    }
    window.app.reveal(start.settings.data_folder).await.unwrap();
    assert_eq!(*window.desk.revealed.lock().unwrap(), [window.path("data")]);
}
