//! Light or dark, and how large: from what the person chose and what the system is.

use std::sync::Mutex;

use tauri::utils::config::Color;
use tauri::{AppHandle, Manager, Theme, WebviewWindow};

use crate::os;

/// The window's colours, kept true while the person or the system changes them.
#[derive(Debug)]
pub struct Appearance {
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// `None` = as the system.
    chosen: Option<Theme>,
    system: Theme,
}

impl State {
    fn shown(self) -> Theme {
        self.chosen.unwrap_or(self.system)
    }
}

impl Appearance {
    /// With the person's choice and the system's theme.
    pub fn new(chosen: Option<Theme>, system: Theme) -> Self {
        Self {
            state: Mutex::new(State { chosen, system }),
        }
    }

    /// What is to be seen.
    pub fn shown(&self) -> Theme {
        self.change(|_| ()).shown()
    }

    /// The person chose; `None` = as the system.
    pub fn choose(&self, app: &AppHandle, chosen: Option<Theme>) {
        let state = self.change(|state| state.chosen = chosen);
        show(app, state);
    }

    /// The system is now like this.
    pub fn system_is(&self, app: &AppHandle, system: Theme) {
        let state = self.change(|state| state.system = system);
        show(app, state);
    }

    /// Lets a new window look so.
    pub fn dress(&self, window: &WebviewWindow) {
        let state = self.change(|_| ());
        os::use_theme(window, state.chosen, state.shown());
    }

    fn change(&self, how: impl FnOnce(&mut State)) -> State {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        how(&mut state);
        *state
    }
}

/// On the thread that owns the windows: GTK allows no other.
fn show(app: &AppHandle, state: State) {
    let handle = app.clone();
    // Fails only when the program is ending.
    let _ = app.run_on_main_thread(move || {
        for window in handle.webview_windows().values() {
            os::use_theme(window, state.chosen, state.shown());
            let _ = window.set_background_color(Some(background(state.shown())));
        }
    });
}

/// The page's `--bg`: what is there before the page is.
pub fn background(theme: Theme) -> Color {
    match theme {
        Theme::Dark => Color(0x17, 0x18, 0x1b, 0xff),
        _ => Color(0xff, 0xff, 0xff, 0xff),
    }
}

/// The theme's name in the page's address.
pub fn name(theme: Theme) -> &'static str {
    match theme {
        Theme::Dark => "dark",
        _ => "light",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_counts_before_the_system() {
        let shown = |chosen, system| Appearance::new(chosen, system).shown();
        assert_eq!(shown(Some(Theme::Light), Theme::Dark), Theme::Light);
        assert_eq!(shown(Some(Theme::Dark), Theme::Light), Theme::Dark);
        assert_eq!(shown(None, Theme::Dark), Theme::Dark);
    }
}
