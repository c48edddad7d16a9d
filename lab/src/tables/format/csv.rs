//! Formats a table as comma-separated values; unknown values are empty.

use onrush_text::csv::csv_cell as quoted;

use super::super::grid::{Cell, Grid};

/// The table as CSV: a line of column names, followed by the rows.
pub fn csv(grid: &Grid) -> String {
    let heads: Vec<String> = grid.heads.iter().map(|head| quoted(&head.name)).collect();
    let mut text = heads.join(",") + "\n";
    for row in &grid.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

/// A cell's value: a string unchanged, a number with all its decimals.
fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) | Cell::Shown(text) => quoted(text),
        Cell::Number { number, is_whole: true } => number.exact(),
        Cell::Number { number, is_whole: false } => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::grid::ColumnHead;
    use super::*;

    #[test]
    fn cell_delimiters_are_quoted() {
        let text = |text: &str| Cell::text(Some(text.to_owned()));
        let row = vec![text("a,\"b\"\nc"), Cell::Empty, text("\x1b[2Jd")];
        let grid = Grid { heads: ["x", "y,z", "w"].map(ColumnHead::new).to_vec(), rows: vec![row] };
        assert_eq!(csv(&grid), "x,\"y,z\",w\n\"a,\"\"b\"\"\\u{a}c\",,\\u{1b}[2Jd\n");
    }

    #[test]
    fn cells_are_never_formulas() {
        let grid = Grid { heads: vec![ColumnHead::new("=x")], rows: vec![vec![Cell::text(Some("=y".to_owned()))]] };
        assert_eq!(csv(&grid), "'=x\n'=y\n", "nor in a heading");
    }
}
