//! What a run prints as its tests end.

use std::collections::HashMap;
use std::io::{self, Write};

use twospeed_engine::Settings;
use twospeed_engine::protocol::Sample;
use twospeed_history::llama_bench::{self, Columns, Format, Row};
use twospeed_library::display::shown;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Progress, Stop, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

use super::args::BenchArgs;
use crate::Failure;
use crate::say::say;

/// Rows on standard output (and on standard error where asked), failures in words.
pub struct Output {
    out: Option<Box<dyn Format>>,
    err: Option<Box<dyn Format>>,
    settings: Vec<Settings>,
    default_threads: u32,
    verbose: bool,
    stop: Stop,
    /// Why tests were not tried, as far as it was said.
    reasons: Vec<String>,
    build: Option<(String, u32)>,
    tests: HashMap<Uuid, (TestRecord, Vec<Sample>)>,
}

impl Output {
    /// In the formats that were asked for, of a run that `stop` stops.
    pub fn new(args: &BenchArgs, settings: &[&Settings], default_threads: u32, stop: Stop) -> Self {
        Self {
            out: llama_bench::format(&args.output),
            err: args.output_err.as_deref().and_then(llama_bench::format),
            settings: settings
                .iter()
                .map(|settings| (*settings).clone())
                .collect(),
            default_threads,
            verbose: args.verbose,
            stop,
            reasons: Vec::new(),
            build: None,
            tests: HashMap::new(),
        }
    }

    /// Takes a step of the run.
    pub fn tell(&mut self, step: Progress) -> Result<(), Failure> {
        match step {
            Progress::EngineStarted { worker } if self.build.is_none() => {
                let engine = worker.engine;
                self.build = Some((engine.build_commit, engine.build_number));
                let settings: Vec<_> = self.settings.iter().collect();
                let columns = Columns::of(&worker.backends, &settings, self.default_threads);
                self.both(|format, out| format.begin(out, &columns))
            }
            Progress::TestStarted { test } => {
                self.tests.insert(test.id, (*test, Vec::new()));
                Ok(())
            }
            Progress::Sample { sample, .. } => {
                if let Some((_, samples)) = self.tests.get_mut(&sample.test) {
                    samples.push(sample.sample);
                }
                Ok(())
            }
            Progress::TestEnded { end } => self.test_ended(&end),
            _ => Ok(()),
        }
    }

    fn test_ended(&mut self, end: &TestEnd) -> Result<(), Failure> {
        let Some((test, samples)) = self.tests.remove(&end.test) else {
            return Ok(());
        };
        if end.status != TestStatus::Done {
            self.not_done(&test, end);
            return Ok(());
        }
        match Row::of(&test, end, &samples) {
            Some(row) => self.both(|format, out| format.row(out, &row)),
            None => Ok(()),
        }
    }

    fn not_done(&mut self, test: &TestRecord, end: &TestEnd) {
        let name = format!("{} of {}", test.spec, short_name(&test.model));
        match &end.status {
            TestStatus::Failed { message, log, .. } => {
                say(format!("{name}: {message}"));
                if self.verbose {
                    for line in log {
                        say(format!("  {}", shown(line)));
                    }
                }
            }
            // Who stops a run knows why the rest is not tried.
            TestStatus::Skipped { .. } if self.stop.is_asked() => {}
            // What holds for a hundred tests is said once.
            TestStatus::Skipped { reason } if self.reasons.contains(reason) => {}
            TestStatus::Skipped { reason } => {
                say(format!("{name}: {reason}"));
                self.reasons.push(reason.clone());
            }
            TestStatus::Cancelled => say(format!("{name}: cancelled.")),
            TestStatus::Interrupted | TestStatus::Done => {}
        }
    }

    /// Prints what stands after the last row.
    pub fn end(&mut self) -> Result<(), Failure> {
        match self.build.clone() {
            Some((commit, number)) => self.both(|format, out| format.end(out, (&commit, number))),
            // Nothing was begun.
            None => Ok(()),
        }
    }

    fn both(
        &mut self,
        mut write: impl FnMut(&mut dyn Format, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut to = |format: &mut Option<Box<dyn Format>>, stream: &mut dyn Write| match format {
            Some(format) => write(format.as_mut(), stream).and_then(|()| stream.flush()),
            None => Ok(()),
        };
        to(&mut self.err, &mut io::stderr().lock())
            .and_then(|()| to(&mut self.out, &mut io::stdout().lock()))
            .map_err(|error| Failure::of_output(&error))
    }
}

/// `SmolLM2 135M Instruct Q4_1`, safe for a terminal.
pub fn short_name(model: &MeasuredModel) -> String {
    let name = twospeed_library::display::shortened(&shown(&model.name), 48);
    match &model.quantization {
        Some(quantization) => format!("{name} {}", shown(quantization)),
        None => name,
    }
}
