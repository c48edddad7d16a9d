//! Finds secrets in bytes: the values of secret names, and the users of URLs.

use std::ops::Range;

use super::decode::{DEPTH_MAX, View, views, words};
use super::names::is_secret;

/// What may follow a closing quote.
const AFTER_QUOTES: &[u8] = b",}]):;/>";

/// How far around a secret's name its value is searched for, where the name is itself a value, in bytes.
const BESIDE_MAX: usize = 256;

/// The minimum length of a word that is decoded as a whole, in bytes.
const WORD_MIN: usize = 12;

/// The minimum length of a token after `Bearer` or `Basic`, in bytes.
const CREDENTIALS_MIN: usize = 8;

/// The minimum length of a decoded text that can hold a secret, in bytes.
const TEXT_MIN: usize = 6;

/// The secrets in a text, in order. With `blanks_end`, a value after `name=` ends at the first blank.
pub(super) fn secrets(text: &[u8], blanks_end: bool) -> Vec<Range<usize>> {
    joined(found(text, blanks_end, 0))
}

/// Sorts places and merges those that overlap.
pub(super) fn joined(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| place.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for place in places {
        match joined.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => joined.push(place),
        }
    }
    joined
}

fn found(text: &[u8], blanks_end: bool, depth: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for view in views(text) {
        let mut finder = Finder { view: &view, bytes: &view.bytes, blanks_end, found: Vec::new() };
        finder.look(0, view.bytes.len());
        if depth < DEPTH_MAX {
            finder.look_into_words(depth);
        }
        found.extend(finder.found.into_iter().map(|place| view.source(place.start)..view.source(place.end)));
    }
    found
}

/// Scans a view from left to right.
struct Finder<'a> {
    view: &'a View,
    bytes: &'a [u8],
    blanks_end: bool,
    found: Vec<Range<usize>>,
}

