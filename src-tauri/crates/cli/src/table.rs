//! Plain tables for a terminal.

use std::io::{self, Write};

/// Rows under headings; the first column is text, numbers stand to the right.
pub struct Table {
    headings: Vec<&'static str>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings; those that begin with `>` stand to the right.
    pub fn new(headings: &[&'static str]) -> Self {
        Self {
            right: headings.iter().map(|text| text.starts_with('>')).collect(),
            headings: headings
                .iter()
                .map(|text| text.trim_start_matches('>'))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; as many cells as there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes it, columns two spaces apart.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in self.lines() {
            writeln!(out, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }

    /// Writes it in Markdown.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.lines().into_iter();
        let Some(headings) = lines.next() else {
            return Ok(());
        };
        writeln!(out, "| {} |", headings.join(" | "))?;
        let rules: Vec<_> = headings
            .iter()
            .zip(&self.right)
            .map(|(heading, right)| {
                let dashes = "-".repeat(width(heading).saturating_sub(1).max(2));
                format!("{dashes}{}", if *right { ':' } else { '-' })
            })
            .collect();
        writeln!(out, "| {} |", rules.join(" | "))?;
        for line in lines {
            writeln!(out, "| {} |", line.join(" | "))?;
        }
        Ok(())
    }

    /// Headings and rows, every cell as wide as its column.
    fn lines(&self) -> Vec<Vec<String>> {
        let headings: Vec<String> = self.headings.iter().map(|text| (*text).into()).collect();
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .chain(headings.get(column))
                .map(|cell| width(cell))
                .max()
        };
        let widths: Vec<usize> = (0..headings.len())
            .map(|column| widest(column).unwrap_or(0))
            .collect();
        let wide = |line: &Vec<String>| {
            line.iter()
                .enumerate()
                .map(|(column, cell)| {
                    let missing = " ".repeat(widths[column].saturating_sub(width(cell)));
                    match self.right[column] {
                        true => format!("{missing}{cell}"),
                        false => format!("{cell}{missing}"),
                    }
                })
                .collect()
        };
        [&headings]
            .into_iter()
            .chain(&self.rows)
            .map(wide)
            .collect()
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["name", ">size"]);
        table.row(vec!["a".into(), "1".into()]);
        table.row(vec!["größer".into(), "1000".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name    size\na          1\ngrößer  1000\n"
        );
        let mut out = Vec::new();
        table.write_markdown(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "| name   | size |\n| ------ | ---: |\n| a      |    1 |\n| größer | 1000 |\n"
        );
    }
}
