//! What is handed out: SVG, PNG, PDF.

mod inputs;
mod picture;

use inputs::HOSTILE;
use resvg::tiny_skia::Pixmap;
use resvg::usvg::roxmltree::Document;
use twospeed_chart::palette::Role;
use twospeed_chart::{Error, Figure, Frame, LONGEST_SIDE, MARGIN, PngSize, Speeds, Theme, speeds};

fn figure(input: &Speeds) -> Figure {
    speeds(input, &Frame::default()).expect("it is drawn")
}

#[test]
fn no_rows_make_no_figure_but_a_sentence() {
    let error = speeds(&Speeds::default(), &Frame::default()).expect_err("nothing to draw");
    assert_eq!(error, Error::Empty);
    assert!(error.to_string().ends_with("first."));
}

#[test]
fn hostile_names_are_only_names() {
    let figure = figure(&inputs::hostile());
    for svg in [
        figure.svg_for(Theme::Light),
        figure.svg_for(Theme::Dark),
        figure.for_screen(),
    ] {
        let document = Document::parse(&svg).expect("sound XML");
        for node in document.descendants().filter(|node| node.is_element()) {
            let tag = node.tag_name().name();
            assert!(
                [
                    "svg", "title", "desc", "style", "rect", "path", "circle", "text"
                ]
                .contains(&tag),
                "{tag}"
            );
            assert!(
                node.attributes()
                    .all(|a| !a.name().starts_with("on") && a.name() != "href")
            );
        }
        let words: String = document
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
            .filter_map(|node| node.text())
            .collect();
        assert!(words.contains("<img src=x onerror=alert(1)>"));
        assert!(
            !words
                .chars()
                .any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}'))
        );
    }
}

#[test]
fn a_model_named_like_a_colour_stays_as_it_is_in_every_theme() {
    let figure = figure(&inputs::hostile());
    for svg in [figure.svg_for(Theme::Dark), figure.for_screen()] {
        assert!(svg.contains(">#1F68C4</text>"));
        assert!(svg.contains("fill=&quot;#1F68C4&quot;"));
        assert!(!svg.contains("fill=\"#1F68C4\""));
    }
}

#[test]
fn on_screen_every_colour_is_a_property_of_the_page() {
    let svg = figure(&inputs::with_breakdown(inputs::far_off())).for_screen();
    let document = Document::parse(&svg).expect("sound XML");
    let mut seen = std::collections::HashSet::new();
    for node in document.descendants() {
        for name in ["fill", "stroke"] {
            match node.attribute(name) {
                None | Some("none") => {}
                Some(value) => {
                    assert!(
                        value.starts_with("var(--") && value.ends_with(')'),
                        "{value}"
                    );
                    seen.insert(value.to_owned());
                }
            }
        }
    }
    let all: std::collections::HashSet<_> = Role::ALL
        .iter()
        .map(|role| format!("var({})", role.css_name()))
        .collect();
    assert_eq!(seen, all);
    assert!(
        !svg.contains("<style") && !svg.contains("style="),
        "a strict CSP shows it"
    );
}

#[test]
fn a_theme_is_a_swap_of_colours_and_nothing_else() {
    let figure = figure(&inputs::quantizations());
    let mut dark = figure.svg_for(Theme::Light);
    for role in Role::ALL {
        let quoted = |theme| format!("=\"{}\"", role.colour(theme).hex());
        dark = dark.replace(&quoted(Theme::Light), &quoted(Theme::Dark));
    }
    assert_eq!(dark, figure.svg_for(Theme::Dark));
}

#[test]
fn equal_input_gives_equal_bytes() {
    let (a, b) = (
        figure(&inputs::three_models()),
        figure(&inputs::three_models()),
    );
    assert_eq!(a.svg_for(Theme::Light), b.svg_for(Theme::Light));
    let png = |f: &Figure| f.to_png(Theme::Dark, PngSize::Scale(1.0)).expect("a PNG");
    assert_eq!(png(&a), png(&b));
}

#[test]
fn a_reader_without_the_picture_gets_every_value() {
    let svg = figure(&inputs::quantizations()).svg_for(Theme::Light);
    let document = Document::parse(&svg).expect("sound XML");
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    assert_eq!(
        root.attribute("aria-label"),
        Some("Decode slows as the file grows; prefill does not follow size")
    );
    let text = |tag: &str| {
        let node = root.children().find(|node| node.tag_name().name() == tag);
        node.and_then(|node| node.text()).unwrap_or_default()
    };
    assert_eq!(
        text("title"),
        "Decode slows as the file grows; prefill does not follow size"
    );
    assert_eq!(text("desc").matches(" tok/s, 5 samples").count(), 8);
}

#[test]
fn a_saved_svg_carries_its_font_and_the_screen_does_not() {
    let figure = figure(&inputs::one_model());
    assert_eq!(
        figure.svg_for(Theme::Light).matches("@font-face").count(),
        2
    );
    assert!(!figure.for_screen().contains("@font-face"));
}

