//! User-visible messages for errors raised by a script.

/// The line before a stack trace.
const TRACE: &str = "\nstack traceback:\n";

/// Makes a raised error safe to print on a terminal, and shortens it to the script's own lines. When memory runs out,
/// LuaJIT reports neither place nor cause: the message supplies a cause.
pub fn readable_error(problem: &[u8]) -> String {
    if problem == b"not enough memory" {
        return "the script ran out of memory; it keeps too much data in tables and strings".to_owned();
    }
    without_own_lines(without_repeated_places(&escape_unprintable(problem)))
}

/// Escapes bytes into printable text.
fn escape_unprintable(bytes: &[u8]) -> String {
    let mut words = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        for character in piece.valid().chars() {
            match character {
                // Stack traces have several lines.
                '\n' | '\t' => words.push(character),
                '\0'..='\x7f' if character.is_control() => words.push_str(&escape_byte(character as u8)),
                _ if character.is_control() => words.extend(character.escape_unicode()),
                _ => words.push(character),
            }
        }
        words.extend(piece.invalid().iter().map(|&byte| escape_byte(byte)));
    }
    words
}

fn escape_byte(byte: u8) -> String {
    format!("\\x{byte:02x}")
}

/// Removes stack-trace lines outside the script: `wrk.lua` and host calls.
fn without_own_lines(words: String) -> String {
    let Some((_, trace)) = words.rsplit_once(TRACE) else { return words };
    let is_own = |line: &&str| ["\twrk:", "\t[C]: at 0x", "\t[builtin#"].iter().any(|start| line.starts_with(start));
    let others: Vec<&str> = trace.lines().filter(|line| !is_own(line)).collect();
    words[..words.len() - trace.len()].to_owned() + &others.join("\n")
}

/// Removes repeated `file:line: ` prefixes, which nested calls of `assert` and nested coroutines add.
fn without_repeated_places(words: &str) -> String {
    let mut kept = String::with_capacity(words.len());
    let mut last = "";
    let mut rest = words;
    while let Some((place, after)) = rest.split_once(": ") {
        let line = place.rsplit(':').next().unwrap_or_default();
        if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) || line.len() == place.len() {
            break;
        }
        if place != last {
            kept.push_str(place);
            kept.push_str(": ");
        }
        last = place;
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_bytes_are_escaped() {
        let table: [(&[u8], &str); 5] = [
            (b"a.lua:1: boom\nstack traceback:\n\ta.lua:1:", "a.lua:1: boom\nstack traceback:\n\ta.lua:1:"),
            (b"a.lua:1: \0hidden\x7f", "a.lua:1: \\x00hidden\\x7f"),
            (b"\x1b[31mred\r", "\\x1b[31mred\\x0d"),
            (b"gr\xc3\xbc\xc3\x9f \xff\xfe", "gr\u{fc}\u{df} \\xff\\xfe"),
            ("\u{85}".as_bytes(), "\\u{85}"),
        ];
        for (raised, words) in table {
            assert_eq!(readable_error(raised), words);
        }
    }

    #[test]
    fn traces_show_only_script_lines() {
        let trace = "a.lua:1: boom\nstack traceback:\n\t[C]: in function 'error'\n\ta.lua:1: in function 'init'\n\t\
                     wrk:300: in function <wrk:290>\n\t[C]: at 0x55d0\n\t[builtin#21]: at 0x55d1";
        let shown = "a.lua:1: boom\nstack traceback:\n\t[C]: in function 'error'\n\ta.lua:1: in function 'init'";
        assert_eq!(readable_error(trace.as_bytes()), shown);
    }

    #[test]
    fn error_positions_are_named_once() {
        for (raised, words) in [
            ("a.lua:1: a.lua:1: a.lua:1: boom", "a.lua:1: boom"),
            ("a.lua:1: b.lua:2: b.lua:2: boom: 5: 5: 7", "a.lua:1: b.lua:2: boom: 5: 5: 7"),
            ("a.lua:1: a.lua:2: a.lua:1: ", "a.lua:1: a.lua:2: a.lua:1: "),
            ("boom: boom: 5: 5", "boom: boom: 5: 5"),
            ("", ""),
        ] {
            assert_eq!(readable_error(raised.as_bytes()), words);
        }
    }
}
