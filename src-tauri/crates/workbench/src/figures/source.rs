//! Where the numbers of a row or a line come from.

use twospeed_engine::Settings;
use twospeed_history::{Test, WholeRun};
use twospeed_library::names::without_quantization;
use twospeed_measure::TestStatus;
use twospeed_measure::model::MeasuredModel;

use crate::speeds::ResultId;

/// The tests of one model under one choice of settings in one run, that make up a row or a line.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The run they belong to.
    pub run: &'a WholeRun,
    /// The tests, at least one.
    pub tests: Vec<&'a Test>,
}

impl<'a> Source<'a> {
    /// The first test, in the order they ran.
    pub fn first(&self) -> &'a Test {
        self.tests
            .iter()
            .copied()
            .min_by_key(|test| (test.record.position, test.record.started_at))
            .expect("BUG: a source has a test")
    }

    /// Its name, which stays the same when another of its tests is made.
    pub fn id(&self) -> ResultId {
        ResultId {
            run: self.run.run.id,
            test: self.first().record.id,
        }
    }

    /// The model.
    pub fn model(&self) -> &'a MeasuredModel {
        &self.first().record.model
    }

    /// Name of the model without its quantization.
    pub fn name(&self) -> String {
        without_quantization(&self.model().name)
    }

    /// Quantization label.
    pub fn quantization(&self) -> String {
        let label = self.model().quantization.clone();
        label.unwrap_or_else(|| "unknown".to_owned())
    }

    /// The settings; those that are not [known](Self::knows) say nothing.
    pub fn settings(&self) -> &'a Settings {
        &self.first().record.settings
    }

    /// Whether a setting is known by its name.
    pub fn knows(&self, setting: &str) -> bool {
        self.first().knows(setting)
    }

    /// CPU variant that computed; `None` = not known.
    pub fn variant(&self) -> Option<&'a str> {
        variant(self.first())
    }
}

/// CPU variant that computed; `None` = not known.
pub fn variant(test: &Test) -> Option<&str> {
    let worker = test.end.as_ref()?.worker.as_ref()?;
    Some(&worker.variant.name)
}

/// Whether a test came to its end and nothing speaks against it. The samples of one that did not are
/// kept, and are no result.
pub fn is_done(test: &Test) -> bool {
    let ended = test.end.as_ref();
    ended.is_some_and(|end| end.status == TestStatus::Done) && test.counts()
}

/// Whether two tests were made of one model in one way.
pub fn alike(one: &Test, other: &Test) -> bool {
    one.record.model.fingerprint == other.record.model.fingerprint
        && one.same_settings(other)
        && variant(one) == variant(other)
}
