//! How a document is written: a line for each key and each entry of a list, except that bins, of which there are many,
//! are on one line.

use std::io::{Result, Write};

use serde_json::ser::{Formatter, PrettyFormatter};

/// The key whose list is written on one line.
const ON_ONE_LINE: &str = "latency_bins";

/// That layout.
#[derive(Debug, Default)]
pub struct Layout {
    lines: PrettyFormatter<'static>,
    /// The last key.
    key: String,
    is_key: bool,
    /// How many lists that are written on one line are open.
    open: usize,
}

impl Formatter for Layout {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        if self.open == 0 && self.key != ON_ONE_LINE {
            return self.lines.begin_array(writer);
        }
        self.open += 1;
        writer.write_all(b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        if self.open == 0 {
            return self.lines.end_array(writer);
        }
        self.open -= 1;
        writer.write_all(b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, is_first: bool) -> Result<()> {
        match (self.open, is_first) {
            (0, _) => self.lines.begin_array_value(writer, is_first),
            (_, true) => Ok(()),
            (_, false) => writer.write_all(b","),
        }
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        if self.open == 0 { self.lines.end_array_value(writer) } else { Ok(()) }
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        self.lines.begin_object(writer)
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        self.lines.end_object(writer)
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, is_first: bool) -> Result<()> {
        self.key.clear();
        self.is_key = true;
        self.lines.begin_object_key(writer, is_first)
    }

    fn end_object_key<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        self.is_key = false;
        self.lines.end_object_key(writer)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        self.lines.begin_object_value(writer)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<()> {
        self.lines.end_object_value(writer)
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> Result<()> {
        if self.is_key {
            self.key.push_str(fragment);
        }
        writer.write_all(fragment.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Serializer, json};

    use super::*;

    #[test]
    fn bins_are_on_one_line_and_everything_else_has_its_own() {
        let document = json!({
            "a": [[1, 2]],
            "timeline": [{ "latency_bins": [[120, 5], [121, 17]], "more": [] }, { "latency_bins": [], "z": "[" }],
        });
        let expected = r#"{
  "a": [
    [
      1,
      2
    ]
  ],
  "timeline": [
    {
      "latency_bins": [[120,5],[121,17]],
      "more": []
    },
    {
      "latency_bins": [],
      "z": "["
    }
  ]
}"#;
        let mut written = Vec::new();
        document.serialize(&mut Serializer::with_formatter(&mut written, Layout::default())).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
