//! Inputs of the figures that are made of lines.

use twospeed_chart::{
    At, Context, ContextSeries, Measured, Name, Sustained, SustainedSeries, Users, UsersSeries,
};

use super::{HOSTILE, around};

pub const FOOTER: [&str; 2] = [
    "SmolLM2-135M-Instruct.Q4_1.gguf. llama.cpp build 11434, CPU zen4.",
    "AMD EPYC, 2 cores, 24 GB. Measured 30 November 2026, 14:02 to 14:09. Twospeed 0.1.",
];

fn footer() -> Vec<String> {
    FOOTER.map(str::to_owned).into()
}

pub fn named(label: &str, detail: Option<&str>) -> Name {
    Name {
        detail: detail.map(str::to_owned),
        ..Name::new(label)
    }
}

/// Means with 2 % of deviation at these places.
pub fn at(values: &[(f64, f64)]) -> Vec<At> {
    values
        .iter()
        .map(|(place, mean)| At {
            place: *place,
            value: Some(around(*mean, mean * 0.02)),
        })
        .collect()
}

/// What a speed of `start` is at depths of 0 and `least` doubled `steps` times.
fn falling(start: f64, half_at: f64, least: f64, steps: i32) -> Vec<At> {
    let depths = std::iter::once(0.0).chain((0..steps).map(|i| least * 2f64.powi(i)));
    let values: Vec<(f64, f64)> = depths
        .map(|depth| (depth, start / (1.0 + depth / half_at)))
        .collect();
    at(&values)
}

pub fn context() -> Context {
    Context {
        subject: "SmolLM2 135M Instruct Q4_1".into(),
        subtitle: "SmolLM2 135M Instruct Q4_1, the cache filled to each depth; depth on a \
                   logarithmic axis. Mean of 5 samples, 2 threads."
            .into(),
        prefill_test: Some("reading 512 tokens".into()),
        decode_test: Some("writing 64 tokens".into()),
        series: vec![ContextSeries {
            name: Name::new("Q4_1"),
            prefill: falling(350.0, 9_000.0, 512.0, 5),
            decode: falling(138.0, 13_000.0, 512.0, 5),
        }],
        footer: footer(),
    }
}

/// Three settings of one model; one of them ran out of memory early, one lacks a place.
pub fn context_of_three() -> Context {
    let mut input = context();
    input.series = vec![
        ContextSeries {
            name: named("Q4_1", Some("K f16, V f16")),
            prefill: falling(350.0, 9_000.0, 512.0, 6),
            decode: falling(138.0, 13_000.0, 512.0, 6),
        },
        ContextSeries {
            name: named("Q4_1", Some("K q8_0, V q8_0, flash attention on")),
            prefill: falling(331.0, 14_000.0, 512.0, 6),
            decode: falling(129.0, 16_000.0, 512.0, 6),
        },
        ContextSeries {
            name: named("Q8_0", None),
            prefill: falling(300.0, 7_000.0, 512.0, 3),
            decode: falling(92.0, 9_000.0, 512.0, 3),
        },
    ];
    input.series[1].decode[3].value = None;
    input
}

/// Twelve models.
pub fn context_of_twelve() -> Context {
    let mut input = context();
    input.series = (0..12)
        .map(|i| {
            let i = f64::from(i);
            ContextSeries {
                name: named(
                    &format!("Q{}_K_M of a model with a long name {i}", 2.0 + i),
                    None,
                ),
                prefill: falling(350.0 + 13.0 * i, 3_000.0 + 900.0 * i, 256.0, 7),
                decode: falling(138.0 - 7.0 * i, 6_000.0 + 900.0 * i, 256.0, 7),
            }
        })
        .collect();
    input
}

/// One depth and one phase alone; a mean without samples.
pub fn context_point() -> Context {
    let mut input = context();
    input.series[0].prefill.clear();
    input.series[0].decode = vec![At {
        place: 4096.0,
        value: Some(Measured {
            mean: 88.0,
            deviation: Some(2.5),
            samples: vec![],
        }),
    }];
    input
}

