//! Response checks: the options `--expect-status`, `--expect-header` and `--expect-body`.

use onrush_plan::checks::ExpectedHeader;
use onrush_plan::limits::CHECKS_MAX;
use onrush_plan::{Checks, secrets};

use super::refusal::PlanRefusal;
use super::values::Value;
use crate::requests::{field, is_token};

/// Sets the successful statuses, once.
pub(super) fn expect_status(checks: &mut Checks, value: Value) -> Result<(), PlanRefusal> {
    if checks.status.is_some() {
        return Err(value.wrong("it was given before; write one list, such as 200,204"));
    }
    checks.status = Some(value.lossy().parse().map_err(|reason| value.wrong(reason))?);
    Ok(())
}

/// Adds a text that bodies must contain.
pub(super) fn expect_body(checks: &mut Checks, value: Value) -> Result<(), PlanRefusal> {
    let shown = secrets::redact_text(&value.lossy());
    let text = room_for_text(checks, value, &shown)?;
    if text.is_empty() {
        return Err(value.wrong("an empty text, which every body contains; write a part of the body"));
    }
    checks.body.push(text.to_owned());
    Ok(())
}

/// Adds a header that responses must have.
pub(super) fn expect_header(checks: &mut Checks, value: Value) -> Result<(), PlanRefusal> {
    let shown = secrets::misspelt_header(&value.lossy());
    let text = room_for_text(checks, value, &shown)?;
    let header = parse_header_check(text).map_err(|reason| value.part(&shown).wrong(reason))?;
    checks.headers.push(header);
    Ok(())
}

/// The text of a value, if there is room for another check. `shown` is the value without its secrets.
fn room_for_text<'a>(checks: &Checks, value: Value<'a>, shown: &str) -> Result<&'a str, PlanRefusal> {
    let wrong = |reason: &str| value.flag.wrong(shown, reason);
    if !checks.has_room() {
        return Err(wrong(&format!("at most {CHECKS_MAX} checks of heads and bodies; leave some out")));
    }
    value.utf8().ok_or_else(|| wrong("not UTF-8"))
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
