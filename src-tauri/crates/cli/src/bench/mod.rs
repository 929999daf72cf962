//! `twospeed bench`: llama-bench's conventions and formats, with a history behind it.

pub mod args;
mod grid;
mod lists;
mod output;
mod status;

use std::path::PathBuf;
use std::sync::Mutex;

use jiff::Timestamp;
use twospeed_engine::Settings;
use twospeed_engine::process::WorkerProcess;
use twospeed_history::History;
use twospeed_measure::platform;
use twospeed_measure::{
    Lease, Plan, PlannedTest, Progress, Recorder, RunEnd, RunOutcome, Stop, TestStatus,
};
use twospeed_workbench::{
    RunRequest, Subject, Unsaved, hold_lease, know_read_speed, lease_place, needs, waiting_sentence,
};

use self::args::BenchArgs;
use self::output::Output;
use self::status::Status;
use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::say::say;
use crate::{Failure, words};

/// What `-o` takes: llama-bench's formats and our own.
pub const OUTPUTS: [&str; 6] = ["md", "json", "jsonl", "csv", "sql", "results"];
/// What `-oe` takes.
pub const OUTPUTS_ERR: [&str; 5] = ["md", "json", "jsonl", "csv", "sql"];

/// Measures and prints.
pub fn run(context: &Context, args: &BenchArgs) -> Result<(), Failure> {
    if args.no_save && args.output == "results" {
        return Err(Failure::Usage(
            "-o results prints what the history keeps: leave out --no-save.".into(),
        ));
    }
    let default_threads = platform::default_threads();
    let tests = grid::tests(args, default_threads)?;
    let subjects = subjects(context, &args.model)?;
    let plan = Plan {
        repetitions: args.repetitions,
        warmup: !args.no_warmup,
        delay_ms: u64::from(args.delay) * 1000,
        ..Plan::new("bench", planned(&subjects, &tests, args.variant.as_deref()))
    };
    plan.check()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let needs = |test: &PlannedTest| {
        let of = |subject: &&Subject| subject.measured.fingerprint == test.model.fingerprint;
        needs(&subjects.iter().find(of)?.header, test)
    };
    let settings: Vec<&Settings> = plan.tests.iter().map(|test| &test.settings).collect();
    let stop = Stop::new();
    let output = Mutex::new(Output::new(args, &settings, default_threads, stop.clone()));
    let outcome = context.block_on(measure(context, args, &plan, &needs, &output, &stop))?;
    let mut output = output
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    output.end()?;
    report(&outcome)
}

/// The models that were named, each read once.
fn subjects(context: &Context, named: &[PathBuf]) -> Result<Vec<Subject>, Failure> {
    context
        .model_paths(named)?
        .iter()
        .map(|path| Subject::read(path).map_err(Failure::of))
        .collect()
}

/// Every test of every model, models outermost.
fn planned(
    subjects: &[Subject],
    tests: &[(Settings, twospeed_engine::TestSpec)],
    variant: Option<&str>,
) -> Vec<PlannedTest> {
    subjects
        .iter()
        .flat_map(|subject| {
            tests.iter().map(|(settings, spec)| PlannedTest {
                model: subject.measured.clone(),
                settings: settings.clone(),
                spec: *spec,
                kind: twospeed_measure::Kind::Speed,
                variant: variant.map(str::to_owned),
            })
        })
        .collect()
}

