//! The drawing: plotters' SVG backend draws a scene.
//!
//! plotters places everything on whole units, so it draws at [`UNITS`] units a px; [`crate::svg`]
//! brings the picture back to px.

use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, IntoDrawingArea as _, IntoFont as _, PathElement, Rectangle, SVGBackend,
    Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontStyle, RGBColor, ShapeStyle, register_font};

use crate::Error;
use crate::palette::{Role, Theme};
use crate::scene::{Anchor, Label, Scene, Shape};
use crate::text::{FAMILY, REGULAR, SEMIBOLD, Weight};

/// plotters' units in one px.
pub const UNITS: f64 = 100.0;
/// plotters divides a font size by this when it writes it down.
const FONT_DIVISOR: f64 = 1.24;
/// plotters hangs text from its top by shifting the baseline so many em.
pub const HANGING: f64 = 0.76;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the scene in light colours on a canvas of so many px.
pub fn draw(scene: &Scene, width: f64, height: f64) -> Result<String, Error> {
    register_fonts();
    let mut raw = String::new();
    {
        let size = (units(width) as u32, units(height) as u32);
        let area = SVGBackend::with_string(&mut raw, size).into_drawing_area();
        for shape in scene.shapes() {
            draw_shape(&area, shape).map_err(Error::drawing)?;
        }
        area.present().map_err(Error::drawing)?;
    }
    Ok(raw)
}

fn register_fonts() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        for (style, font) in [(FontStyle::Normal, REGULAR), (FontStyle::Bold, SEMIBOLD)] {
            assert!(
                register_font(FAMILY, style, font).is_ok(),
                "BUG: the bundled font can be read"
            );
        }
    });
}

fn units(px: f64) -> i32 {
    (px * UNITS).round() as i32
}

fn colour(role: Role) -> RGBColor {
    let c = role.colour(Theme::Light);
    RGBColor(c.0, c.1, c.2)
}

fn stroked(role: Role, width: f64) -> ShapeStyle {
    colour(role).stroke_width(units(width).unsigned_abs())
}

type Drawn = Result<(), plotters::drawing::DrawingAreaErrorKind<std::io::Error>>;

fn draw_shape(area: &Area<'_>, shape: &Shape) -> Drawn {
    match shape {
        Shape::Fill(rect, role) => area.draw(&Rectangle::new(
            [
                (units(rect.x), units(rect.y)),
                (units(rect.right()), units(rect.bottom())),
            ],
            colour(*role).filled(),
        )),
        Shape::Line {
            from,
            to,
            stroke,
            role,
            dash,
        } => {
            let style = stroked(*role, *stroke);
            for (a, b) in pieces(*from, *to, *dash) {
                area.draw(&PathElement::new(
                    vec![(units(a.0), units(a.1)), (units(b.0), units(b.1))],
                    style,
                ))?;
            }
            Ok(())
        }
        Shape::Dot { at, radius, role } => area.draw(&Circle::new(
            (units(at.0), units(at.1)),
            units(*radius),
            colour(*role).filled(),
        )),
        Shape::Text(label) => draw_text(area, label),
    }
}

fn draw_text(area: &Area<'_>, label: &Label) -> Drawn {
    let anchor = match label.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let style = match label.weight {
        Weight::Regular => FontStyle::Normal,
        Weight::SemiBold => FontStyle::Bold,
    };
    let font = (FAMILY, label.size * UNITS * FONT_DIVISOR)
        .into_font()
        .style(style)
        .color(&colour(label.role))
        .pos(Pos::new(anchor, VPos::Top));
    area.draw(&Text::new(
        label.text.as_str(),
        (units(label.x), units(label.y - HANGING * label.size)),
        font,
    ))
}

/// A line's dashes as lines of their own, or the line itself.
fn pieces(
    from: (f64, f64),
    to: (f64, f64),
    dash: Option<(f64, f64)>,
) -> Vec<((f64, f64), (f64, f64))> {
    let Some((dash, gap)) = dash else {
        return vec![(from, to)];
    };
    let length = (to.0 - from.0).hypot(to.1 - from.1);
    let at = |d: f64| {
        let t = d.min(length) / length;
        (from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t)
    };
    let count = (length / (dash + gap)).ceil() as u32;
    (0..count)
        .map(|i| f64::from(i) * (dash + gap))
        .map(|start| (at(start), at(start + dash)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_are_real_lines_that_end_with_the_line() {
        let dashes = pieces((0.0, 0.0), (0.0, 16.0), Some((4.0, 3.0)));
        let ends: Vec<_> = dashes.iter().map(|(a, b)| (a.1, b.1)).collect();
        assert_eq!(ends, [(0.0, 4.0), (7.0, 11.0), (14.0, 16.0)]);
    }
}
