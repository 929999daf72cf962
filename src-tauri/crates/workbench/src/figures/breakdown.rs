//! The `breakdown` figure from results and model files.

use twospeed_chart::{Breakdown, BreakdownRow, Expected, Spent};
use twospeed_estimate::TokensPerSecond;

use super::predicted::{
    Predicted, PredictedOptions, footer, lengths, measured_words, milliseconds, row_names,
    subject_of, time_parts,
};

/// The figure.
pub(super) fn breakdown(rows: &[Predicted<'_>], options: PredictedOptions<'_>) -> Breakdown {
    let prompt = lengths(rows, 0);
    let names = row_names(rows, options.time_zone);
    Breakdown {
        subject: subject_of(rows),
        subtitle: format!(
            "{} Time as it is expected, part by part.",
            measured_words(rows)
        ),
        prefill_of: match prompt {
            Some(n) => format!("reading a prompt of {n} tokens"),
            None => "reading a prompt".to_owned(),
        },
        decode_of: "writing one token".to_owned(),
        rows: rows
            .iter()
            .zip(names)
            .map(|(row, name)| BreakdownRow {
                name,
                prefill: spent(row, 0),
                decode: spent(row, 1),
            })
            .collect(),
        footer: footer(rows, options, None),
    }
}

/// A speed's time, where the lower end is that of the fastest.
fn time(
    tokens: f64,
    speed: Option<TokensPerSecond>,
    low: Option<TokensPerSecond>,
    high: Option<TokensPerSecond>,
) -> Option<Expected> {
    let ms = |speed: Option<TokensPerSecond>| Some(1e3 * tokens / speed?.0);
    Some(Expected {
        value: ms(speed)?,
        low: ms(high)?,
        high: ms(low)?,
    })
}

fn spent(row: &Predicted<'_>, phase: usize) -> Spent {
    let measured = row.test(phase).and_then(milliseconds);
    // A result says nothing of a phase that it did not measure.
    let is_asked = row.source.is_none() || row.test(phase).is_some();
    let Some(estimate) = row.estimate.as_ref().filter(|_| is_asked) else {
        return Spent {
            measured,
            ..Spent::default()
        };
    };
    let (parts, expected) = match phase {
        0 => {
            let of = &estimate.prefill;
            let prompt = estimate.at.prompt as f64;
            (
                time_parts(&of.breakdown),
                time(prompt, of.expected_tok_s, of.expected_low, of.expected_high),
            )
        }
        _ => {
            let of = &estimate.decode;
            (
                time_parts(&of.breakdown),
                time(1.0, of.expected_tok_s, of.expected_low, of.expected_high),
            )
        }
    };
    Spent {
        parts,
        expected,
        measured,
    }
}
