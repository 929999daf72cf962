//! Inputs that tests and the example draw.

// Each user takes some of them.
#![allow(dead_code, clippy::unreadable_literal)]

pub mod curves;
pub mod predictions;
pub mod rows;

use twospeed_chart::{Cause, Expected, Measured, Overlays, Phase, Row, Speeds, TimePart};

/// Mean and sample standard deviation of what was measured.
pub fn measured(samples: &[f64]) -> Measured {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|s| (s - mean).powi(2)).sum();
    Measured {
        mean,
        deviation: (samples.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        samples: samples.to_vec(),
    }
}

/// A mean with a deviation and five samples around it.
pub fn around(mean: f64, deviation: f64) -> Measured {
    // Offsets with mean 0 and standard deviation 1.
    let samples = [-0.95, -0.32, 0.32, 1.54, -0.59].map(|z| mean + z * deviation);
    Measured {
        mean,
        deviation: Some(deviation),
        samples: samples.to_vec(),
    }
}

/// What is expected in the middle of a range.
pub fn between(low: f64, high: f64) -> Expected {
    Expected {
        value: (low + high) / 2.0,
        low,
        high,
    }
}

/// Milliseconds of one token or prompt at this speed, by these shares.
pub fn parts(total_ms: f64, shares: &[(&str, Cause, f64)]) -> Vec<TimePart> {
    shares
        .iter()
        .map(|(name, cause, share)| TimePart {
            name: (*name).to_owned(),
            cause: *cause,
            ms: total_ms * share,
        })
        .collect()
}

pub fn phase(measured: Measured, expected: (f64, f64), ceiling: f64) -> Phase {
    Phase {
        measured: Some(measured),
        expected: Some(between(expected.0, expected.1)),
        ceiling: Some(ceiling),
        parts: Vec::new(),
    }
}

pub fn row(group: Option<&str>, label: &str, mb: f64, prefill: Phase, decode: Phase) -> Row {
    Row {
        group: group.map(str::to_owned),
        label: label.to_owned(),
        file_bytes: Some((mb * 1e6) as u64),
        detail: None,
        prefill,
        decode,
    }
}

/// Four quantizations of one model.
pub fn quantizations() -> Speeds {
    let p = |mean, deviation, expected| phase(around(mean, deviation), expected, 730.0);
    let d = |mean, deviation, expected, ceiling| phase(around(mean, deviation), expected, ceiling);
    Speeds {
        subject: "SmolLM2 135M Instruct".into(),
        subtitle: "SmolLM2 135M Instruct in 4 quantizations, smallest file first. \
                   Mean of 5 samples, 2 threads."
            .into(),
        prefill_test: Some("reading a 512-token prompt".into()),
        decode_test: Some("writing 128 tokens".into()),
        rows: vec![
            row(
                None,
                "Q4_0",
                92.0,
                p(612.0, 22.0, (560.0, 670.0)),
                d(118.0, 4.0, (110.0, 125.0), 200.0),
            ),
            row(
                None,
                "Q4_1",
                98.0,
                p(300.0, 13.0, (285.0, 345.0)),
                d(107.0, 4.0, (99.0, 114.0), 187.0),
            ),
            row(
                None,
                "Q8_0",
                145.0,
                p(438.0, 17.0, (405.0, 475.0)),
                d(79.6, 2.6, (74.5, 85.0), 126.0),
            ),
            row(
                None,
                "F16",
                271.0,
                p(254.0, 11.0, (235.0, 285.0)),
                d(48.9, 1.6, (45.5, 50.8), 67.0),
            ),
        ],
        footer: vec![
            "SmolLM2-135M-Instruct, Q4_0, Q4_1, Q8_0, F16. llama.cpp build 11434, CPU AVX-512 VNNI."
                .into(),
            "Intel Xeon, 2 cores, 24 GB. Measured 30 November 2026, 14:02 to 14:09. Twospeed 0.1."
                .into(),
        ],
        overlays: Overlays::default(),
    }
}

