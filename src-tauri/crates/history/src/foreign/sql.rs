//! SQL, as text. Nothing of it is ever run.

use super::Found;
use super::fields::Fields;
use crate::import::Form;

/// The table's names: today's, and the one until 2025.
const TABLES: [&str; 2] = ["llama_bench", "test"];

/// A statement with the line it begins on.
struct Statement<'t> {
    line: usize,
    text: &'t str,
}

/// `None` where the text has no statement of llama-bench's.
pub(super) fn read(text: &str) -> Option<(Form, Found)> {
    let mut found = Found::default();
    let mut declared = Vec::new();
    let mut is_ours = false;
    for Statement { line, text } in statements(text) {
        if let Some(rest) = after(text, "CREATE TABLE") {
            let rest = after(rest, "IF NOT EXISTS").unwrap_or(rest);
            if let Some((name, rest)) = table(rest) {
                is_ours |= TABLES.contains(&name.as_str());
                declared = names(rest).map(|(names, _)| names).unwrap_or_default();
            }
            continue;
        }
        let rest = after(text, "INSERT INTO").unwrap_or_default();
        match rows(rest, &declared) {
            Ok(rows) => {
                is_ours = true;
                let rows = rows.into_iter().map(|cells| {
                    Fields::of_text(
                        line,
                        0,
                        cells
                            .iter()
                            .map(|(name, value)| (name.as_str(), value.clone())),
                    )
                });
                found.rows.extend(rows);
            }
            Err(reason) => found.reject(line, reason),
        }
    }
    is_ours.then_some((Form::Sql, found))
}

/// Statements that create or fill a table. Each begins on a line of its own, and what one breaks
/// does not reach the next.
fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut starts = Vec::new();
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let begins = |words| after(line, words).is_some();
        if begins("CREATE TABLE") || begins("INSERT INTO") {
            starts.push((number + 1, at));
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(_, at)| *at).chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|((line, start), end)| Statement {
            line: *line,
            text: &text[*start..end],
        })
        .collect()
}

/// What stands after these words, whatever their case.
fn after<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    let text = text.trim_start();
    let head = text.get(..words.len())?;
    head.eq_ignore_ascii_case(words)
        .then(|| &text[words.len()..])
}

/// A table's name and what stands after it.
fn table(text: &str) -> Option<(String, &str)> {
    let end = text
        .find('(')
        .into_iter()
        .chain(text.to_ascii_uppercase().find("VALUES"))
        .min()?;
    Some((bare(&text[..end]), &text[end..]))
}

/// A name without the quotes that SQL allows around it.
fn bare(name: &str) -> String {
    let quotes: &[char] = &['"', '`', '[', ']', '\''];
    name.trim().trim_matches(quotes).to_owned()
}

/// The names of a list in brackets, each the first word of its entry, and what stands after it.
fn names(text: &str) -> Option<(Vec<String>, &str)> {
    let (list, rest) = text.trim_start().strip_prefix('(')?.split_once(')')?;
    let names = list
        .split(',')
        .map(|entry| bare(entry.split_whitespace().next().unwrap_or_default()))
        .collect();
    Some((names, rest))
}

type Cells = Vec<(String, String)>;

