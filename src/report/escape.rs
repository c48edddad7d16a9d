//! Makes bytes of a stranger fit for a terminal.

/// The longest text that is shown of anything a server sent, in characters.
const LONGEST: usize = 120;

/// What stands for the rest of a text that was cut.
const CUT: &str = "...";

/// Printable ASCII as it is, every other byte (and the backslash) as `\xNN`, at most 120 characters. Never cut inside
/// an escape; what was cut ends in `...`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    // The last length at which the mark of a cut still fits.
    let mut safe = 0;
    for &byte in bytes {
        match byte {
            b' '..=b'~' if byte != b'\\' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
        if text.len() > LONGEST {
            text.truncate(safe);
            text.push_str(CUT);
            break;
        }
        if text.len() + CUT.len() <= LONGEST {
            safe = text.len();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_ascii_stays_as_it_is() {
        let table: [(&[u8], &str); 6] = [
            (b"GET / HTTP/1.1 ~", "GET / HTTP/1.1 ~"),
            (b"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
            (b"one\r\ntwo\t\0", "one\\x0d\\x0atwo\\x09\\x00"),
            ("ü\u{202e}".as_bytes(), "\\xc3\\xbc\\xe2\\x80\\xae"),
            (b"\x7f\xff", "\\x7f\\xff"),
            (b"a\\x1b", "a\\x5cx1b"),
        ];
        for (bytes, text) in table {
            assert_eq!(escape(bytes), text);
        }
    }

    #[test]
    fn a_text_is_cut_at_120_characters_and_never_inside_an_escape() {
        assert_eq!(escape(&[b'a'; 120]), "a".repeat(120));
        assert_eq!(escape(&[b'a'; 121]), "a".repeat(117) + "...");
        assert_eq!(escape(&[0x1b; 30]), "\\x1b".repeat(30));
        assert_eq!(escape(&[0x1b; 31]), "\\x1b".repeat(29) + "...");
        let long = [&[b'a'; 115][..], &[0x1b; 1000]].concat();
        assert_eq!(escape(&long), "a".repeat(115) + "...");
    }
}
