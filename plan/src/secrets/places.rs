//! Finds secrets by their places: the users of URLs, the values of secret names, and tokens after `Bearer` or `Basic`.
//!
//! Headers, queries, forms, options, scripts and documents follow one rule: a name, perhaps in quotes, then `=` or `:`,
//! then the value. Multipart forms follow another one. Bytes are searched as they are, and with percent-encoding undone
//! once.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;

use super::names;
use crate::percent_encoding::hex_byte;

/// Separator before the user and host of a URL.
const AUTHORITY: &[u8] = b"://";

/// Text before the name of a part of a form.
const PART: &[u8] = b"form-data; name=\"";

/// The maximum length, in bytes, of the head of such a part after this text.
const PART_HEAD_MAX: usize = 256;

/// Characters that may follow a closing quote.
const AFTER_QUOTES: &[u8] = b",}]):;/>";

/// The minimum length of a token after `Bearer` or `Basic`, in bytes.
const TOKEN_MIN: usize = 8;

/// The places of the secrets in bytes, in order and without overlaps. With `blanks_end`, a value after `name=` ends at
/// the first blank.
pub(super) fn places(text: &[u8], blanks_end: bool) -> Vec<Range<usize>> {
    search(text, |bytes| Finder { bytes, blanks_end }.places())
}

/// The places of the users of URLs in bytes, in order and without overlaps.
pub(super) fn users(text: &[u8]) -> Vec<Range<usize>> {
    let finder = Finder { bytes: text, blanks_end: false };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = memmem::find(&text[at..], AUTHORITY) {
        let start = at + next + AUTHORITY.len();
        at = finder.user(start).1;
        // Text with a colon may be a user whose password contains characters that would end it, such as a slash.
        if text[start..at].contains(&b':') {
            at = finder.end(start, |byte| byte != b'"' && !byte.is_ascii_whitespace());
        }
        let user = memchr::memrchr(b'@', &text[start..at]).map(|length| start..start + length);
        // The user in an example is nobody's.
        found.extend(user.filter(|place| &text[place.clone()] != b"USER:PW"));
    }
    found
}

/// Places of the matches of `find` in bytes as they are, and with percent-encoding undone once. In order; overlapping
/// places are merged.
pub(super) fn search(text: &[u8], find: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut places = find(text);
    if text.contains(&b'%') {
        let (bytes, sources) = decoded(text);
        places.extend(find(&bytes).into_iter().map(|place| sources[place.start]..sources[place.end]));
    }
    places.sort_unstable_by_key(|place| place.start);
    places.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        last.end = if overlaps { last.end.max(next.end) } else { last.end };
        overlaps
    });
    places
}

/// The bytes with `%XX` decoded, and the position in the text at which each begins, followed by the end of the text. An
/// escape cut off by the end of the text is left out.
pub(super) fn decoded(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut sources, mut at) = (Vec::with_capacity(text.len()), Vec::new(), 0);
    while at < text.len() {
        let undone = match text[at..] {
            [b'%'] | [b'%', _] => break,
            [b'%', high, low, ..] => hex_byte([high, low]),
            _ => None,
        };
        bytes.push(undone.unwrap_or(text[at]));
        sources.push(at);
        at += if undone.is_some() { 3 } else { 1 };
    }
    sources.push(text.len());
    (bytes, sources)
}

/// Scans bytes from left to right in linear time: hidden bytes are not looked at again.
struct Finder<'a> {
    bytes: &'a [u8],
    blanks_end: bool,
}

