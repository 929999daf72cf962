//! What a person should know about a file that was read all the same.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::Limit;

/// One thing to know; [`fmt::Display`] is the sentence, and so is its JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// Layers that the header declares have no tensors.
    Incomplete {
        /// `block_count`.
        declared: u64,
        /// Layers without any tensor.
        without_tensors: u64,
    },
    /// The data ends before the last tensor does.
    Truncated {
        /// Bytes the whole file (set) has at least.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// Data begins, but not even one tensor is whole.
    EndsInFirstTensor {
        /// Bytes the whole file has at least.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// Parts of the set are not on disk.
    PartsMissing {
        /// Their names.
        missing: Vec<String>,
        /// Parts of the set.
        parts: u32,
    },
    /// The engine would refuse it or abort on it.
    CannotBeLoaded(Limit),
    /// Rows too short for the label's blocks were stored in larger types.
    LargerThanItsLabel {
        /// The label.
        label: String,
        /// What the weights really take.
        bits_per_weight: f64,
    },
    /// A draft head: predicts tokens for another model.
    DraftHead,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Incomplete {
                declared,
                without_tensors,
            } => write!(
                f,
                "Incomplete: it declares {declared} layers, and {without_tensors} of them have no tensors."
            ),
            Warning::Truncated { expected, found } => {
                write!(
                    f,
                    "Cut short: {expected} bytes are expected and {found} are there."
                )
            }
            Warning::EndsInFirstTensor { expected, found } => write!(
                f,
                "The file ends inside its first tensor ({found} of {expected} bytes): a download that was cut off early, or a header file with some bytes behind it."
            ),
            Warning::PartsMissing { missing, parts } => {
                write!(
                    f,
                    "Of the {parts} parts of the set {} are missing: {}.",
                    missing.len(),
                    few(missing)
                )
            }
            Warning::CannotBeLoaded(limit) => write!(f, "The engine cannot load it: {limit}."),
            Warning::LargerThanItsLabel {
                label,
                bits_per_weight,
            } => write!(
                f,
                "Labelled {label}, but it takes {bits_per_weight:.1} bits per weight: its rows are no multiple of 256, so most were stored in larger types."
            ),
            Warning::DraftHead => f.write_str(
                "A draft head: it predicts tokens for another model and does not run by itself.",
            ),
        }
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The first few of many names, for a sentence.
pub(crate) fn few(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
