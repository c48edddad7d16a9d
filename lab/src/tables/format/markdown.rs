//! Formats a table in Markdown, in the layout of centminmod's `generate-table.sh`.

use onrush_text::escape_markdown;

use super::super::grid::{Cell, ColumnHead, Grid};

/// The table in Markdown: heading, rule and rows.
pub fn markdown(grid: &Grid) -> String {
    let heads: Vec<String> = grid.heads.iter().map(|head| escaped(&Cell::text(Some(head.heading.clone())))).collect();
    let rules: Vec<String> = grid.heads.iter().map(|ColumnHead { rule, .. }| "-".repeat(*rule)).collect();
    let mut text = format!("| {} |\n|{}|\n", heads.join(" | "), rules.join("|"));
    for row in &grid.rows {
        let cells: Vec<String> = row.iter().map(escaped).collect();
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// Escapes everything in a cell that Markdown interprets as its end, or as HTML.
fn escaped(cell: &Cell) -> String {
    escape_markdown(&cell.shown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_survive_any_cell_content() {
        let text = |text: &str| Cell::text(Some(text.to_owned()));
        let grid =
            Grid { heads: vec![ColumnHead::new("a|b")], rows: vec![vec![text("x | <b>\r\n| y")], vec![Cell::Empty]] };
        assert_eq!(markdown(&grid), "| a\\|b |\n|-----|\n| x \\| &lt;b>\\u{d}\\u{a}\\| y |\n|  |\n");
    }
}
