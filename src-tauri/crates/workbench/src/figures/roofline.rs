//! The `roofline` figure from results and model files.

use twospeed_chart::{Expected, Measured, Roofline, RooflineSeries, RooflineStep};
use twospeed_estimate::TokensPerSecond;
use twospeed_estimate::roofline::Step;
use twospeed_history::Test;

use super::predicted::{
    Predicted, PredictedOptions, footer, measured_words, row_names, subject_of,
};
use crate::speeds::measured;

/// The figure.
pub(super) fn roofline(rows: &[Predicted<'_>], options: PredictedOptions<'_>) -> Roofline {
    let names = row_names(rows, options.time_zone);
    Roofline {
        subject: subject_of(rows),
        subtitle: format!(
            "Speed of arithmetic against operations per byte of weights and cache that a step \
             reads; both axes are logarithmic. {}",
            measured_words(rows)
        ),
        series: rows
            .iter()
            .zip(names)
            .map(|(row, name)| {
                let of = row.roofline.as_ref();
                RooflineSeries {
                    name,
                    reading: of.and_then(|of| Some(of.reading.as_ref()?.rate.gb_s())),
                    arithmetic: of.and_then(|of| Some(of.arithmetic? / 1e9)),
                    ridge_tokens: of.and_then(|of| of.ridge_tokens()),
                    steps: of.map_or_else(Vec::new, |of| {
                        of.steps.iter().map(|step| drawn(row, step)).collect()
                    }),
                }
            })
            .collect(),
        footer: footer(rows, options, None),
    }
}

fn drawn(row: &Predicted<'_>, step: &Step) -> RooflineStep {
    let gflops = |speed: f64| step.flops_per_second(TokensPerSecond(speed)) / 1e9;
    RooflineStep {
        tokens: step.tokens,
        intensity: step.intensity(),
        flops_per_token: step.flops_per_token(),
        expected: step.expected.map(|[value, low, high]| Expected {
            value: gflops(value.0),
            low: gflops(low.0),
            high: gflops(high.0),
        }),
        measured: test_of(row, step.tokens)
            .and_then(measured)
            .map(|speed| Measured {
                mean: gflops(speed.mean),
                deviation: speed.deviation.map(gflops),
                samples: speed.samples.into_iter().map(gflops).collect(),
            }),
    }
}

/// The test whose steps have so many tokens: decode has one, a prompt all of its own. Of several
/// answers the longest.
fn test_of<'a>(row: &'a Predicted<'_>, tokens: u64) -> Option<&'a Test> {
    let tests = || {
        row.source
            .iter()
            .flat_map(|source| source.tests.iter().copied())
    };
    let decode = || {
        tests()
            .filter(|test| test.record.spec.n_prompt == 0)
            .max_by_key(|test| test.record.spec.n_gen)
    };
    let prompt = || tests().find(|test| u64::from(test.record.spec.n_prompt) == tokens);
    match tokens {
        1 => decode().or_else(prompt),
        _ => prompt(),
    }
}
