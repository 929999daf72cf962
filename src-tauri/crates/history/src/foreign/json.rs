//! JSON and JSON lines, also between the lines that a program prints around them.

use serde_json::{Map, Value};

use super::Found;
use super::fields::Fields;
use crate::import::Form;

/// An object in the text.
struct Object<'t> {
    start: usize,
    line: usize,
    text: &'t str,
    /// Its end is there.
    whole: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Bench,
    Batched,
}

/// `None` where no object looks like a row.
pub(super) fn read(text: &str) -> Option<(Form, Found)> {
    let mut found = Found::default();
    let mut first: Option<(usize, Program)> = None;
    let (mut at, mut line) = (0, 1);
    while let Some(object) = next_object(text, at, line) {
        line = object.line;
        let Some(program) = program_of(object.text) else {
            // Something else; rows may lie within.
            at = object.start + 1;
            continue;
        };
        at = object.start + object.text.len();
        line += object.text.matches('\n').count();
        let (_, expected) = *first.get_or_insert((object.start, program));
        if program != expected {
            found.reject(object.line, "it is of another program than the rows before");
            continue;
        }
        match parsed(&object) {
            Ok(map) => found.rows.push(Fields::new(object.line, 0, map)),
            Err(reason) => found.reject(object.line, reason),
        }
    }
    let (start, program) = first?;
    let form = match program {
        Program::Batched => Form::Batched,
        Program::Bench if text[..start].trim_end().ends_with('[') => Form::Json,
        Program::Bench => Form::JsonLines,
    };
    Some((form, found))
}

/// Whose row it is, told by names; `None` when it is none or only holds some.
fn program_of(object: &str) -> Option<Program> {
    let inner = object.get(1..).unwrap_or_default();
    if inner.contains('{') && inner.contains("[{") || object.contains("\"results\"") {
        return None;
    }
    let has = |name: &str| object.contains(&format!("\"{name}\""));
    if has("n_kv_max") || (has("pl") && has("pp") && has("tg")) {
        return Some(Program::Batched);
    }
    (has("build_commit") || has("n_prompt") || has("n_gen")).then_some(Program::Bench)
}

/// The next object that begins at or after `from`, which is on `line`: a brace and then a name.
fn next_object(text: &str, from: usize, line: usize) -> Option<Object<'_>> {
    let bytes = text.as_bytes();
    let starts_object = |at: usize| {
        let mut rest = bytes[at + 1..]
            .iter()
            .skip_while(|byte| byte.is_ascii_whitespace());
        rest.next() == Some(&b'"')
    };
    let start = (from..bytes.len()).find(|at| bytes[*at] == b'{' && starts_object(*at))?;
    let (end, whole) = end_of(bytes, start);
    Some(Object {
        start,
        line: line + text[from..start].matches('\n').count(),
        text: &text[start..end],
        whole,
    })
}

/// Where the object ends, or where it turns out that its end is missing.
fn end_of(bytes: &[u8], start: usize) -> (usize, bool) {
    let on_one_line = bytes.get(start + 1) != Some(&b'\n') && bytes.get(start + 1) != Some(&b'\r');
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    let mut before = b' ';
    for (at, &byte) in bytes.iter().enumerate().skip(start) {
        if byte == b'\n' && (in_string || on_one_line && bytes.get(at + 1) == Some(&b'{')) {
            return (at, false);
        }
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            // A value comes after its name; without one, another object begins.
            b'{' if open.last() == Some(&b'{') && before != b':' => return (at, false),
            b'{' | b'[' => open.push(byte),
            b'}' | b']' => {
                open.pop();
                if open.is_empty() {
                    return (at + 1, true);
                }
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    (bytes.len(), false)
}

fn parsed(object: &Object<'_>) -> Result<Map<String, Value>, String> {
    if !object.whole {
        return Err("it breaks off before its end".into());
    }
    let error = match serde_json::from_str(object.text) {
        Ok(map) => return Ok(map),
        Err(error) => error,
    };
    // nan and inf are no JSON; quoted, they are refused by the name of their field.
    if let Ok(map) = serde_json::from_str(&with_words_quoted(object.text)) {
        return Ok(map);
    }
    // Warnings may stand between the lines of an object.
    let lines: Vec<_> = object
        .text
        .lines()
        .filter(|line| line.trim_start().starts_with(['"', '{', '}', ']']))
        .collect();
    if let Ok(map) = serde_json::from_str(&lines.join("\n")) {
        return Ok(map);
    }
    if has_decimal_commas(object.text) {
        return Err("its numbers have decimal commas, which JSON takes apart; write them with a decimal point".into());
    }
    Err(format!(
        "it is no JSON from line {} on: {error}",
        object.line + error.line() - 1
    ))
}

/// The text with bare words other than JSON's own in quotes.
fn with_words_quoted(object: &str) -> String {
    let mut quoted = String::with_capacity(object.len());
    let mut rest = object;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            _ if first.is_ascii_alphabetic()
                || rest.starts_with("-n")
                || rest.starts_with("-i") =>
            {
                let length = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && !"-()#.".contains(c))
                    .unwrap_or(rest.len());
                let word = &rest[..length];
                if !["true", "false", "null"].contains(&word) {
                    quoted.push('"');
                    quoted.push_str(word);
                    quoted.push('"');
                    rest = &rest[length..];
                    continue;
                }
                length
            }
            // The exponent of a number is no word.
            _ if first.is_ascii_digit() => rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
                .unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        quoted.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    quoted
}

/// Bytes of the string that `text` begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn has_decimal_commas(object: &str) -> bool {
    object.split(':').skip(1).any(|value| {
        let value = value.trim_start();
        let whole = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        whole.len() < value.len()
            && whole
                .strip_prefix(',')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> (Vec<usize>, Vec<(usize, String)>) {
        let (_, found) = read(text).unwrap();
        let rows = found.rows.iter().map(|row| row.line).collect();
        let rejected = found.rejected.into_iter();
        (
            rows,
            rejected
                .map(|part| (part.line.unwrap(), part.reason))
                .collect(),
        )
    }

    #[test]
    fn braces_and_quotes_within_strings_do_not_end_an_object() {
        let (rows, rejected) =
            lines("noise {x} [1]\n{\"n_prompt\": 1, \"model_filename\": \"a}\\\"{\\\\\"}\n");
        assert_eq!((rows, rejected.len()), (vec![2], 0));
    }

    #[test]
    fn a_line_that_breaks_off_does_not_take_the_next_with_it() {
        let row = "{\"n_prompt\": 1, \"test_time\": \"now\"}";
        for cut in 2..row.len() {
            if !row.is_char_boundary(cut) || !row[..cut].contains("n_prompt\"") {
                continue;
            }
            let (rows, rejected) =
                lines(&format!("{row}\n{}\n{row}\n{}", &row[..cut], &row[..cut]));
            assert_eq!(rows, [1, 3], "{}", &row[..cut]);
            assert_eq!(
                rejected.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
                [2, 4]
            );
        }
    }

    #[test]
    fn words_that_are_no_json_are_quoted_and_numbers_are_left_alone() {
        assert_eq!(
            with_words_quoted(
                "{\"nan\": nan, \"b\": -inf, \"c\": 1.5e+06, \"d\": [true, -nan(ind)]}"
            ),
            "{\"nan\": \"nan\", \"b\": \"-inf\", \"c\": 1.5e+06, \"d\": [true, \"-nan(ind)\"]}"
        );
    }
}
