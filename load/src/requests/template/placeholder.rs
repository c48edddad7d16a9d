//! Text between the braces of a placeholder.

use std::fmt::Write;

use strsim::damerau_levenshtein;

use super::filter::ValueFilter;
use super::tokens::{TemplateToken, Tokens};

/// A placeholder: the source of its values, and their filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Source of the values.
    pub what: PlaceholderKind,
    /// Filters, applied in order; empty for the default filter of the position.
    pub filters: Vec<ValueFilter>,
}

/// Source of a placeholder's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// The number of the request in the run, from 1.
    Seq,
    /// A random whole number in this inclusive range.
    Rand(i64, i64),
    /// A random UUID.
    Uuid,
    /// The Unix time in milliseconds.
    Now,
    /// A value from a file.
    Value(ValueSource),
}

/// Source of values in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueSource {
    /// The file as typed.
    pub file: String,
    /// The column, by its name in the first row; `None`: every line is a value.
    pub column: Option<String>,
}

const FILTERS_MAX: usize = 8;
/// The names of placeholders, each with its syntax.
const NAMES: [(&str, &str); 6] = [
    ("seq", "{{seq}}"),
    ("rand", "{{rand A B}} with whole numbers A and B"),
    ("uuid", "{{uuid}}"),
    ("line", "{{line FILE}}"),
    ("csv", "{{csv FILE COLUMN}}"),
    ("now", "{{now}}"),
];

impl Placeholder {
    /// Parses the text between the braces.
    ///
    /// # Errors
    ///
    /// Describes the fault and the correct syntax.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "a placeholder that is not UTF-8".to_owned())?;
        let shown = || format!("{{{{{}}}}}", text.trim().escape_debug());
        let mut parts =
            split_words(text).ok_or_else(|| format!("{}: a quotation mark is not closed", shown()))?.into_iter();
        let words = parts.next().unwrap_or_default();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let what = PlaceholderKind::read(&words).map_err(|reason| format!("{}: {reason}", shown()))?;
        let filters = parts.map(|words| parse_filter(&words)).collect::<Result<Vec<_>, _>>().and_then(|filters| {
            // Each filter may double its input.
            if filters.len() > FILTERS_MAX { Err(format!("at most {FILTERS_MAX} filters")) } else { Ok(filters) }
        });
        Ok(Self { what, filters: filters.map_err(|reason| format!("{}: {reason}", shown()))? })
    }

    /// The file with the values, if they come from one.
    pub fn file(&self) -> Option<&str> {
        match &self.what {
            PlaceholderKind::Value(source) => Some(&source.file),
            _ => None,
        }
    }
}

impl PlaceholderKind {
    fn read(words: &[&str]) -> Result<Self, String> {
        let value = |file: &str, column: Option<&str>| {
            Ok(Self::Value(ValueSource { file: file.to_owned(), column: column.map(str::to_owned) }))
        };
        match words {
            [] => Err(format!("no name; {}", list_names(NAMES.map(|(name, _)| name)))),
            ["seq"] => Ok(Self::Seq),
            ["uuid"] => Ok(Self::Uuid),
            ["now"] => Ok(Self::Now),
            ["rand", from, to] if let (Ok(from), Ok(to)) = (from.parse(), to.parse()) => {
                if from > to {
                    return Err(format!("{from} is greater than {to}; write the smaller number first"));
                }
                Ok(Self::Rand(from, to))
            }
            ["line", file] => value(file, None),
            ["csv", file, column] => value(file, Some(column)),
            [name, ..] => Err(match NAMES.iter().find(|(known, _)| known == name) {
                Some((_, form)) => format!("write {form}"),
                None => unknown_name_message("placeholder", name, NAMES.map(|(name, _)| name)),
            }),
        }
    }
}

/// Parses all placeholders of a template.
///
/// # Errors
///
/// Describes the first fault.
pub fn placeholders(text: &[u8]) -> Result<Vec<Placeholder>, String> {
    let read = |token| match token {
        Ok(TemplateToken::Text(_)) => None,
        Ok(TemplateToken::Placeholder(text)) => Some(Placeholder::read(text)),
        Err(reason) => Some(Err(String::from(reason))),
    };
    Tokens::new(text).filter_map(read).collect()
}

/// The first valid placeholder in bytes that are sent verbatim, probably because `--templates` was forgotten.
pub fn first_likely_placeholder(text: &[u8]) -> Option<String> {
    let is_one = |text: &&[u8]| Placeholder::read(text).is_ok();
    let mut tokens = Tokens::new(text).map_while(Result::ok).filter_map(|token| match token {
        TemplateToken::Placeholder(text) => Some(text),
        TemplateToken::Text(_) => None,
    });
    tokens.find(is_one).map(|text| format!("{{{{{}}}}}", String::from_utf8_lossy(text)))
}

