//! What both faces do, the command line and the window: find the data folder, prepare a model for
//! measuring, run a plan with the real engine under the machine's lease, know the machine's read
//! speed, and draw figures from the history.
//!
//! Each of these is a few calls of the crates below; they stand here so that neither face does
//! them in its own way.

pub mod calibration;
mod data_folder;
mod download;
pub mod figures;
mod foresee;
mod grounds;
mod learn;
mod problem;
mod quantize;
mod read_speed;
mod run;
mod save;
mod speeds;
mod subject;
pub mod tune;
pub mod twin;

pub use data_folder::{DataFolder, NoHome};
pub use download::{download, measuring_now};
pub use figures::{FigureInput, FigureKind, Source, grouped};
pub use foresee::{Allocated, DeviceShare, Foreseer, Unforeseen, foresee, foresee_context};
pub use grounds::{Grounds, basis_words};
pub use learn::{header_of, is_disturbance};
pub use problem::Problem;
pub use quantize::{
    QuantizePlan, QuantizeProgress, QuantizeRequest, QuantizedFile, plan_quantize, quantize,
};
pub use read_speed::{ReadSpeed, all_sizes, know_read_speed, measure_read_speed, missing_sizes};
pub use run::{
    ResumeRequest, RunRequest, Unsaved, hold_lease, lease_place, resume, run, waiting_sentence,
};
pub use save::{SaveError, save};
pub use speeds::{Bar, ResultId, SpeedsOptions, bars, differs, measured, speeds, speeds_of};
pub use subject::{BUILTIN, Subject, context_settings, flash_attention, needs, needs_with};
