//! What a run prints as its tests end.

use std::collections::HashMap;
use std::io::{self, Write};

use twospeed_engine::Settings;
use twospeed_engine::protocol::Sample;
use twospeed_history::llama_bench::{self, Columns, Format, Row};
use twospeed_library::display::shown;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Plan, Progress, Stop, TestEnd, TestOutcome, TestRecord, TestStatus};
use uuid::Uuid;

use super::args::OutputArgs;
use super::tables;
use crate::Failure;
use crate::say::say;

/// The one of llama-bench's formats that has room for other tables below its own.
const MARKDOWN: &str = "md";

/// Rows on standard output (and on standard error where asked), failures in words.
pub struct Output<'a> {
    plan: &'a Plan,
    out: Stream,
    err: Stream,
    default_threads: u32,
    stop: Stop,
    /// Why tests were not tried, as far as it was said.
    reasons: Vec<String>,
    build: Option<(String, u32)>,
    tests: HashMap<Uuid, (TestRecord, Vec<Sample>)>,
}

/// Where rows go, and how.
struct Stream {
    /// llama-bench's table, where there is a row for it.
    format: Option<Box<dyn Format>>,
    /// The tables of other tests stand below.
    tables: bool,
}

impl Stream {
    fn of(name: Option<&str>, speeds: bool) -> Self {
        Self {
            format: name.filter(|_| speeds).and_then(llama_bench::format),
            tables: name == Some(MARKDOWN),
        }
    }
}

impl<'a> Output<'a> {
    /// In the formats that were asked for, of a run that `stop` stops.
    ///
    /// Errors: a format that has no room for any of the plan's tests.
    pub fn new(
        args: &OutputArgs,
        plan: &'a Plan,
        default_threads: u32,
        stop: Stop,
    ) -> Result<Self, Failure> {
        let speeds = plan.tests.iter().any(|test| test.kind.is_speed());
        let formats = [Some(args.output.as_str()), args.output_err.as_deref()];
        let pure = |name: &&str| *name != MARKDOWN && llama_bench::FORMATS.contains(name);
        if let Some(format) = formats.into_iter().flatten().find(pure) {
            let others = plan
                .tests
                .iter()
                .filter(|test| !test.kind.is_speed())
                .count();
            if !speeds {
                return Err(Failure::Usage(format!(
                    "{format} has llama-bench's rows only, and none of these tests is one: print them with -o md or -o results."
                )));
            }
            if others > 0 {
                say(format!(
                    "{others} of the tests are no rows of llama-bench's and are left out of the {format}: -o md and -o results have them."
                ));
            }
        }
        Ok(Self {
            plan,
            out: Stream::of(Some(&args.output), speeds),
            err: Stream::of(args.output_err.as_deref(), speeds),
            default_threads,
            stop,
            reasons: Vec::new(),
            build: None,
            tests: HashMap::new(),
        })
    }

    /// Takes a step of the run.
    pub fn tell(&mut self, step: Progress) -> Result<(), Failure> {
        match step {
            Progress::EngineStarted { worker } if self.build.is_none() => {
                let engine = worker.engine;
                self.begin((engine.build_commit, engine.build_number), &worker.backends)
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

    /// Prints the rows of tests that were done before, of a run that goes on.
    pub fn kept(&mut self, tests: &[TestOutcome]) -> Result<(), Failure> {
        for test in tests {
            let Some(worker) = test.end.worker.as_ref() else {
                continue;
            };
            if self.build.is_none() {
                let engine = worker.engine.clone();
                self.begin((engine.build_commit, engine.build_number), &worker.backends)?;
            }
            let samples = test.samples.iter().map(|sample| sample.sample.clone());
            self.row(&test.test, &test.end, &samples.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn begin(&mut self, build: (String, u32), backends: &str) -> Result<(), Failure> {
        self.build = Some(build);
        let speeds = self.plan.tests.iter().filter(|test| test.kind.is_speed());
        let settings: Vec<&Settings> = speeds.map(|test| &test.settings).collect();
        let columns = Columns::of(backends, &settings, self.default_threads);
        self.both(|format, out| format.begin(out, &columns))
    }

    fn test_ended(&mut self, end: &TestEnd) -> Result<(), Failure> {
        let Some((test, samples)) = self.tests.remove(&end.test) else {
            return Ok(());
        };
        if end.status != TestStatus::Done {
            self.not_done(&test, end);
            return Ok(());
        }
        self.row(&test, end, &samples)
    }

    fn row(&mut self, test: &TestRecord, end: &TestEnd, samples: &[Sample]) -> Result<(), Failure> {
        if !test.kind.is_speed() {
            return Ok(());
        }
        match Row::of(test, end, samples) {
            Some(row) => self.both(|format, out| format.row(out, &row)),
            None => Ok(()),
        }
    }

    fn not_done(&mut self, test: &TestRecord, end: &TestEnd) {
        let name = test_name(test);
        match &end.status {
            TestStatus::Failed { message, .. } => say(format!("{name}: {message}")),
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

    /// Prints what stands after the last row: the tables of the other tests among those that are
    /// done.
    pub fn end(&mut self, done: &[TestOutcome]) -> Result<(), Failure> {
        // Without a build nothing was begun.
        let Some((commit, number)) = self.build.clone() else {
            return Ok(());
        };
        self.both(|format, out| format.end(out, (&commit, number)))?;
        let below = |stream: &Stream, out: &mut dyn Write| -> io::Result<()> {
            if !stream.tables {
                return Ok(());
            }
            tables::write(out, self.plan, done)?;
            // llama-bench's table says it itself.
            match stream.format {
                Some(_) => Ok(()),
                None => writeln!(out, "\nbuild: {commit} ({number})"),
            }
        };
        below(&self.err, &mut io::stderr().lock())
            .and_then(|()| below(&self.out, &mut io::stdout().lock()))
            .and_then(|()| io::stdout().flush())
            .map_err(|error| Failure::of_output(&error))
    }

    fn both(
        &mut self,
        mut write: impl FnMut(&mut dyn Format, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut to = |to: &mut Stream, stream: &mut dyn Write| match &mut to.format {
            Some(format) => write(format.as_mut(), stream).and_then(|()| stream.flush()),
            None => Ok(()),
        };
        to(&mut self.err, &mut io::stderr().lock())
            .and_then(|()| to(&mut self.out, &mut io::stdout().lock()))
            .map_err(|error| Failure::of_output(&error))
    }
}

/// `pp512 of SmolLM2 135M Instruct Q4_1`, safe for a terminal.
pub fn test_name(test: &TestRecord) -> String {
    format!(
        "{} of {}",
        test.kind.name(test.spec),
        short_name(&test.model)
    )
}

/// `SmolLM2 135M Instruct Q4_1`, safe for a terminal.
pub fn short_name(model: &MeasuredModel) -> String {
    let name = twospeed_library::display::shortened(&shown(&model.name), 48);
    match &model.quantization {
        Some(quantization) => format!("{name} {}", shown(quantization)),
        None => name,
    }
}
