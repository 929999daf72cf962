//! What the person chose. It is kept by the desk, in a file that the person may edit, so it is
//! read field by field, and what makes no sense is as if it were not there.

use serde_json::{Value, json};
use twospeed_library::display::shown_path;
use twospeed_library::known_places;
use twospeed_measure::platform;

use super::App;
use crate::Problem;
use crate::frame::{Settings, SettingsChange, Theme};

/// Keys of the desk's choices; the shell reads the first two before the first picture.
const THEME: &str = "theme";
const TEXT_SIZE: &str = "text_size";
const THREADS: &str = "threads";
const KNOWN_PLACES: &str = "known_places";

/// Sizes of text that leave the window whole.
const TEXT_SIZES: std::ops::RangeInclusive<f64> = 0.8..=1.6;

/// Where downloads come from if nobody says otherwise.
const HUB: &str = "https://huggingface.co";

impl App {
    /// What the person chose, and what holds where they chose nothing.
    pub(crate) fn settings(&self) -> Settings {
        let choice = |key| self.desk.choice(key).unwrap_or(Value::Null);
        let most_threads = self.most_threads();
        Settings {
            theme: theme(&choice(THEME)),
            text_size: choice(TEXT_SIZE)
                .as_f64()
                .filter(|size| TEXT_SIZES.contains(size))
                .unwrap_or(1.0),
            threads: choice(THREADS)
                .as_u64()
                .and_then(|threads| u32::try_from(threads).ok())
                .filter(|threads| (1..=most_threads).contains(threads)),
            default_threads: platform::default_threads(),
            most_threads,
            known_places: self.looks_at_known_places(),
            known_folders: self
                .known_folders()
                .iter()
                .map(|path| shown_path(path))
                .collect(),
            data_folder: self.may_reveal(&self.data_folder),
            download_from: self.download_from(),
        }
    }

    /// Changes what is named, and answers with all of it.
    pub async fn change_settings(
        self: &std::sync::Arc<Self>,
        change: SettingsChange,
    ) -> Result<Settings, Problem> {
        let SettingsChange {
            theme,
            text_size,
            threads,
            known_places,
        } = change;
        if let Some(threads) = threads.filter(|threads| *threads > self.most_threads()) {
            return Err(Problem::new(
                "threads_too_many",
                format!(
                    "{threads} threads are more than this machine runs at once: take at most {}.",
                    self.most_threads()
                ),
            ));
        }
        if let Some(size) = text_size {
            let size = if size.is_finite() { size } else { 1.0 };
            let size = size.clamp(*TEXT_SIZES.start(), *TEXT_SIZES.end());
            self.desk.keep_choice(TEXT_SIZE, json!(size));
        }
        if let Some(theme) = theme {
            self.desk.keep_choice(THEME, json!(theme));
            self.desk.set_theme(theme);
        }
        if let Some(threads) = threads {
            let value = if threads == 0 {
                Value::Null
            } else {
                json!(threads)
            };
            self.desk.keep_choice(THREADS, value);
            // Another calibration may hold, or none.
            self.refresh_known();
        }
        if let Some(known_places) = known_places {
            let changed = known_places != self.looks_at_known_places();
            self.desk.keep_choice(KNOWN_PLACES, json!(known_places));
            if changed {
                self.begin_scan(true);
            }
        }
        Ok(self.settings())
    }

    /// Threads of the engine: the person's choice, or the default.
    pub(crate) fn threads(&self) -> u32 {
        let settings = self.settings();
        settings.threads.unwrap_or(settings.default_threads)
    }

    /// Logical cores that this program may use; more threads than that only wait for each other.
    fn most_threads(&self) -> u32 {
        let topology = platform::topology();
        let allowed = topology.allowed.as_ref().map(|allowed| allowed.len());
        let cores = allowed.unwrap_or(topology.cpus.len());
        u32::try_from(cores)
            .unwrap_or(1)
            .max(platform::default_threads())
    }

    /// The folders of other programs, as far as they are there.
    pub(crate) fn known_folders(&self) -> Vec<std::path::PathBuf> {
        match &self.environment.home {
            Some(home) => known_places(home, |name| (self.environment.variable)(name)),
            None => Vec::new(),
        }
    }

    pub(crate) fn looks_at_known_places(&self) -> bool {
        let choice = self.desk.choice(KNOWN_PLACES);
        choice.and_then(|value| value.as_bool()).unwrap_or(true)
    }

    /// The server of downloads.
    pub(crate) fn download_from(&self) -> String {
        let named = (self.environment.variable)("HF_ENDPOINT");
        let named = named.and_then(|value| value.into_string().ok());
        let named = named.map(|value| value.trim().trim_end_matches('/').to_owned());
        named
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| HUB.to_owned())
    }
}

fn theme(value: &Value) -> Theme {
    match value.as_str() {
        Some("light") => Theme::Light,
        Some("dark") => Theme::Dark,
        _ => Theme::System,
    }
}
