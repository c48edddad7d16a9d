//! Splits a template into verbatim parts and placeholders.

use memchr::memmem;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateToken<'a> {
    /// Text to send verbatim.
    Text(&'a [u8]),
    /// The text between `{{` and `}}`.
    Placeholder(&'a [u8]),
}

/// Parts of a template, in order. Four opening braces are the text `{{`. The first of three braces is text, so
/// `{{{seq}}}` is a number in braces. Unmatched closing braces are text: JSON bodies contain them. `{{` without `}}` on
/// the same line is an error, which ends the iteration.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// Starts to read a template.
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    fn take_text(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn placeholder(&mut self) -> Result<TemplateToken<'a>, &'static str> {
        let line = self.rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Some(length) = memmem::find(&line[2..], b"}}") else {
            self.rest = &[];
            return Err("{{ without }} on its line; add it, or write {{{{ for {{ itself");
        };
        Ok(TemplateToken::Placeholder(&self.take_text(length + 4)[2..2 + length]))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<TemplateToken<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let length = memmem::find(self.rest, b"{{").unwrap_or(self.rest.len());
        Some(match self.rest.get(length + 2..) {
            _ if length > 0 => Ok(TemplateToken::Text(self.take_text(length))),
            Some([b'{', b'{', ..]) => Ok(TemplateToken::Text(&self.take_text(4)[2..])),
            Some([b'{', ..]) => Ok(TemplateToken::Text(self.take_text(1))),
            _ => self.placeholder(),
        })
    }
}

/// Doubles the braces of each `{{` in a string, so that it is sent verbatim by a request with placeholders.
pub fn escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memmem::find(rest, b"{{") {
        escaped.extend_from_slice(&rest[..at]);
        escaped.extend_from_slice(b"{{{{");
        rest = &rest[at + 2..];
    }
    escaped.extend_from_slice(rest);
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Placeholders in angle brackets.
    fn tokens(text: &str) -> Result<String, &'static str> {
        let shown = |token| match token {
            TemplateToken::Text(text) => String::from_utf8_lossy(text).into_owned(),
            TemplateToken::Placeholder(text) => format!("<{}>", String::from_utf8_lossy(text)),
        };
        Tokens::new(text.as_bytes()).map(|token| token.map(shown)).collect()
    }

    #[test]
    fn only_double_braces_are_placeholders() {
        for (text, expected) in [
            ("", ""),
            ("a", "a"),
            ("{{seq}}", "<seq>"),
            ("/a/{{seq}}?b={{rand 1 9}}", "/a/<seq>?b=<rand 1 9>"),
            ("{\"a\":{\"b\":{{seq}}}}", "{\"a\":{\"b\":<seq>}}"),
            ("{{{seq}}}", "{<seq>}"),
            ("{{{{", "{{"),
            ("{{{{seq}}", "{{seq}}"),
            ("{{{{{seq}}", "{{{seq}}"),
            ("{{{{{{seq}}", "{{<seq>"),
            ("{", "{"),
            ("}}", "}}"),
            ("{{}}", "<>"),
        ] {
            assert_eq!(tokens(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["{{", "a{{seq}", "{{seq\n}}", "{{seq}}{{", "{{{"] {
            assert!(tokens(text).is_err_and(|error| error.contains("without }}")), "{text}");
        }
    }

    #[test]
    fn escaped_texts_are_sent_verbatim() {
        for text in ["", "{", "{{", "{{{", "{{{{{", "a{{seq}}b", "{{{seq}}}"] {
            let escaped = String::from_utf8(escaped(text.as_bytes())).unwrap();
            assert_eq!(tokens(&escaped).as_deref(), Ok(text));
        }
    }
}
