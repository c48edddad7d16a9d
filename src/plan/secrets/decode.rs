//! Names and values as they are meant, whatever they are written in.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::plan::target::percent_decoded;

/// How often something may be encoded in itself.
const DEPTH_MAX: usize = 3;

/// A text without percent signs and backslashes that stand for something else.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '\\']) {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_owned();
    for _ in 0..DEPTH_MAX {
        let before = text.clone();
        text = percent_decoded(&text).unwrap_or(text);
        text = unescaped(&text);
        if text == before {
            break;
        }
    }
    Cow::Owned(text)
}

/// A text in which `\uXXXX`, `\xXX` and `\c` are characters, as in JSON, in Lua and in what we print.
fn unescaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        shown.push_str(before);
        let digits = match behind.chars().next() {
            Some('u') => 4,
            Some('x') => 2,
            _ => 0,
        };
        let number = behind.get(1..=digits).filter(|_| digits > 0);
        let character = number.and_then(|number| char::from_u32(u32::from_str_radix(number, 16).ok()?));
        shown.extend(character);
        rest = &behind[if character.is_some() { 1 + digits } else { 0 }..];
    }
    shown + rest
}

/// What a text in base64 says, in either alphabet, padded or not; `None` if it is none, or says no text.
pub(super) fn from_base64(text: &str) -> Option<String> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let bytes = GeneralPurpose::new(alphabet, LENIENT).decode(text).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_taken_off_one_after_the_other() {
        for (text, expected) in [
            ("token", "token"),
            ("%74oken", "token"),
            ("%2574oken", "token"),
            (r"pass\u0077ord", "password"),
            (r"pass\x77ord", "password"),
            (r"a\/b\", "a/b"),
            (r"%5Cu0074oken", "token"),
            ("100%", "100%"),
            (r"\u12", "u12"),
            (r"\ué", "ué"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn base64_is_read_in_either_alphabet() {
        assert_eq!(from_base64("bWU6cHc=").as_deref(), Some("me:pw"));
        assert_eq!(from_base64("bWU6cHc").as_deref(), Some("me:pw"));
        assert_eq!(from_base64("Pz8_").as_deref(), Some("???"));
        assert_eq!(from_base64("AAAA"), None);
        assert_eq!(from_base64("a%b"), None);
    }
}
