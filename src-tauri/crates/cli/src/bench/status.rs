//! One line on standard error that says what the run does now.

use std::io::{IsTerminal, Write};

use twospeed_engine::protocol::Phase;
use twospeed_measure::Progress;

/// Where the line goes: repainted on a terminal, printed line by line where that was asked for.
enum Mode {
    Repainted,
    Printed,
    Silent,
}

/// The line.
pub struct Status {
    mode: Mode,
    tests: usize,
    test: String,
    shown: bool,
}

impl Status {
    /// For a plan of so many tests; `asked` prints steps where there is no terminal too.
    pub fn new(asked: bool, tests: usize) -> Self {
        let mode = match (std::io::stderr().is_terminal(), asked) {
            (true, _) => Mode::Repainted,
            (false, true) => Mode::Printed,
            (false, false) => Mode::Silent,
        };
        Self {
            mode,
            tests,
            test: String::new(),
            shown: false,
        }
    }

    /// Takes a step. Nothing is written inside a timed section: steps come outside of them only.
    pub fn tell(&mut self, step: &Progress) {
        match step {
            Progress::TestStarted { test } => {
                self.test = format!(
                    "{}/{}  {}  {}",
                    test.position + 1,
                    self.tests,
                    super::output::short_name(&test.model),
                    test.spec
                );
                self.show("starts");
            }
            Progress::Loading { fraction, .. } => {
                if matches!(self.mode, Mode::Repainted) {
                    self.show(&format!("loading, {:.0} %", fraction * 100.0));
                }
            }
            Progress::Phase { phase, .. } => match phase {
                Phase::Warmup => self.show("warm-up, not counted"),
                Phase::Depth { restored: true } => self.show("cache restored to the depth"),
                Phase::Depth { restored: false } => self.show("filling the cache to the depth"),
                Phase::Repetition { number } => self.show(&format!("repetition {number}")),
            },
            Progress::TestEnded { .. } | Progress::RunEnded { .. } => self.clear(),
            _ => {}
        }
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        self.clear();
    }

    fn show(&mut self, what: &str) {
        let mut err = std::io::stderr().lock();
        // A line that cannot be shown is not worth a failure.
        let _ = match self.mode {
            Mode::Repainted => write!(err, "\r\x1b[2K{}  {what}", self.test),
            Mode::Printed => writeln!(err, "{}  {what}", self.test),
            Mode::Silent => Ok(()),
        };
        let _ = err.flush();
        self.shown = matches!(self.mode, Mode::Repainted);
    }

    fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
            self.shown = false;
        }
    }
}
