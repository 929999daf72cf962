//! How well each mean is known.

use twospeed_measure::plan::Until;
use twospeed_measure::settle::{Settled, settled};
use twospeed_measure::stats::spread;
use twospeed_measure::{Kind, Plan, TestOutcome, figure};

use super::{Leading, Part, UNKNOWN, digits, percent};

pub fn table(plan: &Plan, tests: &[TestOutcome], until: Until) -> Option<Part> {
    // What is not timed is not repeated.
    let repeated: Vec<&TestOutcome> = tests
        .iter()
        .filter(|test| !matches!(test.test.kind, Kind::Quality { .. }))
        .collect();
    if repeated.is_empty() {
        return None;
    }
    let leading = Leading::of(&repeated);
    let mut table = leading.table(&[
        ">repetitions",
        ">mean",
        ">95 % within",
        ">median",
        ">MAD",
        "unit",
        "target",
    ]);
    for test in repeated {
        let samples: Vec<_> = test
            .samples
            .iter()
            .map(|sample| sample.sample.clone())
            .collect();
        let rates = figure::rates(&test.test.kind, test.test.spec, &samples);
        let Some(rate) = spread(&rates) else { continue };
        let written = |number: f64| format!("{number:.*}", digits(number));
        let target = percent(until.relative);
        let within = rate.half_width_95.map(|half| half / rate.mean);
        let mut cells = leading.cells(test);
        cells.extend([
            rate.count.to_string(),
            written(rate.mean),
            within.map_or_else(|| UNKNOWN.into(), |share| format!("± {}", percent(share))),
            written(rate.median),
            rate.median_absolute_deviation
                .map_or_else(|| UNKNOWN.into(), written),
            unit(&test.test.kind).to_owned(),
            match settled(&rates, until, plan.fewest()) {
                Some(Settled::Mean) => format!("{target} reached"),
                Some(Settled::WithoutOutliers { count: 1, .. }) => {
                    format!("{target} reached but for one outlier")
                }
                Some(Settled::WithoutOutliers { count, .. }) => {
                    format!("{target} reached but for {count} outliers")
                }
                None => format!("{target} not reached"),
            },
        ]);
        table.row(cells);
    }
    Some(Part {
        title: "Repeated until each mean is known: half of its 95 % confidence interval, and median and median absolute deviation (MAD), which an outlier does not move.",
        table,
        notes: Vec::new(),
    })
}

/// The unit of the rate that repetitions are compared by.
fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Speed => "t/s",
        Kind::Users { .. } => "t/s written by all",
        Kind::FirstToken { .. } | Kind::PrefixCache { .. } | Kind::Quality { .. } => {
            "first tokens/s"
        }
    }
}
