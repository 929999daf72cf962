//! The `estimate` figure: what theory allows, what is to be expected and what was measured.

mod finding;

use crate::Error;
use crate::figure::{Figure, Frame};
use crate::speeds::{self, Form, Overlays, Row, Speeds};
use crate::text;

/// What the figure shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimates {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What holds for all rows: model, test, samples, threads.
    pub subtitle: String,
    /// The prefill test in words: `reading a 512-token prompt`.
    pub prefill_test: Option<String>,
    /// The decode test in words: `writing 128 tokens`.
    pub decode_test: Option<String>,
    /// Models with or without results, from top to bottom. Rows of one group stand together.
    pub rows: Vec<Row>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
    /// What the expected time is made of, as a strip under each row.
    pub breakdown: bool,
}

/// Draws the figure: as [`speeds`](crate::speeds()), but what was measured is a point on the
/// expected range, and the title says how well the two agree.
///
/// Errors: [`Error::Empty`] without rows.
pub fn estimates(input: &Estimates, frame: &Frame) -> Result<Figure, Error> {
    let as_speeds = Speeds {
        subject: input.subject.clone(),
        subtitle: input.subtitle.clone(),
        prefill_test: input.prefill_test.clone(),
        decode_test: input.decode_test.clone(),
        rows: input.rows.clone(),
        footer: input.footer.clone(),
        overlays: Overlays {
            ceiling: true,
            expected: true,
            breakdown: input.breakdown,
        },
    };
    let rows = speeds::prepare(&as_speeds);
    let title = finding::finding(&rows, &text::clean(&input.subject));
    speeds::draw(&as_speeds, &rows, ("estimate", title, Form::Points), frame)
}