/// Numbers that are none, equal values, one sample each.
pub fn context_damaged() -> Context {
    let mut input = context();
    input.series[0].prefill = vec![
        At::one(0.0, f64::NAN),
        At::one(512.0, 100.0),
        At::one(1024.0, f64::INFINITY),
        At::one(2048.0, 100.0),
        At::one(f64::NAN, 100.0),
        At::one(4096.0, 100.0),
    ];
    input.series[0].decode = vec![At::one(0.0, 0.0), At::one(4096.0, 0.0)];
    input
}

pub fn hostile_context() -> Context {
    let mut input = context_of_three();
    input.subject = HOSTILE.into();
    input.subtitle = HOSTILE.repeat(3);
    input.prefill_test = Some(HOSTILE.into());
    input.footer = vec![HOSTILE.repeat(4)];
    for series in &mut input.series {
        series.name.group = Some(HOSTILE.into());
        series.name.label = HOSTILE.into();
        series.name.detail = Some("\0".into());
    }
    input
}

/// Users 1 to 8 with aggregates that saturate.
fn series(name: Name, alone: f64, limit: f64) -> UsersSeries {
    let users = [1.0, 2.0, 4.0, 8.0];
    let together = |n: f64| alone * n / (1.0 + (n - 1.0) / limit);
    let of = |value: &dyn Fn(f64) -> f64| at(&users.map(|n| (n, value(n))));
    UsersSeries {
        name,
        together: of(&together),
        each: of(&|n| together(n) / n),
        median_wait_ms: of(&|n| 380.0 * (n + 1.0) / 2.0),
        worst_wait_ms: of(&|n| 380.0 * n),
    }
}

pub fn users() -> Users {
    Users {
        subject: "SmolLM2 135M Instruct Q4_1".into(),
        subtitle: "SmolLM2 135M Instruct Q4_1, users on a logarithmic axis. Mean of 5 samples, \
                   2 threads, one cache for all."
            .into(),
        decode_test: Some("writing 32 tokens each".into()),
        wait_test: Some("prompts of 128 tokens, all sent at once".into()),
        series: vec![series(Name::new("Q4_1"), 138.0, 4.0)],
        footer: footer(),
    }
}

pub fn users_of_two() -> Users {
    let mut input = users();
    input.series = vec![
        series(named("Q4_1", Some("one cache for all")), 138.0, 4.0),
        series(named("Q4_1", Some("a part of the cache each")), 133.0, 7.0),
    ];
    input
}

/// A course of ten minutes that throttles after four.
pub fn sustained() -> Sustained {
    let course = |start: f64, held: f64, offset: f64| -> Vec<(f64, f64)> {
        (0..75)
            .map(|i| {
                let seconds = offset + 8.0 * f64::from(i);
                let cooled = 1.0 / (1.0 + ((240.0 - seconds) / 25.0).exp());
                let wobble = 1.0 + 0.006 * f64::from(i * 7 % 11 - 5) / 5.0;
                (seconds, start * (1.0 - (1.0 - held) * cooled) * wobble)
            })
            .collect()
    };
    Sustained {
        subject: "SmolLM2 135M Instruct Q4_1".into(),
        subtitle: "SmolLM2 135M Instruct Q4_1, prefill and decode in turn for 10 minutes. \
                   2 threads."
            .into(),
        prefill_test: Some("reading 512 tokens".into()),
        decode_test: Some("writing 128 tokens".into()),
        series: vec![SustainedSeries {
            name: Name::new("Q4_1"),
            prefill: course(350.0, 0.78, 2.0),
            decode: course(138.0, 0.93, 5.0),
            clock_ghz: course(3.4, 0.8, 2.0),
            temperature_c: course(58.0, 1.5, 2.0),
        }],
        footer: footer(),
    }
}

/// Half a minute, one speed, nothing of the machine.
pub fn sustained_short() -> Sustained {
    let mut input = sustained();
    let series = &mut input.series[0];
    series.prefill.clear();
    series.clock_ghz.clear();
    series.temperature_c.clear();
    series.decode.truncate(4);
    input
}
