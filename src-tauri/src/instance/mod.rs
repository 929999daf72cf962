//! One window for each data folder.
//!
//! The first program holds a lock on a file in the data folder and listens at a socket whose place it
//! writes into that file. A second one finds the lock taken, hands over what it was started with, and
//! leaves. The kernel gives the lock back when its holder ends, however it ends, so nothing stale can
//! keep the window from opening; and neither a session bus nor a desktop is needed. Where the folder
//! cannot be locked, or the first window does not answer, the second opens a window of its own: two
//! windows may share a history.
//!
//! Windows has no such sockets: there Tauri's plugin does the same for all data folders together.

mod handover;
#[cfg(not(unix))]
mod plugin;
#[cfg(unix)]
mod socket;

pub use handover::Handover;

#[cfg(not(unix))]
pub use plugin::{Role, claim, plugin};
#[cfg(unix)]
pub use socket::{Role, claim};

/// Nothing to add to Tauri.
#[cfg(unix)]
pub fn plugin() -> tauri::plugin::TauriPlugin<tauri::Wry> {
    tauri::plugin::Builder::new("instance").build()
}
