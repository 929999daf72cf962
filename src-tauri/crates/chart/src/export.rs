//! Exports: the figure's SVG as PNG and PDF, with the bundled font and no other.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::Error;
use crate::text::{FAMILY, REGULAR, SEMIBOLD};

/// How large a PNG is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PngSize {
    /// Pixels for each px of the figure: 2 for a page, 3 for print.
    Scale(f64),
    /// Width in pixels; the height follows.
    Width(u32),
}

/// The longest side of a PNG: what viewers and drawing programs still open.
pub const LONGEST_SIDE: u32 = 16_384;
/// The most pixels of a PNG: 256 MB while it is drawn.
pub const MOST_PIXELS: f64 = 64e6;

fn options() -> Options<'static> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(REGULAR.to_vec());
        fonts.load_font_data(SEMIBOLD.to_vec());
        fonts.set_sans_serif_family(FAMILY);
        Arc::new(fonts)
    });
    Options {
        font_family: FAMILY.to_owned(),
        fontdb: Arc::clone(fonts),
        ..Options::default()
    }
}

/// Reads a figure's SVG as resvg and svg2pdf see it.
///
/// Errors: [`Error::Drawing`] where the document is not sound, which is a fault of this crate.
pub fn tree(svg: &str) -> Result<Tree, Error> {
    Tree::from_str(svg, &options()).map_err(Error::drawing)
}

/// The SVG as PNG, 8 bits a channel.
///
/// Errors: [`Error::PngSize`] where a side would be shorter than 1 or longer than
/// [`LONGEST_SIDE`] pixels, or the picture would have more than [`MOST_PIXELS`].
pub fn png(svg: &str, size: PngSize) -> Result<Vec<u8>, Error> {
    let tree = tree(svg)?;
    let (w, h) = (
        f64::from(tree.size().width()),
        f64::from(tree.size().height()),
    );
    let scale = match size {
        PngSize::Scale(scale) => scale,
        PngSize::Width(pixels) => f64::from(pixels) / w,
    };
    let side = |px: f64| {
        let pixels = (px * scale).round();
        (pixels >= 1.0 && pixels <= f64::from(LONGEST_SIDE)).then_some(pixels as u32)
    };
    let too_large = Error::PngSize {
        width: (w * scale).round(),
        height: (h * scale).round(),
    };
    let (Some(width), Some(height)) = (side(w), side(h)) else {
        return Err(too_large);
    };
    if f64::from(width) * f64::from(height) > MOST_PIXELS {
        return Err(too_large);
    }
    let mut pixmap =
        Pixmap::new(width, height).ok_or_else(|| Error::drawing("no memory for the picture"))?;
    let transform = Transform::from_scale(
        (f64::from(width) / w) as f32,
        (f64::from(height) / h) as f32,
    );
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    encode(&pixmap).map_err(Error::drawing)
}

/// The picture as a PNG without transparency, since its ground is drawn: a third of the size.
fn encode(pixmap: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let rgb: Vec<u8> = pixmap
        .pixels()
        .iter()
        .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
        .collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Best);
    encoder.set_filter(png::FilterType::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(out)
}

/// The SVG as a PDF of one page with selectable text; one px is one point.
///
/// The page is the same each time, its bytes are not: svg2pdf numbers its objects in the order of
/// a hash map.
pub fn pdf(svg: &str) -> Result<Vec<u8>, Error> {
    svg2pdf::to_pdf(
        &tree(svg)?,
        svg2pdf::ConversionOptions::default(),
        svg2pdf::PageOptions::default(),
    )
    .map_err(Error::drawing)
}
