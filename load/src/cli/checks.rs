//! Response checks: the options `--expect-status`, `--expect-header` and `--expect-body`.

use std::ffi::{OsStr, OsString};

use onrush_plan::checks::ExpectedHeader;
use onrush_plan::limits::CHECKS_MAX;
use onrush_plan::{Checks, Dialect, secrets};

use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};
use crate::requests::{field, is_token};

/// The options on response checks, as typed.
#[derive(Debug, Default)]
pub struct TypedChecks {
    checks: Checks,
    first: Option<&'static str>,
}

impl TypedChecks {
    /// Applies one option. Checks of headers and bodies accumulate; a second `--expect-status` is
    /// rejected.
    pub fn apply_option(&mut self, flag: &'static Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        self.first.get_or_insert(flag.spelling.long);
        if flag.id == Id::ExpectStatus {
            if self.checks.status.is_some() {
                return Err(wrong(flag, value, "it was given before; write one list, such as 200,204"));
            }
            let list = value.to_string_lossy().parse().map_err(|reason| wrong(flag, value, reason))?;
            self.checks.status = Some(list);
            return Ok(());
        }
        if !self.checks.has_room() {
            let most = format!("at most {CHECKS_MAX} checks of heads and bodies; leave some out");
            return Err(wrong(flag, &redacted_value(flag, value), most));
        }
        let text = value.to_str().ok_or_else(|| wrong(flag, &redacted_value(flag, value), "not UTF-8"))?;
        if flag.id == Id::ExpectHeader {
            let header =
                parse_header_check(text).map_err(|reason| wrong(flag, &redacted_value(flag, value), reason))?;
            self.checks.headers.push(header);
        } else if text.is_empty() {
            return Err(wrong(flag, value, "an empty text, which every body contains; write a part of the body"));
        } else {
            self.checks.body.push(text.to_owned());
        }
        Ok(())
    }

    /// Makes the checks; rejected in the compat dialects. `method` is the method that all requests
    /// have in common, if any: warns that with HEAD there is no body to check.
    pub fn into_checks(
        self,
        dialect: Dialect,
        method: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<Checks, PlanRefusal> {
        if let Some(name) = self.first.filter(|_| dialect.is_compat()) {
            let line = format!("--{name}: {} does not check responses; leave it out", dialect.name());
            return Err(PlanRefusal::Cannot(line));
        }
        if !self.checks.body.is_empty() && method == Some("HEAD") {
            warnings.push("--expect-body: no response to HEAD has a body, so every one fails this check".to_owned());
        }
        Ok(self.checks)
    }
}

/// Parses `Name: value`, or `Name` for a header with any value.
fn parse_header_check(text: &str) -> Result<ExpectedHeader, &'static str> {
    if is_token(text) {
        return Ok(ExpectedHeader { name: text.to_owned(), value: None });
    }
    if !text.contains(':') {
        return Err("no colon; write 'Name: value', or 'Name' for any value");
    }
    let (name, value) = field(text)?;
    Ok(ExpectedHeader { name: name.to_owned(), value: Some(value.trim_ascii().to_owned()) })
}

/// The value of an option with its secrets replaced.
fn redacted_value(flag: &Flag, value: &OsStr) -> OsString {
    let text = value.to_string_lossy();
    if flag.id == Id::ExpectHeader {
        secrets::misspelt_header(&text).into()
    } else {
        secrets::redact_text(&text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_fields_have_a_value_or_any() {
        let table = [
            ("ETag", Ok(("ETag", None))),
            ("content-type:text/html ", Ok(("content-type", Some("text/html")))),
            ("A: b: c", Ok(("A", Some("b: c")))),
            ("A:", Ok(("A", Some("")))),
            ("Content-Type text/html", Err("no colon; write 'Name: value', or 'Name' for any value")),
            ("", Err("no colon; write 'Name: value', or 'Name' for any value")),
            (": x", Err("no name before the colon; write 'Name: value'")),
            ("A: b\nC: d", Err("a control character in the value; leave it out")),
        ];
        for (text, expected) in table {
            let found = parse_header_check(text);
            let found = found.as_ref().map(|it| (it.name.as_str(), it.value.as_deref())).map_err(|why| *why);
            assert_eq!(found, expected, "{text}");
        }
    }
}
