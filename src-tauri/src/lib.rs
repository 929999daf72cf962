//! The window: a thin layer over the crates.

mod appearance;
mod arguments;
mod instance;
mod os;
mod place;
mod preferences;
mod rendering;
mod window;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use tauri::async_runtime;
use tauri::{Manager, RunEvent};

use crate::appearance::Appearance;
use crate::arguments::Arguments;
use crate::instance::{Handover, Role};
use crate::preferences::Preferences;

#[tauri::command]
async fn shown(app: tauri::AppHandle) {
    window::show(&app);
}

/// Runs the program and answers with its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    rendering::prepare();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match start(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let data = std::path::absolute(
        arguments
            .data_dir()
            .or_else(|| Some(dirs::data_dir()?.join("twospeed")))
            .ok_or(anyhow::anyhow!("no home"))?,
    )?;
    let handover = Handover {
        files: arguments.files(&std::env::current_dir().unwrap_or_default()),
        activation: os::activation(),
    };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(std::path::PathBuf::from);
    let role = instance::claim(&data, runtime.as_deref(), &handover);
    if let Role::Second = role {
        return Ok(ExitCode::SUCCESS);
    }
    let preferences = Preferences::read(&data);
    let app = tauri::Builder::default()
        .plugin(window::memory(&data))
        .manage(window::Shown::default())
        .invoke_handler(tauri::generate_handler![shown])
        .setup(move |app| {
            let handle = app.handle().clone();
            app.manage(Appearance::new(
                preferences.theme,
                os::system_theme(&handle),
            ));
            window::open(&handle, preferences.text_size)?;
            if let Role::First(doorbell) = role {
                let ring = handle.clone();
                let rung = doorbell.answer(move |handover| {
                    if let Some(window) = ring.get_webview_window(window::LABEL) {
                        let _ = ring.run_on_main_thread(move || {
                            os::raise(&window, handover.activation.as_deref())
                        });
                    }
                    eprintln!("{:?}", handover.files);
                })?;
                app.manage(rung);
            }
            let changed = handle.clone();
            os::watch_system_theme(&handle, move |theme| {
                changed.state::<Appearance>().system_is(&changed, theme)
            });
            Ok(())
        })
        .build(tauri::generate_context!())?;
    let code = app.run_return(|_, event| if let RunEvent::Exit = event {});
    let _ = async_runtime::handle();
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
