//! Bodies of web forms as in curl: percent-encoded fields (`--data-urlencode`) or parts (`--form`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::draft::PlanDraft;
use super::multipart::{self, FormPart};
use super::refusal::PlanRefusal;
use super::request::{RequestDraft, read_contents};
use crate::input::InputFiles;
use crate::requests::{Placeholder, TemplateToken, Tokens, percent_encoded};

/// A body, and its `Content-Type` unless the user typed one.
pub(super) type FormBody = (Vec<u8>, Option<String>);

/// Encodes the body of the form; `None` without a form.
pub(super) fn encode_form(draft: &PlanDraft, files: &InputFiles) -> Result<Option<FormBody>, PlanRefusal> {
    let RequestDraft { forms, urlencoded, headers, .. } = &draft.request;
    if forms.is_empty() && urlencoded.is_empty() {
        return Ok(None);
    }
    let has_templates = draft.has("templates");
    let own_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
    if !forms.is_empty() {
        if let Some((name, value)) = own_type {
            let reason = "only the form's own has the boundary between its parts";
            return Err(PlanRefusal::both("--form", format_args!("the header '{name}: {value}'"), reason));
        }
        let parts = parse_values("--form", forms, |field| FormPart::read(field, has_templates, files))?;
        let (body, content_type) = multipart::encode_multipart(&parts);
        return Ok(Some((body, Some(content_type))));
    }
    let fields = parse_values("--data-urlencode", urlencoded, |field| urlencode_field(field, has_templates, files))?;
    let content_type = own_type.is_none().then(|| "application/x-www-form-urlencoded".to_owned());
    Ok(Some((fields.join(&b'&'), content_type)))
}

/// Parses all values of an option.
fn parse_values<T>(
    option: &str,
    values: &[OsString],
    read: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<Vec<T>, PlanRefusal> {
    let one = |value: &OsString| {
        let shown = onrush_plan::secrets::redact_text(&value.to_string_lossy());
        read(value.as_bytes()).map_err(|reason| PlanRefusal::Cannot(format!("{option} {shown:?}: {reason}")))
    };
    values.iter().map(one).collect()
}

/// Encodes one field: `CONTENT`, `=CONTENT`, `NAME=CONTENT`, `@FILE` or `NAME@FILE`. The name itself is sent unchanged.
fn urlencode_field(field: &[u8], has_templates: bool, files: &InputFiles) -> Result<Vec<u8>, String> {
    let separator = field.iter().position(|byte| *byte == b'=').or(field.iter().position(|byte| *byte == b'@'));
    let (name, rest) = field.split_at(separator.unwrap_or(0));
    let value = match rest {
        [b'@', file @ ..] if separator.is_some() => percent_encode(&read_contents(file, files)?),
        [b'=', text @ ..] | text if has_templates => encode_around_placeholders(text)?,
        [b'=', text @ ..] | text => percent_encode(text),
    };
    Ok(if name.is_empty() { value.into() } else { [name, b"=", value.as_bytes()].concat() })
}

/// Percent-encodes a text; a blank becomes a plus.
fn percent_encode(text: &[u8]) -> String {
    percent_encoded(text).replace("%20", "+")
}

/// Like [`percent_encode`], but leaves placeholders as they are. Their values are percent-encoded when they are filled
/// in.
fn encode_around_placeholders(text: &[u8]) -> Result<String, String> {
    let token = |token| match token? {
        TemplateToken::Text(text) => Ok(percent_encode(text)),
        TemplateToken::Placeholder(text) => {
            let filter = if Placeholder::read(text)?.filters.is_empty() { " | url" } else { "" };
            Ok(format!("{{{{{}{filter}}}}}", String::from_utf8_lossy(text)))
        }
    };
    Tokens::new(text).map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(field: &str, has_templates: bool) -> Result<Vec<u8>, String> {
        urlencode_field(field.as_bytes(), has_templates, &InputFiles::default())
    }

    #[test]
    fn fields_are_encoded_as_by_curl() {
        for (field, expected) in [
            ("a b", "a+b"),
            ("=c d", "c+d"),
            ("n m=e f&g", "n m=e+f%26g"),
            ("a=b=c@d", "a=b%3Dc%40d"),
            ("{{seq}}", "%7B%7Bseq%7D%7D"),
            ("", ""),
            ("x@/proc/sys/kernel/ostype", "x=Linux%0A"),
            ("@/proc/sys/kernel/ostype", "Linux%0A"),
        ] {
            assert_eq!(encoded(field, false).as_deref(), Ok(expected.as_bytes()), "{field}");
        }
        assert_eq!(encoded("x@/nonexistent", false), Err("No such file or directory".to_owned()));
        assert_eq!(encoded("x@", false), Err("no file after the @ or <".to_owned()));
    }

    #[test]
    fn field_placeholders_are_encoded_later() {
        for (field, expected) in [
            ("a=b c{{csv f.csv n}}", "a=b+c{{csv f.csv n | url}}"),
            ("{{seq | raw}}&", "{{seq | raw}}%26"),
            ("a={{{{", "a=%7B%7B"),
        ] {
            assert_eq!(encoded(field, true).as_deref(), Ok(expected.as_bytes()), "{field}");
        }
        assert!(encoded("a={{sqe}}", true).is_err_and(|error| error.contains("did you mean seq?")));
    }
}
