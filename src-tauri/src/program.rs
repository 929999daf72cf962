//! From the start to the end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tauri::{AppHandle, Manager, async_runtime};
use tokio::runtime::Runtime;
use twospeed_views::app::{App, AppOptions, Environment};
use twospeed_workbench::DataFolder;

use crate::appearance::Appearance;
use crate::arguments::Arguments;
use crate::desk::Desktop;
use crate::instance::{self, Handover, Role};
use crate::preferences::Preferences;
use crate::{commands, engine, opened, os, window};

/// The window's own work is little: commands wait for the history or for the worker.
const THREADS: usize = 2;

/// Opens the window, or hands over to the one that is open, and answers when it is closed.
pub fn start(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let data = DataFolder::new(arguments.data_dir())?;
    let data = std::path::absolute(data.path())
        .with_context(|| format!("{} is no place for a data folder", data.path().display()))?;
    let handover = Handover {
        files: arguments.files(&std::env::current_dir().unwrap_or_default()),
        activation: os::activation(),
    };
    let runtime_folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let role = instance::claim(&data, runtime_folder.as_deref(), &handover);
    if let Role::Second = role {
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("twospeed")
        // A thread that has nothing left to do ends by a timer, which must not go off while a
        // sample is timed.
        .thread_keep_alive(Duration::from_secs(24 * 3600))
        .enable_all()
        .build()
        .context("The system gives this program no threads")?;
    async_runtime::set(runtime.handle().clone());
    let app = build(data, role, handover)?;
    let handle = app.handle().clone();
    let code = app.run_return(opened::on_event);
    end(&handle, &runtime);
    // What still runs there is a worker that ends with us, or a file nobody waits for.
    runtime.shutdown_background();
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The window is gone: ends what goes on in order, so that no half-made file is left and a run knows that it
/// was stopped.
fn end(app: &AppHandle, runtime: &Runtime) {
    app.state::<opened::Ending>().begin();
    // None where the window was never made.
    if let Some(doors) = app.try_state::<commands::Doors>() {
        let doors = doors.inner().clone();
        runtime.block_on(async move { doors.close().await });
    }
}

fn build(data: PathBuf, role: Role, handover: Handover) -> anyhow::Result<tauri::App> {
    os::find_screen()?;
    tauri::Builder::default()
        .plugin(instance::plugin())
        .plugin(window::memory(&data))
        .plugin(tauri_plugin_store::Builder::default().build())
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_clipboard_manager::init())
        .plugin(
            // The page has no links to elsewhere, and needs no script that looks for them.
            tauri_plugin_opener::Builder::new()
                .open_js_links_on_click(false)
                .build(),
        )
        .manage(window::Shown::default())
        .manage(opened::Ending::default())
        .invoke_handler(commands::handler())
        .on_window_event(opened::on_window_event)
        .setup(move |app| Ok(set_up(app, &data, role, handover)?))
        .build(tauri::generate_context!())
        .context("The window could not be opened")
}

fn set_up(app: &mut tauri::App, data: &Path, role: Role, handover: Handover) -> anyhow::Result<()> {
    let handle = app.handle().clone();
    let preferences = Preferences::read(data);
    app.manage(Appearance::new(
        preferences.theme,
        os::system_theme(&handle),
    ));
    let doors = App::open(AppOptions {
        data_folder: data.to_owned(),
        engine: engine::installed(),
        desk: std::sync::Arc::new(Desktop::new(handle.clone(), data)?),
        runtime: async_runtime::handle().inner().clone(),
        environment: Environment::of_this_process(),
    });
    if !handover.files.is_empty() {
        doors.opened(handover.files);
    }
    app.manage::<commands::Doors>(doors);
    window::open(&handle, data, preferences.text_size)?;
    if let Role::First(doorbell) = role {
        let window = handle.clone();
        let hung = doorbell.answer(move |handover| opened::hand_over(&window, handover))?;
        app.manage(hung);
    }
    let changed = handle.clone();
    os::watch_system_theme(&handle, move |theme| {
        changed.state::<Appearance>().system_is(&changed, theme);
    });
    os::end_on_signals(&handle);
    Ok(())
}
