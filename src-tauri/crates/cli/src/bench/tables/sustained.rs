//! What the machine holds, rather than what it peaks at.

use twospeed_measure::stats::{median, tokens_per_second};
use twospeed_measure::{SampleRecord, TestOutcome};

use super::{Leading, Part, UNKNOWN, digits, percent};

/// The part of the repetitions that is its beginning, and its end.
const PART: usize = 10;

pub fn table(tests: &[&TestOutcome]) -> Option<Part> {
    if tests.is_empty() {
        return None;
    }
    let leading = Leading::of(tests);
    let mut table = leading.table(&[
        ">repetitions",
        ">first tenth t/s",
        ">last tenth t/s",
        ">held",
        ">slowest t/s",
        ">fastest t/s",
        ">clock GHz",
        ">temperature °C",
        ">power W",
    ]);
    for test in tests {
        let tokens = test.test.spec.tokens();
        let speed = |sample: &SampleRecord| tokens_per_second(tokens, sample.sample.ns);
        let speeds: Vec<f64> = test.samples.iter().filter_map(speed).collect();
        let part = (speeds.len() / PART).max(1).min(speeds.len());
        let first = median(&speeds[..part]);
        let last = median(&speeds[speeds.len() - part..]);
        let written = |speed: Option<f64>| {
            speed.map_or_else(
                || UNKNOWN.into(),
                |speed| format!("{speed:.*}", digits(speed)),
            )
        };
        let mut cells = leading.cells(test);
        cells.extend([
            speeds.len().to_string(),
            written(first),
            written(last),
            first
                .zip(last)
                .map_or_else(|| UNKNOWN.into(), |(first, last)| percent(last / first)),
            written(speeds.iter().copied().reduce(f64::min)),
            written(speeds.iter().copied().reduce(f64::max)),
            from_to(
                test,
                |sample| sample.conditions.clock_hz.map(|hz| hz / 1e9),
                2,
            ),
            from_to(test, |sample| sample.conditions.temperature_c, 0),
            from_to(test, watts, 1),
        ]);
        table.row(cells);
    }
    Some(Part {
        title: "Sustained: what the machine holds; medians of the first and of the last tenth.",
        table,
        notes: Vec::new(),
    })
}

/// Power of the package around a sample.
fn watts(sample: &SampleRecord) -> Option<f64> {
    let conditions = &sample.conditions;
    let watts = conditions.energy_j? / conditions.energy_seconds?;
    watts.is_finite().then_some(watts)
}

/// What was read first and last.
fn from_to(
    test: &TestOutcome,
    read: impl Fn(&SampleRecord) -> Option<f64>,
    digits: usize,
) -> String {
    let mut readings = test.samples.iter().filter_map(&read);
    let Some(first) = readings.next() else {
        return UNKNOWN.into();
    };
    match readings.last() {
        Some(last) => format!("{first:.digits$} to {last:.digits$}"),
        None => format!("{first:.digits$}"),
    }
}
