//! The document: from plotters' SVG to one that stands alone.
//!
//! The picture is not changed: lengths come back from plotters' whole units to px, baselines are
//! resolved, neighbouring lines of one kind become one path, the family and what a screen reader
//! needs go to the root.

use std::collections::HashMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use resvg::usvg::roxmltree::{Document, Node};

use crate::Error;
use crate::draw::{HANGING, UNITS};
use crate::palette::{Role, Theme};
use crate::text;

/// The family with what comes close where Inter is not installed.
const FAMILIES: &str = "Inter, 'Inter Variable', 'Helvetica Neue', Arial, sans-serif";

/// The elements of plotters' document, one a line, in px.
pub fn body(raw: &str) -> Result<String, Error> {
    let document = Document::parse(raw).map_err(Error::drawing)?;
    let mut out = String::with_capacity(raw.len());
    let mut line: Option<Path> = None;
    for node in document.root_element().children().filter(Node::is_element) {
        let tag = node.tag_name().name();
        if tag == "polyline" {
            let next = Path::read(node)?;
            match &mut line {
                Some(open) if open.style == next.style => open.d.push_str(&next.d),
                _ => {
                    if let Some(done) = line.replace(next) {
                        done.write(&mut out);
                    }
                }
            }
            continue;
        }
        if let Some(done) = line.take() {
            done.write(&mut out);
        }
        match tag {
            "rect" => {
                let _ = write!(out, "<rect");
                for name in ["x", "y", "width", "height"] {
                    let _ = write!(out, " {name}=\"{}\"", px(number(node, name)?));
                }
                let _ = writeln!(out, " fill=\"{}\"/>", attribute(node, "fill")?);
            }
            "circle" => {
                let _ = write!(out, "<circle");
                for name in ["cx", "cy", "r"] {
                    let _ = write!(out, " {name}=\"{}\"", px(number(node, name)?));
                }
                let _ = writeln!(out, " fill=\"{}\"/>", attribute(node, "fill")?);
            }
            "text" => write_text(node, &mut out)?,
            other => return Err(Error::drawing(format!("unexpected element {other}"))),
        }
    }
    if let Some(done) = line {
        done.write(&mut out);
    }
    Ok(out)
}

/// Lines of one colour and width.
struct Path {
    style: String,
    d: String,
}

impl Path {
    fn read(node: Node<'_, '_>) -> Result<Self, Error> {
        let style = format!(
            "stroke=\"{}\" stroke-width=\"{}\"",
            attribute(node, "stroke")?,
            px(number(node, "stroke-width")?)
        );
        let mut d = String::new();
        for (i, point) in attribute(node, "points")?.split_whitespace().enumerate() {
            let (x, y) = point
                .split_once(',')
                .and_then(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)))
                .ok_or_else(|| Error::drawing(format!("unexpected point {point}")))?;
            let command = if i == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{command}{} {}", px(x), px(y));
        }
        Ok(Self { style, d })
    }

    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "<path fill=\"none\" {} d=\"{}\"/>", self.style, self.d);
    }
}

fn write_text(node: Node<'_, '_>, out: &mut String) -> Result<(), Error> {
    let size = (number(node, "font-size")?).round();
    let baseline = number(node, "y")? + HANGING * size;
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\"",
        px(number(node, "x")?),
        px(baseline),
        px(size)
    );
    if node.attribute("font-weight") == Some("bold") {
        out.push_str(" font-weight=\"600\"");
    }
    match attribute(node, "text-anchor")? {
        "start" => {}
        anchor => {
            let _ = write!(out, " text-anchor=\"{anchor}\"");
        }
    }
    let tracking = text::tracking(size / UNITS) * size;
    if tracking != 0.0 {
        let _ = write!(out, " letter-spacing=\"{}\"", px(tracking));
    }
    let _ = writeln!(
        out,
        " fill=\"{}\">{}</text>",
        attribute(node, "fill")?,
        escape(node.text().unwrap_or_default().trim_matches('\n'))
    );
    Ok(())
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str, Error> {
    node.attribute(name)
        .ok_or_else(|| Error::drawing(format!("{} without {name}", node.tag_name().name())))
}

