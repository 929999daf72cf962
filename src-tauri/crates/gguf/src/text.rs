//! Bytes of a file made fit for a sentence.

use std::borrow::Cow;
use std::path::Path;

/// Longest name shown; what is longer ends with "…".
const SHOWN: usize = 80;

/// Text as its bytes allow: what is no UTF-8 becomes U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A name for one line: no control characters (they could rewrite a terminal), at most 80 characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == SHOWN {
            line.pop();
            line.push('…');
            break;
        }
        line.push(if character.is_control() {
            '\u{fffd}'
        } else {
            character
        });
    }
    line
}

/// A key or a tensor's name for a sentence.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", one_line(&lossy(bytes)))
}

/// A path for a sentence: whole, but on one line; an empty one as "".
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "\"\"".to_owned();
    }
    path.to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_to_eighty_characters() {
        let shown = one_line(&"é".repeat(4000));
        assert_eq!(shown.chars().count(), SHOWN);
        assert!(shown.ends_with('…'));
        assert_eq!(one_line(&"x".repeat(SHOWN)), "x".repeat(SHOWN), "80 fit");
    }

    #[test]
    fn control_characters_cannot_leave_the_line() {
        assert_eq!(one_line("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(quoted(b"\xff.key"), "\"\u{fffd}.key\"");
        assert_eq!(shown(Path::new("")), "\"\"");
        assert_eq!(shown(Path::new("a\nb.gguf")), "a\u{fffd}b.gguf");
    }
}