impl Finder<'_> {
    fn places(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        // The lines of a list or a form repeat the same names again and again.
        let mut harmless: HashSet<&[u8]> = HashSet::new();
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
            // Most words are followed by no mark, and looking for one is quicker than checking the name.
            let mark = if name.is_empty() || harmless.contains(name) { None } else { self.mark(name_end) };
            let place = match mark {
                Some(mark) if is_secret(name) => self.value(&mark),
                Some(_) => {
                    harmless.insert(name);
                    None
                }
                None => self.token(name, name_end),
            };
            let place = place.filter(|place| !place.is_empty());
            at = place.as_ref().map_or(name_end.max(at + 1), |place| place.end);
            found.extend(place);
        }
        found.extend(self.parts());
        found
    }

    /// The contents of those parts of a multipart form that have a secret name.
    fn parts(&self) -> Vec<Range<usize>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(next) = memmem::find(&self.bytes[at..], PART) {
            let name = at + next + PART.len();
            at = self.end(name, |byte| byte != b'"');
            let head = &self.bytes[at..self.bytes.len().min(at + PART_HEAD_MAX)];
            if is_secret(&self.bytes[name..at])
                && let Some(length) = memmem::find(head, b"\r\n\r\n")
            {
                let start = at + length + 4;
                at = memmem::find(&self.bytes[start..], b"\r\n--").map_or(self.bytes.len(), |length| start + length);
                found.push(start..at);
            }
        }
        found.retain(|place| !place.is_empty());
        found
    }

    /// The user in a URL whose authority begins here, if there is one, and the end of the authority.
    fn user(&self, start: usize) -> (Option<Range<usize>>, usize) {
        let end = self.end(start, |byte| !b"/?#\"".contains(&byte) && !byte.is_ascii_whitespace());
        (memchr::memrchr(b'@', &self.bytes[start..end]).map(|length| start..start + length), end)
    }

    /// The end of the bytes from here for which `is_such` is true.
    fn end(&self, at: usize, is_such: impl Fn(u8) -> bool) -> usize {
        self.bytes[at..].iter().position(|&byte| !is_such(byte)).map_or(self.bytes.len(), |length| at + length)
    }

    /// The token after `Bearer` or `Basic`, unless it is an ordinary word.
    fn token(&self, name: &[u8], name_end: usize) -> Option<Range<usize>> {
        if !name.eq_ignore_ascii_case(b"bearer") && !name.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let start = self.end(name_end, is_blank);
        if start == name_end {
            return None;
        }
        let end = self.end(start, |byte| byte.is_ascii_alphanumeric() || b"+/-_.~=".contains(&byte));
        let is_word = end - start < TOKEN_MIN || self.bytes[start..end].iter().all(u8::is_ascii_lowercase);
        (!is_word).then_some(start..end)
    }

    /// The mark after a name that ends here.
    fn mark(&self, name_end: usize) -> Option<Mark> {
        // A closing quote, as in `"name":`, `\"name\":` and `['name'] =`.
        let closed = self.end(name_end, |byte| b"\\\"']".contains(&byte));
        let is_quoted = closed > name_end;
        let at = self.end(closed, is_blank);
        let mark = self.bytes.get(at).filter(|byte| b"=:".contains(byte))?;
        // After a name in quotes, as in a document, the value may be on the next line; otherwise the next line is
        // another field.
        let value = self.end(at + 1, |byte| is_blank(byte) || (is_quoted && b"\r\n".contains(&byte)));
        Some(Mark { is_equals: *mark == b'=', is_quoted, value })
    }

    /// The value after a mark.
    fn value(&self, &Mark { is_equals, is_quoted, value: start }: &Mark) -> Option<Range<usize>> {
        let opening = self.end(start, |byte| byte == b'\\');
        let first = *self.bytes.get(opening)?;
        Some(if is_quote(first) && (is_equals || is_quoted) {
            opening + 1..self.closing_quote(opening + 1, first)
        } else if is_equals {
            start..self.parameter_end(start)
        } else if is_quoted && !b"[{".contains(&first) {
            start..self.end(start, |byte| !b",}\r\n".contains(&byte))
        } else {
            start..self.end(start, |byte| !b"\r\n".contains(&byte))
        })
    }

    /// The end of a value after `name=`: at a quote only if something around the value also ends there.
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

    /// The position of the next quote that is not escaped. A quoted document within a document thus ends with the outer
    /// quote.
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
}

/// The `=` or `:` between a name and its value.
struct Mark {
    is_equals: bool,
    is_quoted: bool,
    /// Position of the value.
    value: usize,
}

/// True if a name, percent-encoded or not, is that of a secret. It is decoded here, although the decoded text is
/// searched as well, because an encoded `&` would end the value there.
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

pub(super) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_-.[]%".contains(&byte)
}
