//! Writes JSON in which nothing moves a cursor or changes the writing direction: such characters are escaped, as JSON
//! allows for any character.

use std::io::{self, Write};

use onrush_text::is_misleading;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// A value on one line.
pub fn line(value: &impl Serialize) -> String {
    written(value, CompactFormatter)
}

/// A value over several lines, indented.
pub fn pretty(value: &impl Serialize) -> String {
    written(value, PrettyFormatter::new())
}

fn written(value: &impl Serialize, formatter: impl Formatter) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Escaping(formatter));
    value.serialize(&mut serializer).expect("numbers, texts and lists can always be written");
    String::from_utf8(bytes).expect("JSON is text")
}

/// A formatter that also escapes what misleads a reader.
struct Escaping<F>(F);

/// Passes these methods on.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $name<W: Write + ?Sized>(&mut self, writer: &mut W $(, $argument: $type)*) -> io::Result<()> {
            self.0.$name(writer $(, $argument)*)
        })*
    };
}

impl<F: Formatter> Formatter for Escaping<F> {
    pass_on! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_misleading) {
            let (plain, misleading) = rest.split_at(at);
            self.0.write_string_fragment(writer, plain)?;
            let mut characters = misleading.chars();
            let mut units = [0; 2];
            for unit in characters.next().into_iter().flat_map(|it| it.encode_utf16(&mut units).to_vec()) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        self.0.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_same_value_is_read_from_what_moves_no_cursor() {
        let text = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200b}\u{feff}\"\\\n測😀";
        let value = json!({ text: [text, 1, 2.5, null, {}], "b": [] });
        for written in [line(&value), pretty(&value)] {
            assert!(written.chars().all(|c| c == '\n' || !is_misleading(c)), "{written:?}");
            assert!(written.contains("測😀"), "other characters stay");
            assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
        let plain = json!({ "a": [1, { "b": "c" }], "d": {} });
        assert_eq!(line(&plain), plain.to_string());
        assert_eq!(pretty(&plain), serde_json::to_string_pretty(&plain).unwrap());
    }
}
