//! Escapes untrusted bytes for a terminal.

/// Longest text from a server that is shown, in characters, after escaping.
const LONGEST: usize = 120;

/// Replaces the rest of a truncated text.
const CUT: &str = "...";

/// Keeps printable ASCII and turns every other byte (and the backslash) into `\xNN`, up to 120 characters in total.
/// Never truncates inside an escape; truncated text ends in `...`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    // The largest length at which the truncation mark still fits.
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

/// The text with only those characters escaped that move the cursor or change the writing direction.
pub fn escape_controls(text: &str) -> String {
    text.chars().flat_map(|c| if is_misleading(c) { c.escape_unicode().collect() } else { vec![c] }).collect()
}

/// Like [`escape_controls`], but keeps line breaks and tabs, as in a script's error message.
pub fn escape_controls_in_lines(text: &str) -> String {
    let kept = |c: char| if "\n\t".contains(c) { c.to_string() } else { escape_controls(c.encode_utf8(&mut [0; 4])) };
    text.chars().map(kept).collect()
}

/// Escapes a cell or a line of Markdown: like [`escape_controls`], and without characters that end a cell, begin HTML,
/// or make a link or an image. Some text comes from servers, and opening the page must load nothing from them.
pub fn escape_markdown(text: &str) -> String {
    escape_controls(text).replace('|', r"\|").replace('<', "&lt;").replace("](", r"]\(")
}

/// True if a character moves the cursor, changes the writing direction or cannot be seen.
pub fn is_misleading(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_ascii_is_unescaped() {
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
    fn terminal_controls_are_escaped() {
        assert_eq!(escape_controls("測 \x1b[31m\n\u{202e}|\\"), r"測 \u{1b}[31m\u{a}\u{202e}|\");
    }

    #[test]
    fn markdown_links_are_escaped() {
        let text = r"![i]\(http://h/i.png) [ok]\(http://h) &lt;img> a\|b \u{61c}";
        assert_eq!(escape_markdown("![i](http://h/i.png) [ok](http://h) <img> a|b \u{61c}"), text);
    }

    #[test]
    fn lines_and_tabs_may_be_kept() {
        assert_eq!(
            escape_controls_in_lines("a\n\tb\u{1b}[31m\u{9b}\r\u{202e}ü"),
            r"a
	b\u{1b}[31m\u{9b}\u{d}\u{202e}ü"
        );
    }

    #[test]
    fn texts_are_cut_outside_escapes() {
        assert_eq!(escape(&[b'a'; 120]), "a".repeat(120));
        assert_eq!(escape(&[b'a'; 121]), "a".repeat(117) + "...");
        assert_eq!(escape(&[0x1b; 30]), "\\x1b".repeat(30));
        assert_eq!(escape(&[0x1b; 31]), "\\x1b".repeat(29) + "...");
        let long = [&[b'a'; 115][..], &[0x1b; 1000]].concat();
        assert_eq!(escape(&long), "a".repeat(115) + "...");
    }
}
