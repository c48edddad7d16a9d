//! Checks of responses: failure statuses, required header fields, and required strings in bodies, in whatever pieces
//! they arrive.
//!
//! Keeps no body: for each string, only the length of the longest match at the end of the body so far.

use memchr::memmem::Finder;
use onrush_plan as plan;
use onrush_plan::checks::{ExpectedHeader, StatusList, is_failure};
use onrush_proto::Fields;

/// Bytes of an actual value kept as an example.
const EXAMPLE_BYTES: usize = 120;

/// The checks of a worker's responses.
pub struct Checks {
    status: Option<StatusList>,
    headers: Vec<ExpectedHeader>,
    needles: Vec<Needle>,
    /// Memory of ended responses; boxed, as in open requests.
    #[expect(clippy::vec_box, reason = "a request takes a box without moving its contents")]
    free: Vec<Box<Seen>>,
}

/// State of the checks of one response.
#[derive(Debug, Default)]
pub struct Checked {
    /// Bit i is set if check i failed. Until the body ends, body checks not yet passed count as failed.
    pub failed: u32,
    /// Earlier parts of the response, if a check still needs them.
    seen: Option<Box<Seen>>,
}

impl Checked {
    /// The number of the first failed check, if any.
    pub fn first_failed_check(&self) -> Option<u8> {
        (self.failed != 0).then(|| self.failed.trailing_zeros() as u8)
    }
}

/// Earlier parts of a response that has not passed every check at once.
#[derive(Debug)]
struct Seen {
    /// For each required string: length of its longest beginning that ends the body so far.
    matched: Vec<usize>,
    /// The first value of the first wrong field.
    value: Vec<u8>,
    body: Vec<u8>,
}

impl Checks {
    /// The checks of a plan; `None`: the plan has none.
    pub fn new(checks: &plan::Checks) -> Option<Box<Self>> {
        let plan::Checks { status, headers, body } = checks.clone();
        let needles = body.iter().map(|text| Needle::new(text.as_bytes())).collect();
        (!checks.is_empty()).then(|| Box::new(Self { status, headers, needles, free: Vec::new() }))
    }

    pub fn is_failure(&self, status: u16) -> bool {
        is_failure(self.status.as_ref(), status)
    }

    /// True if any check needs bodies.
    pub fn want_body(&self) -> bool {
        !self.needles.is_empty()
    }

    /// Checks a head. No text of the body counts as found yet.
    pub fn check_head(&mut self, checked: &mut Checked, fields: &Fields<'_>) {
        self.recycle_memory(checked);
        checked.failed = lowest_bits(self.needles.len()) << self.headers.len();
        for (number, ExpectedHeader { name, value }) in self.headers.iter().enumerate() {
            let of_name = || fields.clone().filter(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
            if of_name().any(|(_, found)| value.as_ref().is_none_or(|value| value.as_bytes() == found)) {
                continue;
            }
            // The first failed check provides the example.
            if let (Some((_, found)), 0) = (of_name().next(), checked.failed & lowest_bits(number)) {
                extend(&mut take(&mut checked.seen, &mut self.free, self.needles.len()).value, found);
            }
            checked.failed |= 1 << number;
        }
    }

    /// Searches the next piece of a body for the required strings.
    pub fn search_body(&mut self, checked: &mut Checked, piece: &[u8]) {
        if checked.failed >> self.headers.len() != 0 {
            self.search(checked, piece);
        }
    }

    fn search(&mut self, checked: &mut Checked, piece: &[u8]) {
        let of_heads = self.headers.len();
        for (number, text) in self.needles.iter().enumerate() {
            let bit = 1 << (of_heads + number);
            if checked.failed & bit == 0 {
                continue;
            }
            let before = checked.seen.as_ref().map_or(0, |seen| seen.matched[number]);
            match text.match_piece(before, piece) {
                // A body that arrives in one piece needs no memory.
                None => checked.failed &= !bit,
                Some(matched) => {
                    take(&mut checked.seen, &mut self.free, self.needles.len()).matched[number] = matched;
                }
            }
        }
        if checked.failed >> of_heads != 0 {
            extend(&mut take(&mut checked.seen, &mut self.free, self.needles.len()).body, piece);
        }
    }

    /// The actual value, or the beginning of the body, for the first failed check.
    pub fn failed_value(&self, checked: &Checked) -> Vec<u8> {
        let is_of_head = checked.failed & lowest_bits(self.headers.len()) != 0;
        let part = checked.seen.as_ref().map(|seen| if is_of_head { &seen.value } else { &seen.body });
        part.cloned().unwrap_or_default()
    }

    /// Takes back the memory of a response that is no longer needed.
    pub fn recycle_memory(&mut self, checked: &mut Checked) {
        if let Some(mut seen) = checked.seen.take() {
            seen.matched.fill(0);
            seen.value.clear();
            seen.body.clear();
            self.free.push(seen);
        }
    }
}

/// The memory of a response, reused from an earlier response if necessary.
#[expect(clippy::vec_box, reason = "a request takes a box without moving its contents")]
fn take<'a>(seen: &'a mut Option<Box<Seen>>, free: &mut Vec<Box<Seen>>, needles: usize) -> &'a mut Seen {
    let new = || Box::new(Seen { matched: vec![0; needles], value: Vec::new(), body: Vec::new() });
    seen.get_or_insert_with(|| free.pop().unwrap_or_else(new))
}

