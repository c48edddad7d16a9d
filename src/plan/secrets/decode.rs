//! Decoded views of bytes, with the source position of every byte.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The deepest nesting of encodings that is undone.
pub(super) const DEPTH_MAX: usize = 3;

/// Bytes after an encoding was undone.
pub(super) struct View {
    /// The decoded bytes.
    pub bytes: Vec<u8>,
    /// Where each byte begins in the source, followed by the source's end; empty if this is the source itself.
    sources: Vec<usize>,
}

/// The bytes unchanged, and with escapes undone up to [`DEPTH_MAX`] times, also after quoted-printable.
pub(super) fn views(bytes: &[u8]) -> Vec<View> {
    let plain = View { bytes: bytes.to_vec(), sources: Vec::new() };
    // In a quoted-printable mail, `name=value` has an encoded equals sign; a plain `token=ab` is not quoted-printable.
    let is_printable =
        [&b"=3D"[..], b"=3d", b"=\n", b"=\r\n"].iter().any(|mark| memchr::memmem::find(bytes, mark).is_some());
    if is_printable { all_views(bytes) } else { unescaped(vec![plain]) }
}

/// The same views, even if the bytes do not look like quoted-printable: for finding known secrets.
pub(super) fn all_views(bytes: &[u8]) -> Vec<View> {
    let plain = View { bytes: bytes.to_vec(), sources: Vec::new() };
    let printable = plain.decoded(quoted_printable);
    unescaped([Some(plain), printable].into_iter().flatten().collect())
}

/// These views, and each with escapes undone.
fn unescaped(firsts: Vec<View>) -> Vec<View> {
    let mut views = Vec::new();
    for first in firsts {
        let mut next = Some(first);
        for _ in 0..=DEPTH_MAX {
            let Some(view) = next else { break };
            next = view.decoded(escape);
            views.push(view);
        }
    }
    views
}

impl View {
    /// The source position of a position in this view.
    pub fn source(&self, at: usize) -> usize {
        self.sources.get(at).copied().unwrap_or(at)
    }

    /// The number of source bytes that encode a byte.
    pub fn width(&self, at: usize) -> usize {
        self.source(at + 1) - self.source(at)
    }

    /// The bytes with one encoding undone; `None` if there is none.
    fn decoded(&self, decode: Decode) -> Option<Self> {
        let (mut bytes, mut sources, mut at) = (Vec::with_capacity(self.bytes.len()), Vec::new(), 0);
        while let Some(&byte) = self.bytes.get(at) {
            // A backslash escapes only a quote at the same depth of encoding.
            let next = self.bytes.get(at + 1).filter(|next| b"\"'".contains(next));
            let is_apart = byte == b'\\' && next.is_some() && self.width(at) != self.width(at + 1);
            let is_escape = b"%\\&=".contains(&byte) && !is_apart;
            let length = if is_escape { decode(&self.bytes[at..], &mut bytes) } else { None };
            if length.is_none() {
                bytes.push(byte);
            }
            sources.resize(bytes.len(), self.source(at));
            at += length.unwrap_or(1);
        }
        sources.push(self.source(at));
        (bytes.len() < self.bytes.len()).then_some(Self { bytes, sources })
    }
}

/// Appends what the first of these bytes encode and returns their number; `None` if nothing is encoded here.
type Decode = fn(&[u8], &mut Vec<u8>) -> Option<usize>;

/// Percent-encoding as in URLs, backslashes as in JSON and Lua, entities as in HTML.
fn escape(rest: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    match *rest {
        [b'%', ..] => {
            bytes.push(hexadecimal(rest.get(1..3)?)? as u8);
            Some(3)
        }
        [b'\\', b'x', ..] => {
            bytes.push(hexadecimal(rest.get(2..4)?)? as u8);
            Some(4)
        }
        [b'\\', b'u', ..] => {
            let unit = |at: usize| hexadecimal(rest.get(at..at + 4)?).map(|unit| unit as u16);
            let second = rest.get(6..8).filter(|next| next == b"\\u").and_then(|_| unit(8));
            let units = [unit(2)?, second.unwrap_or_default()];
            let character = char::decode_utf16(units).next()?.ok()?;
            push(character, bytes);
            Some(6 * character.len_utf16())
        }
        [b'\\', letter, ..] => {
            let controls = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t')];
            bytes.push(controls.iter().find(|(name, _)| *name == letter).map_or(letter, |(_, control)| *control));
            Some(2)
        }
        [b'&', ..] => entity(rest, bytes),
        _ => None,
    }
}