impl<'a> Finder<'a> {
    /// Scans a part of the bytes.
    fn look(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            at = self.step(at);
        }
    }

    /// Examines one position; returns where to continue.
    fn step(&mut self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        if rest.starts_with(b"://") {
            return self.authority(at + b"://".len());
        }
        if let Some(end) = self.element(at) {
            return end;
        }
        let end = at + run(rest, is_of_name);
        let name = &self.bytes[at..end];
        if name.is_empty() {
            return at + 1;
        }
        if self.is_beside_its_value(at, end) {
            return end;
        }
        let value = if is_secret(name) { self.value(end) } else { None };
        match value.or_else(|| self.credentials(name, end)) {
            Some(place) => self.hide(place),
            None => end,
        }
    }

    /// Records a secret and returns its end.
    fn hide(&mut self, place: Range<usize>) -> usize {
        let end = place.end;
        self.found.push(place);
        end
    }

    /// Hides whole words whose decoded text holds a secret.
    fn look_into_words(&mut self, depth: usize) {
        let mut at = 0;
        while at < self.bytes.len() {
            let end = at + run(&self.bytes[at..], is_of_base64);
            let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
            let holds_secret = |said: &Vec<u8>| {
                let mut texts = said.split(|byte| !is_text(byte)).filter(|text| text.len() >= TEXT_MIN);
                texts.any(|text| !found(text, false, depth + 1).is_empty())
            };
            if end - at >= WORD_MIN && words(&self.bytes[at..end]).iter().any(holds_secret) {
                let padding = run(&self.bytes[end..], |byte| byte == b'=');
                self.hide(at..end + padding);
            }
            at = end + 1;
        }
    }

    /// Hides the user in a URL's authority, which begins here; returns the end of the authority.
    fn authority(&mut self, at: usize) -> usize {
        let end = at + run(&self.bytes[at..], |byte| !b"/?#\"".contains(&byte) && !byte.is_ascii_whitespace());
        if let Some(user) = self.bytes[at..end].iter().rposition(|&byte| byte == b'@') {
            self.hide(at..at + user);
        }
        end
    }

    /// Hides the content of an XML element, and the secrets in the attributes of its start tag, if an element with a
    /// secret name begins here.
    fn element(&mut self, at: usize) -> Option<usize> {
        let inside = self.bytes[at..].strip_prefix(b"<")?;
        let name = &inside[..run(inside, is_of_tag)];
        if !is_secret(name) {
            return None;
        }
        let tag_end = run(inside, |byte| !b"<>".contains(&byte));
        inside.get(tag_end).filter(|byte| **byte == b'>')?;
        let start = at + 1 + tag_end + 1;
        self.look(at + 1 + name.len(), start - 1);
        let length = if inside[..tag_end].ends_with(b"/") { 0 } else { content_length(&self.bytes[start..], name) };
        Some(if length > 0 { self.hide(start..start + length) } else { start })
    }

    /// The token after `Bearer` or `Basic`, unless it is an ordinary word.
    fn credentials(&self, name: &[u8], name_end: usize) -> Option<Range<usize>> {
        let is_scheme = ["bearer", "basic"].iter().any(|scheme| name.eq_ignore_ascii_case(scheme.as_bytes()));
        if !is_scheme {
            return None;
        }
        let start = name_end + run(&self.bytes[name_end..], is_blank);
        let token = &self.bytes[start..];
        let token = &token[..run(token, |byte| is_of_base64(byte) || b".~=".contains(&byte))];
        let is_word = token.len() < CREDENTIALS_MIN || token.iter().all(|byte| byte.is_ascii_lowercase());
        (start > name_end && !is_word).then_some(start..start + token.len())
    }

    /// The place of the value that follows a name; `None` if there is no value.
    fn value(&self, name_end: usize) -> Option<Range<usize>> {
        let bytes = self.bytes;
        let is_quoted = bytes.get(name_end).is_some_and(is_quote);
        // In a document, the value may be on the next line; without quotes, that would be another field.
        let blanks = |at| at + run(&bytes[at..], |byte| is_blank(byte) || (is_quoted && b"\r\n".contains(&byte)));
        let mut mark = name_end + usize::from(is_quoted);
        // As in `headers["Cookie"] = …`.
        mark += usize::from(is_quoted && bytes.get(mark) == Some(&b']'));
        mark = blanks(mark);
        let is_equals = *bytes.get(mark).filter(|byte| b"=:".contains(byte))? == b'=';
        let start = blanks(mark + 1);
        let is_end_of_field = |byte| !b",}\r\n".contains(&byte);
        let place = match *bytes.get(start)? {
            ref quote if is_quote(quote) => {
                let opening = if bytes[start..].starts_with(&[*quote; 3]) { 3 } else { 1 };
                start + opening..self.closing_quote(start, opening)
            }
            b'[' | b'{' if is_quoted => start..self.group_end(start),
            _ if is_equals => start..self.value_end(start, self.view.width(mark)),
            b'|' | b'>' => start..self.block_end(name_end, start),
            // In a document, the value after a quoted name may also be a number, and further fields may follow.
            _ if is_quoted => start..start + run(&bytes[start..], is_end_of_field),
            _ => {
                let end = self.block_end(name_end, start);
                (start + run(&bytes[start..end], |byte| byte.is_ascii_whitespace())).min(end)..end
            }
        };
        (!place.is_empty()).then_some(place)
    }

    /// Hides the value of a secret name that is itself a value, as in `name="token"`, and returns whether it did.
    /// Either this is in the head of a form's part, whose value follows an empty line, or a field called `value` is
    /// beside it.
    fn is_beside_its_value(&mut self, at: usize, end: usize) -> bool {
        let bytes = self.bytes;
        let is_one_of =
            |name: &[u8], names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        if !is_one_of(&bytes[at..end], &["name", "key", "field", "id"]) {
            return false;
        }
        let Some(Range { start, end }) = self.value(end + usize::from(bytes.get(end) == Some(&b'*'))) else {
            return false;
        };
        let end = start + run(&bytes[start..end], |byte| !b";\r\n".contains(&byte));
        if !is_secret(&bytes[start..end]) {
            return false;
        }
        let found = self.found.len();
        let after = end + usize::from(bytes.get(end).is_some_and(is_quote));
        if bytes.get(after).is_some_and(|byte| b";\r\n".contains(byte)) && self.hide_part(end) {
            return true;
        }
        let inside = enclosing(bytes, at, end);
        let mut at = inside.start;
        while at < inside.end {
            let end = at + run(&bytes[at..inside.end], is_of_name);
            let is_value = is_one_of(&bytes[at..end], &["value", "val"]);
            let value = if is_value { self.value(end) } else { None };
            at = value.map_or(end, |place| self.hide(place)).max(at + 1);
        }
        self.found.len() > found
    }

    /// Hides the content of a form's part in whose head this position is; false if this is not such a head.
    fn hide_part(&mut self, at: usize) -> bool {
        let head = &self.bytes[at..self.bytes.len().min(at + BESIDE_MAX)];
        let position = |text: &[u8], what: &[u8]| memchr::memmem::find(text, what);
        let empty = [&b"\n\r\n"[..], b"\n\n"].map(|empty| Some(at + position(head, empty)? + empty.len()));
        let Some(start) = empty.into_iter().flatten().min() else { return false };
        let rest = &self.bytes[start..];
        let length = position(rest, b"\r\n--").or_else(|| position(rest, b"\n--")).unwrap_or(rest.len());
        if length > 0 {
            self.hide(start..start + length);
        }
        true
    }

    /// Where a text that begins with this quote, or with three of them, ends: at the next quote with the same encoding
    /// that is not escaped.
    fn closing_quote(&self, opening: usize, length: usize) -> usize {
        let (bytes, width) = (self.bytes, self.view.width(opening));
        let is_escaped = |at: usize| {
            let is_slash = |at: &usize| bytes[*at] == b'\\' && self.view.width(*at) == width;
            (opening + length..at).rev().take_while(is_slash).count() % 2 == 1
        };
        let quotes = &bytes[opening..opening + length];
        let is_end = |at: &usize| bytes[*at..].starts_with(quotes) && self.view.width(*at) == width && !is_escaped(*at);
        (opening + length..bytes.len()).find(is_end).unwrap_or(bytes.len())
    }

    /// The end of a list or object in a document; the end of the bytes if it is not closed.
    fn group_end(&self, start: usize) -> usize {
        let (mut depth, mut is_text, mut at) = (0, false, start);
        while let Some(byte) = self.bytes.get(at) {
            let is_mark = self.view.width(at) == self.view.width(start);
            match byte {
                b'\\' if is_text && is_mark => at += 1,
                b'"' if is_mark => is_text = !is_text,
                b'[' | b'{' if is_mark && !is_text => depth += 1,
                b']' | b'}' if is_mark && !is_text => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
        self.bytes.len()
    }

    /// Where a value after `name=` ends: at a quote only if something around the value also ends there. Characters that
    /// are encoded more deeply than the equals sign are part of the value.
    fn value_end(&self, start: usize, width: usize) -> usize {
        let is_end = |at: &usize| {
            let (byte, next) = (self.bytes[*at], self.bytes.get(at + 1));
            let closes = next.is_none_or(|next| next.is_ascii_whitespace() || AFTER_QUOTES.contains(next));
            let ends = b"&\r\n".contains(&byte) || (is_quote(&byte) && closes);
            let depth = self.view.width(*at);
            (ends && depth <= width) || (byte.is_ascii_whitespace() && (self.blanks_end || depth < width))
        };
        (start..self.bytes.len()).find(is_end).unwrap_or(self.bytes.len())
    }

    /// Where a value after `name:` ends: with the line or, as in YAML, with the last following line that is indented
    /// more deeply than the name.
    fn block_end(&self, name_end: usize, start: usize) -> usize {
        let bytes = self.bytes;
        let line_end = |at: usize| at + run(&bytes[at..], |byte| byte != b'\n');
        let mut end = line_end(start);
        let line =
            name_end - bytes[..name_end].iter().rev().take(BESIDE_MAX).take_while(|byte| **byte != b'\n').count();
        let margin = run(&bytes[line..], |byte| b" -".contains(&byte));
        let is_first = bytes[line + margin..name_end].iter().all(|byte| is_of_name(*byte) || is_quote(byte));
        let is_empty = bytes[start..end].iter().all(u8::is_ascii_whitespace);
        let mut next = end + 1;
        while is_first && next < bytes.len() {
            let this = &bytes[next..line_end(next)];
            let inset = run(this, is_blank);
            let is_item = is_empty && inset == margin && this[inset..].starts_with(b"- ");
            next += this.len() + 1;
            match this.trim_ascii().is_empty() {
                true => {}
                false if inset > margin || is_item => end = next - 1,
                false => break,
            }
        }
        // The line break is not part of the value.
        end - bytes[start..end].iter().rev().take_while(|byte| **byte == b'\r').count()
    }
}

/// The number of leading bytes for which `is_such` is true.
fn run(bytes: &[u8], is_such: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !is_such(byte)).unwrap_or(bytes.len())
}

