//! What is always in sight: the machine, the settings, what is going on.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::jobs::Job;

/// Everything the first view needs, in one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Start {
    /// Twospeed's version.
    pub version: String,
    /// The machine it runs on.
    pub machine: MachineCard,
    /// What the person chose.
    pub settings: Settings,
    /// What the history had to say when it was opened, sentences.
    pub notices: Vec<String>,
    /// A run of this window is going on: `follow_run` tells it from its start.
    pub running: bool,
    /// Jobs that are not ended.
    pub jobs: Vec<Job>,
    /// Where the person can be led at once: files that the program was started with.
    pub opened: Vec<String>,
}

/// The machine chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct MachineCard {
    /// Name of the CPU, shortened for a narrow column: `AMD EPYC 9B14`.
    pub cpu: String,
    /// Physical cores that this program may use.
    pub cores: Option<u32>,
    /// Memory this program may use in all, bytes.
    pub memory_bytes: Option<u64>,
    /// Read speed from a buffer far beyond the caches, bytes per second; `None` = not measured here.
    pub read_bytes_s: Option<u64>,
    /// When that was measured.
    pub read_at: Option<String>,
    /// When the calibration that expected speeds rest on was made; `None` = there is none for the
    /// settings of now.
    pub calibrated_at: Option<String>,
    /// CPU variant and build that ran last: `zen4, llama.cpp 11434`; `None` before any run.
    pub engine: Option<String>,
    /// Operating system.
    pub os: String,
}

/// What the person chose, and what holds where they chose nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Settings {
    /// Light, dark, or as the system.
    pub theme: Theme,
    /// Size of all text, 0.8 to 1.6.
    pub text_size: f64,
    /// Threads of the engine; `None` = `default_threads`.
    pub threads: Option<u32>,
    /// Threads where nothing is chosen: physical cores that may be used.
    pub default_threads: u32,
    /// Most threads that make sense here.
    pub most_threads: u32,
    /// Look also in the folders of llama.cpp, LM Studio, Ollama and the Hugging Face tools.
    pub known_places: bool,
    /// Those folders, as far as they are there.
    pub known_folders: Vec<String>,
    /// Folder of the history, models made here and downloads.
    pub data_folder: String,
    /// Where downloads come from: `https://huggingface.co` unless `HF_ENDPOINT` says otherwise.
    pub download_from: String,
}

/// A change of the settings; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(optional_fields)]
pub struct SettingsChange {
    /// Light, dark, or as the system.
    pub theme: Option<Theme>,
    /// Size of all text.
    pub text_size: Option<f64>,
    /// Threads of the engine; 0 = back to the default.
    pub threads: Option<u32>,
    /// Look also in the folders of other programs.
    pub known_places: Option<bool>,
}

/// The colours of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// As the system is.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// What happened without being asked for. Never said inside a timed section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AppEvent {
    /// The list of models is another one, or a scan goes on: ask `models`.
    ModelsChanged,
    /// There are other results: ask `results`.
    ResultsChanged,
    /// A job moved; after `done` the list of models has its file.
    Job {
        /// As it is now.
        job: Job,
    },
    /// The person opened or dropped files or folders; they are in the list of models.
    Opened {
        /// Ids of the rows in Models, in order; empty where only folders were added.
        rows: Vec<String>,
    },
    /// Files are held over the window, or no longer.
    DropHover {
        /// They are there now.
        over: bool,
    },
    /// The machine chip changed.
    Machine {
        /// As it is now.
        machine: MachineCard,
    },
    /// Something to be said where the person is.
    Notice {
        /// One sentence.
        message: String,
        /// It is a failure.
        failed: bool,
    },
}
