//! One line on standard error that says what the run does now.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};

use twospeed_engine::protocol::Phase;
use twospeed_measure::Progress;
use uuid::Uuid;

use super::output::test_name;

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
    /// What each test that has begun is called: their repetitions may take turns.
    names: HashMap<Uuid, String>,
    shown: bool,
}

impl Status {
    /// For a plan of so many tests; with `progress` steps are printed where there is no terminal
    /// too. With `verbose` nothing is repainted, since the engine's log stands between.
    pub fn new(progress: bool, verbose: bool, tests: usize) -> Self {
        let mode = match (std::io::stderr().is_terminal(), progress || verbose) {
            (true, _) if !verbose => Mode::Repainted,
            (_, true) => Mode::Printed,
            _ => Mode::Silent,
        };
        Self {
            mode,
            tests,
            names: HashMap::new(),
            shown: false,
        }
    }

    /// Takes a step. Nothing is written inside a timed section: steps come outside of them only.
    pub fn tell(&mut self, step: &Progress) {
        match step {
            Progress::TestStarted { test } => {
                let place = format!("{}/{}", test.position + 1, self.tests);
                let name = format!("{place}  {}", test_name(test));
                self.names.insert(test.id, name);
                self.show(test.id, "starts");
            }
            Progress::Loading { test, fraction } => {
                if matches!(self.mode, Mode::Repainted) {
                    self.show(*test, &format!("loading, {:.0} %", fraction * 100.0));
                }
            }
            Progress::Phase { test, phase } => self.show(*test, &words(*phase)),
            Progress::TestEnded { .. } | Progress::RunEnded { .. } => self.clear(),
            _ => {}
        }
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        self.clear();
    }

    fn show(&mut self, test: Uuid, what: &str) {
        let name = self.names.get(&test).map_or("", String::as_str);
        let mut err = std::io::stderr().lock();
        // A line that cannot be shown is not worth a failure.
        let _ = match self.mode {
            Mode::Repainted => write!(err, "\r\x1b[2K{name}  {what}"),
            Mode::Printed => writeln!(err, "{name}  {what}"),
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

fn words(phase: Phase) -> String {
    match phase {
        Phase::Warmup => "warm-up, not counted".into(),
        Phase::Depth { restored: true } => "cache restored to the depth".into(),
        Phase::Depth { restored: false } => "filling the cache to the depth".into(),
        Phase::Text { done, chunks } => format!("{done} of {chunks} chunks judged"),
        Phase::Repetition { number } => format!("repetition {number}"),
    }
}
