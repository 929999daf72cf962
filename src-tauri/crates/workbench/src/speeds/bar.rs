//! Results: what one bar of the figure stands for.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use twospeed_engine::{Settings, TestSpec};
use twospeed_history::{Test, WholeRun};
use twospeed_library::names::without_quantization;
use twospeed_measure::model::MeasuredModel;
use uuid::Uuid;

use crate::figures::{Source, alike, is_done, variant};

/// One row of the figure: the tests of one model under one choice of settings in one run.
#[derive(Debug, Clone, Copy)]
pub struct Bar<'a> {
    /// The run they belong to.
    pub run: &'a WholeRun,
    /// The model.
    pub model: &'a MeasuredModel,
    /// The settings.
    pub settings: &'a Settings,
    /// Tokens in the cache before.
    pub depth: u32,
    /// CPU variant that computed; `None` = not known.
    pub variant: Option<&'a str>,
    /// Reading the prompt.
    pub prefill: Option<&'a Test>,
    /// Writing the answer.
    pub decode: Option<&'a Test>,
}

/// Names a bar for as long as its run is there: the run, and the first of the bar's tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultId {
    /// The run.
    pub run: Uuid,
    /// The first test, in the order they ran.
    pub test: Uuid,
}

/// `run.test`.
impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.test)
    }
}

/// Errors: the text as it was, where it is no id.
impl FromStr for ResultId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (run, test) = text.split_once('.').ok_or(text)?;
        Ok(Self {
            run: run.parse().map_err(|_| text)?,
            test: test.parse().map_err(|_| text)?,
        })
    }
}

impl<'a> Bar<'a> {
    /// Its tests, prefill first.
    pub fn tests(&self) -> impl Iterator<Item = &'a Test> + use<'a> {
        [self.prefill, self.decode].into_iter().flatten()
    }

    /// Where its numbers come from.
    pub fn source(&self) -> Source<'a> {
        Source {
            run: self.run,
            tests: self.tests().collect(),
        }
    }

    /// Its name, which stays the same when the other of its two tests is made.
    pub fn id(&self) -> Option<ResultId> {
        Some(self.source().id())
    }

    /// Name of the model without its quantization.
    pub fn name(&self) -> String {
        without_quantization(&self.model.name)
    }
}

/// The bars of the finished tests of `runs`, in the figure's order.
pub fn bars(runs: &[WholeRun]) -> Vec<Bar<'_>> {
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for run in runs {
        let first = bars.len();
        for test in run.tests.iter().filter(|test| is_result(test)) {
            add(&mut bars, first, run, test);
        }
    }
    // Files of one model may differ in their parameters by a matrix that some have twice, and
    // stand together all the same.
    let mut sizes = HashMap::<String, u64>::new();
    for bar in &bars {
        let size = sizes.entry(bar.name()).or_insert(u64::MAX);
        *size = bar.model.parameters.min(*size);
    }
    // Models by size, then files by size, then as they were run.
    bars.sort_by_cached_key(|bar| {
        let name = bar.name();
        let size = sizes.get(&name).copied();
        let file = bar.model.file_bytes;
        (size, name, file, bar.depth, bar.run.run.started_at)
    });
    bars
}

/// Puts a test to the bar of its run that it belongs to, or begins one. The run's bars begin at
/// `first`.
fn add<'a>(bars: &mut Vec<Bar<'a>>, first: usize, run: &'a WholeRun, test: &'a Test) {
    let record = &test.record;
    let TestSpec {
        n_prompt, n_depth, ..
    } = record.spec;
    let same = |bar: &Bar<'_>| {
        bar.depth == n_depth && bar.tests().next().is_some_and(|other| alike(other, test))
    };
    let free = |bar: &Bar<'_>| {
        if n_prompt > 0 {
            bar.prefill.is_none()
        } else {
            bar.decode.is_none()
        }
    };
    let found = bars[first..]
        .iter()
        .position(|bar| same(bar) && free(bar))
        .map(|index| first + index);
    let index = found.unwrap_or_else(|| {
        bars.push(Bar {
            run,
            model: &record.model,
            settings: &record.settings,
            depth: n_depth,
            variant: variant(test),
            prefill: None,
            decode: None,
        });
        bars.len() - 1
    });
    if n_prompt > 0 {
        bars[index].prefill = Some(test);
    } else {
        bars[index].decode = Some(test);
    }
}

/// Whether it has a place in the figure: one speed, and it came to its end.
fn is_result(test: &Test) -> bool {
    let record = &test.record;
    let is_one = record.spec.n_prompt == 0 || record.spec.n_gen == 0;
    record.kind.is_speed() && is_one && is_done(test) && test.speed().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nonsense_does_not() {
        let id = ResultId {
            run: Uuid::now_v7(),
            test: Uuid::now_v7(),
        };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", ".", "a.b", &id.run.to_string()] {
            assert_eq!(text.parse::<ResultId>(), Err(text.to_owned()));
        }
    }
}
