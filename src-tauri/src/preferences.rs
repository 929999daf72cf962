//! What the window remembers of a person's choices: only what may be lost.
//!
//! The file is written by `tauri-plugin-store`, not in one piece: it may be cut short, or hold anything.
//! It is read field by field, and what makes no sense is as if it were not there.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tauri::Theme;

/// Files beyond this are not ours.
const LARGEST: u64 = 1 << 20;
/// The sizes of text that the page offers.
const TEXT_SIZES: std::ops::RangeInclusive<f64> = 0.8..=1.6;

/// What the first picture of the window depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preferences {
    /// `None` = as the system.
    pub theme: Option<Theme>,
    /// 1 = the design's.
    pub text_size: f64,
}

impl Preferences {
    /// From the data folder; whatever is wrong there gives the defaults.
    pub fn read(data: &Path) -> Self {
        let file = file(data);
        let small =
            std::fs::metadata(&file).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let text = small.then(|| std::fs::read(&file).ok()).flatten();
        let value = text.and_then(|text| serde_json::from_slice(&text).ok());
        Self::from_value(&value.unwrap_or(Value::Null))
    }

    fn from_value(value: &Value) -> Self {
        Self {
            theme: match value["theme"].as_str() {
                Some("light") => Some(Theme::Light),
                Some("dark") => Some(Theme::Dark),
                _ => None,
            },
            text_size: value["text_size"]
                .as_f64()
                .filter(|size| TEXT_SIZES.contains(size))
                .unwrap_or(1.0),
        }
    }
}

/// The store's file.
pub fn file(data: &Path) -> PathBuf {
    data.join("window.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Preferences = Preferences {
        theme: None,
        text_size: 1.0,
    };

    fn read(content: &[u8]) -> Preferences {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(file(folder.path()), content).unwrap();
        Preferences::read(folder.path())
    }

    #[test]
    fn what_was_chosen_holds() {
        assert_eq!(
            read(br#"{"theme":"dark","text_size":1.25}"#),
            Preferences {
                theme: Some(Theme::Dark),
                text_size: 1.25
            }
        );
    }

    #[test]
    fn a_missing_cut_or_foreign_file_gives_the_defaults() {
        assert_eq!(Preferences::read(Path::new("/nowhere")), DEFAULTS);
        for content in [
            &b""[..],
            b"{\"theme\":\"da",
            b"[1,2]",
            b"\xff\xfe",
            b"{\"theme\":7,\"text_size\":\"big\"}",
            b"{\"theme\":\"purple\",\"text_size\":900}",
            b"{\"text_size\":-1}",
        ] {
            assert_eq!(read(content), DEFAULTS);
        }
    }

    #[test]
    fn a_folder_in_its_place_gives_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(file(folder.path())).unwrap();
        assert_eq!(Preferences::read(folder.path()), DEFAULTS);
    }
}