fn rows(statement: &str, declared: &[String]) -> Result<Vec<Cells>, String> {
    let (name, rest) = table(statement).ok_or("it breaks off before its values")?;
    if !TABLES.contains(&name.as_str()) {
        return Err(format!("{name} is no table of llama-bench"));
    }
    let (columns, rest) = match names(rest) {
        Some((columns, rest)) => (columns, rest),
        None if declared.is_empty() => {
            return Err("it names no columns, and no CREATE TABLE before it does".into());
        }
        None => (declared.to_vec(), rest),
    };
    let values = after(rest, "VALUES").ok_or("it breaks off before its values")?;
    // llama-bench does not escape apostrophes; others do. Only one way gives a value a column.
    let tuples = [Quotes::Escaped, Quotes::AsTheyAre]
        .into_iter()
        .filter_map(|quotes| tuples(values, quotes))
        .find(|tuples| tuples.iter().all(|tuple| tuple.len() == columns.len()))
        .ok_or_else(|| {
            format!("its values cannot be told apart: {} are named, and a quote in one of them or a missing end hides where they stop", columns.len())
        })?;
    Ok(tuples
        .into_iter()
        .map(|tuple| columns.iter().cloned().zip(tuple).collect())
        .collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// A quote within a value is written twice.
    Escaped,
    /// A quote ends a value only where the next value or the end of the list follows.
    AsTheyAre,
}

/// The lists of values up to the end of the statement; NULL is an empty text. `None` where it ends
/// before they do.
fn tuples(text: &str, quotes: Quotes) -> Option<Vec<Vec<String>>> {
    let mut tuples = Vec::new();
    let mut rest = text.trim_start();
    loop {
        rest = rest.strip_prefix('(')?;
        let mut tuple = Vec::new();
        loop {
            let (value, after) = value(rest.trim_start(), quotes)?;
            tuple.push(value);
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        rest = rest.strip_prefix(')')?.trim_start();
        tuples.push(tuple);
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => return rest.starts_with(';').then_some(tuples),
        }
    }
}

/// A value and what stands after it.
fn value(text: &str, quotes: Quotes) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let end = text.find([',', ')'])?;
        let word = text[..end].trim();
        let value = if word.eq_ignore_ascii_case("NULL") {
            ""
        } else {
            word
        };
        return Some((value.to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('\'')?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        let ends = match quotes {
            Quotes::Escaped => !rest.starts_with('\''),
            Quotes::AsTheyAre => ends_a_value(rest),
        };
        if ends {
            return Some((value, rest));
        }
        value.push('\'');
        if quotes == Quotes::Escaped {
            rest = &rest[1..];
        }
    }
}

/// Whether what follows a quote is the next value or the end of the list.
fn ends_a_value(rest: &str) -> bool {
    let rest = rest.trim_start();
    if let Some(next) = rest.strip_prefix(',') {
        let next = next.trim_start();
        return next.starts_with(['\'', '-', 'N', 'n'])
            || next.starts_with(|c: char| c.is_ascii_digit());
    }
    rest.strip_prefix(')')
        .is_some_and(|next| next.trim_start().starts_with([';', ',']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(insert: &str) -> Result<Vec<String>, String> {
        let rows = rows(after(insert, "INSERT INTO").unwrap(), &[])?;
        Ok(rows[0].iter().map(|(_, value)| value.clone()).collect())
    }

    #[test]
    fn apostrophes_are_read_escaped_and_as_they_are() {
        for file in ["it''s.gguf", "it's.gguf"] {
            let insert = format!("INSERT INTO test (a, b, c) VALUES ('1', '{file}', '');");
            assert_eq!(cells(&insert).unwrap(), ["1", "it's.gguf", ""]);
        }
    }

    #[test]
    fn a_path_that_looks_like_statements_is_a_path_or_is_refused() {
        let escaped =
            "INSERT INTO llama_bench (a, b) VALUES ('x''); DROP TABLE llama_bench; --', '2');";
        assert_eq!(
            cells(escaped).unwrap(),
            ["x'); DROP TABLE llama_bench; --", "2"]
        );
        let raw = "INSERT INTO llama_bench (a, b) VALUES ('x'); DROP TABLE llama_bench; --', '2');";
        assert!(cells(raw).unwrap_err().contains("cannot be told apart"));
    }

    #[test]
    fn numbers_nulls_and_several_rows_are_read() {
        let text = "CREATE TABLE test (\n  a INTEGER,\n  b TEXT\n);\nINSERT INTO \"test\" VALUES (1, NULL), (-2, 'x');\n";
        let (_, found) = read(text).unwrap();
        let said: Vec<_> = found.rows.iter().map(Fields::said).collect();
        assert_eq!(said, ["a=1\n", "a=-2\nb=x\n"]);
        assert!(found.rows.iter().all(|row| row.line == 5));
    }
}
