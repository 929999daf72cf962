//! macOS and Windows: Tauri knows the system's theme by itself.

use tauri::{AppHandle, Manager, Theme, WebviewWindow};

/// There are no tokens to come to the front with.
pub fn activation() -> Option<String> {
    None
}

/// There always is one.
pub fn find_screen() -> anyhow::Result<()> {
    Ok(())
}

/// Brings the window to the front.
pub fn raise(window: &WebviewWindow, _activation: Option<&str>) {
    let _ = window.unminimize();
    let _ = window.show();
    let _ = window.set_focus();
}

/// The system's theme, where a window can tell it already.
pub fn system_theme(app: &AppHandle) -> Theme {
    app.webview_windows()
        .values()
        .next()
        .and_then(|window| window.theme().ok())
        .unwrap_or(Theme::Light)
}

/// Lets the window's frame and menus follow; `None` = the system's.
pub fn use_theme(window: &WebviewWindow, chosen: Option<Theme>, _shown: Theme) {
    let _ = window.set_theme(chosen);
}

/// The window's own event tells of changes.
pub fn watch_system_theme(_app: &AppHandle, _changed: impl Fn(Theme) + 'static) {}

/// Ctrl-C ends the program; whoever ends a session there closes its windows first.
pub fn end_on_signals(_app: &AppHandle) {}