fn is_quote(byte: &u8) -> bool {
    b"\"'".contains(byte)
}

/// Whether a byte is a blank. In forms, a plus sign is one.
fn is_blank(byte: u8) -> bool {
    b" \t+".contains(&byte)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_-.[]".contains(&byte)
}

fn is_of_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte)
}

fn is_of_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// The length of an element's content after its start tag; all of the rest if the element is not closed.
fn content_length(content: &[u8], name: &[u8]) -> usize {
    let (mut depth, mut at) = (1, 0);
    while let Some(next) = memchr::memchr(b'<', &content[at..]).map(|found| at + found) {
        at = next + 1;
        let tag = &content[at..];
        let closed = tag.strip_prefix(b"/").unwrap_or(tag);
        if closed.strip_prefix(name).is_none_or(|after| after.first().is_some_and(|byte| is_of_tag(*byte))) {
            continue;
        }
        depth = if closed.len() < tag.len() { depth - 1 } else { depth + 1 };
        if depth == 0 {
            return next;
        }
    }
    content.len()
}

/// The object or tag around a place, within [`BESIDE_MAX`] bytes.
fn enclosing(bytes: &[u8], start: usize, end: usize) -> Range<usize> {
    let (first, last) = (start.saturating_sub(BESIDE_MAX), bytes.len().min(end + BESIDE_MAX));
    let before = borders(bytes[first..start].iter().rev(), b"}>", b"{<").map_or(first, |count| start - count);
    let after = borders(bytes[end..last].iter(), b"{<", b"}>").map_or(last, |count| end + count);
    before..after
}

/// The number of bytes before the border of the object or tag around them.
fn borders<'a>(mut bytes: impl Iterator<Item = &'a u8>, inner: &[u8], outer: &[u8]) -> Option<usize> {
    let mut depth = 0;
    bytes.position(|byte| {
        depth += i32::from(inner.contains(byte)) - i32::from(outer.contains(byte));
        depth < 0
    })
}
