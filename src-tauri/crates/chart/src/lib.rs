//! Figures: SVG with a data layer, PNG, PDF.
//!
//! A figure is drawn once. Its own module (here [`speeds()`]) turns values into a `scene` in
//! px; plotters' SVG backend draws the scene (`draw`); `svg` makes it a document that stands
//! alone; PNG and PDF are that document through resvg and svg2pdf (`export`). Hover and keyboard
//! read the [`data`] layer that comes with it. A theme only swaps the colours of roles
//! ([`palette`]).
//!
//! Nothing here reads a clock, a system font or the machine: equal input gives an equal figure, and
//! equal bytes of SVG and PNG (svg2pdf may number a PDF's objects differently).
//!
//! ```
//! use twospeed_chart::{Frame, Measured, PngSize, Row, Speeds, Theme, speeds};
//!
//! let mut row = Row::new("Q4_1");
//! row.file_bytes = Some(97_800_000);
//! row.prefill.measured = Some(Measured { mean: 300.0, deviation: Some(13.0), samples: vec![] });
//! row.decode.measured = Some(Measured { mean: 107.0, deviation: Some(4.0), samples: vec![] });
//! row.decode.ceiling = Some(187.0);
//! let input = Speeds { subject: "SmolLM2 135M Instruct".into(), rows: vec![row], ..Speeds::default() };
//!
//! let figure = speeds(&input, &Frame::default())?;
//! assert_eq!(figure.data.title, "Reading is 2.8 times as fast as writing");
//! assert_eq!(figure.data.marks[1].text, "Q4_1, decode: 107 ± 4 tok/s, ceiling 187");
//! let svg = figure.svg_for(Theme::Light);
//! let png = figure.to_png(Theme::Light, PngSize::Scale(2.0))?;
//! # assert!(svg.starts_with("<svg") && png.starts_with(b"\x89PNG"));
//! # Ok::<(), twospeed_chart::Error>(())
//! ```

mod axis;
mod bar;
mod breakdown;
mod context;
mod curves;
pub mod data;
mod draw;
mod error;
mod estimate;
mod export;
mod figure;
mod first_token;
mod layout;
mod look;
mod measured;
mod number;
pub mod palette;
mod quantization;
mod roofline;
mod rows;
mod scene;
mod speeds;
mod sustained;
mod svg;
mod text;
mod time;
mod users;

pub use breakdown::{Breakdown, BreakdownRow, Spent, breakdown};
pub use context::{Context, ContextSeries, context};
pub use curves::{At, Name, ends_of};
pub use data::{Data, Mark, MarkKind};
pub use error::Error;
pub use estimate::{Estimates, estimates};
pub use export::{LONGEST_SIDE, MOST_PIXELS, PngSize};
pub use figure::{Figure, Frame, MARGIN};
pub use first_token::{FirstToken, Part, Request, Wait, first_token};
pub use measured::{Expected, Measured, clearly};
pub use palette::Theme;
pub use quantization::{Divergence, Quality, QuantizationRow, Quantizations, quantization};
pub use roofline::{MOST_SERIES, Roofline, RooflineSeries, RooflineStep, roofline};
pub use speeds::{Overlays, Phase, Row, Speeds, finding, speeds};
pub use sustained::{Sustained, SustainedSeries, sustained};
pub use time::{Cause, TimePart};
pub use users::{Users, UsersSeries, users};