/// Three models in two or three quantizations each.
pub fn three_models() -> Speeds {
    let (a, b, c) = (
        "SmolLM2 135M Instruct",
        "Gemma 3 270M it",
        "Built-in 140M (random weights)",
    );
    let mut input = quantizations();
    input.subject = String::new();
    input.subtitle = "Three models in two or three quantizations each. \
                      Mean of 5 samples, 2 threads, CPU only."
        .into();
    input.footer = vec![
        "SmolLM2-135M-Instruct.Q4_1.gguf, gemma-3-270m-q4_k_m.gguf, built-in. \
         llama.cpp build 11434, CPU AVX-512 VNNI."
            .into(),
        "Intel Xeon, 2 cores, 24 GB. Measured 30 November 2026, 14:02 to 14:29. Twospeed 0.1."
            .into(),
    ];
    input.rows = vec![
        row(
            Some(a),
            "Q4_0",
            92.0,
            phase(around(612.0, 22.0), (560.0, 670.0), 980.0),
            phase(around(118.0, 4.0), (110.0, 125.0), 200.0),
        ),
        row(
            Some(a),
            "Q4_1",
            98.0,
            phase(around(300.0, 13.0), (285.0, 345.0), 980.0),
            phase(around(107.0, 4.0), (99.0, 114.0), 187.0),
        ),
        row(
            Some(a),
            "F16",
            271.0,
            phase(around(254.0, 11.0), (235.0, 285.0), 980.0),
            phase(around(48.9, 1.6), (45.5, 50.8), 67.0),
        ),
        row(
            Some(b),
            "Q4_K_M",
            253.0,
            phase(around(551.0, 18.0), (515.0, 605.0), 720.0),
            phase(around(50.1, 1.3), (46.0, 52.0), 71.0),
        ),
        row(
            Some(b),
            "Q8_0",
            292.0,
            phase(around(602.0, 15.0), (560.0, 660.0), 720.0),
            phase(around(44.2, 0.9), (41.0, 47.0), 62.0),
        ),
        row(
            Some(c),
            "Q4_K_M",
            84.0,
            phase(around(422.0, 9.0), (390.0, 450.0), 890.0),
            phase(around(131.0, 3.0), (120.0, 140.0), 214.0),
        ),
    ];
    input
}

/// One model in one quantization.
pub fn one_model() -> Speeds {
    let mut input = quantizations();
    input.rows = vec![row(
        None,
        "Q4_1",
        97.8,
        Phase {
            measured: Some(measured(&[301.2, 289.7, 308.8, 299.0, 312.4])),
            expected: None,
            ceiling: None,
            parts: Vec::new(),
        },
        Phase {
            measured: Some(measured(&[107.3, 106.1, 108.4, 107.0, 104.9])),
            expected: None,
            ceiling: Some(187.0),
            parts: Vec::new(),
        },
    )];
    input.subtitle = "SmolLM2 135M Instruct Q4_1. Mean of 5 samples, 2 threads.".into();
    input
}

/// Everything that may be unknown, once.
pub fn gaps() -> Speeds {
    let mut input = quantizations();
    input.rows[0].decode.measured = None;
    input.rows[1].prefill = Phase::default();
    input.rows[2].decode = Phase {
        measured: Some(Measured {
            mean: 79.6,
            deviation: None,
            samples: vec![79.6],
        }),
        expected: None,
        ceiling: Some(126.0),
        ..Phase::default()
    };
    input.rows[3].prefill.measured = Some(Measured {
        mean: 254.0,
        deviation: Some(11.0),
        samples: vec![],
    });
    input
}

/// Ceilings and expectations far from what was measured, and a run faster than its ceiling.
pub fn far_off() -> Speeds {
    let mut input = quantizations();
    for row in &mut input.rows {
        row.prefill.ceiling = Some(61_240.0);
    }
    input.rows[0].decode.ceiling = Some(2_000.0);
    input.rows[1].decode.ceiling = Some(96.0);
    input.rows[2].decode.expected = Some(between(900.0, 1_100.0));
    input.rows[3].decode.expected = Some(between(40.0, 1_100.0));
    input.rows[3].decode.ceiling = Some(48.9);
    input
}

