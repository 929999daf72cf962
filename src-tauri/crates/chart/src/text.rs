//! Text: the bundled font, how wide it runs, and what may stand in a figure.

use std::sync::OnceLock;

use ab_glyph::{Font as _, FontRef};
use unicode_segmentation::UnicodeSegmentation as _;

/// The family of every text.
pub const FAMILY: &str = "Inter";
/// Inter Regular, the file that draws exports and measures text.
pub const REGULAR: &[u8] = include_bytes!("../fonts/Inter-Regular.ttf");
/// Inter SemiBold.
pub const SEMIBOLD: &[u8] = include_bytes!("../fonts/Inter-SemiBold.ttf");
/// Latin letters and signs of both, for a saved SVG to carry; `fonts/README.md` says how they are made.
pub const LATIN: [(u16, &[u8]); 2] = [
    (400, include_bytes!("../fonts/Inter-Regular-latin.woff2")),
    (600, include_bytes!("../fonts/Inter-SemiBold-latin.woff2")),
];

/// A figure uses two weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    /// 400: predicted numbers, notes, axes.
    Regular,
    /// 600: titles, names, measured numbers.
    SemiBold,
}

fn font(weight: Weight) -> &'static FontRef<'static> {
    static FONTS: OnceLock<[FontRef<'static>; 2]> = OnceLock::new();
    let [regular, semibold] = FONTS.get_or_init(|| {
        [REGULAR, SEMIBOLD]
            .map(|bytes| FontRef::try_from_slice(bytes).expect("BUG: the bundled font can be read"))
    });
    match weight {
        Weight::Regular => regular,
        Weight::SemiBold => semibold,
    }
}

/// Letter spacing in em: titles are set tighter, as large Inter wants it.
pub fn tracking(size: f64) -> f64 {
    if size >= 20.0 { -0.014 } else { 0.0 }
}

/// Width of a text in px at a size in px, from the advances of the bundled font.
///
/// Kerning is left out, so the drawn text is this wide or slightly narrower. Characters that
/// the font lacks count 1.25 em, the widest that a fallback font draws.
pub fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let font = font(weight);
    let per_em = f64::from(font.units_per_em().unwrap_or(2048.0));
    text.chars()
        .map(|c| {
            let glyph = font.glyph_id(c);
            let advance = if glyph.0 == 0 {
                1.25
            } else {
                f64::from(font.h_advance_unscaled(glyph)) / per_em
            };
            (advance + tracking(size)) * size
        })
        .sum()
}

