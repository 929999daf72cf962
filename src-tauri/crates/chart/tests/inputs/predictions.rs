//! Inputs of the figures that show what is expected.

use twospeed_chart::{
    Breakdown, BreakdownRow, Cause, Estimates, Expected, Measured, Name, Phase, Roofline,
    RooflineSeries, RooflineStep, Spent, TimePart,
};

use super::curves::{FOOTER, named};
use super::{HOSTILE, around, parts, quantizations, three_models, with_breakdown};

fn footer() -> Vec<String> {
    let [files, machine] = FOOTER;
    vec![
        files.into(),
        "Expected from a calibration of 1 December 2026, 22 kernels, 2 threads.".into(),
        machine.into(),
    ]
}

/// A range of so much around a value.
pub fn within(value: f64, share: f64) -> Expected {
    Expected {
        value,
        low: value / (1.0 + share),
        high: value * (1.0 + share),
    }
}

/// Steps of a model whose token takes so many operations and whose weights are so many bytes, on a
/// machine that reads and multiplies so fast; what is measured adds both up, and multiplies at 0.86
/// of what single products reach.
fn steps(
    flops_per_token: f64,
    bytes: f64,
    (reading, arithmetic): (f64, f64),
    measured: &dyn Fn(u64) -> bool,
) -> Vec<RooflineStep> {
    (0..10)
        .map(|power| {
            let tokens = 1u64 << power;
            let flops = flops_per_token * tokens as f64;
            let seconds = bytes / (reading * 1e9)
                + flops / (0.86 * arithmetic * 1e9)
                + 0.6e-3
                + 1e-5 * tokens as f64;
            let speed = flops / seconds / 1e9;
            RooflineStep {
                tokens,
                intensity: flops / bytes,
                flops_per_token,
                expected: Some(within(speed * 1.04, 0.12)),
                measured: measured(tokens).then(|| around(speed, speed * 0.02)),
            }
        })
        .collect()
}

fn series(
    name: Name,
    bytes: f64,
    (reading, arithmetic): (f64, f64),
    measured: &dyn Fn(u64) -> bool,
) -> RooflineSeries {
    let flops = 2.0 * 134e6;
    RooflineSeries {
        name,
        reading: Some(reading),
        arithmetic: Some(arithmetic),
        ridge_tokens: Some(arithmetic / reading / (flops / bytes)),
        steps: steps(flops, bytes, (reading, arithmetic), measured),
    }
}

pub fn roofline() -> Roofline {
    Roofline {
        subject: "SmolLM2 135M Instruct Q4_0".into(),
        subtitle: "Speed of arithmetic against work done per byte that is read, both axes \
                   logarithmic. SmolLM2 135M Instruct Q4_0, 1 to 512 tokens per step, mean of 5 \
                   samples."
            .into(),
        series: vec![series(Name::new("Q4_0"), 90e6, (18.0, 168.0), &|_| true)],
        footer: footer(),
    }
}

/// Nothing was measured.
pub fn roofline_expected() -> Roofline {
    let mut input = roofline();
    for step in &mut input.series[0].steps {
        step.measured = None;
    }
    input
}

/// Both ends were measured, as every run has them.
pub fn roofline_ends() -> Roofline {
    let mut input = roofline();
    for step in &mut input.series[0].steps {
        if !matches!(step.tokens, 1 | 512) {
            step.measured = None;
        }
    }
    input
}

pub fn roofline_of_four() -> Roofline {
    let ends = |n: u64| matches!(n, 1 | 128 | 512);
    let mut input = roofline();
    input.subject = "4 models".into();
    input.series = vec![
        series(named("Q4_0", None), 90e6, (18.0, 168.0), &|_| true),
        series(named("Q4_1", None), 97e6, (18.0, 84.0), &ends),
        series(named("Q8_0", None), 143e6, (17.2, 120.0), &ends),
        series(named("F16", None), 270e6, (12.0, 72.0), &ends),
    ];
    input
}

/// Six long names on two speeds of memory.
pub fn roofline_of_many() -> Roofline {
    let mut input = roofline_of_four();
    for (i, one) in input.series.iter_mut().enumerate() {
        one.name.group = Some(format!("Meta-Llama-3.1-{i}B-Instruct-abliterated-i1"));
    }
    input.series.extend(input.series[..2].to_vec());
    input
}

/// A limit is unknown, then both; and numbers that are none.
pub fn roofline_damaged() -> Roofline {
    let mut input = roofline();
    let one = &mut input.series[0];
    one.arithmetic = None;
    one.ridge_tokens = None;
    one.steps[2].expected = Some(within(f64::NAN, 0.1));
    one.steps[3].intensity = f64::INFINITY;
    one.steps[4].measured = Some(Measured::default());
    one.steps[5].flops_per_token = 0.0;
    let mut other = one.clone();
    other.reading = Some(-1.0);
    other.name = named("Q8_0", None);
    input.series.push(other);
    input
}

/// One step alone.
pub fn roofline_point() -> Roofline {
    let mut input = roofline();
    input.series[0].steps.truncate(1);
    input.series[0].steps[0].expected = None;
    input
}

pub fn hostile_roofline() -> Roofline {
    let mut input = roofline_of_many();
    input.subject = HOSTILE.into();
    input.subtitle = HOSTILE.repeat(3);
    input.footer = vec![HOSTILE.repeat(4)];
    for one in &mut input.series {
        one.name.group = Some(HOSTILE.into());
        one.name.label = HOSTILE.into();
        one.name.detail = Some("\0".into());
    }
    input
}

fn spent(total: f64, measured: Option<f64>, shares: &[(&str, Cause, f64)]) -> Spent {
    Spent {
        parts: parts(total, shares),
        expected: Some(within(total, 0.1)),
        measured: measured.map(|mean| around(mean, mean * 0.02)),
    }
}

