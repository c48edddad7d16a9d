//! Percent-encoding undone once, and the source of every byte.

use std::ops::Range;

use crate::percent_encoding::byte;

/// Matches of `find` in a text as it is and in the decoded text: places in the text, in order and apart.
pub(super) fn search(text: &[u8], find: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut places = find(text);
    if memchr::memchr2(b'%', b'\\', text).is_none() {
        return apart(places);
    }
    let (bytes, sources) = decoded(text);
    if bytes.len() < text.len() {
        places.extend(find(&bytes).into_iter().map(|place| sources[place.start]..sources[place.end]));
    }
    apart(places)
}

/// Places in order, with those that overlap made one.
pub(super) fn apart(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| place.start);
    places.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        last.end = if overlaps { last.end.max(next.end) } else { last.end };
        overlaps
    });
    places
}

/// The bytes with `%XX` decoded, as in URLs and forms, and `\u00XX`, with which JSON may spell a letter; and where each
/// begins in the text, followed by the text's end.
pub(super) fn decoded(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::with_capacity(text.len());
    let mut sources = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (undone, length) = match text[at..] {
            // Cut off.
            [b'%'] | [b'%', _] => break,
            [b'%', high, low, ..] => (byte([high, low]), 3),
            [b'\\', b'u', b'0', b'0', high, low, ..] => (byte([high, low]).filter(u8::is_ascii), 6),
            _ => (None, 1),
        };
        bytes.push(undone.unwrap_or(text[at]));
        sources.push(at);
        at += if undone.is_some() { length } else { 1 };
    }
    sources.push(text.len());
    (bytes, sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_level_is_undone() {
        for (text, expected) in [
            ("token", "token"),
            ("%74oken", "token"),
            ("%2574oken", "%74oken"),
            (r"pass\u0077ord\u00e9", r"password\u00e9"),
            ("100% =%g1%+1", "100% =%g1%+1"),
            ("cut%2", "cut"),
            ("cut%", "cut"),
        ] {
            assert_eq!(String::from_utf8_lossy(&decoded(text.as_bytes()).0), expected, "{text}");
        }
    }

    #[test]
    fn places_are_disjoint_and_include_a_cut_escape() {
        let find = |bytes: &[u8]| {
            let of = |what: &[u8]| memchr::memmem::find_iter(bytes, what).map(|at| at..at + what.len()).collect();
            [b"ab".as_slice(), b"bc", b"x"].into_iter().flat_map(|what| -> Vec<_> { of(what) }).collect()
        };
        assert_eq!(search(b"x-%61b%63x%7", find), [0..1, 2..9, 9..12]);
        assert_eq!(search(b"abcx", find), [0..3, 3..4]);
    }
}
