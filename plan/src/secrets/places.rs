//! Finds secrets by their places: the users of URLs, and the values of secret names.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;

use super::decoded::{decoded, search};
use super::names;

/// Separator before the user and host of a URL.
const AUTHORITY: &[u8] = b"://";

/// Characters that may follow a closing quote.
const AFTER_QUOTES: &[u8] = b",}]):;/>";

/// Names of fields whose value is the name of another field.
const NAMING: [&[u8]; 4] = [b"name", b"key", b"field", b"id"];

/// How far after the name of a form's part its content may begin, in bytes.
const PART_HEAD_MAX: usize = 256;

/// The minimum length of a token after `Bearer` or `Basic`, in bytes.
const TOKEN_MIN: usize = 8;

/// The places of the secrets in a text, in order and apart. With `blanks_end`, a value after `name=` ends at the first
/// blank.
pub(super) fn places(text: &[u8], blanks_end: bool) -> Vec<Range<usize>> {
    search(text, |bytes| Finder { bytes, blanks_end, hides_values: false }.places())
}

/// The places of the users of URLs in a text, in order and apart.
pub(super) fn users(text: &[u8]) -> Vec<Range<usize>> {
    let finder = Finder { bytes: text, blanks_end: false, hides_values: false };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = memmem::find(&text[at..], AUTHORITY) {
        let start = at + next + AUTHORITY.len();
        at = finder.user(start).1;
        // With a colon, it may be a user whose password has characters that end it, such as a slash.
        if text[start..at].contains(&b':') {
            at = finder.end(start, |byte| byte != b'"' && !byte.is_ascii_whitespace());
        }
        let user = memchr::memrchr(b'@', &text[start..at]).map(|length| start..start + length);
        // The one of an example is nobody's.
        found.extend(user.filter(|place| &text[place.clone()] != b"USER:PW"));
    }
    found
}

/// Scans bytes from left to right. Takes linear time: what was hidden is not looked at again.
#[derive(Clone, Copy)]
struct Finder<'a> {
    bytes: &'a [u8],
    blanks_end: bool,
    /// True if fields called `value` are secret, because a field beside them names a secret.
    hides_values: bool,
}

