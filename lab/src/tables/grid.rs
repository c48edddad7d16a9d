//! A table as data: named columns, and rows of cells.

use onrush_text::escape_controls;

use super::column::{self, TableColumn};
use super::number::Number;

/// A table, independent of its format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The heads of the columns.
    pub heads: Vec<ColumnHead>,
    /// The rows, with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnHead {
    /// The column's name in CSV and JSON.
    pub name: String,
    /// The column's heading in text and Markdown.
    pub heading: String,
    /// Length of the rule below the heading in Markdown.
    pub rule: usize,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// An unknown value.
    Empty,
    /// A string, escaped when printed for people.
    Text(String),
    /// A number; decimals may be hidden from people.
    Number {
        /// The number itself, with its decimals.
        number: Number,
        /// True to show people a whole number.
        is_whole: bool,
    },
    /// A figure formatted with its unit, or with grouped digits.
    Shown(String),
}

impl Grid {
    /// Removes columns without any value, among those from index `from` on.
    pub fn without_empty(mut self, from: usize) -> Self {
        let is_kept = |index: usize| index < from || self.rows.iter().any(|row| row[index] != Cell::Empty);
        let kept: Vec<bool> = (0..self.heads.len()).map(is_kept).collect();
        let mut flags = kept.iter();
        self.heads.retain(|_| flags.next() == Some(&true));
        for row in &mut self.rows {
            let mut flags = kept.iter();
            row.retain(|_| flags.next() == Some(&true));
        }
        self
    }
}

impl ColumnHead {
    /// The head of a column of strings, or of a computed column.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), heading: name.to_owned(), rule: name.chars().count() + 2 }
    }

    /// The head of a field or a figure.
    pub fn for_column(column: &TableColumn) -> Self {
        match column {
            TableColumn::Field(name) => Self::new(name),
            TableColumn::Figure(metric) => {
                Self { name: metric.column(), heading: metric.heading(), rule: column::rule_length(*metric) }
            }
        }
    }
}

impl Cell {
    /// A cell with a string; empty for `None` or an empty string.
    pub fn text(text: Option<String>) -> Self {
        text.filter(|text| !text.is_empty()).map_or(Self::Empty, Self::Text)
    }

    /// A cell with a level: a whole number if the string is one in its usual form, otherwise the string.
    pub fn level(text: String) -> Self {
        let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
        number.map_or_else(|| Self::text(Some(text)), |number| Self::number(Some(Number::from_whole(number)), true))
    }

    /// A cell with a number; empty for `None`.
    pub fn number(number: Option<Number>, is_whole: bool) -> Self {
        number.map_or(Self::Empty, |number| Self::Number { number, is_whole })
    }

    /// A cell with a formatted figure; empty for `None`.
    pub fn shown_as(text: Option<String>) -> Self {
        text.map_or(Self::Empty, Self::Shown)
    }

    /// The cell as printed for people; control characters in strings are escaped.
    pub fn shown(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => escape_controls(text),
            Self::Shown(text) => text.clone(),
            Self::Number { number, is_whole } => number.text(*is_whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_are_omitted_except_the_first() {
        let text = |text: &str| Cell::text(Some(text.to_owned()));
        let grid = Grid {
            heads: ["a", "b", "c"].map(ColumnHead::new).to_vec(),
            rows: vec![vec![text(""), text(""), text("1")], vec![text(""), text(""), text("")]],
        };
        let grid = grid.without_empty(1);
        assert_eq!(grid.heads, ["a", "c"].map(ColumnHead::new));
        assert_eq!(grid.rows, [[text(""), text("1")], [text(""), text("")]]);
    }
}