/// A text from outside, made fit for a figure: one line, no invisible characters.
///
/// Control characters (XML forbids most of them) and marks that turn the writing direction of
/// what follows are removed, line breaks and tabs become spaces, characters that Unicode sets
/// aside (U+FFFF) become U+FFFD. Of accents stacked on one letter two stay, so that they do not
/// climb into the line above; accents without a letter go. What is left may be empty.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut accents = 0;
    for c in text.chars() {
        accents = if is_accent(c) { accents + 1 } else { 0 };
        match c {
            _ if accents > MOST_ACCENTS => {}
            _ if accents > 0 && (out.is_empty() || out.ends_with(' ')) => {}
            '\u{a0}' => out.push(c),
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if c.is_control() => {}
            // Soft hyphens, direction marks, embeddings and isolates, zero-width spaces, the byte
            // order mark.
            '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {}
            c if is_noncharacter(c) => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out.trim().to_owned()
}

/// [`clean`], where something is left.
pub fn filled(text: &str) -> Option<String> {
    Some(clean(text)).filter(|text| !text.is_empty())
}

/// Accents that stay on one letter.
const MOST_ACCENTS: usize = 2;

/// Whether it is one of the accents that stack on any letter.
fn is_accent(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// The text, or as much of its beginning and end as fits `most` px, with an ellipsis between.
///
/// Names of models differ at both ends: the family is in front, the quantization behind.
pub fn shorten(text: &str, most: f64, size: f64, weight: Weight) -> String {
    if width(text, size, weight) <= most {
        return text.to_owned();
    }
    let letters: Vec<&str> = text.graphemes(true).collect();
    let (mut front, mut back) = (0, 0);
    let join = |front: usize, back: usize| {
        format!(
            "{}…{}",
            letters[..front].concat().trim_end(),
            letters[letters.len() - back..].concat().trim_start()
        )
    };
    while front + back < letters.len() {
        let (next_front, next_back) = if front <= back {
            (front + 1, back)
        } else {
            (front, back + 1)
        };
        if width(&join(next_front, next_back), size, weight) > most {
            break;
        }
        (front, back) = (next_front, next_back);
    }
    join(front, back)
}

/// Lines of at most `most` px, broken at spaces; the last allowed line is shortened to fit.
pub fn wrap(text: &str, most: f64, size: f64, weight: Weight, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while words.peek().is_some() && out.len() < lines {
        let mut line = String::new();
        if out.len() + 1 == lines {
            line = words.by_ref().collect::<Vec<_>>().join(" ");
        }
        while let Some(word) = words.peek() {
            let longer = if line.is_empty() {
                (*word).to_owned()
            } else {
                format!("{line} {word}")
            };
            if !line.is_empty() && width(&longer, size, weight) > most {
                break;
            }
            line = longer;
            words.next();
        }
        out.push(shorten(&line, most, size, weight));
    }
    out
}

/// A title on one line where it fits well, else on two of like length, broken after a clause
/// where it has two.
pub fn title_lines(text: &str, most: f64, size: f64, weight: Weight) -> Vec<String> {
    let fits = |line: &str, share: f64| width(line, size, weight) <= most * share;
    if fits(text, 0.75) {
        return vec![text.to_owned()];
    }
    if let Some((first, second)) = text.split_once("; ") {
        let first = format!("{first};");
        if fits(&first, 1.0) && fits(second, 1.0) {
            return vec![first, second.to_owned()];
        }
    }
    if fits(text, 1.0) {
        return vec![text.to_owned()];
    }
    text.match_indices(' ')
        .map(|(i, _)| (&text[..i], &text[i + 1..]))
        .filter(|(first, second)| fits(first, 1.0) && fits(second, 1.0))
        .min_by(|a, b| {
            let widest = |(first, second): &(&str, &str)| {
                width(first, size, weight).max(width(second, size, weight))
            };
            widest(a).total_cmp(&widest(b))
        })
        .map_or_else(
            || wrap(text, most, size, weight, 2),
            |(first, second)| vec![first.to_owned(), second.to_owned()],
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_follows_the_advances_of_the_font() {
        // Read off the font's hmtx table: 0 = 1292, 1 = 833 of 2048 units.
        let by_hand = (1292.0 + 833.0) / 2048.0 * 12.0;
        assert!((width("01", 12.0, Weight::Regular) - by_hand).abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_seen_or_turns_the_line_around_is_removed() {
        assert_eq!(clean("a\0b\u{1b}c\u{7f}d\u{85}e"), "abcd e");
        assert_eq!(clean(" two\n\tlines\r\n"), "two lines");
        assert_eq!(clean("\u{202e}fuug.ledom\u{202c}"), "fuug.ledom");
        assert_eq!(clean("bad \u{ffff}f byte"), "bad \u{fffd}f byte");
        assert_eq!(clean("\u{200f}\u{feff}"), "");
    }

    #[test]
    fn accents_do_not_pile_up() {
        assert_eq!(
            clean("e\u{301}\u{302}\u{303}\u{304}a\u{301}"),
            "e\u{301}\u{302}a\u{301}"
        );
        assert_eq!(clean("\u{31b}a \u{301}b"), "a b");
    }

    #[test]
    fn joined_emoji_and_accents_stay_whole() {
        assert_eq!(clean("👩\u{200d}🚀"), "👩\u{200d}🚀");
        let short = shorten(&"e\u{301}".repeat(60), 90.0, 12.0, Weight::Regular);
        assert!(!short.contains("…\u{301}"), "{short}");
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_its_end() {
        let name = "Meta-Llama-3.1-70B-Instruct-abliterated-i1-Q4_K_M";
        let short = shorten(name, 160.0, 15.0, Weight::SemiBold);
        assert!(
            short.starts_with("Meta") && short.ends_with("K_M"),
            "{short}"
        );
        assert!(width(&short, 15.0, Weight::SemiBold) <= 160.0);
    }

    #[test]
    fn a_name_without_room_is_an_ellipsis() {
        assert_eq!(shorten("anything", 3.0, 12.0, Weight::Regular), "…");
    }

    #[test]
    fn lines_break_at_spaces_and_the_last_is_shortened() {
        let text = "one two three four five six seven eight nine ten";
        let lines = wrap(text, 80.0, 12.0, Weight::Regular, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("one two"));
        assert!(lines[1].contains('…'));
        for line in &lines {
            assert!(width(line, 12.0, Weight::Regular) <= 80.0, "{line}");
        }
        assert_eq!(wrap("", 80.0, 12.0, Weight::Regular, 2), [""]);
    }

    #[test]
    fn a_title_breaks_after_its_clause() {
        let lines = title_lines(
            "Decode slows as the file grows; prefill does not follow size",
            580.0,
            20.0,
            Weight::SemiBold,
        );
        assert_eq!(
            lines,
            [
                "Decode slows as the file grows;",
                "prefill does not follow size"
            ]
        );
    }

    #[test]
    fn a_title_never_takes_more_than_two_lines() {
        let lines = title_lines(&"word ".repeat(80), 580.0, 20.0, Weight::SemiBold);
        assert_eq!(lines.len(), 2);
    }
}
