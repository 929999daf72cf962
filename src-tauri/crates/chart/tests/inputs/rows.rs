//! Inputs of the figures that are made of rows: waits, quantizations.

use twospeed_chart::{
    Divergence, FirstToken, Name, Part, Quality, QuantizationRow, Quantizations, Request, Wait,
};

use super::curves::{FOOTER, named};
use super::{HOSTILE, around};

fn footer() -> Vec<String> {
    FOOTER.map(str::to_owned).into()
}

/// A wait with its parts in milliseconds: load, context, tokenize, prefill, first sample, first
/// decode. A part of zero was not there.
fn wait(name: &Name, request: Request, ms: [f64; 6], reused: u64) -> Wait {
    let parts = [
        Part::Load,
        Part::Context,
        Part::Tokenize,
        Part::Prefill,
        Part::FirstSample,
        Part::FirstDecode,
    ];
    let total: f64 = ms[..5].iter().sum();
    Wait {
        name: name.clone(),
        request,
        total_ms: Some(around(total, total * 0.018)),
        parts: parts
            .into_iter()
            .zip(ms)
            .filter(|(_, ms)| *ms > 0.0)
            .collect(),
        prompt_tokens: 512,
        reused_tokens: reused,
    }
}

fn of(name: &Name, factor: f64) -> Vec<Wait> {
    let times = |ms: [f64; 6]| ms.map(|ms| ms * factor);
    vec![
        wait(
            name,
            Request::Cold,
            times([1_310.0, 14.0, 1.2, 702.0, 0.4, 9.1]),
            0,
        ),
        wait(
            name,
            Request::Warm,
            times([64.0, 13.0, 1.2, 698.0, 0.4, 9.0]),
            0,
        ),
        wait(
            name,
            Request::New,
            times([0.0, 0.0, 1.3, 699.0, 0.4, 9.0]),
            0,
        ),
        wait(
            name,
            Request::Repeated,
            times([0.0, 0.0, 1.1, 19.4, 0.4, 9.0]),
            511,
        ),
        wait(
            name,
            Request::ChangedTail,
            times([0.0, 0.0, 1.2, 61.0, 0.4, 9.1]),
            480,
        ),
    ]
}

pub fn first_token() -> FirstToken {
    FirstToken {
        subject: "SmolLM2 135M Instruct Q4_1".into(),
        subtitle:
            "SmolLM2 135M Instruct Q4_1, a prompt of 512 tokens; of the changed one the last \
                   32 are others. Mean of 5 samples, 2 threads."
                .into(),
        waits: of(&Name::new("Q4_1"), 1.0),
        footer: footer(),
    }
}

/// Starts alone, of two files.
pub fn starts_of_two() -> FirstToken {
    let mut input = first_token();
    let small = named("Q4_1", None);
    let large = named("F16 with a name that is longer than its column", None);
    input.waits = [of(&small, 1.0), of(&large, 9.0)].concat();
    input
        .waits
        .retain(|wait| matches!(wait.request, Request::Cold | Request::Warm));
    input
}

/// A cache that cannot drop its tail, and a wait that was not measured.
pub fn nothing_reused() -> FirstToken {
    let mut input = first_token();
    input.waits.drain(..2);
    for wait in &mut input.waits {
        wait.reused_tokens = 0;
        wait.parts = vec![(Part::Prefill, 690.0)];
        wait.total_ms = Some(around(700.0, 12.0));
    }
    input.waits[2].total_ms = None;
    input.waits[2].parts = vec![(Part::Prefill, f64::NAN)];
    input
}

pub fn one_wait() -> FirstToken {
    let mut input = first_token();
    input.waits.truncate(1);
    if let Some(total) = &mut input.waits[0].total_ms {
        total.samples.truncate(1);
    }
    input
}

pub fn hostile_waits() -> FirstToken {
    let mut input = starts_of_two();
    input.subject = HOSTILE.into();
    input.subtitle = HOSTILE.repeat(2);
    for (i, wait) in input.waits.iter_mut().enumerate() {
        wait.name.label = format!("{HOSTILE}{i}");
    }
    input
}

fn quantized(
    label: &str,
    mb: f64,
    prefill: f64,
    decode: f64,
    quality: Option<Quality>,
) -> QuantizationRow {
    QuantizationRow {
        group: None,
        label: label.into(),
        file_bytes: Some((mb * 1e6) as u64),
        detail: None,
        prefill: Some(around(prefill, prefill * 0.03)),
        decode: Some(around(decode, decode * 0.03)),
        quality,
    }
}

fn nats(mean: f64, error: f64) -> Option<Divergence> {
    Some(Divergence::Nats { mean, error })
}

fn quality(perplexity: f64, divergence: Option<Divergence>) -> Option<Quality> {
    Some(Quality {
        perplexity,
        perplexity_error: Some(perplexity * 0.02),
        divergence,
    })
}

/// Four quantizations with their quality against the largest.
pub fn quantizations_with_quality() -> Quantizations {
    Quantizations {
        subject: "SmolLM2 135M Instruct".into(),
        subtitle: "SmolLM2 135M Instruct in 4 quantizations, smallest file first. Mean of 5 \
                   samples, 2 threads. pp512, tg128; perplexity of 4,096 tokens, lower is better; \
                   divergence from F16."
            .into(),
        rows: vec![
            quantized(
                "Q4_0",
                92.0,
                612.0,
                118.0,
                quality(25.87, nats(0.1043, 0.0021)),
            ),
            quantized(
                "Q4_K_M",
                105.0,
                330.0,
                107.0,
                quality(24.41, nats(0.0412, 0.0009)),
            ),
            quantized(
                "Q8_0",
                145.0,
                438.0,
                79.6,
                quality(23.32, nats(0.0018, 0.0001)),
            ),
            quantized(
                "F16",
                271.0,
                254.0,
                48.9,
                quality(23.29, Some(Divergence::Base)),
            ),
        ],
        footer: footer(),
    }
}

/// Speeds alone.
pub fn quantizations_without_quality() -> Quantizations {
    let mut input = quantizations_with_quality();
    for row in &mut input.rows {
        row.quality = None;
    }
    input
}

/// One row, a phase that is missing, damaged numbers, a hostile name.
pub fn quantization_gaps() -> Quantizations {
    let mut input = quantizations_with_quality();
    input.subject = HOSTILE.into();
    input.rows[0].prefill = None;
    input.rows[1].quality = None;
    input.rows[2].quality = quality(f64::NAN, None);
    input.rows[3].label = HOSTILE.repeat(2);
    if let Some(decode) = &mut input.rows[3].decode {
        decode.mean = f64::INFINITY;
    }
    input
}
