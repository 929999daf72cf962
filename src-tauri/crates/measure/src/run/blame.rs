//! What is not tried again within a run, since it ended the engine.

use std::collections::HashMap;

use twospeed_engine::{Doing, How, WorkerEnd};

use crate::plan::PlannedTest;

/// Ends of the engine after which a model is given up. One may be the fault of one test's
/// settings, and the rest of a sweep over settings is still worth measuring; two are the model's.
const ENDS_OF_A_MODEL: u32 = 2;

/// Remembers which loads and which models ended the engine.
#[derive(Debug, Default)]
pub(super) struct Blame {
    /// Tests that died while loading.
    loads: Vec<PlannedTest>,
    /// By fingerprint, how many tests ended the engine.
    models: HashMap<String, u32>,
}

impl Blame {
    /// A test's worker died.
    pub(super) fn note(&mut self, test: &PlannedTest, end: &WorkerEnd) {
        let loading = end.doing == Doing::Loading;
        if !speaks_against_the_model(&end.how, loading) {
            return;
        }
        if loading {
            self.loads.push(test.clone());
        }
        *self
            .models
            .entry(test.model.fingerprint.clone())
            .or_default() += 1;
    }

    /// Why a test is not tried; `None` when it may be. How the engine ended stands with the test
    /// that ended it.
    pub(super) fn reason(&self, test: &PlannedTest) -> Option<String> {
        let load = self.loads.iter().any(|died| died.shares_load(test));
        let ends = self.models.get(&test.model.fingerprint);
        let model = ends.is_some_and(|ends| *ends >= ENDS_OF_A_MODEL);
        (load || model).then(|| {
            format!(
                "Not tried, since {} ended the engine before in this run.",
                test.model.name
            )
        })
    }
}

/// Whether the model would do it again. A kill from outside or a lack of memory in one test says
/// nothing of the next; a lack of memory while loading will be there at the next load.
fn speaks_against_the_model(how: &How, loading: bool) -> bool {
    match how {
        How::Signal { name, .. } => matches!(
            name.as_str(),
            "SIGABRT" | "SIGSEGV" | "SIGBUS" | "SIGFPE" | "SIGILL"
        ),
        How::Exited { code } => *code != 0,
        How::OutOfMemory => loading,
        How::Killed | How::Protocol { .. } | How::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use twospeed_engine::Settings;

    use super::*;
    use crate::model::tests::model;
    use crate::plan::{Plan, presets};

    fn tests() -> Vec<PlannedTest> {
        Plan::of(
            &presets::quick(),
            &[model("A"), model("B")],
            &Settings::default(),
        )
        .tests
    }

    fn died(how: How, doing: Doing) -> WorkerEnd {
        WorkerEnd {
            how,
            doing,
            variant: None,
            log: vec![],
        }
    }

    fn abort() -> How {
        How::Signal {
            number: 6,
            name: "SIGABRT".into(),
        }
    }

    #[test]
    fn a_load_that_aborted_is_not_tried_again() {
        let tests = tests();
        let mut blame = Blame::default();
        blame.note(&tests[0], &died(abort(), Doing::Loading));
        let reason = blame.reason(&tests[1]).unwrap();
        assert!(reason.contains("A ended the engine"), "{reason}");
        assert_eq!(blame.reason(&tests[2]), None, "another model");
        let mut other_load = tests[1].clone();
        other_load.settings.n_gpu_layers = 0;
        assert_eq!(blame.reason(&other_load), None, "another load");
    }

    #[test]
    fn a_test_that_aborted_leaves_the_models_others_until_the_second() {
        let tests = tests();
        let mut blame = Blame::default();
        blame.note(&tests[0], &died(abort(), Doing::Measuring));
        assert_eq!(blame.reason(&tests[1]), None);
        blame.note(&tests[1], &died(abort(), Doing::Measuring));
        assert!(blame.reason(&tests[0]).is_some());
        assert_eq!(blame.reason(&tests[2]), None);
    }

    #[test]
    fn a_kill_from_outside_is_not_the_models_fault() {
        let tests = tests();
        let mut blame = Blame::default();
        let kill = How::Signal {
            number: 9,
            name: "SIGKILL".into(),
        };
        for _ in 0..3 {
            blame.note(&tests[0], &died(kill.clone(), Doing::Loading));
            blame.note(&tests[0], &died(How::OutOfMemory, Doing::Measuring));
        }
        assert_eq!(blame.reason(&tests[0]), None);
    }

    #[test]
    fn a_load_that_ran_out_of_memory_is_not_tried_again() {
        let tests = tests();
        let mut blame = Blame::default();
        blame.note(&tests[0], &died(How::OutOfMemory, Doing::Loading));
        assert!(blame.reason(&tests[1]).is_some());
    }
}
