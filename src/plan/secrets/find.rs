//! Where the secrets stand in a text: the values of names that mean one, and the users of URLs.

use std::ops::Range;

use super::decode::{from_base64, plain};
use super::is_secret;

/// Where a value ends that belongs to a `name=`. Rather too much is hidden than too little.
const VALUE_ENDS: [char; 2] = ['&', '\n'];

/// What may follow a quote that closes something.
const BEHIND_QUOTES: [char; 8] = [',', '}', ']', ')', '>', ':', ';', '/'];

/// How often something may be encoded in itself.
const DEPTH_MAX: usize = 3;

/// The least length of a text in base64 that is worth a look, in bytes.
const BASE64_MIN: usize = 12;

/// The secrets of a text in their order. Where `blanks_end`, a value that belongs to a `name=` ends with the word.
pub(super) fn secrets(text: &str, blanks_end: bool) -> Vec<Range<usize>> {
    let mut finder = Finder { text, blanks_end, depth: 0, looked_into: 0, found: Vec::new() };
    finder.look(0, text.len());
    finder.found
}

/// Goes through a text from left to right.
struct Finder<'a> {
    text: &'a str,
    blanks_end: bool,
    /// How many encodings have been taken off the text.
    depth: usize,
    /// Up to where it is known that nothing encoded holds a secret.
    looked_into: usize,
    found: Vec<Range<usize>>,
}

impl<'a> Finder<'a> {
    /// Looks through a part of the text.
    fn look(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            at = self.step(at);
        }
    }

    /// Looks at what stands at one place; returns where to go on.
    fn step(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        if rest.starts_with("://") {
            return self.authority(at + "://".len());
        }
        if let Some(end) = self.element(at).or_else(|| self.encoded(at)) {
            return end;
        }
        let name_end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        let name = rest[..name_end].trim_end_matches('\\');
        if name.is_empty() {
            return at + name_end.max(rest.chars().next().map_or(1, char::len_utf8));
        }
        let behind = &rest[name.len()..];
        let found = if is_secret(name) { value_behind(behind, self.blanks_end) } else { None };
        match found.or_else(|| value_of_named(name, behind)) {
            Some(Range { start, end }) => self.hide(at + name.len() + start..at + name.len() + end),
            None => at + name.len(),
        }
    }

    /// Takes note of a secret, unless it is part of the one before it, and returns its end.
    fn hide(&mut self, Range { start, end }: Range<usize>) -> usize {
        let before = self.found.last().map_or(0, |before| before.end);
        if end >= before {
            self.found.push(start.max(before)..end);
        }
        end.max(before)
    }

    /// The user of a URL, whose authority begins here.
    fn authority(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let end = rest.find(|c: char| "/?#\"".contains(c) || c.is_whitespace()).unwrap_or(rest.len());
        if let Some((user, _)) = rest[..end].rsplit_once('@') {
            self.hide(at..at + user.len());
        }
        at + end
    }

    /// The content of an element of XML, and the attributes of its first tag, if one begins here whose name means a
    /// secret. Where the whole is a text in a page, the angles are entities.
    fn element(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let (open, close) = [("<", ">"), ("&lt;", "&gt;")].into_iter().find(|(open, _)| rest.starts_with(open))?;
        let inside = &rest[open.len()..];
        let name = &inside[..inside.find(|c: char| !is_of_tag(c)).unwrap_or(inside.len())];
        if !is_secret(name) {
            return None;
        }
        let next = inside.find(open).unwrap_or(inside.len());
        let tag_end = inside[..next].find(close)?;
        let (first, last) = (at + open.len() + name.len(), at + open.len() + tag_end);
        self.look(first, last);
        let start = last + close.len();
        let length = content_length(&self.text[start..], name, open);
        if length > 0 && !inside[..tag_end].ends_with('/') {
            return Some(self.hide(start..start + length));
        }
        Some(start)
    }

    /// What begins here, as a whole, if it is encoded and a secret stands in it.
    fn encoded(&mut self, at: usize) -> Option<usize> {
        if at < self.looked_into || self.depth == DEPTH_MAX {
            return None;
        }
        let rest = &self.text[at..];
        let run = |is_of_it: fn(char) -> bool| &rest[..rest.find(|c| !is_of_it(c)).unwrap_or(rest.len())];
        let (percent, base64) = (run(is_of_percent), run(is_of_base64));
        self.looked_into = at + percent.len().max(base64.len());
        let holds_secret = |decoded: &str| {
            let mut finder =
                Finder { text: decoded, blanks_end: false, depth: self.depth + 1, looked_into: 0, found: Vec::new() };
            finder.look(0, decoded.len());
            !finder.found.is_empty()
        };
        if percent.contains('%') && holds_secret(&plain(&percent.replace('+', " "))) {
            return Some(self.hide(at..at + percent.len()));
        }
        if base64.len() < BASE64_MIN || !from_base64(base64).is_some_and(|decoded| holds_secret(&decoded)) {
            return None;
        }
        let padding = rest[base64.len()..].bytes().take_while(|&byte| byte == b'=').count();
        Some(self.hide(at..at + base64.len() + padding))
    }
}

/// Whether a character may be part of a name, or of what is written for one.
fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || "_-.%[]\\".contains(character)
}

fn is_of_tag(character: char) -> bool {
    character.is_alphanumeric() || "_-.:".contains(character)
}

fn is_of_percent(character: char) -> bool {
    character.is_alphanumeric() || "_-.%+~*!()".contains(character)
}

fn is_of_base64(character: char) -> bool {
    character.is_ascii_alphanumeric() || "+/-_".contains(character)
}

