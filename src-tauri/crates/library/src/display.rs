//! Names from disk and from metadata, made safe to show.
//!
//! A file name may hold anything but a slash and a NUL: escape sequences that repaint a
//! terminal, line breaks that forge a row, marks that turn the reading direction round so that
//! `gpj.fugg` reads as something else. What such a character *does* is taken away; that it is
//! there stays visible. The raw name is kept beside it, since it alone opens the file.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

/// `text` with every character that acts instead of showing made visible.
///
/// Control characters become their pictures (`␊` for a line feed), characters that change the
/// reading direction or have no width become `<U+202E>`. Markup is left as it is: it is text,
/// and whoever puts it into a page has to treat it as text.
pub fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x1f' => safe.push(picture(c)),
            '\x7f' => safe.push('\u{2421}'),
            _ if acts(c) => {
                // Writing to a String cannot fail.
                let _ = write!(safe, "<U+{:04X}>", u32::from(c));
            }
            _ => safe.push(c),
        }
    }
    safe
}

/// A file name as text: bytes that are no Unicode become `\u{fffd}`, the rest as [`shown`].
pub fn shown_name(name: &OsStr) -> String {
    shown(&name.to_string_lossy())
}

/// A whole path as text, as [`shown_name`].
pub fn shown_path(path: &Path) -> String {
    shown_name(path.as_os_str())
}

/// A size of a file in powers of 10: `145 MB`, `4.7 GB`; from three digits on without a fraction.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // What would be shown as 1000 is 1 of the next.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    format!("{value:.digits$}\u{a0}{}", UNITS[unit])
}

/// `text` in at most `most` characters, its middle left out: names of models differ at both ends.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let head = kept.div_ceil(2);
    let tail = kept - head;
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    short.extend(text.chars().skip(length - tail));
    short
}

/// The control picture of a C0 control character.
fn picture(control: char) -> char {
    char::from_u32(0x2400 + u32::from(control)).unwrap_or('\u{fffd}')
}

/// Whether `c` does something to the text around it, or cannot be seen at all.
///
/// The zero-width joiners are not among them: Persian and many emoji need them.
fn acts(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'         // C1 controls; some terminals obey them
        | '\u{ad}'                  // soft hyphen
        | '\u{61c}'                 // Arabic letter mark
        | '\u{180e}'                // Mongolian vowel separator
        | '\u{200b}'                // zero width space
        | '\u{200e}' | '\u{200f}'   // left-to-right and right-to-left mark
        | '\u{2028}' | '\u{2029}'   // line and paragraph separator
        | '\u{202a}'..='\u{202e}'   // embeddings and overrides
        | '\u{2060}'..='\u{206f}'   // word joiner, invisible operators, isolates
        | '\u{feff}'                // byte order mark
        | '\u{fff9}'..='\u{fffb}'   // interlinear annotation
        | '\u{e0000}'..='\u{e007f}' // tags
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_name_stays_as_it_is() {
        for name in [
            "Qwen3-8B-Q4_K_M.gguf",
            "Müller 模型 🦙.gguf",
            "<img src=x onerror=alert(1)>",
        ] {
            assert_eq!(shown(name), name);
        }
    }

    #[test]
    fn a_line_break_cannot_forge_a_second_row() {
        assert_eq!(shown("a\nb\r\tc"), "a␊b␍␉c");
    }

    #[test]
    fn an_escape_sequence_cannot_repaint_the_terminal() {
        assert_eq!(shown("\x1b[2Jx\x7f\u{9b}31m"), "␛[2Jx␡<U+009B>31m");
    }

    #[test]
    fn a_right_to_left_override_is_seen_and_does_nothing() {
        assert_eq!(shown("a\u{202e}fugg.b\u{2066}"), "a<U+202E>fugg.b<U+2066>");
    }

    #[test]
    fn persian_and_emoji_keep_their_joiners() {
        assert_eq!(
            shown("می\u{200c}خواهم 👩\u{200d}💻"),
            "می\u{200c}خواهم 👩\u{200d}💻"
        );
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_unicode_show_as_replacement_signs() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(
            shown_name(OsStr::from_bytes(b"m\xff\xfe.gguf")),
            "m\u{fffd}\u{fffd}.gguf"
        );
    }

    #[test]
    fn a_long_name_loses_its_middle_and_not_its_quantization() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijk", 10), "abcde…hijk");
        assert_eq!(shortened("ääääääääää", 4), "ää…ä");
        assert_eq!(shortened("abc", 0), "…");
    }
}
