//! The `estimate` figure from results and model files.

use twospeed_chart::{Estimates, Row};

use super::predicted::{
    Predicted, PredictedOptions, footer, lengths, limits, measured_words, row_names, subject_of,
};

/// The figure.
pub(super) fn estimates(rows: &[Predicted<'_>], options: PredictedOptions<'_>) -> Estimates {
    let names = row_names(rows, options.time_zone);
    Estimates {
        subject: subject_of(rows),
        subtitle: format!(
            "{} {} is what the machine’s calibration lets expect, dashed is what its limits allow.",
            measured_words(rows),
            match rows.iter().any(|row| row.source.is_some()) {
                true => "Dots are measured, grey",
                false => "Grey",
            }
        ),
        prefill_test: lengths(rows, 0).map(|n| format!("reading a prompt of {n} tokens")),
        decode_test: lengths(rows, 1).map(|n| format!("writing {n} tokens")),
        rows: rows
            .iter()
            .zip(names)
            .map(|(row, name)| {
                let [prefill, decode] = row.phases();
                Row {
                    group: name.group,
                    label: name.label,
                    file_bytes: row.file_bytes(),
                    detail: name.detail,
                    prefill,
                    decode,
                }
            })
            .collect(),
        footer: footer(rows, options, limits(rows)),
        breakdown: options.breakdown,
    }
}
