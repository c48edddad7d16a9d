//! Formats a table for a terminal: columns as narrow as possible, numbers right-aligned.

use onrush_text::escape_controls;

use super::super::grid::{Cell, Grid};

/// Maximum width of a column, in characters; wider cells are not aligned.
const WIDTH_MAX: usize = 1_000;

/// The table as lines of text, headings first.
pub fn text(grid: &Grid) -> String {
    let mut lines = vec![grid.heads.iter().map(|head| escape_controls(&head.heading)).collect::<Vec<String>>()];
    lines.extend(grid.rows.iter().map(|row| row.iter().map(Cell::shown).collect()));
    let widths: Vec<usize> = (0..grid.heads.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).min(WIDTH_MAX))
        .collect();
    let is_text = |column: usize| grid.rows.iter().any(|row| matches!(row[column], Cell::Text(_)));
    let is_text: Vec<bool> = (0..grid.heads.len()).map(is_text).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).zip(&is_text).map(|((cell, width), is_text)| {
            if *is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::grid::ColumnHead;
    use super::super::super::number::Number;
    use super::*;

    #[test]
    fn texts_align_left_numbers_right() {
        let row = |name: &str, value: f64| {
            vec![Cell::text(Some(name.to_owned())), Cell::number(Number::from_value(value), true)]
        };
        let grid =
            Grid { heads: ["name", "n"].map(ColumnHead::new).to_vec(), rows: vec![row("a", 5.0), row("longer", 1e3)] };
        assert_eq!(text(&grid), "name       n\na          5\nlonger  1000\n");
    }
}
