//! What differs by operating system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::{
    activation, end_on_signals, find_screen, raise, system_theme, use_theme, watch_system_theme,
};
#[cfg(not(target_os = "linux"))]
pub use other::{
    activation, end_on_signals, find_screen, raise, system_theme, use_theme, watch_system_theme,
};
