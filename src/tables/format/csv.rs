//! A table as comma-separated values; unknown values are empty.

use onrush_text::printable;

use super::super::grid::{Cell, Grid};

/// The line of names, and the rows.
pub fn csv(grid: &Grid) -> String {
    let heads: Vec<String> = grid.heads.iter().map(|head| quoted(&head.name)).collect();
    let mut text = heads.join(",") + "\n";
    for row in &grid.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

/// A cell: a text as it is, a number with all its decimals.
fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) | Cell::Shown(text) => quoted(text),
        Cell::Number { number, is_whole: true } => number.exact(),
        Cell::Number { number, is_whole: false } => number.to_string(),
    }
}

/// What a spreadsheet takes for the beginning of a formula, also in the width of Chinese characters.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A text with control characters escaped, quoted if necessary. One that a spreadsheet would take for a formula gets an
/// apostrophe, which makes it text there; a number is none.
fn quoted(text: &str) -> String {
    let is_formula = text.trim_start().starts_with(FORMULA) && text.trim().parse::<f64>().is_err();
    let text = format!("{}{}", if is_formula { "'" } else { "" }, printable(text));
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::super::grid::Head;
    use super::*;

    #[test]
    fn what_would_end_a_cell_is_quoted() {
        let text = |text: &str| Cell::text(Some(text.to_owned()));
        let row = vec![text("a,\"b\"\nc"), Cell::Empty, text("\x1b[2Jd")];
        let grid = Grid { heads: ["x", "y,z", "w"].map(Head::new).to_vec(), rows: vec![row] };
        assert_eq!(csv(&grid), "x,\"y,z\",w\n\"a,\"\"b\"\"\\u{a}c\",,\\u{1b}[2Jd\n");
    }

    #[test]
    fn nothing_is_a_formula() {
        for (text, expected) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("=1+1,2", "\"'=1+1,2\""),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+x", "'+x"),
            ("-c 8", "'-c 8"),
            (" =x", "' =x"),
            ("＝x", "'＝x"),
            ("\t=x", "'\\u{9}=x"),
            ("-5", "-5"),
            ("+1e3", "+1e3"),
            ("a=b", "a=b"),
            ("-", "'-"),
        ] {
            assert_eq!(quoted(text), expected);
            let grid = Grid { heads: vec![Head::new(text)], rows: vec![vec![Cell::text(Some(text.to_owned()))]] };
            assert_eq!(csv(&grid), format!("{expected}\n{expected}\n"), "in a heading, too");
        }
    }
}