const PREFILL: [(&str, Cause, f64); 4] = [
    ("weights Q4_0", Cause::Weights, 0.84),
    ("attention", Cause::Cache, 0.10),
    ("small operations", Cause::Fixed, 0.05),
    ("starting steps", Cause::Fixed, 0.01),
];
const DECODE: [(&str, Cause, f64); 6] = [
    ("weights Q4_0", Cause::Weights, 0.50),
    ("output matrix Q8_0", Cause::Weights, 0.21),
    ("attention", Cause::Cache, 0.09),
    ("small operations", Cause::Fixed, 0.17),
    ("starting a step", Cause::Fixed, 0.02),
    ("state", Cause::Cache, 0.01),
];

pub fn breakdown() -> Breakdown {
    let row = |name: Name, prefill: Spent, decode: Spent| BreakdownRow {
        name,
        prefill,
        decode,
    };
    Breakdown {
        subject: "SmolLM2 135M Instruct".into(),
        subtitle: "SmolLM2 135M Instruct in 3 quantizations, smallest file first. Mean of 5 \
                   samples, 2 threads."
            .into(),
        prefill_of: "reading a prompt of 512 tokens".into(),
        decode_of: "writing one token".into(),
        rows: vec![
            row(
                Name::new("Q4_0"),
                spent(840.0, Some(836.0), &PREFILL),
                spent(8.4, Some(8.5), &DECODE),
            ),
            row(
                Name::new("Q8_0"),
                spent(1150.0, Some(1169.0), &PREFILL),
                spent(12.1, Some(12.6), &DECODE),
            ),
            row(
                Name::new("F16"),
                spent(1980.0, None, &PREFILL),
                spent(21.0, None, &DECODE),
            ),
        ],
        footer: footer(),
    }
}

/// A mixture of experts, alone.
pub fn breakdown_of_experts() -> Breakdown {
    let mut input = breakdown();
    input.subject = "Qwen3 30B A3B Q4_K_M".into();
    input.subtitle = "Qwen3 30B A3B Q4_K_M, expected before it is downloaded.".into();
    let parts = |total: f64| {
        parts(
            total,
            &[
                ("experts Q4_K", Cause::Weights, 0.42),
                ("experts Q6_K", Cause::Weights, 0.18),
                ("weights Q4_K", Cause::Weights, 0.11),
                ("weights F32", Cause::Weights, 0.01),
                ("output matrix Q6_K", Cause::Weights, 0.07),
                ("attention", Cause::Cache, 0.12),
                ("small operations", Cause::Fixed, 0.08),
                ("starting a step", Cause::Fixed, 0.01),
            ],
        )
    };
    input.rows = vec![BreakdownRow {
        name: Name::new("Q4_K_M"),
        prefill: Spent {
            parts: parts(14_200.0),
            expected: Some(within(14_200.0, 0.25)),
            measured: None,
        },
        decode: Spent {
            parts: parts(88.0),
            expected: Some(within(88.0, 0.25)),
            measured: None,
        },
    }];
    input
}

/// Nothing is expected of one row, nothing of prefill, numbers that are none.
pub fn breakdown_gaps() -> Breakdown {
    let mut input = breakdown();
    for row in &mut input.rows {
        row.prefill = Spent::default();
    }
    input.rows[1].decode.parts.clear();
    input.rows[1].decode.expected = None;
    input.rows[2].decode.parts.push(TimePart {
        name: "\0".into(),
        cause: Cause::Weights,
        ms: f64::NAN,
    });
    input.rows[2].decode.expected = None;
    input
}

/// Ten models with long names.
pub fn breakdown_of_ten() -> Breakdown {
    let mut input = breakdown();
    input.rows = (0..10)
        .map(|i| BreakdownRow {
            name: Name {
                group: Some(format!("Meta-Llama-3.1-{i}B-Instruct-abliterated-i1")),
                label: "Q4_K_M".into(),
                detail: Some("depth 4,096, 4 threads".into()),
            },
            ..input.rows[i % 3].clone()
        })
        .collect();
    input
}

pub fn hostile_breakdown() -> Breakdown {
    let mut input = breakdown();
    input.subject = HOSTILE.into();
    input.subtitle = HOSTILE.repeat(3);
    input.prefill_of = HOSTILE.into();
    input.footer = vec![HOSTILE.repeat(4)];
    for row in &mut input.rows {
        row.name.group = Some(HOSTILE.into());
        row.name.label = "long-".repeat(60);
        for part in &mut row.decode.parts {
            part.name = HOSTILE.into();
        }
    }
    input
}

fn of_speeds(input: twospeed_chart::Speeds) -> Estimates {
    Estimates {
        subject: input.subject,
        subtitle: input.subtitle,
        prefill_test: input.prefill_test,
        decode_test: input.decode_test,
        rows: input.rows,
        footer: footer(),
        breakdown: input.overlays.breakdown,
    }
}

pub fn estimates() -> Estimates {
    of_speeds(quantizations())
}

pub fn estimates_with_parts() -> Estimates {
    of_speeds(with_breakdown(three_models()))
}

/// Model files without a result.
pub fn estimates_alone() -> Estimates {
    let mut input = of_speeds(three_models());
    for row in &mut input.rows {
        row.prefill.measured = None;
        row.decode.measured = None;
    }
    input
}

/// No calibration: ceilings alone, and what was measured.
pub fn estimates_without_calibration() -> Estimates {
    let mut input = estimates();
    for row in &mut input.rows {
        row.prefill = Phase {
            measured: row.prefill.measured.take(),
            ..Phase::default()
        };
        row.decode.expected = None;
    }
    input
}