impl Finder<'_> {
    fn places(self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        // The lines of a list or a form have the same names again and again.
        let mut harmless: HashSet<&[u8]> = HashSet::new();
        let mut names_secrets = false;
        let mut at = 0;
        while at < self.bytes.len() {
            if self.bytes[at..].starts_with(AUTHORITY) {
                let user;
                (user, at) = self.user(at + AUTHORITY.len());
                found.extend(user);
                continue;
            }
            let name_end = self.end(at, is_of_name);
            let name = &self.bytes[at..name_end];
            let named = self.named(name, name_end);
            names_secrets |= named.is_some();
            let place = if let Some(named_end) = named {
                self.part(named_end)
            } else if self.bytes[at] == b'<' {
                self.element(at + 1)
            } else if !self.has_value(name, name_end) || harmless.contains(name) {
                None
            } else if is_secret(name) || (self.hides_values && name.eq_ignore_ascii_case(b"value")) {
                self.value(name_end)
            } else {
                harmless.insert(name);
                None
            };
            let place = place.or_else(|| self.token(name, name_end)).filter(|place| !place.is_empty());
            at = place.as_ref().map_or(name_end.max(at + 1), |place| place.end);
            found.extend(place);
        }
        if names_secrets && !self.hides_values { Self { hides_values: true, ..self }.places() } else { found }
    }

    /// The user of a URL whose authority begins here, if it has one, and where the authority ends.
    fn user(&self, start: usize) -> (Option<Range<usize>>, usize) {
        let end = self.end(start, |byte| !b"/?#\"".contains(&byte) && !byte.is_ascii_whitespace());
        (memchr::memrchr(b'@', &self.bytes[start..end]).map(|length| start..start + length), end)
    }

    /// The end of the bytes from here for which `is_such` is true.
    fn end(&self, at: usize, is_such: impl Fn(u8) -> bool) -> usize {
        self.bytes[at..].iter().position(|&byte| !is_such(byte)).map_or(self.bytes.len(), |length| at + length)
    }

    fn has_one_of(&self, at: usize, bytes: &[u8]) -> bool {
        self.bytes.get(at).is_some_and(|byte| bytes.contains(byte))
    }

    /// The content of an XML element with a secret name, which begins here, and the attributes if there are any.
    fn element(&self, at: usize) -> Option<Range<usize>> {
        let tag_end = self.end(at, |byte| byte == b':' || is_of_name(byte));
        let tag = &self.bytes[at..tag_end];
        let name = tag.rsplit(|&byte| byte == b':').next()?;
        let is_start = self.has_one_of(tag_end, b"> \t\r\n");
        (is_start && is_secret(name)).then(|| {
            let start = tag_end + 1;
            let length = memmem::find(&self.bytes[start..], &[b"</", tag].concat());
            start..length.map_or(self.bytes.len(), |length| start + length)
        })
    }

    /// The token after `Bearer` or `Basic`, unless it is an ordinary word.
    fn token(&self, name: &[u8], name_end: usize) -> Option<Range<usize>> {
        if !name.eq_ignore_ascii_case(b"bearer") && !name.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let start = self.end(name_end, is_blank);
        let end = self.end(start, |byte| byte.is_ascii_alphanumeric() || b"+/-_.~=".contains(&byte));
        let is_word = end - start < TOKEN_MIN || self.bytes[start..end].iter().all(u8::is_ascii_lowercase);
        (start > name_end && !is_word).then_some(start..end)
    }

    /// The end of a secret name that is itself the value of a name, as in `name="token"`.
    fn named(&self, name: &[u8], name_end: usize) -> Option<usize> {
        NAMING.iter().find(|naming| name.eq_ignore_ascii_case(naming))?;
        let start = self.end(self.mark(name_end)?.value, is_quote);
        let end = self.end(start, is_of_name);
        is_secret(&self.bytes[start..end]).then_some(end)
    }

    /// The content of a form's part in whose head a secret name ends here.
    fn part(&self, named_end: usize) -> Option<Range<usize>> {
        let head_end = self.end(named_end, is_quote);
        let head = &self.bytes[head_end..self.bytes.len().min(head_end + PART_HEAD_MAX)];
        self.has_one_of(head_end, b";\r\n").then_some(())?;
        let blank_lines = [&b"\n\r\n"[..], b"\n\n"];
        let ends = blank_lines.into_iter().filter_map(|blank| Some(memmem::find(head, blank)? + blank.len()));
        let start = head_end + ends.min()?;
        let end = memmem::find(&self.bytes[start..], b"\n--").map_or(self.bytes.len(), |length| start + length);
        Some(start..self.without_returns(start, end))
    }

    /// True if a name that ends here has a value. Most words have none, which is quicker to check than the name.
    fn has_value(&self, name: &[u8], name_end: usize) -> bool {
        // Without a name, every blank of many in a row would look for a mark after the others.
        !name.is_empty() && self.mark(name_end).is_some()
    }

    /// The mark after a name that ends here.
    fn mark(&self, name_end: usize) -> Option<Mark> {
        // As in `"name":`, `\"name\":` and `['name'] =`.
        let closed = self.end(name_end, |byte| b"\\\"']".contains(&byte));
        let is_quoted = closed > name_end;
        let at = self.end(closed, is_blank);
        self.has_one_of(at, b"=:").then(|| {
            // In a document, the value may be on the next line; without quotes, that would be another field.
            let value = self.end(at + 1, |byte| is_blank(byte) || (is_quoted && b"\r\n".contains(&byte)));
            Mark { is_equals: self.bytes[at] == b'=', is_quoted, value }
        })
    }

    /// The value of a name that ends here.
    fn value(&self, name_end: usize) -> Option<Range<usize>> {
        let Mark { is_equals, is_quoted, value: start } = self.mark(name_end)?;
        let opening = self.end(start, |byte| byte == b'\\');
        let first = *self.bytes.get(opening)?;
        Some(if !is_equals && (!is_quoted || b"|>".contains(&first)) {
            let end = self.lines_end(name_end, start);
            self.end(start, |byte| byte.is_ascii_whitespace()).min(end)..end
        } else if is_quote(first) && self.bytes[opening..].starts_with(&[first; 3]) {
            let content = opening + 3;
            let length = memmem::find(&self.bytes[content..], &[first; 3]);
            content..length.map_or(self.bytes.len(), |length| content + length)
        } else if is_quote(first) {
            opening + 1..self.closing_quote(opening + 1, first)
        } else if b"[{".contains(&first) && is_quoted {
            start..self.group_end(start)
        } else if is_equals {
            start..self.parameter_end(start)
        } else {
            start..self.end(start, |byte| !b",}\r\n".contains(&byte))
        })
    }

    /// Where a value after `name=` ends: at a quote only if something around the value also ends there.
    fn parameter_end(&self, start: usize) -> usize {
        let closes = |at: usize| {
            let next = self.bytes.get(at + 1);
            next.is_none_or(|next| next.is_ascii_whitespace() || AFTER_QUOTES.contains(next))
        };
        let is_end = |&at: &usize| match self.bytes[at] {
            b'&' | b'\r' | b'\n' => true,
            byte => (is_quote(byte) && closes(at)) || (self.blanks_end && byte.is_ascii_whitespace()),
        };
        (start..self.bytes.len()).find(is_end).unwrap_or(self.bytes.len())
    }

    /// The next quote that is not escaped. A quoted document in a document thus ends with the outer one.
    fn closing_quote(&self, start: usize, quote: u8) -> usize {
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                _ if byte == quote => return at,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }

    /// The end of a list or object of JSON.
    fn group_end(&self, start: usize) -> usize {
        let (mut depth, mut at) = (0, start);
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'"' => at = self.closing_quote(at + 1, b'"'),
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
        self.bytes.len()
    }

    /// Where a value after `name:` ends: with the line or, as in YAML, with the last of the lines after it that are
    /// indented more deeply than the name or are items of a list.
    fn lines_end(&self, name_end: usize, start: usize) -> usize {
        let line = memchr::memrchr(b'\n', &self.bytes[..name_end]).map_or(0, |at| at + 1);
        let margin = self.end(line, |byte| b" -".contains(&byte)) - line;
        let mut end = start;
        loop {
            end = self.end(end, |byte| byte != b'\n');
            let next = self.end(end, |byte| b"\r\n".contains(&byte));
            let inset = self.end(next, |byte| b" \t".contains(&byte));
            let is_item = inset - next == margin && self.bytes[inset..].starts_with(b"- ");
            if inset - next <= margin && !is_item {
                return self.without_returns(start, end);
            }
            end = next;
        }
    }

    /// An end without the carriage returns before it.
    fn without_returns(&self, start: usize, end: usize) -> usize {
        end - self.bytes[start..end].iter().rev().take_while(|byte| **byte == b'\r').count()
    }
}

/// The `=` or `:` between a name and its value.
struct Mark {
    is_equals: bool,
    is_quoted: bool,
    /// Where the value begins.
    value: usize,
}

/// True if a name is that of a secret. Decoded here, although a decoded text is searched as well, because there an
/// encoded `&` would end the value.
fn is_secret(name: &[u8]) -> bool {
    names::is_secret(name) || (name.contains(&b'%') && names::is_secret(&decoded(name).0))
}

fn is_quote(byte: u8) -> bool {
    b"\"'".contains(&byte)
}

/// True if a byte is a blank. In forms, a plus sign is one.
fn is_blank(byte: u8) -> bool {
    b" \t+".contains(&byte)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_-.[]%".contains(&byte)
}