/// An entity: any character by its number, and punctuation also by its name.
fn entity(rest: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    const LENGTH_MAX: usize = 10;
    const NAMES: [(&[u8], char); 9] = [
        (b"amp", '&'),
        (b"lt", '<'),
        (b"gt", '>'),
        (b"quot", '"'),
        (b"apos", '\''),
        (b"sol", '/'),
        (b"colon", ':'),
        (b"equals", '='),
        (b"commat", '@'),
    ];
    let end = rest.iter().take(LENGTH_MAX).position(|&byte| byte == b';')?;
    let character = match &rest[1..end] {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(hexadecimal(digits)?)?,
        [b'#', digits @ ..] => char::from_u32(std::str::from_utf8(digits).ok()?.parse().ok()?)?,
        name => NAMES.iter().find(|(known, _)| *known == name)?.1,
    };
    push(character, bytes);
    Some(end + 1)
}

/// Quoted-printable as in mails, including the equals sign of a soft line break.
fn quoted_printable(rest: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    match rest {
        [b'=', b'\n', ..] => Some(2),
        [b'=', b'\r', b'\n', ..] => Some(3),
        [b'=', digits @ ..] => {
            bytes.push(hexadecimal(digits.get(..2)?)? as u8);
            Some(3)
        }
        _ => None,
    }
}

fn push(character: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u32::from_str_radix(digits, 16).ok()
}

/// A word decoded as hexadecimal, and as base64 in either alphabet from each possible start of its first quadruple,
/// because the bytes before it may not belong to it. If the word encodes nothing, the result is meaningless bytes.
pub(super) fn words(word: &[u8]) -> Vec<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let hex: Option<Vec<u8>> = word.chunks(2).map(|pair| hexadecimal(pair).map(|byte| byte as u8)).collect();
    let standard: Vec<u8> = word
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        })
        .collect();
    let base64 = (0..4).filter_map(|start| {
        let word = standard.get(start..)?;
        // A single character after the last quadruple encodes less than a byte.
        let word = if word.len() % 4 == 1 { &word[..word.len() - 1] } else { word };
        GeneralPurpose::new(&STANDARD, LENIENT).decode(word).ok()
    });
    base64.chain(hex).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_taken_off_one_after_the_other() {
        for (text, expected) in [
            ("token", "token"),
            ("%2574oken", "token"),
            (r"pass\u0077ord\x31", "password1"),
            (r"a\/b\", r"a/b\"),
            (r"%5Cu0074oken", "token"),
            (r"\ud83d\ude00\u00e9", "\u{1f600}\u{e9}"),
            ("&#x2F;&#47;&amp;quot;", "//\""),
            ("100% =&#xD800; &; &#+1;", "100% =&#xD800; &; &#+1;"),
            (r"\ud83d", r"\ud83d"),
        ] {
            let views = views(text.as_bytes());
            assert!(views.iter().any(|view| view.bytes == expected.as_bytes()), "{text}");
        }
        let printable = views(b"pass=\r\nword=3D%53");
        assert!(printable.iter().any(|view| view.bytes == b"password=S"));
    }

    #[test]
    fn every_byte_knows_where_it_came_from() {
        let views = views(b"a%2525b");
        let last = views.last().unwrap();
        assert_eq!(last.bytes, b"a%b");
        assert_eq!([0, 1, 2, 3].map(|at| last.source(at)), [0, 1, 6, 7]);
        assert_eq!([last.width(0), last.width(1)], [1, 5]);
    }

    #[test]
    fn words_are_read_in_either_alphabet_from_anywhere() {
        let says = |word: &str, expected: &str| {
            words(word.as_bytes()).iter().any(|said| String::from_utf8_lossy(said).contains(expected))
        };
        for word in ["bWU6cHc", "aaabWU6cHc", "-bWU6cHc", "6d653a7077"] {
            assert!(says(word, "me:pw"), "{word}");
        }
        assert!(says("Pz8_", "???") && says("Pz8/", "???"));
        assert!(!says("a", "a"));
    }
}
