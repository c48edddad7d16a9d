//! File of values: one value per line, or CSV with column names in the first row (RFC 4180).

use std::sync::Arc;

use csv::{ErrorKind, Position, ReaderBuilder, StringRecord};
use onrush_plan::FileContents;
use onrush_text::units::format_count;

use super::placeholder::unknown_name_message;

/// A nonempty file of values in UTF-8.
#[derive(Clone, Debug)]
pub struct ValueTable {
    contents: Arc<[u8]>,
}

impl ValueTable {
    /// Checks that a file of values is not empty and is UTF-8.
    ///
    /// # Errors
    ///
    /// Says why the file has no values.
    pub fn from_contents(file: &FileContents) -> Result<Self, String> {
        let contents = file.shared().map_err(|unreadable| unreadable.to_string())?;
        let table = Self { contents };
        match std::str::from_utf8(&table.contents) {
            Err(error) => {
                let line = 1 + table.contents[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
                Err(format!("line {line}: not UTF-8; convert the file"))
            }
            Ok(_) if table.text().trim().is_empty() => Err("the file is empty; write a value on each line".to_owned()),
            Ok(_) => Ok(table),
        }
    }

    /// Passes the values to `each`, in order: those in this column of a CSV file, or without a column every line.
    ///
    /// # Errors
    ///
    /// Names the fault in the file, or the line of the first value that `each` refuses, and its reason.
    pub fn values(
        &self,
        column: Option<&str>,
        mut each: impl FnMut(&str) -> Result<(), &'static str>,
    ) -> Result<(), String> {
        let in_line = |number: usize, flaw| format!("line {number}: {flaw}");
        let Some(column) = column else {
            let mut lines = self.text().lines().zip(1..);
            return lines.try_for_each(|(line, number)| each(line).map_err(|flaw| in_line(number, flaw)));
        };
        let mut reader = ReaderBuilder::new().from_reader(self.text().as_bytes());
        let names = reader.headers().map_err(|error| self.row_fault(&error))?.clone();
        let index = column_index(column, &names)?;
        let mut record = StringRecord::new();
        let mut is_empty = true;
        while reader.read_record(&mut record).map_err(|error| self.row_fault(&error))? {
            is_empty = false;
            each(&record[index]).map_err(|flaw| in_line(self.line(record.position()), flaw))?;
        }
        if is_empty { Err("no row below the column names; add one".to_owned()) } else { Ok(()) }
    }

    /// Describes the fault in a row.
    fn row_fault(&self, error: &csv::Error) -> String {
        match error.kind() {
            ErrorKind::UnequalLengths { pos, expected_len, len } => format!(
                "line {}: {} where the first row has {}; quote values that contain a comma",
                self.line(pos.as_ref()),
                format_count(*len, "value"),
                format_count(*expected_len, "name")
            ),
            _ => error.to_string(),
        }
    }

    /// Line number of a row, from 1. The position of a row may be at line endings before the row.
    fn line(&self, position: Option<&Position>) -> usize {
        let bytes = self.text().as_bytes();
        let (before, rest) = bytes.split_at(position.map_or(0, Position::byte) as usize);
        let between = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        1 + before.iter().chain(between).filter(|byte| **byte == b'\n').count()
    }

    /// The text of the file, without a byte order mark.
    fn text(&self) -> &str {
        let text = std::str::from_utf8(&self.contents).unwrap_or_default();
        text.strip_prefix('\u{feff}').unwrap_or(text)
    }
}

fn column_index(column: &str, names: &StringRecord) -> Result<usize, String> {
    for (index, name) in names.iter().enumerate() {
        if names.iter().take(index).any(|earlier| earlier.trim() == name.trim()) {
            return Err(format!("two columns are named {name:?}; rename one of them"));
        }
    }
    let index = names.iter().position(|name| name.trim() == column);
    index.ok_or_else(|| unknown_name_message("column", column, names.iter().map(str::trim)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, column: Option<&str>) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        ValueTable::from_contents(&FileContents::from_bytes("f", text.as_bytes().to_vec()))?.values(
            column,
            |value| {
                values.push(value.to_owned());
                if value == "bad" { Err("it is bad") } else { Ok(()) }
            },
        )?;
        Ok(values)
    }

    fn read(text: &str, column: Option<&str>) -> Vec<String> {
        values(text, column).unwrap()
    }

    #[test]
    fn every_line_is_a_value() {
        for text in ["a\n\nb c", "\u{feff}a\r\n\r\nb c\r\n"] {
            assert_eq!(read(text, None), ["a", "", "b c"]);
        }
        assert_eq!(values("a\r\nbad\r\n", None), Err("line 2: it is bad".to_owned()));
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "id,full name\n1,Ada\n2,\"Lovelace, Ada\nof \"\"London\"\"\"\n3,bad\n";
        for text in [text.to_owned(), format!("\u{feff}{}", text.replace('\n', "\r\n"))] {
            assert_eq!(read(&text, Some("id")), ["1", "2", "3"]);
            assert_eq!(values(&text, Some("full name")), Err("line 5: it is bad".to_owned()));
            let good = text.replace("bad", "Bob").replace("Ada\r\n", "Ada\n");
            assert_eq!(read(&good, Some("full name")), ["Ada", "Lovelace, Ada\nof \"London\"", "Bob"]);
        }
        assert_eq!(read("id, name\n1,x\n", Some("name")), ["x"]);
    }

    #[test]
    fn faulty_files_are_explained() {
        for (text, words) in [
            ("", "the file is empty"),
            ("\u{feff}\r\n", "the file is empty"),
            ("id,name\n", "no row below the column names"),
            ("id,name\n1,a\n2\n", "line 3: 1 value where the first row has 2 names"),
            ("id,id\n1,2\n", "two columns are named \"id\""),
            ("ids,name\n1,2\n", "no column \"id\"; did you mean ids?"),
            ("a;b;c\n1;2;3\n", "no column \"id\"; choose from a;b;c"),
        ] {
            let read = values(text, Some("id"));
            assert!(read.as_ref().is_err_and(|error| error.contains(words)), "{text}: {read:?}");
        }
        let latin = ValueTable::from_contents(&FileContents::from_bytes("f", b"a\n\xe9\n".to_vec())).map(drop);
        assert_eq!(latin, Err("line 2: not UTF-8; convert the file".to_owned()));
    }
}
