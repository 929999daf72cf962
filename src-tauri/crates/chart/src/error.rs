//! What can go wrong.

use std::fmt::Display;

/// Why there is no figure.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// No rows.
    #[error("There is nothing to draw yet. Measure a model or import a result first.")]
    Empty,
    /// A PNG outside what can be made.
    #[error(
        "A picture of {width:.0} x {height:.0} pixels cannot be made. \
         It may have up to {} pixels a side and {:.0} million in all: choose another size, or \
         SVG or PDF, which have no limit.",
        crate::export::LONGEST_SIDE,
        crate::export::MOST_PIXELS / 1e6
    )]
    PngSize {
        /// Asked-for width in pixels.
        width: f64,
        /// Height that follows from it.
        height: f64,
    },
    /// plotters, resvg or svg2pdf failed on a document of this crate.
    #[error("The figure could not be drawn: {0}")]
    Drawing(String),
}

impl Error {
    pub(crate) fn drawing(error: impl Display) -> Self {
        Self::Drawing(error.to_string())
    }
}