/// Words of the placeholder, then words of each filter. Quotation marks protect blanks and `|`. `None` if a quotation
/// mark is not closed.
fn split_words(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut parts, mut rest) = (vec![Vec::new()], text.trim_start());
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '|' => {
                parts.push(Vec::new());
                rest = rest[1..].trim_start();
                continue;
            }
            '"' => rest[1..].split_once('"')?,
            _ => rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '|').unwrap_or(rest.len())),
        };
        parts.last_mut()?.push(word.to_owned());
        rest = after.trim_start();
    }
    Some(parts)
}

fn parse_filter(words: &[String]) -> Result<ValueFilter, String> {
    let names = ValueFilter::ALL.map(ValueFilter::name);
    match words {
        [] => Err(format!("nothing follows the |; {}", list_names(names))),
        [word] if let Some(filter) = ValueFilter::ALL.into_iter().find(|filter| filter.name() == word) => Ok(filter),
        [word, ..] => Err(unknown_name_message("filter", word, names)),
    }
}

/// Message for an unknown name, with the most similar known one.
pub(super) fn unknown_name_message<'a>(noun: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let nearest =
        names.iter().map(|known| (damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()), *known)).min();
    match nearest.filter(|(distance, _)| *distance <= 1.max(name.chars().count() / 3)) {
        Some((_, meant)) => format!("no {noun} {name:?}; did you mean {meant}?"),
        None => format!("no {noun} {name:?}; {}", list_names(names)),
    }
}

/// List of the known names.
fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = "choose from".to_owned();
    for (number, name) in names.into_iter().take(20).enumerate() {
        let _ = write!(text, "{} {name}", if number > 0 { "," } else { "" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(file: &str, column: Option<&str>) -> PlaceholderKind {
        PlaceholderKind::Value(ValueSource { file: file.to_owned(), column: column.map(str::to_owned) })
    }

    #[test]
    fn placeholders_have_name_arguments_and_filters() {
        for (text, what, filters) in [
            ("seq", PlaceholderKind::Seq, vec![]),
            (" uuid ", PlaceholderKind::Uuid, vec![]),
            ("now|raw", PlaceholderKind::Now, vec![ValueFilter::Raw]),
            ("rand -5 5", PlaceholderKind::Rand(-5, 5), vec![]),
            ("line ids.txt", value("ids.txt", None), vec![]),
            (
                "csv users.csv id | json | url",
                value("users.csv", Some("id")),
                vec![ValueFilter::Json, ValueFilter::Url],
            ),
            (
                "csv \"my | users.csv\" \"full name\"|json",
                value("my | users.csv", Some("full name")),
                vec![ValueFilter::Json],
            ),
        ] {
            assert_eq!(Placeholder::read(text.as_bytes()), Ok(Placeholder { what, filters }), "{text}");
        }
    }

    #[test]
    fn faulty_placeholders_are_explained() {
        for (text, words) in [
            ("", "{{}}: no name; choose from seq, rand, uuid, line, csv, now"),
            ("sqe", "{{sqe}}: no placeholder \"sqe\"; did you mean seq?"),
            ("SEQ", "did you mean seq?"),
            ("randm 1 2", "did you mean rand?"),
            ("cookie", "no placeholder \"cookie\"; choose from seq,"),
            ("seq 1", "{{seq 1}}: write {{seq}}"),
            ("rand 1", "write {{rand A B}}"),
            ("rand a b", "write {{rand A B}}"),
            ("rand 2 1", "2 is greater than 1"),
            ("line", "write {{line FILE}}"),
            ("csv a.csv", "write {{csv FILE COLUMN}}"),
            ("line \"a", "a quotation mark is not closed"),
            ("seq |", "nothing follows the |; choose from raw, json, url"),
            ("seq | jsn", "no filter \"jsn\"; did you mean json?"),
        ] {
            let read = Placeholder::read(text.as_bytes());
            assert!(read.as_ref().is_err_and(|error| error.contains(words)), "{text}: {read:?}");
        }
    }

    #[test]
    fn likely_placeholders_are_detected() {
        assert_eq!(first_likely_placeholder(b"/a/{{seq}}").as_deref(), Some("{{seq}}"));
        assert_eq!(first_likely_placeholder(b"{{user}} {{now}}").as_deref(), Some("{{now}}"));
        for text in ["", "/{{user}}", "{{", "{{{{seq}}", "{\"a\":{}}"] {
            assert_eq!(first_likely_placeholder(text.as_bytes()), None, "{text}");
        }
    }
}
