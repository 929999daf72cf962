//! A run that was stopped or cut off, gone on with.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use twospeed_history::{Resumable, WholeRun};
use twospeed_measure::{Plan, Stop, TestOutcome, platform, resume};
use twospeed_workbench::Subject;

use super::args::BenchArgs;
use super::measuring::{Measuring, Resumed};
use super::output::{Output, short_name};
use super::report::{self, report};
use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Measures what is missing and prints the whole run; `wanted` is a part of its id, or nothing for
/// the newest.
pub fn run(context: &Context, args: &BenchArgs, wanted: &str) -> Result<(), Failure> {
    let wanted = (!wanted.is_empty()).then_some(wanted);
    let (resumable, whole) = context.block_on(find(context, wanted))?;
    let plan = resumable
        .record
        .plan
        .clone()
        .expect("BUG: a resumable run has its plan");
    let tried = resumable.tests.iter();
    let missing = resume::missing(
        &plan,
        tried.map(|test| (test.position, test.status.as_ref())),
    );
    announce(&resumable, &plan, &missing);
    let kept: Vec<TestOutcome> = outcomes(whole)
        .into_iter()
        .filter(|test| !missing.contains(&test.test.position))
        .collect();
    let subjects = subjects(&plan, &missing);
    let stop = Stop::new();
    let mut output = Output::new(&args.out, &plan, platform::default_threads(), stop.clone())?;
    output.kept(&report::done(&kept))?;
    let measuring = Measuring {
        context,
        args: &args.out,
        plan: &plan,
        subjects: &subjects,
        stop: &stop,
    };
    let resumed = Resumed {
        run: resumable.record,
        missing,
    };
    let outcome = context.block_on(measuring.run(&mut output, Some(resumed)))?;
    let all: Vec<TestOutcome> = kept.into_iter().chain(outcome.tests.clone()).collect();
    output.end(&report::done(&all))?;
    report(&outcome, &all, true)
}

/// The run, and what it has.
async fn find(context: &Context, wanted: Option<&str>) -> Result<(Resumable, WholeRun), Failure> {
    let history = context.open_history().await?;
    let found = history.resume_of(wanted).await.map_err(Failure::of)?;
    let whole = history.run(found.record.id).await.map_err(Failure::of)?;
    history.close().await;
    let whole = whole.ok_or_else(|| {
        Failure::Failed("The run was deleted meanwhile. Measure again.".to_owned())
    })?;
    Ok((found, whole))
}

fn announce(run: &Resumable, plan: &Plan, missing: &BTreeSet<u32>) {
    let started = run.record.started_at.to_zoned_datetime(TimeZone::system());
    say(format!(
        "Going on with the run of {}: {} of {} tests are kept, {} are missing.",
        started.strftime("%Y-%m-%d %H:%M"),
        plan.tests.len() - missing.len(),
        plan.tests.len(),
        missing.len()
    ));
    for position in missing {
        if let Some(test) = plan.tests.get(*position as usize) {
            say(format!(
                "  missing: {} of {}",
                test.kind.name(test.spec),
                short_name(&test.model)
            ));
        }
    }
}

/// What the history has, as a run gives it.
fn outcomes(run: WholeRun) -> Vec<TestOutcome> {
    run.tests
        .into_iter()
        .filter_map(|test| {
            Some(TestOutcome {
                test: test.record,
                samples: test.samples,
                end: test.end?,
            })
        })
        .collect()
}

/// The models that are still to be measured, as far as they can be read: one that cannot be is
/// refused when its turn comes.
fn subjects(plan: &Plan, missing: &BTreeSet<u32>) -> Vec<Subject> {
    let mut paths: Vec<_> = missing
        .iter()
        .filter_map(|position| plan.tests.get(*position as usize))
        .map(|test| &test.model.path.0)
        .collect();
    paths.dedup();
    paths
        .into_iter()
        .filter_map(|path| Subject::read(path).ok())
        .collect()
}
