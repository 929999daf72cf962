//! Linux: GTK's settings, the desktop's portal.

mod theme;

use anyhow::Context;
use gtk::prelude::GtkWindowExt;
use tauri::{AppHandle, WebviewWindow, async_runtime};
use tokio::signal::unix::{SignalKind, signal};

pub use theme::{system_theme, use_theme, watch_system_theme};

/// The desktop's permission for this start to come to the front, if it gave one.
pub fn activation() -> Option<String> {
    ["XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .filter(|token| !token.is_empty())
}

/// Looks for a screen before Tauri does, which knows only to panic where there is none. Call it on the first
/// thread.
///
/// Errors: what to do.
pub fn find_screen() -> anyhow::Result<()> {
    gtk::init().context(
        "There is no screen to open the window on. Start it on a desktop, or use the command line: twospeed --help",
    )
}

/// Brings the window to the front. Wayland's desktops allow it only with a token of the start that asks for it.
pub fn raise(window: &WebviewWindow, activation: Option<&str>) {
    let _ = window.unminimize();
    let _ = window.show();
    if let (Some(token), Ok(gtk_window)) = (activation, window.gtk_window()) {
        gtk_window.set_startup_id(token);
    }
    let _ = window.set_focus();
}

/// A session that ends, a terminal that closes and Ctrl-C ask the program to end: it does so in order, and
/// the window's place is remembered.
pub fn end_on_signals(app: &AppHandle) {
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        let app = app.clone();
        async_runtime::spawn(async move {
            if let Ok(mut asked) = signal(kind) {
                asked.recv().await;
                app.exit(0);
            }
        });
    }
}