/// The lowest `count` bits.
fn lowest_bits(count: usize) -> u32 {
    (1 << count) - 1
}

/// Appends bytes while the example has room.
fn extend(example: &mut Vec<u8>, bytes: &[u8]) {
    let room = EXAMPLE_BYTES.saturating_sub(example.len());
    example.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// A string that bodies must contain, searched with Knuth–Morris–Pratt at the borders of pieces.
struct Needle {
    finder: Finder<'static>,
    /// Failure function: for each beginning of the string, the length of the longest shorter beginning that is its
    /// suffix.
    borders: Vec<usize>,
}

impl Needle {
    /// A string of at least one byte.
    fn new(text: &[u8]) -> Self {
        let mut text = Self { finder: Finder::new(text).into_owned(), borders: vec![0] };
        for end in 1..text.finder.needle().len() {
            let border = text.match_byte(text.borders[end - 1], text.finder.needle()[end]);
            text.borders.push(border);
        }
        text
    }

    /// Length of the match after this byte, given the length before it.
    fn match_byte(&self, mut matched: usize, byte: u8) -> usize {
        let text = self.finder.needle();
        while matched > 0 && text[matched] != byte {
            matched = self.borders[matched - 1];
        }
        matched + usize::from(text[matched] == byte)
    }

    /// [`Self::match_byte`] for a piece of a body; `None`: it contains the end of the text.
    fn match_piece(&self, mut matched: usize, piece: &[u8]) -> Option<usize> {
        let length = self.finder.needle().len();
        let mut rest = piece;
        while let ([byte, others @ ..], 1..) = (rest, matched) {
            matched = self.match_byte(matched, *byte);
            if matched == length {
                return None;
            }
            rest = others;
        }
        if rest.len() >= length && self.finder.find(rest).is_some() {
            return None;
        }
        let tail = &rest[rest.len().saturating_sub(length - 1)..];
        Some(tail.iter().fold(matched, |matched, byte| self.match_byte(matched, *byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches for a string in a body that arrives in pieces ending at `ends`.
    fn is_found(text: &str, body: &[u8], ends: &[usize]) -> bool {
        let text = Needle::new(text.as_bytes());
        let mut start = 0;
        let mut matched = Some(0);
        for &end in ends.iter().chain(&[body.len()]) {
            matched = matched.and_then(|matched| text.match_piece(matched, &body[start..end]));
            start = end;
        }
        matched.is_none()
    }

    #[test]
    fn texts_are_found_across_any_split() {
        for (text, body) in [
            ("a", "xxaxx"),
            ("aab", "aaaab"),
            ("abab", "abaabab"),
            ("abacabab", "abacabacabab"),
            ("aaa", "aabaaba"),
            ("\"status\":\"ok\"", "{\"status\":\"okay\",\"status\":\"ok\"}"),
            ("é", "cafe\u{301} caf\u{e9}"),
            ("abc", "ab"),
            ("abc", ""),
        ] {
            let (body, expected) = (body.as_bytes(), body.contains(text));
            for first in 0..=body.len() {
                for second in first..=body.len() {
                    assert_eq!(is_found(text, body, &[first, second]), expected, "{text} at {first} and {second}");
                }
            }
            let single: Vec<usize> = (0..body.len()).collect();
            assert_eq!(is_found(text, body, &single), expected, "{text} byte by byte");
        }
    }
}
