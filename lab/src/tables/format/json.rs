//! Formats a table as a JSON array of objects, one per row; unknown values are null.

use onrush_load::record::json;
use serde::{Serialize, Serializer};

use super::super::grid::{Cell, ColumnHead, Grid};

/// The table as a JSON array, with a line for each row.
pub fn json(grid: &Grid) -> String {
    let rows: Vec<String> = grid.rows.iter().map(|row| json::line(&JsonRow(&grid.heads, row))).collect();
    if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
}

/// A row as an object, with its columns in order.
struct JsonRow<'a>(&'a [ColumnHead], &'a [Cell]);

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|head| &head.name).zip(self.1))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.serialize_none(),
            Self::Text(text) | Self::Shown(text) => serializer.serialize_str(text),
            Self::Number { number, .. } => match number.exact().parse::<u64>() {
                Ok(whole) => serializer.serialize_u64(whole),
                Err(_) => serializer.serialize_f64(number.value()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::number::Number;
    use super::*;

    #[test]
    fn json_rows_keep_column_order() {
        let number = |value| Cell::number(Number::from_value(value), true);
        let row = vec![Cell::text(Some("\"\n".to_owned())), number(2.0), number(2.25), Cell::Empty];
        let grid = Grid { heads: ["z", "y", "x", "a"].map(ColumnHead::new).to_vec(), rows: vec![row] };
        assert_eq!(json(&grid), "[\n{\"z\":\"\\\"\\n\",\"y\":2,\"x\":2.25,\"a\":null}\n]\n");
        assert_eq!(json(&Grid::default()), "[]\n");
        let text = "\u{7f}\u{85}\u{202e}a\u{feff}";
        let grid = Grid { heads: vec![ColumnHead::new(text)], rows: vec![vec![Cell::text(Some(text.to_owned()))]] };
        let escaped = r#""\u007f\u0085\u202ea\ufeff""#;
        assert_eq!(json(&grid), format!("[\n{{{escaped}:{escaped}}}\n]\n"));
    }
}