#[test]
fn a_png_has_the_size_asked_for_and_shows_the_figure() {
    let figure = figure(&inputs::quantizations());
    let (w, h) = (
        figure.width() + 2.0 * MARGIN,
        figure.height() + 2.0 * MARGIN,
    );
    for (size, width, height) in [
        (PngSize::Scale(1.0), w, h),
        (PngSize::Scale(2.0), 2.0 * w, 2.0 * h),
        (PngSize::Width(1_600), 1_600.0, 1_600.0 * h / w),
    ] {
        let png = figure.to_png(Theme::Light, size).expect("a PNG");
        let picture = Pixmap::decode_png(&png).expect("a PNG that decodes");
        assert_eq!(f64::from(picture.width()), width.round());
        assert_eq!(f64::from(picture.height()), height.round());
        let mut inks = [0usize; 3];
        for pixel in picture.pixels() {
            match (pixel.red(), pixel.green(), pixel.blue()) {
                (0x1f, 0x68, 0xc4) => inks[0] += 1,
                (0xd4, 0x61, 0x0f) => inks[1] += 1,
                (0x1a, 0x1b, 0x1d) => inks[2] += 1,
                _ => {}
            }
        }
        let edge = |x, y| {
            picture
                .pixel(x, y)
                .map(|p| (p.red(), p.green(), p.blue(), p.alpha()))
        };
        let (right, bottom) = (picture.width() - 1, picture.height() - 1);
        for corner in [
            edge(0, 0),
            edge(right, 0),
            edge(0, bottom),
            edge(right, bottom),
        ] {
            assert_eq!(
                corner,
                Some((255, 255, 255, 255)),
                "the ground reaches every edge"
            );
        }
        // Bars of both speeds and text in ink: without a font the last would be missing.
        assert!(
            inks[0] > 5_000 && inks[1] > 5_000 && inks[2] > 300,
            "{inks:?}"
        );
    }
}

#[test]
fn a_png_that_cannot_be_made_is_refused_with_a_sentence() {
    let figure = figure(&inputs::quantizations());
    for size in [
        PngSize::Width(0),
        PngSize::Width(LONGEST_SIDE + 1),
        PngSize::Width(12_000),
        PngSize::Scale(0.0),
        PngSize::Scale(-1.0),
        PngSize::Scale(f64::NAN),
        PngSize::Scale(1e9),
    ] {
        let error = figure
            .to_png(Theme::Light, size)
            .expect_err("too large or too small");
        assert!(matches!(error, Error::PngSize { .. }), "{size:?}: {error}");
        assert!(error.to_string().contains("choose another size"), "{error}");
    }
}

#[test]
fn a_pdf_holds_both_fonts() {
    let pdf = figure(&inputs::quantizations())
        .to_pdf(Theme::Light)
        .expect("a PDF");
    assert!(pdf.starts_with(b"%PDF-"));
    let has = |name: &[u8]| pdf.windows(name.len()).any(|window| window == name);
    assert!(has(b"Inter-Regular") && has(b"Inter-SemiBold") && has(b"FontFile"));
    assert!(has(b"ToUnicode"), "its text can be selected and searched");
}

#[test]
fn a_projector_gets_the_same_figure_larger() {
    let plain = figure(&inputs::quantizations());
    let frame = Frame {
        width: 870.0,
        height: None,
        scale: 1.5,
    };
    let large = speeds(&inputs::quantizations(), &frame).expect("it is drawn");
    assert_eq!(
        (large.width(), large.height()),
        (870.0, plain.height() * 1.5)
    );
    assert_eq!(large.data, plain.data, "boxes stay in the SVG's own units");
    assert!(
        large.for_screen().contains("width=\"870\"")
            && large.for_screen().contains("viewBox=\"0 0 580 664\"")
    );
}

#[test]
fn four_rows_fill_the_frame_of_the_design() {
    let figure = figure(&inputs::quantizations());
    assert_eq!((figure.width(), figure.height()), (580.0, 664.0));
}

#[test]
fn rows_move_to_fill_a_height_within_limits() {
    let height = |asked| {
        let frame = Frame {
            height: Some(asked),
            ..Frame::default()
        };
        speeds(&inputs::quantizations(), &frame)
            .expect("it is drawn")
            .height()
    };
    assert!((height(700.0) - 700.0).abs() < 3.0, "{}", height(700.0));
    assert!((height(630.0) - 630.0).abs() < 3.0, "{}", height(630.0));
    assert!(height(100.0) > 600.0, "rows keep their labels apart");
    assert!(height(5_000.0) < 800.0, "rows do not drift apart");
}

#[test]
fn a_frame_of_nonsense_still_shows_a_figure() {
    for (width, height, scale) in [
        (0.0, None, 1.0),
        (f64::NAN, Some(f64::NAN), f64::NAN),
        (-5.0, Some(-5.0), 0.0),
        (1e12, Some(1e12), 1e12),
    ] {
        let figure = speeds(
            &inputs::one_model(),
            &Frame {
                width,
                height,
                scale,
            },
        )
        .expect("it is drawn");
        assert!(figure.data.width >= Frame::LEAST_WIDTH);
        Document::parse(&figure.for_screen()).expect("sound XML");
    }
}

#[test]
fn measured_widths_hold_for_the_shaped_text() {
    // Labels are laid out by the font's advances; resvg shapes with kerning. Were the measure too
    // small, labels would run into each other.
    let (ink, ..) = picture::ink(&figure(&inputs::quantizations()).svg_for(Theme::Light));
    let subtitle = ink
        .iter()
        .find(|ink| {
            ink.text
                .as_deref()
                .is_some_and(|text| text.starts_with("SmolLM2 135M Instruct in"))
        })
        .expect("the subtitle");
    let drawn = subtitle.area.right - subtitle.area.left;
    // The same line set by another program (WebKit with the same font): 560 px.
    assert!((550.0..=565.0).contains(&drawn), "{drawn}");
}

#[test]
fn the_hostile_name_is_hostile() {
    assert!(HOSTILE.contains('\0') && HOSTILE.contains('\u{202e}') && HOSTILE.contains('<'));
}