/// Numbers of every size, many samples, equal values.
pub fn extremes() -> Speeds {
    let mut input = quantizations();
    let spread: Vec<f64> = (0..40)
        .map(|i| 500.0 + 160.0 * f64::from(i * 7 % 40) / 40.0)
        .collect();
    input.rows[0].prefill.measured = Some(measured(&spread));
    input.rows[1].prefill.measured = Some(measured(&[612.0; 5]));
    input.rows[2].prefill.measured = Some(around(0.0123, 0.0009));
    input.rows[3].prefill.measured = Some(measured(&[0.0; 3]));
    for row in &mut input.rows {
        row.decode.ceiling = None;
    }
    input.rows[0].decode.measured = Some(around(4.2e6, 1.0e5));
    input.rows[1].decode.measured = Some(around(3.1e12, 4.0e10));
    input.rows[2].decode.measured = Some(Measured {
        mean: f64::NAN,
        deviation: Some(f64::INFINITY),
        samples: vec![1.0],
    });
    input.rows[3].decode.measured = Some(Measured {
        mean: -5.0,
        ..Measured::default()
    });
    input.rows[0].decode.ceiling = Some(9.9e12);
    input.rows[3].detail = Some("depth 4,096".into());
    input
}

/// Twelve runs.
pub fn twelve() -> Speeds {
    let mut input = quantizations();
    input.rows = (0..12)
        .map(|i| {
            let mb = 92.0 + 61.0 * f64::from(i);
            let decode = 11_000.0 / mb;
            row(
                None,
                &format!("Q{}_K_{}", 2 + i / 2, ["S", "M"][i as usize % 2]),
                mb,
                phase(
                    around(420.0 + 37.0 * f64::from(i % 5), 12.0),
                    (380.0, 640.0),
                    730.0,
                ),
                phase(
                    around(decode, decode * 0.03),
                    (decode * 0.9, decode * 1.1),
                    decode * 1.6,
                ),
            )
        })
        .collect();
    input
}

/// A name that tries to be anything but a name.
pub const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&\u{202e}txt.exe\0\u{1b}[31m\n]]>&#x41;fill=\"#1F68C4\"👩\u{200d}🚀模型";

/// Names from a hostile folder.
pub fn hostile() -> Speeds {
    let mut input = three_models();
    input.subject = HOSTILE.into();
    input.subtitle = HOSTILE.repeat(3);
    input.prefill_test = Some(HOSTILE.into());
    input.footer = vec![HOSTILE.repeat(4), "\0\u{ffff}".into()];
    for (i, row) in input.rows.iter_mut().enumerate() {
        row.label = [HOSTILE, &"long-".repeat(60), "\0", "مرحبا", "", "#1F68C4"][i].into();
        row.group = Some(HOSTILE.chars().cycle().take(300).collect());
        row.detail = Some(HOSTILE.into());
    }
    input
}

/// What the time of a token and of a prompt is made of, in every row.
pub fn with_breakdown(mut input: Speeds) -> Speeds {
    input.overlays.breakdown = true;
    for row in &mut input.rows {
        if let Some(expected) = row.prefill.expected {
            row.prefill.parts = parts(
                512e3 / expected.value,
                &[
                    ("weights Q4_0", Cause::Weights, 0.86),
                    ("attention", Cause::Cache, 0.09),
                    ("small operations", Cause::Fixed, 0.05),
                ],
            );
        }
        if let Some(expected) = row.decode.expected {
            row.decode.parts = parts(
                1e3 / expected.value,
                &[
                    ("weights Q4_0", Cause::Weights, 0.52),
                    ("output matrix Q6_K", Cause::Weights, 0.19),
                    ("attention", Cause::Cache, 0.09),
                    ("small operations", Cause::Fixed, 0.18),
                    ("starting a step", Cause::Fixed, 0.02),
                ],
            );
        }
    }
    input
}
