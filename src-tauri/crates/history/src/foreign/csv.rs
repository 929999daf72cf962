//! CSV: a header that names the fields, and a line a row.

use super::Found;
use super::fields::Fields;
use crate::import::Form;

/// Between values: as llama-bench writes it, and as spreadsheets do in other countries.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

struct Header {
    separator: char,
    names: Vec<String>,
}

/// `None` where no line names llama-bench's fields.
pub(super) fn read(text: &str) -> Option<(Form, Found)> {
    let mut found = Found::default();
    let mut header: Option<Header> = None;
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        if let Some(named) = header_of(line) {
            header = Some(named);
            continue;
        }
        let Some(Header { separator, names }) = &header else {
            continue;
        };
        let values = split(line, *separator);
        let count = values.as_ref().map_or(0, Vec::len);
        match values {
            Some(values) if count == names.len() => {
                let cells = names.iter().map(String::as_str).zip(values);
                found.rows.push(Fields::of_text(line_number, 0, cells));
            }
            // A warning of the program, and not a row that broke.
            _ if !line.starts_with('"') && count * 2 < names.len() => {}
            None => found.reject(line_number, "it breaks off before its end"),
            Some(_) => {
                let reason = format!(
                    "it has {count} values, and the header names {}",
                    names.len()
                );
                found.reject(line_number, reason);
            }
        }
    }
    header.map(|_| (Form::Csv, found))
}

fn header_of(line: &str) -> Option<Header> {
    SEPARATORS.into_iter().find_map(|separator| {
        let names = split(line, separator)?;
        let names: Vec<_> = names.iter().map(|name| name.trim().to_owned()).collect();
        let has = |name: &str| names.iter().any(|other| other == name);
        (has("n_prompt") && has("n_gen") && (has("avg_ts") || has("avg_ns")))
            .then_some(Header { separator, names })
    })
}

/// The values of a line; `None` where a quote is not closed.
fn split(line: &str, separator: char) -> Option<Vec<String>> {
    let mut values = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let value = values.last_mut()?;
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                value.push('"');
            }
            '"' => quoted = !quoted,
            _ if letter == separator && !quoted => values.push(String::new()),
            _ => value.push(letter),
        }
    }
    (!quoted).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_separators_within_a_value_are_part_of_it() {
        assert_eq!(
            split(r#""a ""b"", c",d,""#, ','),
            None,
            "a quote that is not closed"
        );
        assert_eq!(
            split(r#""a ""b"", c",d,"#, ',').unwrap(),
            ["a \"b\", c", "d", ""]
        );
    }

    #[test]
    fn a_broken_row_is_named_and_a_warning_is_not() {
        let text = "loading\nn_prompt,n_gen,avg_ts\n\"512\",\"0\",\"1.5\"\nwarning: slow\n\"0\",\"128\"\n\"0\",\"12";
        let (_, found) = read(text).unwrap();
        assert_eq!(
            found.rows.iter().map(|row| row.line).collect::<Vec<_>>(),
            [3]
        );
        let rejected: Vec<_> = found
            .rejected
            .iter()
            .map(|part| part.line.unwrap())
            .collect();
        assert_eq!(rejected, [5, 6]);
    }
}
