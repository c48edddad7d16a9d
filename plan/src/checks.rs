//! Conditions for a successful response: `--expect-status`, `--expect-header` and `--expect-body`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::limits::CHECKS_MAX;

/// Checks that a response must pass to be successful, in addition to arriving in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// The successful statuses; `None`: all below 400.
    pub status: Option<StatusList>,
    /// Header fields that every response must have.
    pub headers: Vec<ExpectedHeader>,
    /// Strings that every body must contain.
    pub body: Vec<String>,
}

/// A required header field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedHeader {
    /// The name of the field, case-insensitive.
    pub name: String,
    /// The value that the field must have; `None`: any value.
    pub value: Option<String>,
}

/// A check of a head or a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check<'a> {
    /// The head must contain this field.
    Header(&'a ExpectedHeader),
    /// The body must contain this string.
    Body(&'a str),
}

impl Checks {
    /// True if only the default is checked: a status below 400.
    pub fn is_empty(&self) -> bool {
        self.status.is_none() && self.count() == 0
    }

    /// Number of checks of heads and bodies; the status check is not included.
    pub fn count(&self) -> usize {
        self.headers.len() + self.body.len()
    }

    /// True if the number of checks is below [`CHECKS_MAX`].
    pub fn has_room(&self) -> bool {
        self.count() < CHECKS_MAX
    }

    /// The check with this number: checks of heads first, then checks of bodies, in the order typed.
    pub fn check_number(&self, number: usize) -> Option<Check<'_>> {
        let headers = self.headers.iter().map(Check::Header);
        headers.chain(self.body.iter().map(|text| Check::Body(text))).nth(number)
    }

    /// True if a response with this status is unsuccessful.
    pub fn is_failure(&self, status: u16) -> bool {
        is_failure(self.status.as_ref(), status)
    }
}

/// True if a response with this status is unsuccessful. `expected`: the successful statuses; `None`: all below 400.
pub fn is_failure(expected: Option<&StatusList>, status: u16) -> bool {
    expected.map_or(status >= 400, |expected| !expected.contains(status))
}

/// A list of statuses such as `200-204,3xx,404`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StatusList {
    text: String,
    ranges: Vec<RangeInclusive<u16>>,
}

impl StatusList {
    /// True if the list contains this status.
    pub fn contains(&self, status: u16) -> bool {
        self.ranges.iter().any(|range| range.contains(&status))
    }

    /// The list of statuses as typed.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl FromStr for StatusList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ranges = text.split(',').map(parse_status_range).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), ranges })
    }
}

/// One part of a list: `200`, `200-204` or `2xx`. The error names the fault.
fn parse_status_range(part: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = |why: &str| Err(format!("{part:?} {why}; write for instance 200, 2xx or 200-204,404"));
    let status = |text: &str| {
        let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    };
    let range = match (part.strip_suffix("xx"), part.split_once('-')) {
        (Some(class), _) if class.len() == 1 => status(&format!("{class}00")).map(|first| first..=first + 99),
        (_, Some((first, last))) => status(first).zip(status(last)).map(|(first, last)| first..=last),
        _ => status(part).map(|only| only..=only),
    };
    match range {
        None => wrong("is not a status, a range or a class of statuses"),
        Some(range) if range.is_empty() => wrong("is a range that ends before it begins"),
        // Responses with 1xx are interim: only the final response is checked.
        Some(range) if *range.start() < 200 || *range.end() > 599 => wrong("is outside 200 to 599"),
        Some(range) => Ok(range),
    }
}

impl fmt::Display for StatusList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<StatusList> for String {
    fn from(list: StatusList) -> Self {
        list.text
    }
}

impl TryFrom<String> for StatusList {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_accept_statuses_ranges_and_classes() {
        let table: [(&str, &[u16], &[u16]); 4] = [
            ("200", &[200], &[199, 201, 404]),
            ("200,204", &[200, 204], &[201, 203, 205]),
            ("2xx", &[200, 250, 299], &[199, 300]),
            ("200-204,404,5xx", &[200, 204, 404, 500, 599], &[205, 403, 405, 600]),
        ];
        for (text, members, others) in table {
            let list: StatusList = text.parse().unwrap();
            assert!(members.iter().all(|status| list.contains(*status)), "{text}");
            assert!(!others.iter().any(|status| list.contains(*status)), "{text}");
            assert_eq!(list.to_string(), text);
        }
    }

    #[test]
    fn bad_status_lists_name_the_wrong_part() {
        for (text, expected) in [
            ("", "\"\" is not a status, a range or a class of statuses"),
            ("200,", "\"\" is not a status, a range or a class of statuses"),
            ("2x", "\"2x\" is not a status, a range or a class of statuses"),
            ("ok", "\"ok\" is not a status, a range or a class of statuses"),
            ("+20", "\"+20\" is not a status, a range or a class of statuses"),
            ("200, 204", "\" 204\" is not a status, a range or a class of statuses"),
            ("99", "\"99\" is not a status, a range or a class of statuses"),
            ("200,999", "\"999\" is outside 200 to 599"),
            ("1xx", "\"1xx\" is outside 200 to 599"),
            ("204-200", "\"204-200\" is a range that ends before it begins"),
            ("éxx", "\"éxx\" is not a status, a range or a class of statuses"),
        ] {
            let why = text.parse::<StatusList>().unwrap_err();
            assert_eq!(why, format!("{expected}; write for instance 200, 2xx or 200-204,404"));
        }
    }

    #[test]
    fn statuses_from_400_fail_by_default() {
        let mut checks = Checks::default();
        assert_eq!(
            [200, 302, 399, 400, 503].map(|status| checks.is_failure(status)),
            [false, false, false, true, true]
        );
        checks.status = "404".parse().ok();
        assert_eq!([200, 404].map(|status| checks.is_failure(status)), [true, false]);
    }

    #[test]
    fn checks_of_heads_have_the_first_numbers() {
        let field = ExpectedHeader { name: "ETag".to_owned(), value: None };
        let checks = Checks { status: None, headers: vec![field.clone()], body: vec!["ok".to_owned()] };
        assert_eq!(
            [0, 1, 2].map(|number| checks.check_number(number)),
            [Some(Check::Header(&field)), Some(Check::Body("ok")), None]
        );
    }
}
