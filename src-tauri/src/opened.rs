//! Files that come from outside: dropped on the window, opened from the desktop, handed over by a second start.

use std::sync::atomic::{AtomicBool, Ordering};

use tauri::{AppHandle, DragDropEvent, Manager, RunEvent, Theme, Window, WindowEvent};

use crate::appearance::Appearance;
use crate::commands::Doors;
use crate::instance::Handover;
use crate::{os, window};

/// Whether the program is on its way out: it then takes nothing more from outside.
#[derive(Debug, Default)]
pub struct Ending(AtomicBool);

impl Ending {
    /// From now on.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Takes what a second start was started with, and comes to the front; false where this program is ending,
/// so that the second one opens a window of its own.
pub fn hand_over(app: &AppHandle, handover: Handover) -> bool {
    if app.state::<Ending>().has_begun() {
        return false;
    }
    if !handover.files.is_empty() {
        app.state::<Doors>().opened(handover.files);
    }
    let Some(window) = app.get_webview_window(window::LABEL) else {
        return false;
    };
    // Fails only when the program is ending.
    let raised = app.run_on_main_thread(move || os::raise(&window, handover.activation.as_deref()));
    raised.is_ok()
}

/// What happens to the window.
pub fn on_window_event(window: &Window, event: &WindowEvent) {
    match event {
        WindowEvent::DragDrop(DragDropEvent::Enter { .. }) => hover(window, true),
        WindowEvent::DragDrop(DragDropEvent::Leave) => hover(window, false),
        WindowEvent::DragDrop(DragDropEvent::Drop { paths, .. }) => {
            hover(window, false);
            window.state::<Doors>().opened(paths.clone());
        }
        WindowEvent::ThemeChanged(theme) => system_is(window, *theme),
        _ => {}
    }
}

fn hover(window: &Window, over: bool) {
    window.state::<Doors>().drop_hover(over);
}

/// On Linux the desktop is asked instead (`os::watch_system_theme`).
fn system_is(window: &Window, theme: Theme) {
    if cfg!(not(target_os = "linux")) {
        let app = window.app_handle();
        app.state::<Appearance>().system_is(app, theme);
    }
}

/// What happens to the program.
#[cfg(not(target_os = "macos"))]
pub fn on_event(_app: &AppHandle, _event: RunEvent) {}

/// macOS hands files to a running program instead of starting it again.
#[cfg(target_os = "macos")]
pub fn on_event(app: &AppHandle, event: RunEvent) {
    if let RunEvent::Opened { urls } = event {
        let files = urls.iter().filter_map(|url| url.to_file_path().ok());
        hand_over(
            app,
            Handover {
                files: files.collect(),
                activation: None,
            },
        );
    }
}
