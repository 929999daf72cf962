//! One line on a terminal that says how far something is; nothing where there is no terminal.

use std::io::{IsTerminal, Write};

/// The line; it goes with this value.
pub struct ProgressLine {
    terminal: bool,
    shown: bool,
}

impl ProgressLine {
    /// With nothing on it.
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            shown: false,
        }
    }

    /// Shows this instead of what is there.
    pub fn show(&mut self, what: &str) {
        if self.terminal {
            // A line that cannot be shown is not worth a failure.
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[2K{what}").and_then(|()| err.flush());
            self.shown = true;
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}
