//! Is the desktop dark?
//!
//! Newer desktops say so at the portal (`org.freedesktop.appearance`, `color-scheme`), older ones by the
//! name of GTK's theme. Tauri can ask too, but with five seconds' patience while the window is made, and
//! with a thread that wakes every five seconds for as long as the program runs; here GTK's own connection
//! sleeps until the desktop has something to say.

use std::cell::Cell;
use std::rc::Rc;

use gtk::gio::prelude::*;
use gtk::gio::{
    BusType, Cancellable, DBusCallFlags, DBusConnection, DBusSignalFlags, bus_get_sync,
};
use gtk::glib::Variant;
use gtk::prelude::GtkSettingsExt;
use tauri::{AppHandle, Theme, WebviewWindow};

const PORTAL: &str = "org.freedesktop.portal.Desktop";
const OBJECT: &str = "/org/freedesktop/portal/desktop";
const SETTINGS: &str = "org.freedesktop.portal.Settings";
const APPEARANCE: &str = "org.freedesktop.appearance";
const SCHEME: &str = "color-scheme";

/// How long the window may wait for a portal; one that is slower is heard later.
const PATIENCE_MS: i32 = 200;

/// What the desktop prefers; the portal's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Unsaid,
    Dark,
    Light,
}

/// The system's theme now. Call it on GTK's thread, before [`use_theme`] has changed GTK's setting.
pub fn system_theme(_app: &AppHandle) -> Theme {
    let scheme = session_bus().map_or(Scheme::Unsaid, |bus| {
        bus.call_sync(
            Some(PORTAL),
            OBJECT,
            SETTINGS,
            "Read",
            Some(&(APPEARANCE, SCHEME).to_variant()),
            None,
            DBusCallFlags::NONE,
            PATIENCE_MS,
            Cancellable::NONE,
        )
        .map_or(Scheme::Unsaid, |answer| scheme_in(&answer.child_value(0)))
    });
    theme_of(scheme, gtk_is_dark())
}

/// Lets dialogs, menus and the page's `prefers-color-scheme` follow what is shown.
pub fn use_theme(_window: &WebviewWindow, _chosen: Option<Theme>, shown: Theme) {
    if let Some(settings) = gtk::Settings::default() {
        settings.set_gtk_application_prefer_dark_theme(shown == Theme::Dark);
    }
}

/// Calls `changed`, on GTK's thread, whenever the desktop's theme may be another one.
pub fn watch_system_theme(_app: &AppHandle, changed: impl Fn(Theme) + 'static) {
    let scheme = Rc::new(Cell::new(Scheme::Unsaid));
    let changed = Rc::new({
        let scheme = scheme.clone();
        move || changed(theme_of(scheme.get(), gtk_is_dark()))
    });
    if let Some(settings) = gtk::Settings::default() {
        let changed = changed.clone();
        settings.connect_gtk_theme_name_notify(move |_| changed());
    }
    let Some(bus) = session_bus() else { return };
    let heard = {
        move |value: &Variant| {
            scheme.set(scheme_in(value));
            changed();
        }
    };
    let now = heard.clone();
    bus.signal_subscribe(
        Some(PORTAL),
        Some(SETTINGS),
        Some("SettingChanged"),
        Some(OBJECT),
        Some(APPEARANCE),
        DBusSignalFlags::NONE,
        move |_, _, _, _, _, arguments| {
            if arguments.n_children() == 3 && arguments.child_value(1).str() == Some(SCHEME) {
                heard(&arguments.child_value(2));
            }
        },
    );
    bus.call(
        Some(PORTAL),
        OBJECT,
        SETTINGS,
        "Read",
        Some(&(APPEARANCE, SCHEME).to_variant()),
        None,
        DBusCallFlags::NONE,
        -1,
        Cancellable::NONE,
        move |answer| {
            if let Ok(answer) = answer {
                now(&answer.child_value(0));
            }
        },
    );
}

fn session_bus() -> Option<DBusConnection> {
    bus_get_sync(BusType::Session, Cancellable::NONE).ok()
}

/// The number inside, however often it is wrapped: the portal's old and new way differ in that.
fn scheme_in(value: &Variant) -> Scheme {
    let mut value = value.clone();
    while value.is::<Variant>() {
        value = value.child_value(0);
    }
    match value.get::<u32>() {
        Some(1) => Scheme::Dark,
        Some(2) => Scheme::Light,
        _ => Scheme::Unsaid,
    }
}

fn theme_of(scheme: Scheme, gtk_dark: bool) -> Theme {
    match (scheme, gtk_dark) {
        (Scheme::Dark, _) | (Scheme::Unsaid, true) => Theme::Dark,
        _ => Theme::Light,
    }
}

/// GTK's theme is a dark one, or the person's settings ask for its dark form.
fn gtk_is_dark() -> bool {
    thread_local! {
        // Asked before we ever set it ourselves.
        static PREFERRED: bool = gtk::Settings::default()
            .is_some_and(|settings| settings.is_gtk_application_prefer_dark_theme());
    }
    let forced = std::env::var("GTK_THEME").ok();
    let named = gtk::Settings::default().and_then(|settings| settings.gtk_theme_name());
    PREFERRED.with(|preferred| *preferred)
        || forced.is_some_and(|name| is_dark_name(&name))
        || named.is_some_and(|name| is_dark_name(&name))
}

fn is_dark_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("-dark") || name.ends_with(":dark")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portals_word_counts_before_the_themes_name() {
        assert_eq!(theme_of(Scheme::Light, true), Theme::Light);
        assert_eq!(theme_of(Scheme::Dark, false), Theme::Dark);
        assert_eq!(theme_of(Scheme::Unsaid, true), Theme::Dark);
        assert_eq!(theme_of(Scheme::Unsaid, false), Theme::Light);
    }

    #[test]
    fn the_number_is_found_under_any_wrapping() {
        assert_eq!(scheme_in(&1u32.to_variant()), Scheme::Dark);
        let wrapped = Variant::from_variant(&Variant::from_variant(&2u32.to_variant()));
        assert_eq!(scheme_in(&wrapped), Scheme::Light);
        assert_eq!(scheme_in(&"dark".to_variant()), Scheme::Unsaid);
    }

    #[test]
    fn dark_themes_are_known_by_their_names() {
        assert!(is_dark_name("Adwaita-dark"));
        assert!(is_dark_name("Adwaita:dark"));
        assert!(is_dark_name("Yaru-Dark"));
        assert!(!is_dark_name("Darkness"));
    }
}
