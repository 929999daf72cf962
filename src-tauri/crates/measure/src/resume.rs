//! What is still to be measured of a run that was stopped or cut off.

use std::collections::BTreeSet;

use crate::plan::Plan;
use crate::record::TestStatus;

/// Codes of failures that say nothing of the test: the engine could not be started, what was found
/// could not be stored, or a CPU variant died under it and another was to take over.
const NOT_THE_TESTS_FAULT: [&str; 7] = [
    "engine_missing",
    "engine_not_runnable",
    "engine_version",
    "engine_silent",
    "engine_illegal_instruction",
    NOT_STORED,
    VARIANT_CHANGED,
];

/// Code of a test that failed because something of it could not be stored.
pub const NOT_STORED: &str = "not_stored";

/// Code of a test whose repetitions were begun with a CPU variant that died under another test.
pub const VARIANT_CHANGED: &str = "variant_changed";

/// Positions of the plan that are still to be measured, in the order of the plan.
///
/// `tests` are the tests that the run has, with how each ended; `None` where it has no end. A
/// position is done when one of its tests is done or failed by its own fault: the same failure
/// would come again. What was interrupted, cancelled or skipped is missing, and so is what never
/// began.
pub fn missing<'a>(
    plan: &Plan,
    tests: impl IntoIterator<Item = (u32, Option<&'a TestStatus>)>,
) -> BTreeSet<u32> {
    let mut missing: BTreeSet<u32> = (0..).zip(&plan.tests).map(|(at, _)| at).collect();
    for (position, status) in tests {
        if status.is_some_and(is_settled) {
            missing.remove(&position);
        }
    }
    missing
}

fn is_settled(status: &TestStatus) -> bool {
    match status {
        TestStatus::Done => true,
        TestStatus::Failed { code, .. } => !NOT_THE_TESTS_FAULT.contains(&code.as_str()),
        TestStatus::Cancelled | TestStatus::Interrupted | TestStatus::Skipped { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use twospeed_engine::Settings;

    use super::*;
    use crate::model::tests::model;
    use crate::plan::presets::quick;

    fn plan() -> Plan {
        let models = ["A", "B", "C", "D"].map(model);
        Plan::of(&quick(), &models, &Settings::default())
    }

    fn failed(code: &str) -> TestStatus {
        TestStatus::Failed {
            code: code.into(),
            message: String::new(),
            log: vec![],
        }
    }

    #[test]
    fn what_ended_by_itself_is_not_measured_again() {
        let skipped = TestStatus::Skipped {
            reason: "stopped".into(),
        };
        let ends = [
            Some(TestStatus::Done),
            Some(failed("engine_check_failed")),
            Some(failed("too_little_memory")),
            Some(failed("engine_killed")),
            Some(TestStatus::Cancelled),
            Some(TestStatus::Interrupted),
            Some(skipped),
        ];
        let tests = (0..).zip(ends.iter().map(Option::as_ref));
        // The eighth never began.
        assert_eq!(missing(&plan(), tests), BTreeSet::from([4, 5, 6, 7]));
    }

    #[test]
    fn a_test_without_an_end_is_missing() {
        assert_eq!(missing(&plan(), [(0, None)]).len(), 8);
    }

    #[test]
    fn a_failure_that_is_not_the_tests_is_tried_again() {
        for code in NOT_THE_TESTS_FAULT {
            let failed = failed(code);
            assert!(
                missing(&plan(), [(3, Some(&failed))]).contains(&3),
                "{code}"
            );
        }
    }

    #[test]
    fn a_test_that_was_made_again_counts_by_its_best_end() {
        let died = failed("engine_illegal_instruction");
        let ends = [(0, Some(&died)), (0, Some(&TestStatus::Done))];
        assert!(!missing(&plan(), ends).contains(&0));
        assert!(missing(&plan(), [(0, Some(&died))]).contains(&0));
    }

    #[test]
    fn a_position_that_the_plan_does_not_have_is_no_matter() {
        assert_eq!(missing(&plan(), [(99, Some(&TestStatus::Done))]).len(), 8);
    }
}
