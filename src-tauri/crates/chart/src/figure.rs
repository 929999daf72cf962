//! A finished figure and the forms it is handed out in.

use crate::Error;
use crate::data::Data;
use crate::draw;
use crate::export::{self, PngSize};
use crate::palette::Theme;
use crate::scene::Scene;
use crate::svg::{self, Parts, Use};

/// Margin around an exported figure, in px. On screen the page has its own.
pub const MARGIN: f64 = 24.0;

/// The place a figure is drawn for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Width in px. Figures keep a least width of their own.
    pub width: f64,
    /// Height in px to fill where the content allows; its natural height without.
    pub height: Option<f64>,
    /// Everything so many times larger: 1.5 for a projector. The frame keeps its size.
    pub scale: f64,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            width: 580.0,
            height: None,
            scale: 1.0,
        }
    }
}

impl Frame {
    /// The narrowest frame that a figure is drawn for, before scaling.
    pub const LEAST_WIDTH: f64 = 420.0;

    /// The scale within reason.
    pub(crate) fn scale(&self) -> f64 {
        if self.scale.is_finite() {
            self.scale.clamp(0.25, 8.0)
        } else {
            1.0
        }
    }

    /// Width to lay out in, before scaling.
    pub(crate) fn inner_width(&self) -> f64 {
        let width = self.width / self.scale();
        if width.is_finite() {
            width.round().clamp(Self::LEAST_WIDTH, 4000.0)
        } else {
            Self::default().width
        }
    }

    /// Height to lay out in, before scaling.
    pub(crate) fn inner_height(&self) -> Option<f64> {
        self.height
            .map(|height| (height / self.scale()).floor())
            .filter(|height| height.is_finite())
    }
}

/// A figure, drawn once. Every form below is the same picture.
#[derive(Debug, Clone)]
pub struct Figure {
    body: String,
    description: String,
    scale: f64,
    /// Its values, names and read-outs. Boxes are in px of the unscaled frame, which are the
    /// user units of the SVG.
    pub data: Data,
}

impl Figure {
    /// Draws the scene, once.
    pub(crate) fn draw(scene: &Scene, data: Data, scale: f64) -> Result<Self, Error> {
        let raw = draw::draw(scene, data.width, data.height)?;
        let description = data
            .marks
            .iter()
            .filter(|mark| mark.kind.is_headline())
            .map(|mark| mark.text.as_str())
            .collect::<Vec<_>>()
            .join(". ");
        Ok(Self {
            body: svg::body(&raw)?,
            description,
            scale,
            data,
        })
    }

    /// Width on screen in px.
    pub fn width(&self) -> f64 {
        self.data.width * self.scale
    }

    /// Height on screen in px.
    pub fn height(&self) -> f64 {
        self.data.height * self.scale
    }

    fn document(&self, margin: f64, made_for: Use) -> String {
        svg::document(
            &Parts {
                body: &self.body,
                title: &self.data.title,
                description: &self.description,
                width: self.data.width,
                height: self.data.height,
                scale: self.scale,
                margin,
            },
            made_for,
        )
    }

    /// The SVG to save: fixed colours of a theme, a margin, a title, every value in words, and the
    /// Latin part of Inter, so that it looks the same where Inter is not installed.
    pub fn svg_for(&self, theme: Theme) -> String {
        self.document(MARGIN, Use::File(theme))
    }

    /// The SVG to put into a page: colours are the page's custom properties (`var(--prefill)`,
    /// ...), so that a theme needs no second drawing. Without margin: its user units are those of
    /// the data layer's boxes. Holds no script, no style and no link.
    pub fn for_screen(&self) -> String {
        self.document(0.0, Use::Page)
    }

    /// [`Self::svg_for`] as PNG. Errors: [`Error::PngSize`].
    pub fn to_png(&self, theme: Theme, size: PngSize) -> Result<Vec<u8>, Error> {
        export::png(&self.document(MARGIN, Use::Picture(theme)), size)
    }

    /// [`Self::svg_for`] as PDF with embedded fonts and selectable text.
    pub fn to_pdf(&self, theme: Theme) -> Result<Vec<u8>, Error> {
        export::pdf(&self.document(MARGIN, Use::Picture(theme)))
    }
}
