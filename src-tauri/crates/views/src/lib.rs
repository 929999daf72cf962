//! What the window shows and does.
//!
//! - The types that the page knows, one module a view; TypeScript is generated from them
//!   (`ui/src/lib/backend/bindings.ts`, kept true by a test).
//! - [`for_each_command`]: the one list of what the page may ask. The app's doorways and the page's
//!   types are both made from it, so that neither can lack a command.
//!
//! Sizes and counts are numbers below 2^53; times are RFC 3339 in UTC; unknown is `null`. Names
//! that come from files are safe to show (`twospeed_library::display`), and are text, never markup.

pub mod app;
pub mod bindings;
pub mod commands;
pub mod compare;
pub mod desk;
pub mod estimate;
pub mod frame;
pub mod jobs;
pub mod measure;
pub mod models;
pub mod problem;

pub use problem::Problem;
