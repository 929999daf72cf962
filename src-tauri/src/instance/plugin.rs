//! Windows: by Tauri's plugin.

use std::path::{Path, PathBuf};

use clap::Parser;

use super::Handover;
use crate::arguments::Arguments;
use crate::opened;

/// What this program is; the plugin ends a second one by itself.
#[derive(Debug)]
pub enum Role {
    /// Never: the plugin answers later starts.
    First(Doorbell),
    /// Never: the plugin has ended it before.
    Second,
    /// Always.
    Alone,
}

/// There is none.
#[derive(Debug)]
pub enum Doorbell {}

/// There is none.
#[derive(Debug)]
pub enum Hung {}

impl Doorbell {
    /// Cannot be called.
    pub fn answer(
        self,
        _take: impl Fn(Handover) -> bool + Send + 'static,
    ) -> std::io::Result<Hung> {
        match self {}
    }
}

/// The plugin finds out.
pub fn claim(_data: &Path, _runtime: Option<&Path>, _handover: &Handover) -> Role {
    Role::Alone
}

/// Hands over and ends the second one.
pub fn plugin() -> tauri::plugin::TauriPlugin<tauri::Wry> {
    tauri_plugin_single_instance::init(|app, arguments, folder| {
        let files = Arguments::try_parse_from(arguments)
            .map(|arguments| arguments.files(&PathBuf::from(folder)))
            .unwrap_or_default();
        opened::hand_over(
            app,
            Handover {
                files,
                activation: None,
            },
        );
    })
}
