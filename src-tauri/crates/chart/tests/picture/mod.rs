//! A figure as resvg sees it: where ink really is, independent of how the figure was laid out.

// Each user takes some of it.
#![allow(dead_code, clippy::panic)]

use std::sync::{Arc, OnceLock};

use resvg::usvg::tiny_skia_path::PathSegment;
use resvg::usvg::{Group, Node, Options, Paint, Tree, fontdb};

/// Left, top, right, bottom in px.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn overlap(&self, other: &Self) -> bool {
        let eps = 0.05;
        self.left + eps < other.right
            && other.left + eps < self.right
            && self.top + eps < other.bottom
            && other.top + eps < self.bottom
    }
}

/// A text with the box of its outlines, or a stroke or fill with its colour.
#[derive(Debug, Clone)]
pub struct Ink {
    pub area: Area,
    pub colour: String,
    pub text: Option<String>,
    pub font_size: f32,
}

pub fn options() -> Options<'static> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(include_bytes!("../../fonts/Inter-Regular.ttf").to_vec());
        fonts.load_font_data(include_bytes!("../../fonts/Inter-SemiBold.ttf").to_vec());
        Arc::new(fonts)
    });
    Options {
        fontdb: Arc::clone(fonts),
        ..Options::default()
    }
}

/// The ink of a document, and its size.
pub fn ink(svg: &str) -> (Vec<Ink>, f64, f64) {
    let tree = Tree::from_str(svg, &options()).expect("resvg reads the figure");
    let mut out = Vec::new();
    collect(tree.root(), &mut out);
    let size = tree.size();
    (out, f64::from(size.width()), f64::from(size.height()))
}

fn collect(group: &Group, out: &mut Vec<Ink>) {
    for node in group.children() {
        match node {
            Node::Group(inner) => collect(inner, out),
            Node::Path(path) => {
                let t = path.abs_transform();
                let (paint, half) = match (path.fill(), path.stroke()) {
                    (Some(fill), _) => (fill.paint(), 0.0),
                    (_, Some(stroke)) => (stroke.paint(), stroke.width().get() / 2.0),
                    _ => continue,
                };
                let Paint::Color(c) = paint else { continue };
                let colour = format!("#{:02X}{:02X}{:02X}", c.red, c.green, c.blue);
                let mut add = |x0: f32, y0: f32, x1: f32, y1: f32| {
                    let area = Area {
                        left: f64::from((x0.min(x1) - half) + t.tx),
                        right: f64::from(x0.max(x1) + half + t.tx),
                        top: f64::from(y0.min(y1) - half + t.ty),
                        bottom: f64::from(y0.max(y1) + half + t.ty),
                    };
                    out.push(Ink {
                        area,
                        colour: colour.clone(),
                        text: None,
                        font_size: 0.0,
                    });
                };
                if path.fill().is_some() {
                    let b = path.data().bounds();
                    add(b.left(), b.top(), b.right(), b.bottom());
                } else {
                    // A path holds many separate lines: each is a mark.
                    let mut last = (0.0, 0.0);
                    for segment in path.data().segments() {
                        match segment {
                            PathSegment::MoveTo(p) => last = (p.x, p.y),
                            PathSegment::LineTo(p) => {
                                // The box around a slope is mostly empty: its pieces' are not.
                                let (dx, dy) = (p.x - last.0, p.y - last.1);
                                let slopes = dx != 0.0 && dy != 0.0;
                                let pieces = if slopes { dx.hypot(dy).ceil() } else { 1.0 };
                                let at =
                                    |i: f32| (last.0 + dx * i / pieces, last.1 + dy * i / pieces);
                                for i in 0..pieces as usize {
                                    let (a, b) = (at(i as f32), at(i as f32 + 1.0));
                                    add(a.0, a.1, b.0, b.1);
                                }
                                last = (p.x, p.y);
                            }
                            other => panic!("a figure has straight lines only: {other:?}"),
                        }
                    }
                }
            }
            Node::Text(text) => {
                let b = text.flattened().bounding_box();
                let t = text.abs_transform();
                let span = text.chunks()[0].spans();
                let Some(Paint::Color(c)) = span[0].fill().map(|fill| fill.paint()) else {
                    panic!("text without colour");
                };
                out.push(Ink {
                    area: Area {
                        left: f64::from(b.left() + t.tx),
                        top: f64::from(b.top() + t.ty),
                        right: f64::from(b.right() + t.tx),
                        bottom: f64::from(b.bottom() + t.ty),
                    },
                    colour: format!("#{:02X}{:02X}{:02X}", c.red, c.green, c.blue),
                    text: Some(text.chunks().iter().map(|chunk| chunk.text()).collect()),
                    font_size: span[0].font_size().get(),
                });
            }
            Node::Image(_) => panic!("a figure has no images"),
        }
    }
}

/// Everything that is wrong with where labels stand: on marks, on each other, in the margin.
pub fn faults(svg: &str, margin: f64) -> Vec<String> {
    const WHITE: &str = "#FFFFFF";
    const GRID: &str = "#ECECE8";
    let (ink, width, height) = ink(svg);
    let labels: Vec<&Ink> = ink.iter().filter(|ink| ink.text.is_some()).collect();
    let marks: Vec<&Ink> = ink
        .iter()
        .filter(|ink| ink.text.is_none() && ink.colour != WHITE && ink.colour != GRID)
        .collect();
    let mut faults = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let text = label.text.as_deref().unwrap_or_default();
        let a = &label.area;
        if a.left < margin
            || a.top < margin
            || a.right > width - margin
            || a.bottom > height - margin
        {
            faults.push(format!("{text:?} leaves the frame: {a:?}"));
        }
        if label.font_size < 12.0 {
            faults.push(format!("{text:?} is set in {} px", label.font_size));
        }
        for other in &labels[i + 1..] {
            if a.overlap(&other.area) {
                faults.push(format!("{text:?} stands on {:?}", other.text));
            }
        }
        for mark in &marks {
            if a.overlap(&mark.area) {
                faults.push(format!(
                    "{text:?} at {a:?} stands on a {} mark {:?}",
                    mark.colour, mark.area
                ));
            }
        }
    }
    faults
}
