//! Decoding of percent-encoded strings (RFC 3986, 2.1).

/// The text with every `%` and two hexadecimal digits replaced by the encoded byte. Everything else is left unchanged,
/// incomplete escapes included.
pub fn percent_decoded(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some((&first, after)) = text.split_first() {
        let byte = after.first_chunk().filter(|_| first == b'%').and_then(|digits| hex_byte(*digits));
        bytes.push(byte.unwrap_or(first));
        text = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// The byte encoded by two hexadecimal digits; `None` if they are not such digits.
pub(crate) fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(16 * high? + low?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_escapes_decode_to_bytes() {
        let decoded = |text: &str| String::from_utf8_lossy(&percent_decoded(text.as_bytes())).into_owned();
        assert_eq!(decoded("no%20luck"), "no luck");
        assert_eq!(decoded("%e2%82%AC"), "€");
        for same in ["", "%", "100 %", "%2", "%g0", "%+1", "%%", "€"] {
            assert_eq!(decoded(same), same);
        }
        assert_eq!(decoded("%%41"), "%A");
    }
}