fn number(node: Node<'_, '_>, name: &str) -> Result<f64, Error> {
    attribute(node, name)?.parse().map_err(Error::drawing)
}

/// plotters' units as px, without empty decimals.
fn px(units: f64) -> String {
    let text = format!("{:.2}", units / UNITS);
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

/// Text as XML holds it, in elements and in attributes. The text is [`text::clean`].
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c => out.push(c),
        }
    }
    out
}

/// What a document is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To be saved: fixed colours, and the font for readers that lack it.
    File(Theme),
    /// To be drawn here, where the font is at hand: fixed colours.
    Picture(Theme),
    /// To be shown in a page: colours are its custom properties, the font is its own.
    Page,
}

/// The parts of a finished document.
pub struct Parts<'a> {
    /// [`body`].
    pub body: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Every value in words.
    pub description: &'a str,
    /// Width of the frame in px.
    pub width: f64,
    /// Height of the frame in px.
    pub height: f64,
    /// How many times larger than drawn it is shown.
    pub scale: f64,
    /// Margin around the frame in px.
    pub margin: f64,
}

/// The finished document.
pub fn document(parts: &Parts<'_>, made_for: Use) -> String {
    let margin = parts.margin;
    let (w, h) = (parts.width + 2.0 * margin, parts.height + 2.0 * margin);
    let [x, vw, vh, sw, sh] =
        [-margin, w, h, w * parts.scale, h * parts.scale].map(|v| px(v * UNITS));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{sw}\" height=\"{sh}\" \
         viewBox=\"{x} {x} {vw} {vh}\" role=\"img\" aria-label=\"{}\" font-family=\"{FAMILIES}\">\n",
        escape(parts.title)
    );
    if made_for != Use::Page {
        // In a page these would hang under the pointer.
        let _ = writeln!(out, "<title>{}</title>", escape(parts.title));
        let _ = writeln!(out, "<desc>{}</desc>", escape(parts.description));
    }
    if let Use::File(_) = made_for {
        out.push_str("<style>");
        for (weight, font) in text::LATIN {
            let _ = write!(
                out,
                "@font-face{{font-family:{};font-weight:{weight};\
                 src:url(data:font/woff2;base64,{})}}",
                text::FAMILY,
                STANDARD.encode(font)
            );
        }
        out.push_str("</style>\n");
    }
    let ground = Role::Background.colour(Theme::Light).hex();
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{x}\" width=\"{vw}\" height=\"{vh}\" fill=\"{ground}\"/>"
    );
    out.push_str(parts.body);
    out.push_str("</svg>\n");
    recolour(&out, made_for)
}

/// Swaps the light colour of every role.
///
/// Only whole attributes change: text never holds a quotation mark that is not escaped, so a
/// model named like a colour stays as it is.
fn recolour(svg: &str, made_for: Use) -> String {
    let swaps: HashMap<String, String> = Role::ALL
        .into_iter()
        .map(|role| {
            let to = match made_for {
                Use::File(theme) | Use::Picture(theme) => role.colour(theme).hex(),
                Use::Page => format!("var({})", role.css_name()),
            };
            (role.colour(Theme::Light).hex(), to)
        })
        .collect();
    let mut out = String::with_capacity(svg.len() + svg.len() / 8);
    let mut rest = svg;
    while let Some(at) = rest.find("=\"#") {
        let (before, after) = rest.split_at(at + 2);
        out.push_str(before);
        let (old, tail) = after.split_at_checked(7).unwrap_or((after, ""));
        match swaps.get(old) {
            Some(new) if tail.starts_with('"') => out.push_str(new),
            _ => out.push_str(old),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}