/// How long the content of an element is, of which the first tag has been read; the whole rest if it does not end.
fn content_length(content: &str, name: &str, open: &str) -> usize {
    let (mut depth, mut at) = (1, 0);
    while let Some(next) = content[at..].find(open).map(|found| at + found) {
        at = next + open.len();
        let tag = &content[at..];
        let closed = tag.strip_prefix('/').unwrap_or(tag);
        if closed.strip_prefix(name).is_none_or(|behind| behind.starts_with(is_of_tag)) {
            continue;
        }
        depth = if closed.len() < tag.len() { depth - 1 } else { depth + 1 };
        if depth == 0 {
            return next;
        }
    }
    content.len()
}

/// The quote at the beginning of a text, with the backslashes before it or as an entity; empty if there is none.
fn quote(text: &str) -> &str {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    match &text[slashes..] {
        plain if plain.starts_with(['"', '\'']) => &text[..slashes + 1],
        entity if slashes == 0 && entity.starts_with("&quot;") => &text[.."&quot;".len()],
        _ => "",
    }
}

/// Where the value stands that follows a name; `None` if none follows.
fn value_behind(rest: &str, blanks_end: bool) -> Option<Range<usize>> {
    let closing = quote(rest);
    let is_quoted = !closing.is_empty();
    let behind = &rest[closing.len()..];
    // Documents go on behind the end of a line; without quotes that would be another field.
    let is_blank = |c: char| c == ' ' || c == '\t' || (is_quoted && (c == '\n' || c == '\r'));
    // As in `headers["Cookie"] = …`.
    let behind = behind.strip_prefix(']').filter(|_| is_quoted).unwrap_or(behind).trim_start_matches(is_blank);
    let mark = behind.chars().next().filter(|mark| "=:".contains(*mark))?;
    let behind = behind[1..].trim_start_matches(is_blank);
    let start = rest.len() - behind.len();
    let opening = quote(behind);
    if !opening.is_empty() {
        let start = start + opening.len();
        return Some(start..start + closing_quote(&behind[opening.len()..], opening));
    }
    let end = match behind.chars().next()? {
        '[' | '{' if is_quoted => group_end(behind),
        _ if mark == '=' => value_end(behind, blanks_end),
        // Behind the name of a field of a document stand numbers too, and further fields.
        _ => behind.find(|c: char| c == '\n' || (is_quoted && ",}".contains(c))),
    };
    Some(start..start + end.unwrap_or(behind.len())).filter(|place| !place.is_empty())
}

/// The same where the secret's name is a value itself, in `name="token"`: in the head of a form's part, behind which the
/// value follows an empty line, or beside a field that is called value.
fn value_of_named(name: &str, rest: &str) -> Option<Range<usize>> {
    const BESIDE: &str = "value";
    if !name.eq_ignore_ascii_case("name") {
        return None;
    }
    let star = if rest.starts_with('*') { 1 } else { 0 };
    let place = value_behind(&rest[star..], true)?;
    let field = rest[star..][place.clone()].split([';', '\r', '\n']).next().unwrap_or_default();
    let end = star + place.start + field.len();
    if !is_secret(field) {
        return None;
    }
    let behind = beginning(&rest[end..]);
    if behind[quote(behind).len()..].starts_with([';', '\r', '\n']) {
        let empty = ["\n\r\n", "\n\n"].into_iter().filter_map(|empty| Some(behind.find(empty)? + empty.len()));
        let start = end + empty.min()?;
        let value = &rest[start..];
        let length = value.find("\r\n--").or_else(|| value.find("\n--")).unwrap_or(value.len());
        return Some(start..start + length).filter(|place| !place.is_empty());
    }
    let object = &behind[..behind.find(['}', '>']).unwrap_or(behind.len())];
    let start = end + object.to_ascii_lowercase().find(BESIDE)? + BESIDE.len();
    value_behind(&rest[start..], false).map(|place| start + place.start..start + place.end)
}

/// As much of a text as the head of a part, or a small object, may have.
fn beginning(text: &str) -> &str {
    const LENGTH: usize = 512;
    let end = (0..=LENGTH.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Where a list or an object of a document ends, with everything in it; `None` if it does not.
fn group_end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted_until) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            _ if at < quoted_until => {}
            '"' => quoted_until = at + 1 + closing_quote(&text[at + 1..], "\"") + 1,
            '[' | '{' => depth += 1,
            ']' | '}' if depth == 1 => return Some(at + 1),
            ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Where a text ends that began with this quote: at the next one with as many backslashes before it, or, if there are
/// none, with an even number of them; the end if there is none.
fn closing_quote(text: &str, quote: &str) -> usize {
    let slashes = quote.trim_end_matches(['"', '\'']).len();
    let (bare, is_entity) = (&quote[slashes.min(quote.len())..], quote.starts_with('&'));
    if is_entity {
        return text.find(quote).unwrap_or(text.len());
    }
    let mut at = 0;
    while let Some(next) = text[at..].find(bare).map(|found| at + found) {
        let before = next - text[..next].trim_end_matches('\\').len();
        if before == slashes || (slashes == 0 && before.is_multiple_of(2)) {
            return next - slashes;
        }
        at = next + bare.len();
    }
    text.len()
}

/// Where a value behind `name=` ends: at a quote only if something around it ends there too.
fn value_end(text: &str, blanks_end: bool) -> Option<usize> {
    let is_end = |(at, c): &(usize, char)| {
        let next = text[at + c.len_utf8()..].chars().next();
        let closes = next.is_none_or(|next| next.is_whitespace() || BEHIND_QUOTES.contains(&next));
        VALUE_ENDS.contains(c) || (blanks_end && c.is_whitespace()) || ("\"'".contains(*c) && closes)
    };
    text.char_indices().find(is_end).map(|(at, _)| at)
}
