//! What is said when a run has ended.

use std::collections::BTreeSet;

use twospeed_measure::{RunEnd, RunOutcome, TestOutcome, TestStatus};

use super::output::test_name;
use crate::say::say;
use crate::{Failure, words};

/// Of each place in the plan the test that counts, in the order of the plan: one that was run again
/// with another CPU variant counts by its last try.
fn that_count(tests: &[TestOutcome]) -> Vec<&TestOutcome> {
    let positions: BTreeSet<u32> = tests.iter().map(|test| test.test.position).collect();
    let last = |position: u32| tests.iter().rfind(|test| test.test.position == position);
    positions.into_iter().filter_map(last).collect()
}

/// The tests that count and are done, in the order of the plan.
pub fn done(tests: &[TestOutcome]) -> Vec<TestOutcome> {
    that_count(tests)
        .into_iter()
        .filter(|test| test.end.status == TestStatus::Done)
        .cloned()
        .collect()
}

/// Warnings and failures after the tables; an error when anything was not measured.
///
/// `tests` are those of the run, what was done before it was resumed among them; `saved` runs can
/// go on.
pub fn report(outcome: &RunOutcome, tests: &[TestOutcome], saved: bool) -> Result<(), Failure> {
    for test in &outcome.tests {
        for warning in &test.end.warnings {
            say(format!(
                "{}: {}",
                test_name(&test.test),
                words::warning(warning)
            ));
        }
    }
    match &outcome.end {
        RunEnd::NotKept(error) => return Err(Failure::of(error)),
        RunEnd::NoEngine { message, .. } => return Err(Failure::Failed(message.clone())),
        RunEnd::Stopped => {
            return Err(Failure::Failed(
                match saved {
                    true => {
                        "Stopped before every test was done. Go on with: twospeed bench --resume"
                    }
                    false => "Stopped before every test was done.",
                }
                .into(),
            ));
        }
        RunEnd::Complete => {}
    }
    let counting = that_count(tests);
    let failed = counting
        .iter()
        .filter(|test| test.end.status != TestStatus::Done)
        .count();
    if failed > 0 {
        say(format!(
            "{failed} of {} tests were not measured.",
            counting.len()
        ));
        return Err(Failure::Said);
    }
    Ok(())
}
