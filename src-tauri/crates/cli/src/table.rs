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
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = self
            .headings
            .iter()
            .enumerate()
            .map(|(column, heading)| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells
                    .map(|cell| width(cell))
                    .chain([width(heading)])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (column, cell) in cells.enumerate() {
                let missing = " ".repeat(widths[column].saturating_sub(width(cell)));
                if self.right[column] {
                    text += &format!("{missing}{cell}  ");
                } else {
                    text += &format!("{cell}{missing}  ");
                }
            }
            writeln!(out, "{}", text.trim_end())
        };
        line(&mut self.headings.iter().copied())?;
        for row in &self.rows {
            line(&mut row.iter().map(String::as_str))?;
        }
        Ok(())
    }
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
    }
}
