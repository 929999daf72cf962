//! The one window.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Manager, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder};
use tauri_plugin_window_state::StateFlags;

use crate::appearance::{self, Appearance};
use crate::place;

/// Its label: the capability names it.
pub const LABEL: &str = "main";

/// The page has this long to paint before the window shows without it.
const PATIENCE: Duration = Duration::from_millis(400);

/// After this time the desktop has put a window that was shown where it will be, and has said so: before,
/// GTK knows neither its place nor its size.
const SETTLED: Duration = Duration::from_millis(250);

/// Whether the window has been shown.
#[derive(Debug, Default)]
pub struct Shown(AtomicBool);

/// Makes the window, in the colours of its page, and shows it when the page has painted or is late.
pub fn open(app: &AppHandle, data: &Path, text_size: f64) -> tauri::Result<WebviewWindow> {
    let look = app.state::<Appearance>();
    let theme = look.shown();
    let page = format!(
        "index.html?theme={}&text={text_size}",
        appearance::name(theme)
    );
    let builder = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App(page.into()))
        .title("Twospeed")
        .inner_size(1280.0, 800.0)
        .min_inner_size(900.0, 600.0)
        .prevent_overflow()
        .background_color(appearance::background(theme))
        .visible(false)
        .on_navigation(is_our_page)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false);
    // The page stores nothing by itself, but WebKit keeps its books; a private window keeps none, and
    // WebDriver cannot drive one.
    let window = match web_folder(data) {
        Some(folder) => builder.data_directory(folder),
        None => builder.incognito(true),
    }
    .build()?;
    look.dress(&window);
    let late = app.clone();
    tauri::async_runtime::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        show(&late);
    });
    Ok(window)
}

/// Shows the window the first time this is called; whoever closed or moved it since is left alone.
pub fn show(app: &AppHandle) {
    if app.state::<Shown>().0.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some(window) = app.get_webview_window(LABEL) {
        let _ = window.show();
        let _ = window.set_focus();
        tauri::async_runtime::spawn(async move {
            tokio::time::sleep(SETTLED).await;
            // A desktop that does not say where its windows are keeps them in reach by itself.
            let _ = place::keep_in_reach(&window);
        });
    }
}

/// Remembers size, place and whether it fills the screen, in the data folder.
pub fn memory(data: &Path) -> tauri::plugin::TauriPlugin<tauri::Wry> {
    tauri_plugin_window_state::Builder::new()
        .with_state_flags(StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED)
        // An absolute name replaces the folder that the plugin would take.
        .with_filename(data.join("window-place.json").to_string_lossy())
        .build()
}

/// Where WebKit keeps its books; `None` where the data folder takes none: the page then says what is wrong
/// with it.
fn web_folder(data: &Path) -> Option<PathBuf> {
    let folder = data.join("web");
    std::fs::create_dir_all(&folder).is_ok().then_some(folder)
}

/// The page inside the program is the only one there is.
fn is_our_page(address: &Url) -> bool {
    match address.scheme() {
        "tauri" => address.host_str() == Some("localhost"),
        // WebView2 and its like know no schemes of ours.
        "http" | "https" => cfg!(windows) && address.host_str() == Some("tauri.localhost"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_that_takes_nothing_still_gets_a_window() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(
            web_folder(&place.path().join("new")),
            Some(place.path().join("new").join("web"))
        );
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(web_folder(&file), None);
    }

    #[test]
    fn only_the_page_of_the_program_may_be_opened() {
        let may = |address: &str| is_our_page(&Url::parse(address).unwrap());
        assert!(may("tauri://localhost/index.html?theme=dark"));
        for address in [
            "https://example.org/",
            "http://localhost/",
            "tauri://elsewhere/",
            "file:///etc/passwd",
            "data:text/html,hello",
            "about:blank",
            "javascript:alert(1)",
        ] {
            assert!(!may(address), "{address}");
        }
    }
}