async fn measure(
    context: &Context,
    args: &BenchArgs,
    plan: &Plan,
    needs: &(dyn Fn(&PlannedTest) -> Option<u64> + Sync),
    output: &Mutex<Output>,
    stop: &Stop,
) -> Result<RunOutcome, Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    let history = match context.open_history().await {
        Ok(history) => Some(history),
        // Nothing is to be kept, so a data folder that cannot be used is no hindrance.
        Err(_) if args.no_save => None,
        Err(failure) => return Err(failure),
    };
    let unsaved = Unsaved::new(history.as_ref());
    let recorder: &dyn Recorder = match &history {
        Some(history) if !args.no_save => history,
        _ => &unsaved,
    };
    let lease = hold_lease(&lease_place(), "bench", |holder| {
        say(waiting_sentence(holder.as_ref()));
    })
    .await
    .map_err(Failure::of)?;

    let interrupts = Interrupts::new().map_err(Failure::of)?;
    tokio::spawn(stop_on_interrupt(interrupts, stop.clone()));
    let mut status = Status::new(args.progress, plan.tests.len());
    let mut failed_output = None;
    let mut progress = |step: Progress| {
        status.tell(&step);
        let mut output = output
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Err(failure) = output.tell(step) {
            // Without a reader there is nobody to measure for.
            failed_output.get_or_insert(failure);
            stop.now();
        }
    };
    let request = RunRequest {
        plan,
        engine: &engine,
        recorder,
        needs,
        stop,
    };
    let outcome = twospeed_workbench::run(request, &lease, &mut progress)
        .await
        .map_err(Failure::of);
    status.end();
    let outcome = outcome?;
    if let Some(history) = history
        .as_ref()
        .filter(|_| !args.no_save && outcome.end == RunEnd::Complete)
    {
        tokio::select! {
            biased;
            () = stop.asked_now() => {}
            () = read_speed(&engine, history, plan, &lease) => {}
        }
    }
    if args.output == "results"
        && let Some(history) = &history
    {
        let mut text = Vec::new();
        history
            .export(&[outcome.run.id], Timestamp::now(), &mut text)
            .await
            .map_err(Failure::of)?;
        crate::print(&text)?;
    }
    if let Some(history) = &history {
        history.close().await;
    }
    match failed_output {
        Some(failure) => Err(failure),
        None => Ok(outcome),
    }
}

/// Measures the read speed where it is not known here yet. A failure is said: the tests stand
/// without it.
async fn read_speed(engine: &WorkerProcess, history: &History, plan: &Plan, lease: &Lease) {
    if let Err(problem) = know_read_speed(engine, history, plan, lease, || {}).await {
        say(format!("The read speed was not measured: {problem}"));
    }
}

/// The first request to end stops the run and keeps what is done; a second one leaves at once.
async fn stop_on_interrupt(mut interrupts: Interrupts, stop: Stop) {
    interrupts.next().await;
    say("\nStopping: what is measured is kept.");
    stop.now();
    interrupts.next().await;
    std::process::exit(130);
}

/// Warnings and failures after the table; an error when anything was not measured.
fn report(outcome: &RunOutcome) -> Result<(), Failure> {
    for test in &outcome.tests {
        let name = format!(
            "{} of {}",
            test.test.spec,
            output::short_name(&test.test.model)
        );
        for warning in &test.end.warnings {
            say(format!("{name}: {}", words::warning(warning)));
        }
    }
    match &outcome.end {
        RunEnd::NotKept(error) => return Err(Failure::of(error)),
        RunEnd::NoEngine { message, .. } => return Err(Failure::Failed(message.clone())),
        RunEnd::Stopped => {
            return Err(Failure::Failed(
                "Stopped before every test was done.".into(),
            ));
        }
        RunEnd::Complete => {}
    }
    let undone = |position: u32| {
        // A test that was run again with another CPU variant counts by its last try.
        outcome
            .tests
            .iter()
            .rfind(|test| test.test.position == position)
            .is_some_and(|test| test.end.status != TestStatus::Done)
    };
    let positions: std::collections::BTreeSet<u32> = outcome
        .tests
        .iter()
        .map(|test| test.test.position)
        .collect();
    let failed = positions
        .iter()
        .filter(|position| undone(**position))
        .count();
    if failed > 0 {
        say(format!(
            "{failed} of {} tests were not measured.",
            positions.len()
        ));
        return Err(Failure::Said);
    }
    Ok(())
}
